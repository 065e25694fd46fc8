"""PodGroups of scheduling.k8s.io are scheduled as kube-scheduler 1.36 does with its gates on."""

from __future__ import annotations

from typing import Any

import pytest

from podium.config.feature_gates import Gate
from podium.framework import Cycle, Plugin, Status
from podium.kube.versions import find_rules
from tests.podium.framework.runtimes import answering
from tools.kit import pod_group_worlds
from tools.kit.builders import make_node, make_pod
from tools.kit.pod_group_worlds import ALL_GATES, GANGS, PREEMPTION, TOPOLOGY, group_member, group_members, pod_group

RULES = find_rules("1.36").rules
NO_CLAIMS = "no new claims to deallocate"

UNSCHEDULABLE = "pod group is unschedulable"
WAITING = "pod group is unschedulable, pod group is waiting for preemption to complete"
TOO_FEW = (
    "pod group is unschedulable, waiting for minCount pods from a gang to be scheduled, "
    "one or more plugins asked to wait and no plugin rejected pod"
)
NO_ROOM = (
    f"0/1 nodes are available: 1 Insufficient cpu. {NO_CLAIMS}, "
    "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
)
NOT_BY_MEMBERS = f"{NO_CLAIMS}, preemption: not eligible due to workload aware preemption enabled"
CONSTRAINED = "workload aware preemption is not supported for pod groups with scheduling constraints"


class PodGroupWorld(pod_group_worlds.PodGroupWorld):
    def __init__(self, *plugins: Any, **options: Any) -> None:
        super().__init__(*plugins, rules=RULES, **options)


def node(name: str = "n1", cpu: int = 3, **labels: str) -> Any:
    return make_node(name, cpu=cpu, labels=labels)


def state_of(world: PodGroupWorld) -> dict[str, Any]:
    """All that placing a pod changes."""
    cluster, rows = world.cluster, world.cluster.columns.rows
    return {
        "pods": set(cluster.pods),
        "on": [list(pods) for pods in cluster.pods_on],
        "requested": cluster.resources.requested[:, :rows].tolist(),
        "count": cluster.resources.pod_count[:rows].tolist(),
        "waiting": len(world.scheduler.waiting),
        "in flight": len(world.queue.in_flight),
    }


# The vectors of the specification


def test_g1_a_gang_starts_when_its_last_pod_has_come() -> None:
    world = PodGroupWorld(nodes=[node()])
    world.add(pod_group(minimum=3))
    first, second, third = group_members(3)
    world.add(first, second)
    assert world.scheduler.schedule_one() is None
    assert (world.bound, world.failures, world.conditions) == ([], [], [])
    world.add(third)
    world.run()
    assert sorted(world.bound) == [("g-0", "n1"), ("g-1", "n1"), ("g-2", "n1")]
    assert world.condition == ("True", "Scheduled", "")


def test_g2_a_gang_that_does_not_fit_holds_nothing() -> None:
    world = PodGroupWorld(nodes=[node(cpu=1)])
    world.add(pod_group(minimum=3))
    before = state_of(world)
    world.add(*group_members(3, spec={}))
    world.try_next()
    assert sorted(world.messages.values()) == [NO_ROOM, NO_ROOM, TOO_FEW]
    assert (world.bound, state_of(world)) == ([], before)
    assert world.condition == ("False", "Unschedulable", UNSCHEDULABLE)


def test_g3_more_pods_than_the_gang_needs_may_be_left_over() -> None:
    world = PodGroupWorld(nodes=[node(cpu=2)])
    world.add(pod_group(minimum=2), *group_members(3))
    world.try_next()
    assert len(world.bound) == 2
    assert list(world.messages.values()) == [NO_ROOM]
    assert world.condition == ("True", "Scheduled", "")


def test_g4_members_preempt_and_wait_for_their_victims() -> None:
    world = PodGroupWorld(nodes=[node(cpu=2)])
    world.slow_evictions = True
    world.add(make_pod("victim", node="n1", requests={"cpu": 2}))
    world.add(pod_group(minimum=2), *group_members(2, priority=100))
    before = state_of(world)
    world.try_next()
    assert set(world.messages.values()) == {"0/1 nodes are available: 1 Insufficient cpu."}
    assert world.nominations == {"g-0": "n1", "g-1": "n1"}
    assert set(world.evicted) == {"victim"}
    assert world.condition == ("False", "Unschedulable", WAITING)
    assert state_of(world) == before


