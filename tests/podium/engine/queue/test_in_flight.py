"""Events that happen while a pod is being tried are shown to it when it fails."""

from __future__ import annotations

import pytest

from podium.framework import Action, Event, Interest, Resource
from podium.kube import Pod
from tests.podium.engine.queue.queues import NODE_ADD, NODE_LABEL, World
from tools.kit.builders import make_pod

HINTS = {
    "Fit": [Interest(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL)],
    "Own": [Interest(Resource.POD, Action.UPDATE_POD_LABEL, lambda pod, _before, after: pod.uid == after.uid)],
}


def labels(world: World) -> list[str]:
    return [recorded.listeners.label for recorded in world.queue.in_flight.events()]


def test_events_are_kept_only_while_a_pod_is_in_flight() -> None:
    world = World(HINTS)
    world.queue.on_event(NODE_ADD)
    assert labels(world) == []
    world.add(make_pod("p"))
    queued = world.pop()
    world.queue.on_event(NODE_ADD)
    world.queue.on_event(NODE_LABEL)
    assert labels(world) == ["NodeAdd", "NodeUpdateNodeLabel"]
    world.queue.done(queued.pod.uid)
    assert labels(world) == []


def test_an_event_before_a_pod_was_popped_is_not_for_it() -> None:
    world = World(HINTS)
    world.add(make_pod("early", priority=1), make_pod("late"))
    early = world.pop()
    world.queue.on_event(NODE_ADD)
    late = world.pop()
    world.fail(late, "Fit")
    world.fail(early, "Fit")
    assert (early.queue, late.queue) == ("backoff", "unschedulable")


@pytest.mark.parametrize(
    ("done", "kept"),
    [
        ([], ["NodeAdd", "NodeUpdateNodeLabel", "NodeAdd"]),
        ([0], ["NodeUpdateNodeLabel", "NodeAdd"]),
        ([1], ["NodeAdd", "NodeUpdateNodeLabel", "NodeAdd"]),
        ([0, 1], ["NodeAdd"]),
        ([1, 0], ["NodeAdd"]),
        ([2, 1], ["NodeAdd", "NodeUpdateNodeLabel", "NodeAdd"]),
        ([2, 1, 0], []),
    ],
)
def test_events_are_let_go_when_no_pod_is_left_that_was_popped_before_them(done: list[int], kept: list[str]) -> None:
    world = World(HINTS)
    world.add(*(make_pod(f"p{number}") for number in range(3)))
    popped = []
    for event in (NODE_ADD, NODE_LABEL, NODE_ADD):
        popped.append(world.pop())
        world.queue.on_event(event)
    for number in done:
        world.queue.done(popped[number].pod.uid)
    assert labels(world) == kept


def test_events_are_still_found_after_others_were_let_go() -> None:
    world = World(HINTS)
    world.add(*(make_pod(f"p{number}") for number in range(3)))
    first, second = world.pop(), world.pop()
    world.queue.on_event(NODE_ADD)
    third = world.pop()
    world.queue.done(first.pod.uid)
    world.fail(second, "Fit")
    world.queue.on_event(NODE_LABEL)
    world.fail(third, "Fit")
    assert (second.queue, third.queue) == ("backoff", "backoff")
    assert labels(world) == []


def test_done_twice_is_done() -> None:
    world = World(HINTS)
    world.add(make_pod("a"), make_pod("b"))
    first, _second = world.pop(), world.pop()
    world.queue.on_event(NODE_ADD)
    world.queue.done(first.pod.uid)
    world.queue.done(first.pod.uid)
    assert (len(world.queue.in_flight), labels(world)) == (1, ["NodeAdd"])


def test_taking_a_pod_back_ends_its_flight() -> None:
    world = World(HINTS)
    world.add(make_pod("p"))
    world.fail(world.pop(), "Fit")
    assert len(world.queue.in_flight) == 0


def test_a_pod_that_was_done_before_it_failed_is_retried_after_backoff() -> None:
    world = World(HINTS)
    world.add(make_pod("p"))
    queued = world.pop()
    world.queue.done(queued.pod.uid)
    world.fail(queued, "Fit")
    assert queued.queue == "backoff"


def test_an_update_of_the_pod_itself_is_kept_for_it() -> None:
    world = World(HINTS)
    before, after = make_pod("p"), make_pod("p", labels={"x": "y"})
    world.add(before)
    queued = world.pop()
    world.queue.update(before, after)
    assert (labels(world), len(world.queue)) == (["TargetPodUpdatePodLabel"], 0)
    queued.pod = after
    world.fail(queued, "Own")
    assert queued.queue == "backoff"


def test_an_update_of_another_pod_in_flight_is_seen_but_its_hint_may_decline() -> None:
    world = World(HINTS)
    before = make_pod("other")
    world.add(make_pod("p", priority=1), before)
    queued, _other = world.pop(), world.pop()
    world.queue.update(before, make_pod("other", labels={"x": "y"}))
    world.fail(queued, "Own")
    assert queued.queue == "unschedulable"


def test_activating_a_pod_in_flight_brings_it_back_when_it_fails_and_no_other() -> None:
    world = World(HINTS)
    world.add(make_pod("p"), make_pod("q"))
    first, second = world.pop(), world.pop()
    world.queue.activate([first.pod])
    assert labels(world) == ["ForceActivate"]
    world.fail(first, "Fit")
    world.fail(second, "Fit")
    assert (first.queue, second.queue) == ("backoff", "unschedulable")


def test_a_precheck_does_not_keep_events_from_pods_in_flight() -> None:
    world = World(HINTS)
    world.add(make_pod("p"))
    queued = world.pop()
    world.queue.on_event(NODE_ADD, precheck=lambda _pod: False)
    world.fail(queued, "Fit")
    assert queued.queue == "backoff"


def test_an_error_does_not_ask_what_happened() -> None:
    asked: list[str] = []

    def hint(pod: Pod, _before: object, _after: object) -> bool:
        asked.append(pod.name)
        return True

    world = World({"Fit": [Interest(Resource.NODE, Action.ADD, hint)]})
    world.add(make_pod("p"))
    queued = world.pop()
    world.queue.on_event(Event(Resource.NODE, Action.ADD))
    world.fail(queued)
    assert (queued.queue, asked) == ("backoff", [])
