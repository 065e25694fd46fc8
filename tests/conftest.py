"""Fixtures that give tests a real Kubernetes control plane, and the line that says when they could not.

A control plane takes three seconds to start, so tests share one for the session and begin by emptying it. What uses a
program built with Go is marked: `make test` leaves it out, `make integration` runs nothing else.
"""

from collections.abc import Iterator

import pytest
from hypothesis import settings

from podium.engine.answer_cache.store import UnexpectedErrors
from tools.kit.effort import examples
from tools.testbed import ControlPlane, TestbedUnavailable
from tools.testbed.availability import SKIP_PREFIX, skip_or_fail
from tools.testbed.build import CHARTS, CONTROL_PLANE, MEASURED_LOAD, programs

settings.register_profile(
    "podium", deadline=None, max_examples=examples(100)
)  # how long an example takes says how busy the machine is
settings.load_profile("podium")

UnexpectedErrors.strict = True  # a mistake in the answer cache fails the test instead of becoming slowness


BUILT = ("testbed_programs", "helm_program", "prometheus_programs")
"""Fixtures that need programs built with Go, in the order in which `make integration` has them ready."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks what uses the test bed, so that `-m "not testbed"` leaves it out; what is built last comes last."""
    ready = {}
    for item in items:
        needs = [BUILT.index(name) for name in getattr(item, "fixturenames", ()) if name in BUILT]
        ready[item] = max(needs, default=0)
        if needs:
            item.add_marker("testbed")
    items.sort(key=ready.__getitem__)


@pytest.fixture(scope="session")
def testbed_programs(request: pytest.FixtureRequest) -> None:
    """The programs of the control plane are built; skips, or fails where they are required, if they cannot be."""
    _build(request, *CONTROL_PLANE)


@pytest.fixture(scope="session")
def prometheus_programs(request: pytest.FixtureRequest, testbed_programs: None) -> None:
    """Prometheus and node_exporter are built too."""
    _build(request, *MEASURED_LOAD)


@pytest.fixture(scope="session")
def helm_program(request: pytest.FixtureRequest) -> None:
    """Helm is built."""
    _build(request, *CHARTS)


@pytest.fixture(scope="session")
def control_plane(testbed_programs: None) -> Iterator[ControlPlane]:
    """A control plane shared by the session, as the tests before left it; fixtures of any scope may build on it."""
    with ControlPlane() as plane:
        yield plane


@pytest.fixture
def empty_control_plane(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """The shared control plane, emptied before the test; the schedulers and the like that it starts end with it."""
    control_plane.wipe()
    yield control_plane
    control_plane.stop_components()


@pytest.fixture
def fresh_control_plane(testbed_programs: None) -> Iterator[ControlPlane]:
    """A control plane of this test's own."""
    with ControlPlane() as plane:
        yield plane


def _build(request: pytest.FixtureRequest, *modules: str) -> None:
    capture = request.config.pluginmanager.getplugin("capturemanager")
    try:
        with capture.global_and_fixture_disabled():  # a build of minutes should be seen to be one
            programs(*modules)
    except TestbedUnavailable as unavailable:
        skip_or_fail(unavailable)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """One line for each reason for which parts of the test bed were missing, with the number of tests that cost."""
    lost: dict[str, int] = {}
    for report in terminalreporter.getreports("skipped"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
        _, found, sentence = reason.partition(SKIP_PREFIX)
        if found:
            lost[sentence] = lost.get(sentence, 0) + 1
    for sentence, count in lost.items():
        terminalreporter.write_line(f"Test bed incomplete, {count} skipped. {sentence}", yellow=True)
