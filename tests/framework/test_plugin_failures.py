"""What plugins raise is recorded with plugin, step, pod, node and traceback; once for each mistake."""

from __future__ import annotations

from typing import Any

import pytest

from podium.cluster import NodeInfo
from podium.framework import Cycle, Plugin
from podium.framework.plugin_failures import FirstFailures, PluginFailure
from podium.framework.timer import Step
from tests.builders import make_node, make_pod
from tests.engine.schedulers import World
from tests.framework.runtimes import answering


class Fussy(Plugin):
    """Raises on one node, in a function of its own."""

    def filter_node(self, cycle: Cycle, node: NodeInfo) -> bool:
        return node.name != "n2" or self._look_up(cycle.pod.labels)

    def _look_up(self, labels: dict[str, str]) -> bool:
        return labels["colour"] == "red"


def failures_of(*plugins: type[Plugin], pods: int = 1) -> tuple[list[PluginFailure], World]:
    found: list[PluginFailure] = []
    world = World(*plugins, nodes=[make_node("n1"), make_node("n2")], on_failure=found.append)
    world.attempt(*(make_pod(f"p{number}") for number in range(pods)))
    return found, world


def test_a_failure_has_plugin_step_pod_node_and_traceback() -> None:
    (failure, *_), world = failures_of(Fussy)
    assert (failure.plugin, failure.step, failure.pod, failure.node) == ("Fussy", Step.FILTER, "default/p0", "n2")
    assert str(failure) == "plugin \"Fussy\" failed at Filter for pod default/p0 on node n2: KeyError: 'colour'"
    assert "in _look_up" in failure.traceback()
    assert world.message == "running \"Fussy\" filter plugin: KeyError: 'colour'"


@pytest.mark.parametrize(
    ("method", "step", "node"),
    [
        ("pre_enqueue", Step.PRE_ENQUEUE, ""),
        ("pre_filter", Step.PRE_FILTER, ""),
        ("filter", Step.FILTER, ""),
        ("pre_score", Step.PRE_SCORE, ""),
        ("score", Step.SCORE, ""),
        ("score_node", Step.SCORE, "n1"),
        ("reserve", Step.RESERVE, "n2"),
        ("permit", Step.PERMIT, "n2"),
        ("pre_bind", Step.PRE_BIND, "n2"),
        ("bind", Step.BIND, "n2"),
        ("post_bind", Step.POST_BIND, "n2"),
    ],
)
def test_what_is_raised_is_recorded_at_every_step(method: str, step: Step, node: str) -> None:
    found: list[PluginFailure] = []
    extra: dict[str, Any] = {"score_node": 1} if method == "pre_score" else {}
    world = World(
        answering("X", **{method: KeyError("x")}, **extra),
        nodes=[make_node("n1"), make_node("n2")],
        on_failure=found.append,
    )
    world.add(make_pod())
    world.scheduler.schedule_one()
    assert [(each.plugin, each.step) for each in found] == [("X", step)]
    if node != "n2":
        assert found[0].node == node
    else:
        assert found[0].node in ("n1", "n2")


def test_a_wrong_answer_is_no_exception() -> None:
    found, world = failures_of(answering("X", reserve="nonsense"))
    assert found == []
    assert "it must give None or a Status, got str" in world.message


def test_one_mistake_is_shown_once_and_counted_each_time() -> None:
    shown: list[PluginFailure] = []
    first = FirstFailures(shown.append)

    class Other(Fussy):
        pass

    for plugin in (Fussy, Fussy, Other):
        for failure in failures_of(plugin)[0]:
            first(failure)
    assert [failure.plugin for failure in shown] == ["Fussy", "Other"]
    assert first.counts == {("Fussy", Step.FILTER): 2, ("Other", Step.FILTER): 1}
