"""PodGroups of scheduling.k8s.io are scheduled as kube-scheduler 1.37 does with GenericWorkload on."""

from __future__ import annotations

from typing import Any

import pytest

from podium.config.feature_gates import Gate
from podium.framework import Cycle, Plugin, QueuedPod, Status
from podium.framework.queued import QueuedGroup
from tests.podium.framework.runtimes import answering
from tools.kit.builders import make_node, make_pod
from tools.kit.pod_group_worlds import PREEMPTION, PodGroupWorld, group_member, group_members, pod_group

WORKLOADS = PREEMPTION
TOPOLOGY = WORKLOADS | {Gate.TOPOLOGY_AWARE}
GROUP = "pod group is unschedulable"
NO_ROOM = "0/1 nodes are available: 1 Insufficient cpu."
GIVEN_BACK = "deallocation and deletion of ResourceClaims completed"
ALL: dict[str, Any] = {"all": {}}


def world_of(*plugins: Any, gates: frozenset[Gate] = WORKLOADS, **options: Any) -> PodGroupWorld:
    return PodGroupWorld(*plugins, gates=gates, **options)


def node(name: str = "n1", cpu: int = 3, **labels: str) -> Any:
    return make_node(name, cpu=cpu, labels=labels)


def order(world: PodGroupWorld) -> list[str]:
    return [queued.pod.name for queued in world.queue]


# The vectors of the specification


def test_g1_a_gang_starts_when_its_last_pod_has_come() -> None:
    world = world_of(nodes=[node()])
    world.add(pod_group(minimum=3))
    first, second, third = group_members(3)
    world.add(first, second)
    assert world.scheduler.schedule_one() is None
    assert (world.bound, world.failures, world.conditions) == ([], [], [])
    world.add(third)
    world.try_next()
    assert sorted(world.bound) == [("g-0", "n1"), ("g-1", "n1"), ("g-2", "n1")]
    assert world.condition == ("True", "Scheduled", "")
    assert world.conditions[-1][1].type == "PodGroupInitiallyScheduled"


def test_g2_a_gang_that_does_not_fit_holds_nothing() -> None:
    world = world_of(nodes=[node(cpu=1)])
    world.add(pod_group(minimum=3), *group_members(3))
    world.try_next()
    untried = "minCount (3) cannot be satisfied: 1 scheduled, 1 remaining"
    why = f"{untried}, pod group preemption: No preemption victims found for incoming preemptor"
    assert world.messages == {"g-0": f"{GROUP}, {why}", "g-1": NO_ROOM, "g-2": untried}
    assert world.condition == ("False", "Unschedulable", why)
    assert (world.bound, list(world.cluster.pods), len(world.queue.in_flight)) == ([], [], 0)


def test_g3_more_pods_than_the_gang_needs_may_be_left_over() -> None:
    world = world_of(nodes=[node(cpu=2)])
    world.add(pod_group(minimum=2), *group_members(3))
    world.try_next()
    assert len(world.bound) == 2
    assert world.messages == {"g-2": NO_ROOM}
    assert world.condition == ("True", "Scheduled", "")
    assert world.queue.pending().active == 1, "what is left over goes on without backoff"
    world.try_next()
    assert world.messages["g-2"] == NO_ROOM
    assert world.queue.pending().backoff == 1


@pytest.mark.parametrize("gates", [WORKLOADS, TOPOLOGY])
def test_g4_a_gang_over_one_pod_of_low_priority_preempts_as_a_group(gates: frozenset[Gate]) -> None:
    world = world_of(nodes=[node(cpu=2)], gates=gates)
    world.slow_evictions = True
    world.add(make_pod("victim", node="n1", requests={"cpu": 2}))
    world.add(pod_group(minimum=2, priority=100), *group_members(2, priority=100))
    world.try_next()
    room = "pod group preemption: found a placement for podgroup, preempting 1 victims"
    why = "minCount (2) cannot be satisfied: 0 scheduled, 1 remaining"
    first = f"{GROUP}, 0/1 placements are available, first placement status: {why}" if gates is TOPOLOGY else why
    assert world.messages == {"g-0": NO_ROOM, "g-1": first}
    assert world.nominations == {"g-0": "n1", "g-1": "n1"}
    assert (world.evicted, world.condition) == (["victim"], ("False", "Unschedulable", f"{first}, {room}"))