def test_t1_a_group_goes_to_the_domain_that_takes_all_of_it() -> None:
    world = PodGroupWorld(nodes=[node("a", 2, zone="z1"), node("b", 3, zone="z2")], gates=TOPOLOGY)
    world.add(pod_group(minimum=3, key="zone"), *group_members(3))
    world.run()
    assert sorted(world.bound) == [("g-0", "b"), ("g-1", "b"), ("g-2", "b")]


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("zone", f"0/2 placements are available, first placement status: {UNSCHEDULABLE}, {CONSTRAINED}"),
        ("rack", f"no feasible placements found, {CONSTRAINED}"),
    ],
)
def test_t2_no_domain_takes_the_group(key: str, message: str) -> None:
    world = PodGroupWorld(nodes=[node("a", 1, zone="z1"), node("b", 1, zone="z2")], gates=ALL_GATES)
    world.add(pod_group(minimum=3, key=key), *group_members(3))
    world.try_next()
    assert world.condition == ("False", "Unschedulable", message)
    if key == "rack":
        assert set(world.messages.values()) == {message}
    else:
        limited = (
            f"0/1 nodes are available: 1 Insufficient cpu. {NO_CLAIMS}, "
            "preemption: not eligible due to placement-based pod group scheduling limitation"
        )
        assert sorted(world.messages.values()) == [limited, limited, TOO_FEW]


def test_w1_room_is_made_for_the_whole_group() -> None:
    world = PodGroupWorld(nodes=[node(f"n{i}", 1) for i in (1, 2, 3)], gates=PREEMPTION)
    world.slow_evictions = True
    world.add(*(make_pod(f"low-{i}", node=f"n{i}", requests={"cpu": 1}) for i in (1, 2)))
    world.add(pod_group(minimum=3, priority=100), *group_members(3))
    before = state_of(world)
    world.try_next()
    assert sorted(world.evicted) == ["low-1", "low-2"]
    no_node = f"0/3 nodes are available: 3 Insufficient cpu. {NOT_BY_MEMBERS}"
    assert sorted(world.messages.values()) == [no_node, no_node, UNSCHEDULABLE]
    assert sorted(world.nominations.values()) == ["", "", "n3"]
    assert world.condition == ("False", "Unschedulable", UNSCHEDULABLE)
    assert state_of(world) == before
    held = world.scheduler.profiles["default-scheduler"].run_pre_enqueue(group_member("g-0"), "")
    assert held is not None
    assert held.message == "waiting for the preemption for this pod group to be finished"
    assert world.queue.pending().gated == 3
    world.evictions[0](None)
    world.delete(*(world.cluster.pods[f"default-low-{i}"].pod for i in (1, 2)))
    world.pass_time(2)
    world.scheduler.tick()
    world.run()
    assert sorted(node_name for _pod, node_name in world.bound) == ["n1", "n2", "n3"]


# Beyond the vectors


def test_a_basic_group_binds_what_fits() -> None:
    world = PodGroupWorld(nodes=[node(cpu=1)])
    world.add(pod_group(minimum=None), *group_members(2))
    world.run(2)
    assert len(world.bound) == 1
    assert set(world.messages.values()) == {NO_ROOM}
    assert world.condition == ("True", "Scheduled", "")


def test_pods_wait_for_their_group_to_be_created() -> None:
    world = PodGroupWorld(nodes=[node()])
    world.add(*group_members(2))
    assert world.queue.pending().gated == 2
    held = world.scheduler.profiles["default-scheduler"].run_pre_enqueue(group_member("g-0"), "")
    assert held is not None
    assert held.message == 'waiting for pods\'s pod group "g" to appear in scheduling queue'
    world.add(pod_group(minimum=2))
    world.run()
    assert len(world.bound) == 2


def test_without_gates_the_group_of_a_pod_means_nothing() -> None:
    world = PodGroupWorld(nodes=[node()], gates=frozenset())
    world.add(*group_members(2))
    world.run()
    assert len(world.bound) == 2


def test_with_the_generic_gate_alone_a_gang_is_a_group_of_pods() -> None:
    world = PodGroupWorld(nodes=[node(cpu=1)], gates=frozenset({Gate.GENERIC_WORKLOAD}))
    world.add(pod_group(minimum=3), *group_members(2))
    world.run(2)
    assert len(world.bound) == 1


