"""What a learner raises is the plugin's mistake: it is named, and neither the watch nor the writing ends."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from typing import Any, cast

import pytest

from podium import Cycle, Handle, NodeInfo, Plugin
from podium.client import Client, WatchedOutcomes
from podium.framework.clock import SystemClock
from podium.framework.plugin_failures import PluginFailure
from podium.framework.pod_outcomes import ConfigMapName, PodOutcome, learn
from podium.testing import TrialCluster
from tools.kit.builders import build, make_cluster, make_handle, make_node

KEPT = ConfigMapName("kube-system", "lessons")


class Forgetful:
    """A learner that takes outcomes for pods, and fails in every method."""

    def observe(self, pod: PodOutcome, now: float) -> bool:
        return bool(pod.node_name)  # type: ignore[attr-defined]

    def restore(self, lessons: Mapping[str, str], now: float) -> None:
        raise ValueError("restore")

    def save(self, now: float) -> dict[str, str]:
        raise ValueError("save")


class Learning(Plugin):
    def __init__(self, args: Any, handle: Handle) -> None:
        super().__init__(args, handle)
        self.initializing = handle.initializing
        self.lessons = learn(handle, KEPT, Forgetful)

    def score_node(self, cycle: Cycle, node: NodeInfo) -> int:
        return 0


class OneConfigMap:
    """An API server with one ConfigMap."""

    async def get(self, _path: str) -> bytes:
        return b'{"metadata": {"name": "lessons"}, "data": {"a": "1"}}'


@pytest.fixture
def failures() -> list[PluginFailure]:
    return []


@pytest.fixture
def pod_outcomes(failures: list[PluginFailure]) -> WatchedOutcomes:
    found = WatchedOutcomes(
        cast("Client", OneConfigMap()), clock=SystemClock(), rng=random.Random(1), report=lambda _line: None
    )
    handle = make_handle(make_cluster([make_node("n1")]))
    handle.pod_outcomes, handle.on_failure, handle.initializing = found, failures.append, "Learning"
    Learning(None, handle)
    return found


def test_a_handle_knows_the_plugin_that_is_being_made() -> None:
    assert TrialCluster(Learning).plugin(Learning).initializing == "Learning"


def test_a_failure_about_a_pod_names_plugin_pod_file_and_line(
    pod_outcomes: WatchedOutcomes, failures: list[PluginFailure]
) -> None:
    pod_outcomes._observe(build(PodOutcome, {"metadata": {"name": "x", "namespace": "default"}}))
    (failure,) = failures
    about = 'plugin "Learning" failed at Learn for pod default/x'
    what = "AttributeError: 'PodOutcome' object has no attribute 'node_name'"
    assert str(failure).startswith(f"{about}: {what} (test_learner_failures.py:")


def test_lessons_that_cannot_be_recalled_or_kept_end_nothing(
    pod_outcomes: WatchedOutcomes, failures: list[PluginFailure]
) -> None:
    (page,) = pod_outcomes._pages.values()
    page.unwritten = True

    async def main() -> None:
        assert await page.read()
        await pod_outcomes.flush()

    asyncio.run(main())
    assert [str(each.error) for each in failures] == ["restore", "save"]
    assert not page.unwritten, "the next lesson is another try"