def test_w1_room_is_made_for_the_whole_group() -> None:
    world = world_of(nodes=[node(f"n{i}", 1) for i in (1, 2, 3)])
    world.slow_evictions = True
    world.add(*(make_pod(f"low-{i}", node=f"n{i}", requests={"cpu": 1}) for i in (1, 2)))
    world.add(pod_group(minimum=3, priority=100), *group_members(3, priority=100))
    world.try_next()
    why = "minCount (3) cannot be satisfied: 1 scheduled, 1 remaining"
    room = "pod group preemption: found a placement for podgroup, preempting 2 victims"
    no_node = "0/3 nodes are available: 3 Insufficient cpu."
    assert world.messages == {"g-0": f"{why}, {room}", "g-1": no_node, "g-2": why}
    assert sorted(world.evicted) == ["low-1", "low-2"]
    assert sorted(world.nominations.values()) == ["n1", "n2", "n3"]
    assert world.condition == ("False", "Unschedulable", f"{why}, {room}")
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


def test_v43_a_group_ends_early_where_too_few_can_have_a_node() -> None:
    world = world_of(nodes=[node(cpu=1)])
    world.add(pod_group(minimum=3), *group_members(2, cpu=2), *(group_member(f"s-{i}") for i in (1, 2)))
    world.try_next()
    why = "minCount (3) cannot be satisfied: 0 scheduled, 2 remaining"
    assert world.messages == {"g-0": NO_ROOM, "g-1": NO_ROOM, "s-1": why, "s-2": why}
    assert world.condition[2].startswith(f"{why}, ")


# The queue


def test_a_group_is_one_entity_in_the_queue() -> None:
    world = world_of(nodes=[node(cpu=9)])
    world.add(pod_group(minimum=None, priority=5), *group_members(2, priority=5), make_pod("high", priority=9))
    assert (world.queue.pending().active, len(world.queue)) == (3, 3)
    popped = world.queue.pop()
    assert popped is not None
    assert popped.pod.name == "high"
    world.queue.done(popped.pod.uid)
    world.try_next()
    assert sorted(world.bound) == [("g-0", "n1"), ("g-1", "n1")]


def test_pods_wait_outside_of_the_queue_for_their_group() -> None:
    world = world_of(nodes=[node()])
    world.add(*group_members(2))
    assert (world.queue.outside(), world.queue.pending().active) == ({"incomplete": 2, "pending": 0}, 0)
    assert {queued.queue for queued in world.queue} == {"incomplete"}
    world.add(pod_group(minimum=2))
    world.run()
    assert len(world.bound) == 2
    assert world.queue.outside() == {"incomplete": 0, "pending": 0}


def test_pods_of_a_group_that_is_deleted_wait_for_it_again() -> None:
    world = world_of(nodes=[node()])
    group = pod_group(minimum=2)
    world.add(group, *group_members(2))
    world.delete(group)
    assert (world.scheduler.schedule_one(), world.queue.outside()["incomplete"]) == (None, 2)
    world.add(group)
    world.run()
    assert len(world.bound) == 2


def test_members_that_are_deleted_leave_and_a_gang_without_enough_is_held_back() -> None:
    world = world_of(nodes=[node()])
    members = group_members(2)
    world.add(pod_group(minimum=2), *members)
    world.delete(members[0])
    assert (world.scheduler.schedule_one(), world.queue.pending().gated) == (None, 1)
    world.delete(members[1])
    assert (len(world.queue), world.queue.get("default/g-1")) == (0, None)


