"""DefaultPreemption in a running scheduler: who may evict, what is written, and what becomes of the preemptor."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from podium.config.field import FieldPath
from podium.framework import Cycle, Nomination, Plugin, Wait
from podium.kube import Pod
from podium.plugins.default_preemption import DefaultPreemption, DefaultPreemptionArgs
from tests.podium.engine.schedulers import World
from tools.kit.builders import make_cluster, make_node, make_plugin, make_pod

EVICTED = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
LEAVING = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


def running(name: str, node: str = "n1", priority: int = 0, cpu: int = 4, **rest: Any) -> Pod:
    return make_pod(name, node=node, priority=priority, requests={"cpu": cpu}, **rest)


def preemptor(nominated: str = "", **rest: Any) -> Pod:
    status = {"nominatedNodeName": nominated}
    return make_pod("preemptor", priority=10, requests={"cpu": 4}, status=status, **rest)


def world(*pods: Pod, nodes: int = 1, **options: Any) -> World:
    found = World(default=True, nodes=[make_node(f"n{number + 1}", cpu=4) for number in range(nodes)], **options)
    found.add(*pods)
    return found


def post_filter_message(found: World) -> str:
    """What preemption had to say in the last failure."""
    return found.message.partition("preemption: ")[2]


# From eviction to placement


def test_the_victim_goes_the_preemptor_waits_for_it_and_takes_its_place() -> None:
    victim = running("victim")
    found = world(victim)
    found.attempt(preemptor())
    assert found.evicted == ["victim"]
    assert found.failures[-1] == (
        "default/preemptor",
        "Unschedulable",
        "0/1 nodes are available: 1 Insufficient cpu. preemption: found a potential placement for pod on node n1, "
        "preempting 1 victims",
        Nomination("n1"),
    )
    assert found.scheduler.nominator.node_of("default-preemptor") == "n1"
    assert found.place("preemptor") == "unschedulable"
    found.delete(victim)
    found.try_next()
    assert found.bound == [("preemptor", "n1")]
    assert found.scheduler.nominator.nodes() == []


def test_a_pod_of_lower_priority_cannot_take_the_place_meanwhile() -> None:
    victim = running("victim")
    found = world(victim)
    found.attempt(preemptor())
    found.delete(victim)
    found.attempt(make_pod("thief", priority=9, requests={"cpu": 1}))  # the preemptor comes first
    found.try_next()
    assert found.bound == [("preemptor", "n1")]


# Who may evict


def test_a_pod_that_never_preempts_says_so_and_keeps_its_nomination() -> None:
    found = world(running("victim"))
    found.attempt(preemptor(spec={"preemptionPolicy": "Never"}))
    assert post_filter_message(found) == "not eligible due to preemptionPolicy=Never."
    assert (found.evicted, found.failures[-1].nomination) == ([], None)


@pytest.mark.parametrize(
    ("on_nominated", "eligible"),
    [
        pytest.param({"metadata": LEAVING, "status": {"conditions": [EVICTED]}}, False, id="a victim is leaving"),
        pytest.param({"metadata": LEAVING}, True, id="a pod is leaving by itself"),
        pytest.param({"status": {"conditions": [EVICTED]}}, True, id="a victim is not leaving yet"),
        pytest.param(
            {"metadata": LEAVING, "status": {"conditions": [{**EVICTED, "reason": "DeletionByTaintManager"}]}},
            True,
            id="a pod is leaving for another reason",
        ),
        pytest.param(
            {"metadata": LEAVING, "status": {"conditions": [{**EVICTED, "status": "False"}]}}, True, id="no longer so"
        ),
        pytest.param(
            {"metadata": LEAVING, "status": {"conditions": [EVICTED]}, "priority": 10}, True, id="nobody's victim"
        ),
    ],
)
def test_a_pod_waits_for_the_victims_on_its_nominated_node(on_nominated: dict[str, Any], eligible: bool) -> None:
    found = world(running("first", **on_nominated), running("second", "n2"), nodes=2)
    found.attempt(preemptor(nominated="n1"))
    if eligible:
        assert found.failures[-1].nomination is not None
    else:
        assert post_filter_message(found) == "not eligible due to a terminating pod on the nominated node."
        assert (found.evicted, found.failures[-1].nomination) == ([], None)
        assert found.scheduler.nominator.node_of("default-preemptor") == "n1"


def test_a_nominated_node_that_eviction_can_no_longer_help_is_given_up() -> None:
    leaving = running("leaving", metadata=LEAVING, status={"conditions": [EVICTED]})
    found = world(leaving, running("other", "n2"), nodes=2)
    found.add(make_node("n1", cpu=4, unschedulable=True))
    found.attempt(preemptor(nominated="n1"))
    assert (found.evicted, found.failures[-1].nomination) == (["other"], Nomination("n2"))


def test_where_eviction_cannot_help_the_nomination_is_cleared() -> None:
    found = world(running("victim"))
    found.add(make_node("n1", cpu=4, unschedulable=True))
    found.attempt(preemptor(nominated="gone"))
    assert post_filter_message(found) == "0/1 nodes are available: 1 Preemption is not helpful for scheduling."
    assert found.failures[-1].nomination == Nomination("")
    assert found.scheduler.nominator.nodes() == []


# While evicting


def test_the_preemptor_stays_out_of_the_queue_while_its_victims_are_evicted() -> None:
    victim, other = running("victim"), running("other", "n2", priority=10)
    found = world(victim, other, nodes=2)
    found.slow_evictions = True
    found.attempt(preemptor())
    found.delete(other)
    queued = found.queue.get("default/preemptor")
    assert queued is not None
    assert queued.gating_plugin == "DefaultPreemption", "n2 has room now, but n1 is being cleared"
    found.evictions[0](None)
    found.delete(victim)
    found.try_next()
    assert found.bound == [("preemptor", "n1")]


@pytest.mark.parametrize("news", ["gone", "leaving"])
def test_news_of_the_last_victim_lets_the_preemptor_in_before_the_eviction_has_ended(news: str) -> None:
    victims = [running("a", cpu=2), running("b", cpu=2)]
    found = world(*victims)
    found.slow_evictions = True
    found.attempt(preemptor())
    assert sorted(found.evicted) == ["a", "b"]
    found.delete(victims[0])
    assert found.queue.pop() is None
    if news == "gone":
        found.delete(victims[1])
        found.try_next()
        assert found.bound == [("preemptor", "n1")]
    else:
        found.add(replace(victims[1], metadata=replace(victims[1].metadata, deletion_timestamp="now")))
        assert found.scheduler.profiles["default-scheduler"].run_pre_enqueue(preemptor(), "") is None


def test_an_eviction_that_fails_brings_the_preemptor_back_at_once() -> None:
    found = world(running("victim"))
    found.slow_evictions = True
    found.attempt(preemptor())
    assert found.queue.pop() is None
    found.evictions[0]("the API server said no")
    assert found.place("preemptor") == "active"
    assert found.reports == ["evicting pods for default/preemptor: the API server said no"]


# What is written


def test_victims_already_leaving_are_not_evicted_again() -> None:
    found = world(running("leaving", cpu=2, metadata=LEAVING), running("staying", cpu=2))
    found.attempt(preemptor())
    assert found.evicted == ["staying"]


def test_where_all_victims_are_leaving_nothing_is_written_and_the_pod_is_nominated() -> None:
    found = world(running("leaving", metadata=LEAVING))
    found.scheduler.nominator.nominate(make_pod("low", status={"nominatedNodeName": "n1"}))
    found.attempt(preemptor())
    assert (found.evicted, found.cleared) == ([], [])
    assert found.failures[-1].nomination == Nomination("n1")


def test_pods_of_lower_priority_nominated_there_lose_their_nomination() -> None:
    found = world(running("victim"))
    for name, priority, node in (("low", 9, "n1"), ("same", 10, "n1"), ("elsewhere", 1, "n2")):
        found.scheduler.nominator.nominate(make_pod(name, priority=priority, status={"nominatedNodeName": node}))
    found.scheduler.nominator.nominate(make_pod("in memory only"), "n1")
    found.attempt(make_pod("fits", priority=10))
    assert found.cleared == [], "nobody has to go"
    found.attempt(preemptor())
    assert (found.evicted, found.cleared) == (["victim"], ["low"])


class HoldLow(Plugin):
    """Holds pods without priority at Permit."""

    def permit(self, cycle: Cycle, _node_name: str) -> Wait | None:
        return None if cycle.pod.priority else Wait(60)


def test_a_victim_still_held_at_permit_is_let_go_in_memory_and_tried_again() -> None:
    found = World(HoldLow, default=True, nodes=[make_node("n1", cpu=4)])
    found.attempt(make_pod("held", requests={"cpu": 3}))
    assert found.node_of("held") == "n1"
    found.attempt(preemptor())
    assert (found.evicted, found.node_of("held"), len(found.scheduler.waiting)) == ([], None, 0)
    assert found.failures[0][:3] == ("default/held", "SchedulerError", "waiting on permit for pod: preempted")
    assert found.failures[1].nomination == Nomination("n1")
    assert found.place("held") == "backoff"
    found.pass_time(3)
    found.try_next()
    assert found.bound == [("preemptor", "n1")]


def test_victims_at_permit_and_on_nodes_go_together() -> None:
    found = World(HoldLow, default=True, nodes=[make_node("n1", cpu=4)])
    found.add(running("bound", cpu=2, priority=1))
    found.attempt(make_pod("held", requests={"cpu": 2}))
    found.attempt(preemptor())
    assert (found.evicted, found.node_of("held"), found.node_of("bound")) == (["bound"], None, "n1")


# Its arguments


@pytest.mark.parametrize(
    ("nodes", "percentage", "absolute", "wanted"),
    [(1, 10, 100, 1), (500, 10, 100, 100), (2000, 10, 100, 200), (2000, 10, 300, 300), (99, 1, 0, 0), (50, 100, 0, 50)],
)
def test_how_many_candidates_are_enough(nodes: int, percentage: int, absolute: int, wanted: int) -> None:
    args = {"minCandidateNodesPercentage": percentage, "minCandidateNodesAbsolute": absolute}
    assert make_plugin(DefaultPreemption, make_cluster([]), **args).args.wanted(nodes) == wanted


@pytest.mark.parametrize(
    ("percentage", "absolute", "errors"),
    [
        (10, 100, []),
        (100, 0, []),
        (-1, 1, ["minCandidateNodesPercentage: Invalid value: -1: not in valid range [0, 100]"]),
        (101, 1, ["minCandidateNodesPercentage: Invalid value: 101: not in valid range [0, 100]"]),
        (1, -1, ["minCandidateNodesAbsolute: Invalid value: -1: not in valid range [0, inf)"]),
        (
            0,
            0,
            [
                "minCandidateNodesPercentage: Invalid value: 0: cannot be zero at the same time as "
                "minCandidateNodesAbsolute",
                "minCandidateNodesAbsolute: Invalid value: 0: cannot be zero at the same time as "
                "minCandidateNodesPercentage",
            ],
        ),
    ],
)
def test_limits(percentage: int, absolute: int, errors: list[str]) -> None:
    args = DefaultPreemptionArgs(min_candidate_nodes_percentage=percentage, min_candidate_nodes_absolute=absolute)
    assert [str(error) for error in args.validate(FieldPath())] == errors
