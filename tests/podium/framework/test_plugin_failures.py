"""What plugins raise is recorded with plugin, step, pod, node and traceback; once for each mistake."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from podium.cluster import NodeInfo
from podium.framework import Action, Cycle, Interest, Plugin, PluginError, Resource, Verdict
from podium.framework.plugin_failures import FirstFailures, PluginFailure
from podium.framework.timer import Step
from podium.kube import Pod
from tests.podium.engine.schedulers import World
from tests.podium.framework.runtimes import answering
from tools.kit.builders import make_node, make_pod


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
    sentence = "plugin \"Fussy\" failed at Filter for pod default/p0 on node n2: KeyError: 'colour'"
    assert str(failure) == f"{sentence} (test_plugin_failures.py:{Fussy._look_up.__code__.co_firstlineno + 1})"
    assert "in _look_up" in failure.traceback()
    assert "src/podium" not in failure.traceback()
    assert world.message == "running \"Fussy\" filter plugin: KeyError: 'colour'"


def look_up(pod: Pod, _before: object, _after: object) -> bool:
    return bool(pod.labels["colour"])


class Hinted(Plugin):
    """Its hint is a function."""

    def filter_node(self, _cycle: Cycle, _node: NodeInfo) -> bool:
        return False

    def interests(self) -> list[Interest]:
        return [Interest(Resource.NODE, Action.ADD, look_up)]


def test_the_traceback_of_a_function_begins_with_it_too() -> None:
    found, world = failures_of(Hinted)
    world.add(make_node("n3"))
    (failure,) = found
    assert failure.step == Step.QUEUEING_HINT
    assert "in look_up" in failure.traceback()
    assert "src/podium" not in failure.traceback()


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


@pytest.mark.parametrize(
    ("answers", "pods", "sentence"),
    [
        ({"reserve": "no"}, 1, "Reserve for pod default/p0 on node n1: it must give None or a Status, got 'no' (str)"),
        (
            {"score_node": 101},
            1,
            "Score for pod default/p0 on node n2: the invalid score 101; it must be from 0 to 100: give such a score, "
            "or set a normalizer",
        ),
        (
            {"filter": Verdict(np.array([1, 1]), lambda _code: None)},  # type: ignore[arg-type, return-value]
            1,
            "Filter for pod default/p0: status_of(1) must give a Status that refuses the node, got NoneType",
        ),
        ({"bind": 0}, 1, "Bind for pod default/p0 on node n1: it must give None, SKIP or a Status, got 0 (int)"),
    ],
)
def test_a_wrong_answer_is_recorded_with_pod_node_what_came_and_what_is_wanted(
    answers: dict[str, Any], pods: int, sentence: str
) -> None:
    found, world = failures_of(answering("X", **answers), pods=pods)
    said = {str(failure).replace("n2", "n1") for failure in found}
    assert said == {f'plugin "X" gave a wrong answer at {sentence}'.replace("n2", "n1")}
    assert [failure.traceback() for failure in found] == [""]
    assert world.failures


def test_what_a_plugin_fails_with_on_purpose_is_left_to_the_event() -> None:
    found, world = failures_of(answering("X", reserve=PluginError("no such rack"), post_bind=None))
    assert (found, world.message) == ([], 'running Reserve plugin "X": no such rack')


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
