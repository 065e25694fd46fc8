"""Gives pytest tests the fixture `podium_cluster`, and shows their decisions when they fail.

pytest finds this module by the entry point of the package, in every project of the environment that Podium is installed
in; it therefore imports nothing but pytest until the fixture is used.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import pytest

if TYPE_CHECKING:
    from podium.testing.trial_cluster import TrialCluster

P = ParamSpec("P")
T = TypeVar("T")

CLUSTERS: pytest.StashKey[list[TrialCluster]] = pytest.StashKey()


@pytest.fixture
def podium_cluster(request: pytest.FixtureRequest) -> Callable[..., TrialCluster]:
    """Makes clusters to try plugins on: `podium_cluster(MyPlugin, objects=[…])` is a `podium.testing.TrialCluster`."""
    from podium.testing.trial_cluster import TrialCluster

    clusters = request.node.stash.setdefault(CLUSTERS, [])
    return _collected_in(clusters, TrialCluster)


def _collected_in(made: list[T], make: Callable[P, T]) -> Callable[P, T]:
    """`make`, with the parameters it has; what it makes is kept in the list."""

    def make_and_keep(*given: P.args, **named: P.kwargs) -> T:
        made.append(make(*given, **named))
        return made[-1]

    return make_and_keep


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add what was decided to the report of a test that failed."""
    report = yield
    if report.failed and report.when == "call":
        for cluster in item.stash.get(CLUSTERS, []):
            text = "\n".join(str(outcome) for outcome in cluster.outcomes.values())
            if text:
                report.sections.append(("Decisions of podium_cluster", text))
    return report