def test_a_gang_that_needs_fewer_is_woken() -> None:
    world = world_of(nodes=[node()])
    world.add(pod_group(minimum=3), *group_members(2))
    assert (world.scheduler.schedule_one(), world.queue.pending().gated) == (None, 2)
    world.add(pod_group(minimum=2))
    world.run()
    assert len(world.bound) == 2


def test_a_gated_member_holds_its_group_back() -> None:
    world = world_of(nodes=[node()])
    gated = group_member("gated", spec={"schedulingGates": [{"name": "wait"}]})
    world.add(pod_group(minimum=1), *group_members(2), gated)
    assert (world.scheduler.schedule_one(), world.queue.pending().gated) == (None, 3)
    world.add(group_member("gated", metadata={"resourceVersion": "2"}))
    world.run()
    assert len(world.bound) == 3


def test_members_are_tried_by_attempts_and_then_by_age() -> None:
    tried: list[str] = []

    class Watching(Plugin):
        def pre_filter(self, cycle: Cycle) -> None:
            tried.append(cycle.pod.name)

    world = world_of(Watching, nodes=[node(cpu=1)])
    world.add(pod_group(minimum=1), group_member("b", cpu=9), group_member("a", cpu=9))
    world.try_next()
    world.add(group_member("fresh"))
    world.pass_time(5)
    world.scheduler.tick()
    world.try_next()
    assert tried == ["b", "a", "b", "a", "fresh"]


def test_a_member_that_was_tried_more_often_goes_first_however_late_it_came_back() -> None:
    fresh, back = QueuedPod(group_member("fresh"), 1.0, 1), QueuedPod(group_member("back"), 2.0, 2)
    back.attempts = 1
    group = QueuedGroup(pod_group(), fresh)
    group.add(back)
    assert group.members == [back, fresh]


def test_what_is_left_of_a_scheduled_group_keeps_its_place_in_the_queue() -> None:
    world = world_of(nodes=[node(cpu=1)])
    world.add(pod_group(minimum=1), *group_members(2))
    world.clock.advance(1)
    world.add(make_pod("later"))
    world.try_next()
    world.clock.advance(1)
    popped = world.queue.pop()
    assert popped is not None
    assert popped.pod.name == "g-1", "it came before the pod that waits"


@pytest.mark.parametrize(("members", "longest"), [(1, 10), (4, 20), (9, 30)])
def test_the_longest_backoff_grows_with_the_square_root_of_the_members(members: int, longest: int) -> None:
    world = world_of(nodes=[node(cpu=1)])
    world.add(pod_group(minimum=members), *group_members(members, cpu=9))
    for _ in range(9):
        world.try_next()
        first = next(iter(world.queue))
        again = world.queue.next_try(first)
        assert again is not None
        waited = again - world.clock.now()
        world.pass_time(waited + 1)
        world.scheduler.tick()
    assert waited == longest + 1


def test_an_idle_scheduler_does_not_cut_the_backoff_of_a_group_short() -> None:
    world = world_of(nodes=[node(cpu=1)])
    world.add(pod_group(minimum=2), *group_members(2))
    world.try_next()
    assert (world.scheduler.schedule_one(), world.queue.pending().backoff) == (None, 2)


# Before the cycle


@pytest.mark.parametrize(
    ("first", "second", "why"),
    [
        (
            {"spec": {"schedulerName": "one"}},
            {"spec": {"schedulerName": "two"}},
            '.spec.schedulerName set, got: "two" and "one"',
        ),
        ({"priority": 7}, {"priority": 8}, "priority as the pod group's priority, got 8 and 7"),
        ({"priority": 8}, {"priority": 8}, "priority as the pod group's priority, got 8 and 7"),
        (
            {"priority": 7},
            {"priority": 7, "spec": {"preemptionPolicy": "Never"}},
            "preemption policy, got Never and PreemptLowerPriority",
        ),
    ],
)
def test_pods_that_cannot_be_one_group_fail_together(first: Any, second: Any, why: str) -> None:
    world = world_of(nodes=[node()], profiles=("one", "two", "default-scheduler"))
    world.add(pod_group(minimum=2, priority=7 if "priority" in first else None))
    world.add(group_member("a", **first), group_member("b", **second))
    world.try_next()
    sentence = f"all pods in a single pod group should have the same {why}"
    assert world.messages == {"a": sentence, "b": sentence}
    assert world.condition == ("False", "SchedulerError", sentence)
    assert {failed.reason for failed in world.failures} == {"SchedulerError"}
    assert world.queue.pending().backoff == 2


