"""A pytest plugin for continuous integration: a few tests that failed are run once more, one at a time.

The tests start hundreds of real processes on few cores. What is broken fails again; what passes is flaky, which is a
defect of the test: it is written into the file $PODIUM_FLAKY, which .ci/run prints at its end. The file may hold no
more than three in all; a fourth test that fails is a failure.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

MOST = 3


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    if hasattr(session.config, "workerinput") or exitstatus != pytest.ExitCode.TESTS_FAILED:
        return
    reporter = session.config.pluginmanager.getplugin("terminalreporter")
    reports = [*reporter.getreports("failed"), *reporter.getreports("error")]
    failed = list(dict.fromkeys(report.nodeid for report in reports))
    flaky = Path(os.environ["PODIUM_FLAKY"])
    known = flaky.read_text().splitlines() if flaky.exists() else []
    if not failed or len(failed) + len(known) > MOST:
        return
    for test in failed:
        again = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-o", "addopts=", "-q", test]
        if subprocess.run(again, cwd=session.config.rootpath, check=False).returncode != 0:
            return
    with flaky.open("a") as file:
        file.writelines(f"{test}\n" for test in failed)
    session.exitstatus = pytest.ExitCode.OK
