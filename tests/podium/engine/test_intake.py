"""News from the cluster: into the state, into the queue, and to the pods that wait for it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from podium.framework import Cycle, Plugin, Status, Wait
from podium.kube import Pod
from tests.podium.engine.ears import Ears, heard, listening
from tests.podium.engine.schedulers import Launched, World, on
from tests.podium.framework.runtimes import answering
from tools.kit.builders import make_node, make_pod

LARGE = {"cpu": 3}


# Pods on their way in


def test_a_pod_without_a_node_goes_to_the_queue_if_it_asks_for_one_of_our_profiles() -> None:
    world = World(default=True)
    world.add(make_pod("ours"), make_pod("theirs", spec={"schedulerName": "other"}))
    assert (world.place("ours"), world.place("theirs"), len(world.queue)) == ("active", "", 1)


def test_a_pod_with_a_node_counts_there_whoever_placed_it() -> None:
    world = listening()
    world.add(make_pod(node="n1", spec={"schedulerName": "other"}))
    assert (world.node_of("p1"), world.place("p1"), heard()) == ("n1", "", ["AssignedPod ADD"])


def test_a_pod_may_come_before_its_node() -> None:
    world = World("NodeResourcesFit")
    world.add(make_pod("early", node="n1", requests=LARGE), make_node("n1", cpu=4))
    world.attempt(make_pod(requests=LARGE))
    assert world.message == "0/1 nodes are available: 1 Insufficient cpu."


def test_a_pod_that_is_bound_leaves_the_queue_and_nobody_is_told_it_went() -> None:
    world = listening()
    world.add(make_pod(metadata={"resourceVersion": "1"}))
    world.add(on(make_pod(), "n1"))
    assert (world.place("p1"), world.node_of("p1"), heard()) == ("", "n1", ["AssignedPod ADD"])
    assert world.scheduler.schedule_one() is None


def test_confirming_a_placement_is_told_as_a_pod_added() -> None:
    world = listening()
    world.attempt(make_pod())
    assert heard() == []
    world.add(on(make_pod(), "n1"))
    assert (world.cluster.pods["default-p1"].assumed, heard()) == (False, ["AssignedPod ADD"])


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_has_ended_is_gone(phase: str) -> None:
    world = listening()
    world.add(make_pod(node="n1"))
    heard()
    world.add(make_pod(node="n1", status={"phase": phase}))
    assert (world.node_of("p1"), heard()) == (None, ["AssignedPod DELETE"])


def test_an_update_says_what_changed() -> None:
    world = listening()
    world.add(make_pod(node="n1", requests=LARGE, labels={"a": "b"}))
    heard()
    world.add(make_pod(node="n1", requests={"cpu": 1}))
    assert heard() == ["AssignedPod UPDATE_POD_LABEL", "AssignedPod UPDATE_POD_SCALE_DOWN"]


def test_a_queued_pod_is_tried_as_it_is_now() -> None:
    world = World("NodeResourcesFit", nodes=[make_node("n1", cpu=2)])
    world.add(make_pod(requests=LARGE, metadata={"resourceVersion": "1"}))
    world.add(make_pod(requests={"cpu": 1}, metadata={"resourceVersion": "2"}))
    world.try_next()
    assert world.bound == [("p1", "n1")]


def test_an_update_without_a_new_version_is_dropped() -> None:
    world = World("NodeResourcesFit", nodes=[make_node("n1", cpu=2)])
    world.add(make_pod(requests=LARGE, metadata={"resourceVersion": "1"}))
    world.add(make_pod(requests={"cpu": 1}, metadata={"resourceVersion": "1"}))
    world.try_next()
    assert world.bound == []


# Pods that are placed but not bound yet


class Hold(Plugin):
    """Holds every pod but the listener's at Permit."""

    def permit(self, _cycle: Cycle, _node_name: str) -> Wait:
        return Wait(60)


def leaving(pod: Pod) -> Pod:
    metadata = replace(pod.metadata, deletion_timestamp="2026-01-01T00:00:00Z", resource_version="leaving")
    return replace(pod, metadata=metadata)


def test_updates_of_a_placed_pod_change_nothing() -> None:
    launched = Launched()
    world = listening(launch=launched)
    world.attempt(make_pod(metadata={"resourceVersion": "1"}))
    world.add(make_pod(labels={"new": "label"}, metadata={"resourceVersion": "2"}))
    assert (world.node_of("p1"), world.place("p1"), heard()) == ("n1", "", [])
    launched.finish()
    assert world.bound == [("p1", "n1")]