def test_members_are_tried_by_priority_and_then_by_when_they_became_ready() -> None:
    tried: list[str] = []

    class Watching(Plugin):
        def pre_filter(self, cycle: Cycle) -> None:
            tried.append(cycle.pod.name)

    world = PodGroupWorld(Watching, nodes=[node()])
    world.add(pod_group(minimum=3))
    for name, priority in (("early", 1), ("late", 1), ("high", 5)):
        world.add(group_member(name, priority=priority))
        world.clock.advance(1)
    world.try_next()
    assert tried == ["high", "early", "late"]


def test_members_of_two_schedulers_fail_together() -> None:
    world = PodGroupWorld(nodes=[node()], profiles=("one", "two"))
    world.add(pod_group(minimum=2))
    world.add(group_member("a", spec={"schedulerName": "one"}), group_member("b", spec={"schedulerName": "two"}))
    world.try_next()
    (message,) = set(world.messages.values())
    assert message.startswith("all pods in a single pod group should have the same .spec.schedulerName set, got: ")
    assert {failed.reason for failed in world.failures} == {"SchedulerError"}


def test_an_error_of_one_member_fails_all() -> None:
    refuse = answering("Broken", reserve=Status.error("out of order"))
    world = PodGroupWorld(refuse, nodes=[node()])
    world.add(pod_group(minimum=2), *group_members(2))
    before = state_of(world)
    world.try_next()
    own = 'running Reserve plugin "Broken": out of order'
    other = f"failed to schedule other pod from a pod group: {own}"
    assert sorted(world.messages.values()) == [other, own]
    assert world.condition == ("False", "SchedulerError", other)
    assert {**state_of(world), "in flight": 0} == {**before, "in flight": 0}


def test_a_condition_that_is_true_stays_so() -> None:
    done = {"type": "PodGroupScheduled", "status": "True", "reason": "Scheduled", "observedGeneration": 1}
    world = PodGroupWorld(nodes=[node(cpu=1)])
    world.add(pod_group(minimum=2, conditions=[done]), *group_members(2))
    world.try_next()
    assert (len(world.failures), world.conditions) == (2, [])


def test_a_failed_member_backs_off_whatever_happened_meanwhile() -> None:
    world = PodGroupWorld(nodes=[node(cpu=1)])
    world.add(pod_group(minimum=2), *group_members(2))
    world.try_next()
    assert world.queue.pending().backoff == 2


def test_an_idle_scheduler_does_not_cut_the_backoff_of_members_short() -> None:
    world = PodGroupWorld(nodes=[node(cpu=1)])
    world.add(pod_group(minimum=2), *group_members(2))
    world.try_next()
    assert world.scheduler.schedule_one() is None
    world.pass_time(2)
    world.scheduler.tick()
    world.try_next()
    assert {queued.attempts for queued in world.queue} == {2}


