"""Fixtures that give tests a real Kubernetes control plane, and the line that says when they could not.

A control plane takes three seconds to start, so tests share one for the session and each begins with it emptied.
"""

from collections.abc import Iterator

import pytest

from tests.testbed import ControlPlane, TestbedUnavailable
from tests.testbed.availability import SKIP_PREFIX, skip_or_fail
from tests.testbed.build import programs

TESTBED_FIXTURES = {"control_plane", "fresh_control_plane"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what uses the test bed, so that `-m "not testbed"` leaves it out and nobody has to remember to."""
    for item in items:
        if TESTBED_FIXTURES.intersection(getattr(item, "fixturenames", ())):
            item.add_marker("testbed")


@pytest.fixture(scope="session")
def testbed_programs(request: pytest.FixtureRequest) -> None:
    """The programs are built; skips, or fails where they are required, if they cannot be."""
    capture = request.config.pluginmanager.getplugin("capturemanager")
    try:
        with capture.global_and_fixture_disabled():  # a build of minutes should be seen to be one
            programs()
    except TestbedUnavailable as unavailable:
        skip_or_fail(unavailable)


@pytest.fixture(scope="session")
def _session_control_plane(testbed_programs: None) -> Iterator[ControlPlane]:
    with ControlPlane() as plane:
        yield plane


@pytest.fixture
def control_plane(_session_control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """A control plane shared by the session, empty at the start of each test."""
    _session_control_plane.wipe()
    yield _session_control_plane
    _session_control_plane.stop_components()


@pytest.fixture
def fresh_control_plane(testbed_programs: None) -> Iterator[ControlPlane]:
    """A control plane of this test's own."""
    with ControlPlane() as plane:
        yield plane


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """One line for each reason for which parts of the test bed were missing, with the number of tests that cost."""
    lost: dict[str, int] = {}
    for report in terminalreporter.getreports("skipped"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
        _, found, sentence = reason.partition(SKIP_PREFIX)
        if found:
            lost[sentence] = lost.get(sentence, 0) + 1
    for sentence, count in lost.items():
        terminalreporter.write_line(f"Skipped {count} tests that need the test bed. {sentence}", yellow=True)
