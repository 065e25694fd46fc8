"""A pytest plugin that starts no test after $PODIUM_START_TESTS_UNTIL (of time.monotonic), for tools/quick.py."""

import os
import time

import pytest

UNTIL = float(os.environ["PODIUM_START_TESTS_UNTIL"])
REASON = "no time left in make quick; make test runs it"


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if time.monotonic() > UNTIL:
        pytest.skip(REASON)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    left = [report for report in terminalreporter.getreports("skipped") if REASON in str(report.longrepr)]
    if left:
        terminalreporter.write_line(f"{len(left)} tests were left out: {REASON}s", yellow=True)