def test_a_member_that_is_going_is_left_out() -> None:
    world = PodGroupWorld(nodes=[node()])
    leaving = group_member("leaving", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    world.add(pod_group(minimum=2), leaving, *group_members(2))
    world.run()
    assert sorted(name for name, _node in world.bound) == ["g-0", "g-1"]


def test_members_that_follow_go_to_the_domain_of_the_others() -> None:
    world = PodGroupWorld(nodes=[node("a", 9, zone="z1"), node("b", 4, zone="z2")], gates=TOPOLOGY)
    placed = group_member("first", node="b")
    world.add(pod_group(minimum=2, key="zone"), placed, *group_members(2))
    world.run()
    assert {name for _pod, name in world.bound} == {"b"}


def test_members_in_two_domains_are_an_error() -> None:
    world = PodGroupWorld(nodes=[node("a", 9, zone="z1"), node("b", 4, zone="z2")], gates=TOPOLOGY)
    world.add(pod_group(minimum=2, key="zone"), group_member("x", node="a"), group_member("y", node="b"))
    world.add(group_member("z"))
    world.try_next()
    why = "cannot determine domain for already scheduled pods: more than 1 domain found for pod group: z1, z2"
    assert (world.messages, world.condition) == ({"z": why}, ("False", "SchedulerError", why))


def test_of_two_domains_that_fit_the_fuller_wins() -> None:
    nodes = [node("a", 8, zone="z1"), node("b", 8, zone="z2")]
    world = PodGroupWorld(nodes=nodes, gates=TOPOLOGY)
    world.add(make_pod("busy", node="b", requests={"cpu": 4}))
    world.add(pod_group(minimum=2, key="zone"), *group_members(2))
    world.run()
    assert {name for _pod, name in world.bound} == {"b"}


def test_the_domain_that_takes_more_members_wins() -> None:
    world = PodGroupWorld(nodes=[node("a", 2, zone="z1"), node("b", 100, zone="z2")], gates=TOPOLOGY)
    world.add(pod_group(minimum=1, key="zone"), *group_members(6))
    world.run()
    assert {name for _pod, name in world.bound} == {"b"}


def test_victims_that_need_not_go_stay() -> None:
    world = PodGroupWorld(nodes=[node(f"n{i}", 1) for i in (1, 2, 3)], gates=PREEMPTION)
    world.slow_evictions = True
    world.add(make_pod("older", node="n1", requests={"cpu": 1}, status={"startTime": "2026-01-01T00:00:00Z"}))
    world.add(make_pod("newer", node="n2", requests={"cpu": 1}, status={"startTime": "2026-01-02T00:00:00Z"}))
    world.add(make_pod("high", node="n3", requests={"cpu": 1}, priority=100))
    world.add(pod_group(minimum=1, priority=100), *group_members(1))
    world.try_next()
    assert world.evicted == ["newer"]


def test_a_group_that_is_evicted_whole_goes_whole() -> None:
    world = PodGroupWorld(nodes=[node(f"n{i}", 1) for i in (1, 2)], gates=PREEMPTION)
    world.slow_evictions = True
    world.add(pod_group("old", minimum=1, disruptionMode="PodGroup"))
    world.add(*(group_member(f"old-{i}", "old", node=f"n{i}") for i in (1, 2)))
    world.add(pod_group(minimum=1, priority=5), *group_members(1))
    world.try_next()
    assert sorted(world.evicted) == ["old-1", "old-2"]


@pytest.mark.parametrize(
    ("victim_priority", "spec", "reason"),
    [
        (9, {}, "No preemption victims found for incoming preemptor"),
        (0, {"preemptionPolicy": "Never"}, "not eligible due to preemptionPolicy=Never."),
    ],
)
def test_why_nothing_is_evicted_for_a_group(victim_priority: int, spec: dict[str, Any], reason: str) -> None:
    world = PodGroupWorld(nodes=[node(cpu=1)], gates=PREEMPTION)
    world.add(make_pod("there", node="n1", requests={"cpu": 1}, priority=victim_priority))
    world.add(pod_group(minimum=1, priority=9), *group_members(1, spec=spec))
    world.try_next()
    assert world.condition == ("False", "Unschedulable", f"{UNSCHEDULABLE}, {reason}")
    assert world.evicted == []


def test_no_member_is_lost_to_a_fault_in_the_cycle_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    world = PodGroupWorld(nodes=[node()])
    world.add(pod_group(minimum=2), *group_members(2))
    monkeypatch.setattr("podium.engine.gangs.group_cycle.try_group", lambda *_args, **_options: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        world.scheduler.schedule_one()
    (popped,) = world.queue.in_flight.pods()  # which the driver puts back
    assert {queued.pod.name for queued in world.queue} == {"g-0", "g-1"} - {popped.name}


@pytest.mark.parametrize(
    ("gates", "why"),
    [
        (GANGS, 'running Permit plugin "GangScheduling": failed to get podGroup default/g: podgroup{} not found'),
        (TOPOLOGY, "podgroup{} not found"),
    ],
)
def test_a_group_deleted_under_its_pods_is_an_error_and_its_pods_wait(gates: frozenset[Gate], why: str) -> None:
    world = PodGroupWorld(nodes=[node()], gates=gates)
    group = pod_group(minimum=2)
    world.add(group, *group_members(2))
    world.delete(group)
    world.try_next()
    own = why.format('.scheduling.k8s.io "g"')
    assert own in world.messages.values()
    assert {failed.reason for failed in world.failures} == {"SchedulerError"}
    assert (world.bound, world.conditions) == ([], [])
    assert world.queue.pending().gated == 2
    world.add(group)
    world.run()
    world.pass_time(20)
    world.scheduler.tick()
    world.run()
    assert len(world.bound) == 2
