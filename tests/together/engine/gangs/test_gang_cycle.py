"""Gangs are placed whole or not at all, and leave nothing behind."""

from __future__ import annotations

import random
from typing import Any

import pytest

from podium.framework import Cycle, Plugin, Status
from tests.podium.engine.schedulers import Launched, on
from tests.podium.framework.runtimes import answering
from tests.together.gang_worlds import GangWorld, make_group, member, members
from tools.kit.builders import make_node, make_pod
from tools.kit.effort import seeds

ROOM_FOR_ONE = "0/1 nodes are available: 1 Insufficient cpu."
NO_VICTIMS = "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
DROPPED = "0/1 nodes are available: 1 optimistic rejection in PostFilter."


def state_of(world: GangWorld) -> dict[str, Any]:
    """All that placing a pod changes."""
    cluster, rows = world.cluster, world.cluster.columns.rows
    return {
        "pods": set(cluster.pods),
        "on": [set(pods) for pods in cluster.pods_on],
        "requested": cluster.resources.requested[:, :rows].tolist(),
        "count": cluster.resources.pod_count[:rows].tolist(),
        "waiting": len(world.scheduler.waiting),
        "in flight": len(world.queue.in_flight),
        "nominated": world.scheduler.nominator.nodes(),
    }


def test_a_gang_starts_when_its_last_member_has_come() -> None:
    world = GangWorld(nodes=[make_node("n1", cpu=8)])
    world.set_group(make_group(minimum=3))
    first, second, third = members(3)
    world.attempt(first, second)
    assert world.bound == []
    assert world.message.startswith(
        "0/1 nodes are available: pre-filter pod pg-1 cannot find enough sibling pods, current pods number: 2, "
        "minMember of group: 3."
    )
    world.attempt(third)
    assert sorted(world.bound) == [("pg-0", "n1"), ("pg-1", "n1"), ("pg-2", "n1")]
    assert (len(world.queue), len(world.queue.in_flight), len(world.scheduler.waiting)) == (0, 0, 0)


def test_a_gang_that_does_not_fit_holds_nothing() -> None:
    world = GangWorld(nodes=[make_node("n1", cpu=1)])
    world.set_group(make_group(minimum=3))
    before = state_of(world)
    world.add(*members(3))
    world.try_next()
    assert (world.bound, state_of(world)) == ([], before)
    messages = world.messages()
    assert messages["pg-0"] == DROPPED
    why = "PodGroup default/pg gets rejected due to Pod pg-{} is unschedulable even after PostFilter"
    assert messages["pg-1"] == f"{ROOM_FOR_ONE} {NO_VICTIMS}, {why.format(1)}"
    assert messages["pg-2"] == f"{ROOM_FOR_ONE} {NO_VICTIMS}, {why.format(2)}"
    assert {world.place(f"pg-{i}") for i in range(3)} == {"unschedulable"}


def test_more_members_than_needed_go_as_far_as_there_is_room() -> None:
    world = GangWorld(nodes=[make_node("n1", cpu=2)])
    world.set_group(make_group(minimum=2))
    world.add(*members(3))
    world.run()
    assert world.bound == [("pg-0", "n1"), ("pg-1", "n1")]
    assert world.messages() == {"pg-2": f"{ROOM_FOR_ONE} {NO_VICTIMS}"}


def test_a_failed_gang_starts_when_a_node_comes() -> None:
    world = GangWorld(nodes=[make_node("n1", cpu=2)])
    world.set_group(make_group(minimum=3))
    world.add(*members(3))
    world.run()
    world.add(make_node("n2", cpu=1))
    world.pass_time(2)
    world.run()
    assert sorted(name for name, _node in world.bound) == ["pg-0", "pg-1", "pg-2"]


def test_members_of_different_priority_start_together() -> None:
    world = GangWorld(nodes=[make_node("n1", cpu=3)])
    world.set_group(make_group(minimum=3))
    world.add(*members(2), member("pg-9", requests={"cpu": 1}, priority=10))
    world.try_next()
    assert [name for name, _node in world.bound] == ["pg-9", "pg-0", "pg-1"]


def test_pods_without_a_gang_are_not_held_up_by_one() -> None:
    world = GangWorld(nodes=[make_node("n1", cpu=2)])
    world.set_group(make_group(minimum=3))
    world.add(*members(3), make_pod("single", requests={"cpu": 2}))
    world.run()
    assert world.bound == [("single", "n1")]


def test_a_gang_that_fails_again_is_not_decided_again_while_nothing_changed() -> None:
    world = GangWorld(nodes=[make_node("n1", cpu=1)])
    world.set_group(make_group(minimum=3))
    world.add(*members(3))
    world.run()
    decisions = world.scheduler.answer_cache.decisions
    said = world.messages()
    world.failures.clear()
    world.queue.activate([pod for pod in world.cluster.objects.pending_pods if pod.name == "pg-1"])
    world.run()
    assert world.messages() == {"pg-1": said["pg-1"]}
    assert world.scheduler.answer_cache.decisions == decisions
    assert world.place("pg-1") == "unschedulable"
    world.add(make_node("n2", cpu=2))
    world.pass_time(2)
    world.run()
    assert len(world.bound) == 3


