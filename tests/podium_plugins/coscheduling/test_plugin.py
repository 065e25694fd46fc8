"""Coscheduling, point by point, as scheduler-plugins has it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from podium.config import ConfigError, load_config
from podium.framework import Cycle, Plugin, QueuedPod, Status, Wait
from podium.framework.diagnosis import Diagnosis, NodeStatuses
from podium.kube import Pod
from podium.plugins import load_registry
from podium_plugins.coscheduling.pod_group import RESOURCE, read_group
from tests.podium.engine.schedulers import Launched, on
from tests.together.gang_worlds import CREATED, GangWorld, make_group, member, members
from tools.kit.builders import make_node, make_pod

GATED = {"schedulingGates": [{"name": "later"}]}


def pre_filter(world: GangWorld, pod: Pod) -> str:
    answer = world.plugin.pre_filter(Cycle(pod, world.cluster))
    return answer.message if isinstance(answer, Status) else ""


def post_filter(world: GangWorld, pod: Pod) -> str:
    result = world.plugin.post_filter(Cycle(pod, world.cluster), Diagnosis(1, NodeStatuses(1)))
    assert result.status is not None
    assert result.status.rejected
    assert result.nomination is None
    return result.status.message


def hold(world: GangWorld, pods: list[Pod]) -> None:
    """Place pods in memory, held at Permit by the plugin."""
    for pod in pods:
        world.add(pod)
        world.queue.delete(pod)
        world.cluster.assume(pod, "n1")
        world.scheduler.waiting.add(pod, "n1", {"Coscheduling": 60.0}, world.clock.now())


# Queue order


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param({"priority": 10}, {"group": "old"}, id="higher priority first"),
        pytest.param({"group": "old"}, {"group": "new"}, id="the older group first"),
        pytest.param({"name": "a", "group": "new"}, {"name": "b", "group": "new"}, id="by name within a group"),
        pytest.param({"group": "old"}, {"since": 2_000_000.0}, id="a group by its creation, others by their arrival"),
        pytest.param({"since": 10.0}, {"group": "old"}, id="an earlier pod without a group"),
        pytest.param({"group": "new"}, {"group": "failed"}, id="a group that failed falls behind"),
        pytest.param({"group": "gone", "since": 10.0}, {"group": "old"}, id="a missing group: the pod's own time"),
    ],
)
def test_queue_order(first: dict[str, Any], second: dict[str, Any]) -> None:
    world = GangWorld()
    for name, created in (("old", CREATED), ("new", "1970-01-12T14:46:40Z"), ("failed", CREATED)):
        group = make_group(name)
        group["metadata"]["creationTimestamp"] = created
        world.set_group(group)
    record = world.plugin._records.by_key("default/failed")
    assert record is not None
    record.last_failed = 1_500_000.0

    def queued(name: str = "p", group: str = "", priority: int = 0, since: float = 1_000_500.0) -> QueuedPod:
        pod = member(name, group, priority=priority) if group else make_pod(name, priority=priority)
        found = QueuedPod(pod, 0.0)
        found.initial_attempt = since
        return found

    a, b = queued(**first), queued(**second)
    assert (world.plugin.less(a, b), world.plugin.less(b, a)) == (True, False)


# PreFilter


def test_pods_without_a_group_pass() -> None:
    world = GangWorld()
    assert pre_filter(world, make_pod()) == ""
    lonely = member("p1", "missing")
    world.add(lonely)
    assert pre_filter(world, lonely) == ""


def test_pre_filter_wants_enough_members_that_are_not_gated() -> None:
    world = GangWorld()
    world.set_group(make_group(minimum=3))
    pods = members(3)
    world.add(*pods[:2])
    message = "pre-filter pod pg-0 cannot find enough sibling pods, current pods number: 2, minMember of group: 3"
    assert pre_filter(world, pods[0]) == message
    world.add(member("pg-2", spec=GATED))
    assert pre_filter(world, pods[0]) == "pre-filter pod pg-0 cannot proceed due to gated pods in the same PodGroup"
    world.add(member("pg-3"))
    assert pre_filter(world, pods[0]) == ""


def test_members_count_when_bound_or_terminating_and_no_longer_when_finished() -> None:
    world = GangWorld(nodes=[make_node("n1")])
    world.set_group(make_group(minimum=3))
    pods = members(3)
    leaving = member("pg-2", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    world.add(pods[0], on(pods[1], "n1"), leaving)
    assert pre_filter(world, pods[0]) == ""
    world.add(member("pg-1", node="n1", status={"phase": "Succeeded"}))
    assert "current pods number: 2" in pre_filter(world, pods[0])


def test_pods_of_another_scheduler_are_members_but_do_not_start_a_gang() -> None:
    world = GangWorld(nodes=[make_node("n1")])
    world.set_group(make_group(minimum=2))
    ours, theirs = member("pg-0"), member("pg-1", spec={"schedulerName": "other"})
    world.add(ours, theirs)
    assert pre_filter(world, ours) == (
        "PodGroup default/pg reaches minMember 2 only with pods of other schedulers (other): "
        "give all its pods the same schedulerName"
    )
    world.add(on(theirs, "n1"))
    assert pre_filter(world, ours) == ""
    world.run()
    assert world.bound == [("pg-0", "n1")]


@pytest.mark.parametrize(
    ("resources", "gap"),
    [
        pytest.param({"cpu": 12}, "", id="the spec's example: 5 + 4 + 4"),
        pytest.param({"cpu": 14}, "resource gap: map[cpu:1]", id="one short"),
        pytest.param({"cpu": "13500m", "memory": "40Gi"}, "resource gap: map[cpu:500m memory:16Gi]", id="two"),
        pytest.param({"example.com/gpu": 1}, "resource gap: map[example.com/gpu:1]", id="one no node has"),
        pytest.param({"pods": 1000}, "", id="pods are minMember whatever is written"),
    ],
)
def test_min_resources_are_summed_over_nodes(resources: dict[str, Any], gap: str) -> None:
    world = GangWorld(nodes=[make_node(f"n{i}", cpu=cpu) for i, cpu in enumerate((5, 4, 4))])
    world.set_group(make_group(minimum=2, minResources=resources))
    pods = members(2, cpu=6)
    world.add(*pods)
    assert pre_filter(world, pods[0]) == gap


def test_min_resources_do_not_count_the_groups_own_pods_and_are_remembered_for_a_while() -> None:
    world = GangWorld(nodes=[make_node("n1", cpu=4)], args={"permitWaitingTimeSeconds": 10})
    world.set_group(make_group(minimum=2, minResources={"cpu": 4}))
    pods = members(2, cpu=2)
    world.add(on(pods[0], "n1"), pods[1])
    assert pre_filter(world, pods[1]) == ""
    world.add(make_pod("other", requests={"cpu": 1}, node="n1"))
    assert pre_filter(world, pods[1]) == "", "it passed a moment ago"
    world.clock.advance(10)
    assert pre_filter(world, pods[1]) == "resource gap: map[cpu:1]"


def test_a_group_starts_when_its_min_resources_are_free() -> None:
    world = GangWorld(nodes=[make_node("n1", cpu=4)])
    world.set_group(make_group(minimum=2, minResources={"cpu": 4}))
    other = make_pod("other", requests={"cpu": 1}, node="n1")
    world.add(other, *members(2))
    world.run()
    assert world.bound == []
    assert world.message.startswith("0/1 nodes are available: resource gap: map[cpu:1].")
    world.delete(other)
    world.pass_time(2)
    world.run()
    assert sorted(world.bound) == [("pg-0", "n1"), ("pg-1", "n1")]


# PostFilter: the worked example


@pytest.mark.parametrize(("waiting", "stay"), [(9, True), (8, False)])
def test_a_member_that_fits_nowhere_brings_the_others_down_unless_few_are_missing(waiting: int, stay: bool) -> None:
    world = GangWorld(nodes=[make_node("n1", cpu=100)], launch=Launched())
    world.set_group(make_group(minimum=10))
    pods = members(10)
    hold(world, pods[:waiting])
    world.add(pods[9])
    message = post_filter(world, pods[9])
    rejected = [each for each in world.scheduler.waiting if each.settled]
    if stay:
        assert (message, rejected) == ("", [])
        return
    assert message == "PodGroup default/pg gets rejected due to Pod pg-9 is unschedulable even after PostFilter"
    assert len(rejected) == waiting
    assert {each.outcome for each in rejected} == {
        Status.unschedulable("optimistic rejection in PostFilter").by("Coscheduling")
    }
    queued = QueuedPod(pods[9], 0.0)
    assert world.plugin.sort_key(queued)[1] == world.clock.now(), "the group falls behind"


@pytest.mark.parametrize(
    ("percentage", "waiting", "stay"), [(100, 1, True), (0, 9, False), (50, 5, True), (50, 4, False)]
)
def test_the_percentage_can_be_set(percentage: int, waiting: int, stay: bool) -> None:
    world = GangWorld(nodes=[make_node("n1", cpu=100)], args={"podGroupRejectPercentage": percentage})
    world.set_group(make_group(minimum=10))
    pods = members(10)
    hold(world, pods[:waiting])
    world.add(pods[9])
    assert (post_filter(world, pods[9]) == "") == stay


def test_post_filter_of_pods_without_a_group_and_of_complete_groups() -> None:
    world = GangWorld(nodes=[make_node("n1")])
    assert post_filter(world, make_pod()) == "can not find pod group"
    world.set_group(make_group(minimum=1))
    late = member("late")
    world.add(on(member("pg-0"), "n1"), late)
    assert post_filter(world, late) == ""


def test_a_rejected_group_backs_off() -> None:
    world = GangWorld(nodes=[make_node("n1", cpu=1)], args={"podGroupBackoffSeconds": 30})
    world.set_group(make_group(minimum=2))
    pods = members(2)
    world.add(*pods)
    world.run()
    assert pre_filter(world, pods[0]) == "podGroup default/pg failed recently"
    world.clock.advance(30)
    assert pre_filter(world, pods[0]) == ""


# Permit


@pytest.mark.parametrize(
    ("timeout", "usual", "seconds"), [(None, 60, 60), (None, 0, 60), (0, 25, 25), (0, 0, 0), (7, 25, 7)]
)
def test_how_long_a_member_waits(timeout: int | None, usual: int, seconds: int) -> None:
    world = GangWorld(nodes=[make_node("n1")], args={"permitWaitingTimeSeconds": usual})
    spec: dict[str, Any] = {} if timeout is None else {"scheduleTimeoutSeconds": timeout}
    world.set_group(make_group(minimum=2, **spec))
    pods = members(2)
    world.add(*pods)
    world.cluster.assume(pods[0], "n1")
    cycle = Cycle(pods[0], world.cluster)
    assert world.plugin.permit(cycle, "n1") == Wait(seconds)
    assert [pod.name for pod in cycle.pods_to_activate.values()] == ["pg-1"]


def test_permit_without_label_and_without_group() -> None:
    world = GangWorld(nodes=[make_node("n1")])
    assert world.plugin.permit(Cycle(make_pod(), world.cluster), "n1") is None
    world.attempt(member("p1", "missing"))
    assert world.message == "0/1 nodes are available: 1 PodGroup not found."
    world.set_group(make_group("missing", 1))
    world.pass_time(2)
    world.run()
    assert world.bound == [("p1", "n1")]


class Doorkeeper(Plugin):
    """Keeps pod pg-1 out of the queue."""

    def pre_enqueue(self, pod: Pod) -> Status | None:
        return Status.unresolvable("not yet") if pod.name == "pg-1" and not open_doors else None


open_doors: list[str] = []


@pytest.mark.parametrize("comes", [True, False])
def test_a_member_whose_mate_is_kept_from_the_queue_waits_for_it_at_permit(comes: bool) -> None:
    open_doors.clear()
    world = GangWorld(Doorkeeper, nodes=[make_node("n1")])
    world.set_group(make_group(minimum=2, scheduleTimeoutSeconds=10))
    world.add(*members(2))
    world.run()
    assert ([each.pod.name for each in world.scheduler.waiting], world.bound) == (["pg-0"], [])
    if comes:
        open_doors.append("open")
        world.add(make_node("n2"))
        world.run()
        assert sorted(name for name, _node in world.bound) == ["pg-0", "pg-1"]
        return
    world.pass_time(10)
    assert len(world.scheduler.waiting) == 0
    assert world.message == (
        "0/1 nodes are available: 1 rejected due to timeout after waiting 10s at plugin Coscheduling."
    )
    assert world.nothing_left_of("pg-0")


# The group's object


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ({"minMember": "three"}, "Expected `int`, got `str` - at `$.spec.minMember`"),
        ({"minMember": -1}, "spec.minMember must be at least 1, got -1"),
        ({"minMember": 0}, "spec.minMember must be at least 1, got 0"),
    ],
)
def test_a_group_that_cannot_be_read_is_reported_and_has_no_effect(spec: dict[str, Any], complaint: str) -> None:
    world = GangWorld(nodes=[make_node("n1")])
    world.intake.set_custom(RESOURCE, "default/pg", {**make_group(minimum=None), "spec": spec})
    assert world.reports == [
        f"PodGroup default/pg: {complaint}; its pods are scheduled one by one until that is put right"
    ]
    world.attempt(member("pg-0"))
    assert world.bound == [("pg-0", "n1")]


def test_an_unknown_topology_mode_is_reported() -> None:
    group = make_group(annotations={"podium.dev/topology-key": "zone", "podium.dev/topology-mode": "maybe"})
    assert read_group(group) == 'annotation podium.dev/topology-mode must be "hard" or "soft", got "maybe"'


@pytest.mark.parametrize("minimum", [None, 0])
def test_without_min_member_there_is_no_gang(minimum: int | None) -> None:
    world = GangWorld(nodes=[make_node("n1", cpu=1)])
    world.set_group(make_group(minimum=minimum))
    world.add(*members(2))
    world.run()
    assert world.bound == [("pg-0", "n1")]


def test_a_group_deleted_under_its_pods_and_made_again() -> None:
    world = GangWorld(nodes=[make_node("n1", cpu=1)])
    world.set_group(make_group(minimum=2))
    world.add(*members(2))
    world.run()
    world.set_group(make_group(), gone=True)
    deleted = "it was deleted while 2 of its pods have no node; they wait until there is one again"
    assert world.reports == [f"PodGroup default/pg: {deleted}"]
    world.add(make_node("n2", cpu=1))
    world.pass_time(2)
    world.run()
    assert world.bound == []
    assert world.messages()["pg-1"] == "0/1 nodes are available: 1 PodGroup not found."
    world.set_group(make_group(minimum=2))
    world.pass_time(5)
    world.run()
    assert len(world.bound) == 2


# Args


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        ({"permitWaitingTimeSeconds": -1}, "permitWaitingTimeSeconds: Invalid value: -1: must be greater than 0"),
        ({"podGroupBackoffSeconds": -1}, "podGroupBackoffSeconds: Invalid value: -1: must be greater than 0"),
        ({"podGroupRejectPercentage": 101}, "podGroupRejectPercentage: Invalid value: 101: must be between 0 and 100"),
    ],
)
def test_args_are_checked(args: dict[str, int], complaint: str) -> None:
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"pluginConfig": [{"name": "Coscheduling", "args": args}]}],
    }
    with pytest.raises(ConfigError, match=complaint.replace("[", r"\[")):
        load_config(json.dumps(config), "scheduler.yaml", load_registry())
