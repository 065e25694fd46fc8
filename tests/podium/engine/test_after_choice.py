"""What may still keep a pod from its node once one was chosen, and what becomes of a pod that failed."""

from __future__ import annotations

from typing import Any

import pytest

from podium.cluster import NodeInfo
from podium.framework import Code, Cycle, Plugin, Status, Wait
from podium.kube import Pod
from tests.podium.engine.schedulers import CLEARED, World, on
from tests.podium.framework.runtimes import answering
from tools.kit.builders import make_node, make_pod

NODES = [make_node("n1"), make_node("n2")]


# Reserve and Permit


@pytest.mark.parametrize("point", ["reserve", "permit"])
@pytest.mark.parametrize(
    "status", [Status.unschedulable("full", "closed"), Status.unresolvable("never"), Status.pending("soon")]
)
def test_a_pod_refused_after_the_choice_is_unschedulable_on_that_one_node(point: str, status: Status) -> None:
    world = World(answering("X", **{point: status}), nodes=NODES)
    world.attempt(make_pod())
    reasons = ", ".join(sorted(f"1 {reason}" for reason in status.reasons))
    assert world.failures == [("default/p1", "Unschedulable", f"0/1 nodes are available: {reasons}.", CLEARED)]
    assert world.nothing_left_of()
    pod = world.queued()
    assert (pod.queue, pod.unschedulable_plugins) == ("unschedulable", {"X"})
    assert pod.pending_plugins == ({"X"} if status.code == Code.PENDING else set())


def test_the_placement_is_visible_to_reserve_and_undone_behind_unreserve() -> None:
    seen: list[tuple[str, bool]] = []

    class Watches(Plugin):
        def reserve(self, cycle: Cycle, node_name: str) -> Status:
            seen.append((node_name, cycle.pod.uid in cycle.cluster.pods))
            assert self.handle.nominator.node_of(cycle.pod.uid) is None, "placed, it needs no nomination"
            return Status.unschedulable("no")

        def unreserve(self, cycle: Cycle, node_name: str) -> None:
            seen.append((node_name, cycle.pod.uid in cycle.cluster.pods))

    world = World(Watches, nodes=NODES)
    world.attempt(make_pod(status={"nominatedNodeName": "n2"}))
    assert seen == [("n2", True), ("n2", True)]
    assert world.nothing_left_of()


def test_a_failure_before_binding_wakes_nobody() -> None:
    """Nothing was freed that anybody else could have seen taken."""
    world = World(answering("X", reserve=Status.unschedulable("no")), nodes=NODES)
    world.attempt(make_pod("first"), make_pod("second"))
    assert [world.place(name) for name in ("first", "second")] == ["unschedulable", "unschedulable"]


# Pods to wake


class Wakes(Plugin):
    """Lets no pod but "leader" through, and wakes those that its annotations name for each point."""

    def filter_node(self, cycle: Cycle, _node: NodeInfo) -> bool:
        return cycle.pod.name == "leader"

    def _wake(self, cycle: Cycle, point: str) -> None:
        name = cycle.pod.annotations.get(point, "")
        if name:
            cycle.pods_to_activate[f"default/{name}"] = make_pod(name)

    def reserve(self, cycle: Cycle, _node_name: str) -> None:
        self._wake(cycle, "reserve")

    def permit(self, cycle: Cycle, _node_name: str) -> Wait | Status | None:
        answers: dict[str, Wait | Status] = {"wait": Wait(9), "no": Status.unschedulable("no")}
        return answers.get(cycle.pod.annotations.get("permit", ""))

    def post_bind(self, cycle: Cycle, _node_name: str) -> None:
        assert not cycle.pods_to_activate, "those of the scheduling cycle were woken already"
        self._wake(cycle, "post_bind")


@pytest.mark.parametrize(
    ("annotations", "woken"),
    [
        ({"reserve": "a", "post_bind": "b"}, ["a", "b"]),
        ({"reserve": "a", "post_bind": "b", "permit": "wait"}, ["a"]),
        ({"reserve": "a", "post_bind": "b", "permit": "no"}, []),
        ({"reserve": "stranger"}, []),
    ],
)
def test_pods_that_plugins_name_are_woken_when_the_cycle_and_when_the_binding_succeeded(
    annotations: dict[str, str], woken: list[str]
) -> None:
    world = World(Wakes, nodes=NODES)
    world.attempt(make_pod("a"), make_pod("b"), make_pod("leader", metadata={"annotations": annotations}))
    assert [name for name in ("a", "b") if world.place(name) == "active"] == woken


# The failure handler


class Meanwhile(Plugin):
    """Has something happen while the pod is tried, then turns it away."""

    happens: Any = None

    def permit(self, _cycle: Cycle, _node_name: str) -> Status:
        type(self).happens()
        return Status.unschedulable("no")


def tried_while(happens: Any, pod: Pod) -> World:
    world = World(Meanwhile, nodes=NODES)
    Meanwhile.happens = lambda: happens(world)
    world.attempt(pod)
    return world


def test_a_pod_that_went_away_meanwhile_is_not_queued_but_told_of() -> None:
    world = tried_while(lambda world: world.delete(make_pod()), make_pod())
    assert (len(world.queue), len(world.queue.in_flight), len(world.failures)) == (0, 0, 1)
    assert world.nothing_left_of()


def test_a_pod_that_was_bound_by_somebody_else_meanwhile_is_not_queued() -> None:
    world = tried_while(lambda world: world.add(on(make_pod(), "n2")), make_pod())
    assert (len(world.queue), len(world.queue.in_flight), world.node_of("p1")) == (0, 0, "n2")


def test_a_pod_made_anew_meanwhile_is_queued_for_itself_and_nothing_is_told_of_the_old_one() -> None:
    anew = make_pod(metadata={"uid": "another"})
    world = tried_while(lambda world: world.add(anew), make_pod())
    assert (world.failures, len(world.queue.in_flight)) == ([], 0)
    assert (world.queued().pod.uid, world.queued().attempts) == ("another", 0)
    assert world.nothing_left_of()


def test_a_pod_that_changed_meanwhile_comes_back_as_it_is_now() -> None:
    now = make_pod(labels={"v": "2"}, metadata={"resourceVersion": "2"})
    world = tried_while(lambda world: world.add(now), make_pod(metadata={"resourceVersion": "1"}))
    assert world.queued().pod.labels == {"v": "2"}


def test_what_happens_meanwhile_may_bring_the_pod_straight_back() -> None:
    world = tried_while(lambda world: world.add(make_node("n3")), make_pod())
    assert world.place("p1") == "backoff", "a new node concerns the plugin that turned it away"