class Picky(Plugin):
    def reserve(self, cycle: Cycle, node_name: str) -> Status | None:
        return Status.unschedulable("not this one") if cycle.pod.name == "pg-1" else None


def test_a_member_that_is_refused_on_its_node_is_left_out() -> None:
    world = GangWorld(Picky, nodes=[make_node("n1", cpu=8)])
    world.set_group(make_group(minimum=2))
    world.add(*members(3))
    world.try_next()
    assert world.bound == [("pg-0", "n1"), ("pg-2", "n1")]
    assert world.messages() == {"pg-1": "0/1 nodes are available: 1 not this one."}


def test_a_plugin_that_fails_fails_every_member_it_was_asked_about() -> None:
    world = GangWorld(answering("Broken", reserve=ValueError("oops")), nodes=[make_node("n1", cpu=8)])
    world.set_group(make_group(minimum=2))
    world.add(*members(3))
    world.try_next()
    assert (world.bound, world.cluster.pods) == ([], {})
    assert set(world.messages().values()) == {'running Reserve plugin "Broken": ValueError: oops'}


def test_room_made_for_a_gang_is_kept_for_it() -> None:
    world = GangWorld(nodes=[make_node("n1", cpu=2), make_node("n2", cpu=1)])
    world.slow_evictions = True
    low = make_pod("low", requests={"cpu": 1}, node="n2", priority=0)
    world.add(low)
    world.set_group(make_group(minimum=3))
    gang = members(3, priority=10)
    world.add(*gang)
    world.run()
    assert (world.bound, world.evicted) == ([], ["low"])
    nominator = world.scheduler.nominator
    assert {pod.name: nominator.node_of(pod.uid) for pod in gang} == {"pg-0": "n1", "pg-1": "n1", "pg-2": "n2"}
    world.attempt(make_pod("thief", requests={"cpu": 1}))
    assert world.node_of("thief") is None, "room is being made for the gang"
    world.delete(low)
    world.evictions[0](None)
    world.pass_time(2)
    world.run()
    assert sorted(name for name, _ in world.bound) == ["pg-0", "pg-1", "pg-2"]


def test_a_deleted_member_in_the_middle_of_binding_does_not_stop_the_others() -> None:
    launched = Launched()
    world = GangWorld(nodes=[make_node("n1", cpu=8)], launch=launched)
    world.set_group(make_group(minimum=3))
    gang = members(3)
    world.add(*gang)
    world.try_next()
    assert len(launched.waiting) == 3
    world.delete(gang[1])
    launched.finish()
    for pod in (gang[0], gang[2]):
        world.add(on(pod, "n1"))
    assert set(world.cluster.pods) == {"default-pg-0", "default-pg-2"}


def test_members_bound_before_a_restart_are_counted() -> None:
    world = GangWorld(nodes=[make_node("n1", cpu=8)])
    gang = members(3)
    world.add(on(gang[0], "n1"), on(gang[1], "n1"))
    world.set_group(make_group(minimum=3))
    world.attempt(gang[2])
    assert world.bound == [("pg-2", "n1")]


def test_a_binding_that_fails_brings_its_member_back_and_the_gang_is_completed_later() -> None:
    world = GangWorld(nodes=[make_node("n1", cpu=8)])
    world.set_group(make_group(minimum=2))
    world.bind_answer = Status.error("conflict")
    world.add(*members(2))
    world.run(10)
    assert world.bound == []
    world.bind_answer = None
    world.pass_time(3)
    world.run()
    assert sorted(world.bound) == [("pg-0", "n1"), ("pg-1", "n1")]


@pytest.mark.parametrize("seed", seeds(100))
def test_two_gangs_that_need_60_percent_each_never_block_each_other(seed: int) -> None:
    rng = random.Random(seed)
    world = GangWorld(nodes=[make_node(f"n{i}", cpu=1) for i in range(10)])
    world.set_group(make_group("a", 6))
    world.set_group(make_group("b", 6))
    pods = [*members(6, "a"), *members(6, "b")]
    rng.shuffle(pods)
    for pod in pods:
        world.add(pod)
        for _ in range(rng.randrange(3)):
            world.scheduler.schedule_one()
    for _ in range(20):
        world.pass_time(rng.random() * 30)
        world.run()
    started = {name[0] for name, _node in world.bound}
    assert (len(world.bound), len(started)) == (6, 1)
    assert len(world.queue) == 6, "the other gang waits"
    assert len(world.cluster.pods) == 6