@pytest.mark.parametrize("news", ["leaving", "gone"])
def test_a_placed_pod_that_is_deleted_gives_back_its_place_at_once(news: str) -> None:
    launched = Launched()
    world = World("NodeResourcesFit", nodes=[make_node("n1", cpu=4)], launch=launched)
    pod = make_pod(requests=LARGE)
    world.attempt(pod, make_pod("other", requests=LARGE))
    if news == "leaving":
        world.add(leaving(pod))
        world.add(replace(leaving(pod), metadata=replace(leaving(pod).metadata, resource_version="still")))
    else:
        world.delete(pod)
    assert (world.node_of("p1"), world.place("other")) == (None, "backoff")
    world.bind_answer = Status.error("not found")
    launched.finish()
    assert (world.message, world.nothing_left_of()) == ('running Bind plugin "DefaultBinder": not found', True)
    assert world.place("p1") == ("backoff" if news == "leaving" else "")


@pytest.mark.parametrize("news", ["leaving", "gone"])
def test_a_pod_deleted_while_held_at_permit_is_turned_away(news: str) -> None:
    world = listening(Hold)
    world.attempt(make_pod())
    (world.add(leaving(make_pod())) if news == "leaving" else world.delete(make_pod()))
    assert world.failures[-1][:3] == ("default/p1", "Unschedulable", "0/1 nodes are available: 1 removed.")
    assert (world.nothing_left_of(), world.bound) == (True, [])
    assert world.place("p1") == ("unschedulable" if news == "leaving" else "")
    told = Ears.events[0]
    assert (told.event, told.before.name, told.before.node_name) == ("AssignedPod DELETE", "p1", "n1")


def test_a_pod_let_go_but_not_bound_yet_gives_back_its_place_when_deleted() -> None:
    launched = Launched()
    world = listening(Hold, launch=launched)
    world.attempt(make_pod())
    waiting = world.scheduler.waiting.get("default-p1")
    assert waiting is not None
    waiting.allow("Hold")
    world.delete(make_pod())
    assert world.node_of("p1") is None
    launched.finish()


# Pods made anew under the same name


def test_a_waiting_pod_made_anew_starts_from_scratch() -> None:
    world = World(answering("No", filter_node=False), nodes=[make_node("n1")])
    world.attempt(make_pod())
    world.add(make_pod(metadata={"uid": "another"}))
    queued = world.queued()
    assert (queued.pod.uid, queued.queue, queued.attempts, len(world.queue)) == ("another", "active", 0, 1)


def test_a_placed_pod_made_anew_gives_back_the_old_ones_place() -> None:
    launched = Launched()
    world = World("NodeResourcesFit", nodes=[make_node("n1", cpu=4)], launch=launched)
    world.attempt(make_pod(requests=LARGE))
    world.attempt(make_pod(requests=LARGE, metadata={"uid": "another"}))
    assert list(world.cluster.pods) == ["another"]
    world.bind_answer = Status.error("uid does not match")
    launched.finish()
    assert [failure.reason for failure in world.failures] == ["SchedulerError"], "nothing is told of the old pod"
    assert world.queued().pod.uid == "another"


def test_a_pod_made_anew_by_somebody_who_placed_it_replaces_the_waiting_one() -> None:
    world = World(answering("No", filter_node=False), nodes=[make_node("n1")])
    world.attempt(make_pod())
    world.add(make_pod(node="n1", metadata={"uid": "another"}))
    assert (len(world.queue), list(world.cluster.pods)) == (0, ["another"])


# Nominated pods


def nominee(node: str, version: str = "1", priority: int = 5) -> Pod:
    return make_pod(
        "nominee", priority=priority, status={"nominatedNodeName": node}, metadata={"resourceVersion": version}
    )


@pytest.mark.parametrize(
    ("news", "told"),
    [
        pytest.param("moved", True, id="another node"),
        pytest.param("cleared", True, id="none any more"),
        pytest.param("same", False, id="the same node"),
        pytest.param("gone", True, id="deleted"),
    ],
)
@pytest.mark.parametrize(("priority", "concerned"), [(4, True), (5, True), (6, False)])
def test_room_kept_for_a_nominated_pod_is_free_for_pods_of_at_most_its_priority(
    news: str, told: bool, priority: int, concerned: bool
) -> None:
    world = World(answering("No", filter_node=False), nodes=[make_node("n1")])
    world.attempt(make_pod("waiting", priority=priority))
    world.add(nominee("n1"))
    if news == "gone":
        world.delete(nominee("n1"))
    else:
        world.add(nominee({"moved": "n2", "cleared": "", "same": "n1"}[news], "2"))
    assert world.place("waiting") == ("backoff" if told and concerned else "unschedulable")


def test_a_pod_nominated_for_the_first_time_frees_nothing() -> None:
    world = listening()
    world.add(nominee(""))
    world.add(nominee("n1", "2"))
    assert (heard(), world.scheduler.nominator.node_of("default-nominee")) == ([], "n1")
