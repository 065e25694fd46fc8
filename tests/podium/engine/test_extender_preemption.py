"""Extenders that have a say in preemption: which nodes may be freed, and by evicting whom."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from podium.framework import Nomination
from podium.framework.extender import ChosenVictims, Extender, ExtenderError, Victims
from podium.kube import Pod
from tests.podium.engine.in_process import InProcess
from tests.podium.engine.schedulers import World
from tools.kit.builders import make_node, make_pod

NODES = [make_node(name, cpu=2) for name in ("n1", "n2", "n3")]
LARGE = {"cpu": 2}


def victim(name: str, node: str, *, priority: int = 0, cpu: int = 1, start: str = "2024-01-01T00:00:00Z") -> Pod:
    return make_pod(name, node=node, priority=priority, requests={"cpu": cpu}, status={"startTime": start})


VICTIMS = [victim("a1", "n1"), victim("b1", "n1"), victim("a2", "n2", priority=5, cpu=2), victim("a3", "n3", cpu=2)]
"""n3 hurts least: one victim of the lowest priority. Then n1 with two, then n2 with a more important one."""


def world(*extenders: Extender) -> World:
    here = World("NodeResourcesFit", "DefaultPreemption", nodes=NODES, extenders=extenders)
    here.add(*VICTIMS)
    here.attempt(make_pod(requests=LARGE, priority=10))
    return here


def agreeing(*names: str) -> Any:
    """Agrees to the nodes named, as proposed."""

    def choose(victims: Mapping[str, Victims]) -> dict[str, ChosenVictims]:
        return {
            name: ChosenVictims([pod.uid for pod in each.pods], each.violations)
            for name, each in victims.items()
            if name in names
        }

    return choose


def answering(answer: Any) -> Any:
    def respond(_victims: Mapping[str, Victims]) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    return respond


def message(told: str) -> str:
    return f"0/3 nodes are available: 3 Insufficient cpu. preemption: {told}"


def test_without_extenders_that_care_the_least_harmful_node_is_freed() -> None:
    uninterested = InProcess(preempts=agreeing("n1"), cares_for=lambda _pod: False)
    here = world(InProcess(), uninterested)
    assert (here.evicted, here.failures[0].nomination, uninterested.asked) == (["a3"], Nomination("n3"), [])


def test_extenders_are_asked_about_all_candidates_with_their_victims() -> None:
    seen: list[Any] = []

    def choose(victims: Mapping[str, Victims]) -> dict[str, ChosenVictims]:
        seen.append({name: ([pod.name for pod in each.pods], each.violations) for name, each in victims.items()})
        return {}

    world(InProcess(preempts=choose))
    assert seen == [{"n1": (["a1", "b1"], 0), "n2": (["a2"], 0), "n3": (["a3"], 0)}]


def test_the_best_of_what_extenders_leave_is_freed() -> None:
    first = InProcess("a", preempts=agreeing("n1", "n2"))
    second = InProcess("b", preempts=agreeing("n1", "n2", "n3"))
    here = world(first, second)
    assert (here.evicted, here.failures[0].nomination) == (["a1", "b1"], Nomination("n1"))
    assert sorted(second.asked[0][2]) == ["n1", "n2"]


def test_extenders_may_choose_other_victims_and_count_violations_themselves() -> None:
    answer = {
        "n1": ChosenVictims(["default-b1"], 1),
        "n2": ChosenVictims(["default-a2"], 0),
    }
    here = world(InProcess(preempts=answering(answer)))
    assert (here.evicted, here.failures[0].nomination) == (["a2"], Nomination("n2"))


def test_the_first_victim_counts_as_the_most_important_whatever_the_order() -> None:
    """n1 is said to evict b1 (priority 0) before c1 (priority 4), so it ranks as if its highest priority were 0."""
    answer = {
        "n1": ChosenVictims(["default-b1", "default-c1"]),
        "n2": ChosenVictims(["default-a2"]),
        "n3": ChosenVictims(["default-a3"]),
    }
    here = World(
        "NodeResourcesFit", "DefaultPreemption", nodes=NODES, extenders=[InProcess(preempts=answering(answer))]
    )
    here.add(victim("b1", "n1"), victim("c1", "n1", priority=4))
    here.add(victim("a2", "n2", priority=1, cpu=2), victim("a3", "n3", priority=1, cpu=2))
    here.attempt(make_pod(requests=LARGE, priority=10))
    assert here.failures[0].nomination == Nomination("n1")


def test_when_extenders_leave_no_candidate_nothing_is_evicted() -> None:
    never = InProcess("b", preempts=agreeing("n1"))
    here = world(InProcess("a", preempts=answering({})), never)
    assert (here.evicted, here.message, never.asked) == ([], message("no candidate node for preemption"), [])
    assert here.failures[0].nomination is None


BAD = [
    (
        ExtenderError("failed preempt with extender at URL u, code 500"),
        "failed preempt with extender at URL u, code 500",
    ),
    ({"n9": ChosenVictims(["x"])}, 'nodeinfo not found for node name "n9"'),
    (
        {"n1": ChosenVictims(["default-a3"])},
        "extender: http://extender claims to preempt pod (UID: &{default-a3}) on node: n1, "
        "but the pod is not found on that node",
    ),
    (KeyError("x"), "extender \"http://extender\": KeyError: 'x'"),
    (None, "extender \"http://extender\": TypeError: 'NoneType' object is not iterable"),
]


@pytest.mark.parametrize(
    ("answer", "told"), [*BAD, ({"n1": ChosenVictims([])}, 'expected at least one victim pod on node "n1"')]
)
def test_an_extender_that_must_answer_well_fails_preemption(answer: Any, told: str) -> None:
    here = world(InProcess(preempts=answering(answer)))
    assert (here.evicted, here.message, here.failures[0].nomination) == ([], message(told), None)
    assert here.failures[0].reason == "Unschedulable"


@pytest.mark.parametrize(("answer", "told"), BAD)
def test_one_that_may_be_ignored_is_skipped(answer: Any, told: str) -> None:
    here = world(InProcess(preempts=answering(answer), ignorable=True))
    assert here.evicted == ["a3"]
    assert here.reports == [f"preemption for pod default/p1: extender http://extender is skipped: {told}"]


def test_a_node_without_victims_is_dropped_where_the_extender_may_be_ignored() -> None:
    answer = {"n1": ChosenVictims([]), "n2": ChosenVictims(["default-a2"])}
    here = world(InProcess(preempts=answering(answer), ignorable=True))
    assert here.evicted == ["a2"]
    here = world(InProcess(preempts=answering({"n1": ChosenVictims([])}), ignorable=True))
    assert (here.evicted, here.message) == ([], message("no candidate node for preemption"))