def test_a_placed_member_of_another_priority_is_an_error_too() -> None:
    world = world_of(nodes=[node()])
    world.add(pod_group(minimum=2, priority=7), group_member("placed", node="n1", priority=6))
    world.add(group_member("a", priority=7))
    world.try_next()
    assert world.condition[1] == "SchedulerError"
    assert world.condition[2].endswith("priority as the pod group's priority, got 6 and 7")


def test_a_member_that_is_going_is_left_out() -> None:
    world = world_of(nodes=[node()])
    leaving = group_member("leaving", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    world.add(pod_group(minimum=2), leaving, *group_members(2))
    world.run()
    assert sorted(name for name, _node in world.bound) == ["g-0", "g-1"]


# What becomes of the members


def test_a_basic_group_binds_what_fits() -> None:
    world = world_of(nodes=[node(cpu=1)])
    world.add(pod_group(minimum=None), *group_members(2))
    world.try_next()
    assert (len(world.bound), world.messages, world.condition[0]) == (1, {"g-1": NO_ROOM}, "True")


def test_a_group_none_of_whose_new_pods_fits_is_unschedulable_although_enough_have_a_node() -> None:
    world = world_of(nodes=[node(cpu=1)])
    world.add(pod_group(minimum=1), group_member("placed", node="n1"), *group_members(1))
    world.try_next()
    assert world.condition[:2] == ("False", "Unschedulable")
    assert world.condition[2].startswith(f"{GROUP}, pod group preemption: ")


def test_an_error_of_one_member_fails_all() -> None:
    world = world_of(answering("Broken", reserve=Status.error("out of order")), nodes=[node()])
    world.add(pod_group(minimum=2), *group_members(2))
    world.try_next()
    own = 'running Reserve plugin "Broken": out of order'
    other = f"failed to schedule other pod from a pod group: {own}"
    assert world.messages == {"g-0": own, "g-1": other}
    assert world.condition == ("False", "SchedulerError", other)
    assert list(world.cluster.pods) == []


def test_members_do_not_preempt_by_themselves() -> None:
    world = world_of(nodes=[node(cpu=2)])
    world.add(make_pod("low", node="n1", requests={"cpu": 1}))
    world.add(pod_group(minimum=1, priority=9), *group_members(2, priority=9))
    world.try_next()
    assert (len(world.bound), world.evicted) == (1, [])


def test_no_member_is_lost_to_a_fault_in_the_cycle_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    world = world_of(nodes=[node()])
    world.add(pod_group(minimum=2), *group_members(2))
    with monkeypatch.context() as patch:
        patch.setattr("podium.engine.gangs.group_cycle.try_group", lambda *_args, **_options: 1 / 0)
        popped = world.queue.pop()
        assert popped is not None
        with pytest.raises(ZeroDivisionError):
            world.scheduler.schedule(popped)
        world.scheduler.abandon(popped, Status.error("as the driver does"))
    assert sorted(order(world)) == ["g-0", "g-1"]
    world.pass_time(5)
    world.scheduler.tick()
    world.run()
    assert len(world.bound) == 2


# Preemption


def test_victims_that_are_still_leaving_are_waited_for() -> None:
    world = world_of(nodes=[node(cpu=1)])
    leaving = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    target = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    world.add(make_pod("low", node="n1", requests={"cpu": 1}, metadata=leaving, status={"conditions": [target]}))
    member = group_member("g-0", priority=9, status={"nominatedNodeName": "n1"})
    world.add(pod_group(minimum=1, priority=9), member)
    world.try_next()
    assert world.condition[2].endswith("pod group preemption: ongoing preemption on nominated nodes")
    assert (world.nominations, world.evicted) == ({"g-0": "n1"}, [])


@pytest.mark.parametrize(
    ("victim_priority", "spec", "reason"),
    [
        (9, {}, "pod group preemption: No preemption victims found for incoming preemptor"),
        (
            0,
            {"preemptionPolicy": "Never"},
            f"{GIVEN_BACK}, pod group preemption: not eligible due to preemptionPolicy=Never.",
        ),
        (
            0,
            {"nodeSelector": {"no": "such"}},
            f"{GIVEN_BACK}, pod group preemption: minCount (1) cannot be satisfied: 0 scheduled, 0 remaining",
        ),
    ],
)
def test_why_nothing_is_evicted_for_a_group(victim_priority: int, spec: dict[str, Any], reason: str) -> None:
    world = world_of(nodes=[node(cpu=1)])
    world.add(make_pod("there", node="n1", requests={"cpu": 1}, priority=victim_priority))
    world.add(pod_group(minimum=1, priority=9), *group_members(1, spec=spec, priority=9))
    world.try_next()
    assert world.condition[2] == f"minCount (1) cannot be satisfied: 0 scheduled, 0 remaining, {reason}"
    assert world.evicted == []


def test_victims_that_need_not_go_stay() -> None:
    world = world_of(nodes=[node(f"n{i}", 1) for i in (1, 2, 3)])
    world.slow_evictions = True
    world.add(make_pod("older", node="n1", requests={"cpu": 1}, status={"startTime": "2026-01-01T00:00:00Z"}))
    world.add(make_pod("newer", node="n2", requests={"cpu": 1}, status={"startTime": "2026-01-02T00:00:00Z"}))
    world.add(make_pod("high", node="n3", requests={"cpu": 1}, priority=100))
    world.add(pod_group(minimum=1, priority=100), *group_members(1, priority=100))
    world.try_next()
    # The group is tried once, on a cluster without both: it goes to n1, and only whoever is there must leave.
    assert (world.evicted, world.nominations) == (["older"], {"g-0": "n1"})


@pytest.mark.parametrize("preemptor", ["group", "pod"])
def test_a_group_that_is_disrupted_whole_goes_whole(preemptor: str) -> None:
    world = world_of(nodes=[node(f"n{i}", 1) for i in (1, 2)])
    world.slow_evictions = True
    world.add(pod_group("old", minimum=1, disruptionMode=ALL))
    world.add(*(group_member(f"old-{i}", "old", node=f"n{i}") for i in (1, 2)))
    if preemptor == "group":
        world.add(pod_group(minimum=1, priority=5), *group_members(1, priority=5))
    else:
        world.add(make_pod("one", requests={"cpu": 1}, priority=5))
    world.try_next()
    assert sorted(world.evicted) == ["old-1", "old-2"]


def test_a_single_pod_spares_groups() -> None:
    world = world_of(nodes=[node("n1", 2)])
    world.slow_evictions = True
    world.add(pod_group("old", minimum=1, disruptionMode={"single": {}}), group_member("old-0", "old", node="n1"))
    world.add(make_pod("alone", node="n1", requests={"cpu": 1}), make_pod("one", requests={"cpu": 1}, priority=5))
    world.try_next()
    assert world.evicted == ["alone"]


@pytest.mark.parametrize(("group_priority", "evicted"), [(9, []), (4, ["old-0"])])
def test_as_a_victim_a_member_has_the_priority_of_its_group(group_priority: int, evicted: list[str]) -> None:
    world = world_of(nodes=[node("n1", 1)])
    world.slow_evictions = True
    world.add(pod_group("old", minimum=1, priority=group_priority), group_member("old-0", "old", node="n1"))
    world.add(make_pod("one", requests={"cpu": 1}, priority=5))
    world.try_next()
    assert world.evicted == evicted
