"""Which events bring which waiting pods back, and how soon."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from podium.engine.queue.queueing_hints import build_hints
from podium.engine.queue.scheduling_queue import SchedulingQueue
from podium.engine.queue.sub_queues import QueuePlugins, QueueSettings
from podium.framework import Action, Event, Interest, Plugin, Resource
from podium.framework.events import FORCE_ACTIVATE, UNSCHEDULABLE_TIMEOUT
from podium.framework.extender import EXTENDER
from podium.kube import Pod
from podium.kube.versions import KNOWN
from tests.podium.engine.queue.queues import NODE_ADD, NODE_LABEL, POD_GONE, ByKey, World, says
from tools.kit.builders import make_cluster, make_handle, make_node, make_pod


def make(kind: type[Plugin]) -> Plugin:
    return kind(None, make_handle(make_cluster([])))


YES = Interest(Resource.NODE, Action.ADD, says(True))
NO = Interest(Resource.NODE, Action.ADD, says(False))
ALWAYS = Interest(Resource.NODE, Action.ADD)
ELSEWHERE = Interest(Resource.PVC, Action.ADD)


@pytest.mark.parametrize(
    ("interests", "unschedulable", "pending", "place"),
    [
        ({"A": [ALWAYS]}, ["A"], [], "backoff"),
        ({"A": [YES]}, ["A"], [], "backoff"),
        ({"A": [NO]}, ["A"], [], "unschedulable"),
        ({"A": [NO, YES]}, ["A"], [], "backoff"),
        ({"A": [NO, ALWAYS]}, ["A"], [], "backoff"),
        ({"A": [ELSEWHERE]}, ["A"], [], "unschedulable"),
        ({"A": [NO], "B": [YES]}, ["A"], [], "unschedulable"),
        ({"A": [NO], "B": [YES]}, ["A", "B"], [], "backoff"),
        ({"A": [YES]}, [], ["A"], "active"),
        ({"A": [NO]}, [], ["A"], "unschedulable"),
        ({"A": [YES], "B": [NO]}, ["A"], ["B"], "backoff"),
        ({"A": [YES], "B": [YES]}, ["A"], ["B"], "active"),
        ({"A": [NO], "B": [YES]}, ["A"], ["B"], "active"),
        ({"A": [YES]}, ["A"], ["A"], "active"),
        ({"B": [YES]}, ["A"], [], "unschedulable"),
    ],
)
def test_an_event_brings_a_pod_back_if_a_rejecting_plugin_says_so(
    interests: dict[str, list[Interest]], unschedulable: list[str], pending: list[str], place: str
) -> None:
    """Shown to a waiting pod, or to one that was in flight when it happened, it does the same."""
    waiting = World(interests)
    queued = waiting.rejected(make_pod("p"), *unschedulable, pending=pending)
    assert waiting.queue.on_event(NODE_ADD) == (place != "unschedulable")
    assert queued.queue == place

    in_flight = World(interests)
    in_flight.add(make_pod("p"))
    queued = in_flight.pop()
    in_flight.queue.on_event(NODE_ADD)
    in_flight.fail(queued, *unschedulable, pending=pending)
    assert queued.queue == place


def test_the_pending_plugin_is_what_makes_it_immediate_also_over_several_events() -> None:
    world = World({"A": [ALWAYS], "B": [Interest(Resource.NODE, Action.UPDATE_NODE_LABEL)]})
    world.add(make_pod("p"))
    queued = world.pop()
    world.queue.on_event(NODE_ADD)
    world.queue.on_event(NODE_LABEL)
    world.fail(queued, "A", pending=["B"])
    assert queued.queue == "active"


def test_a_hint_sees_the_waiting_pod_and_the_object() -> None:
    seen: list[tuple[Pod, Any, Any]] = []

    def hint(pod: Pod, before: Any, after: Any) -> bool:
        seen.append((pod, before, after))
        return False

    world = World({"A": [Interest(Resource.NODE, Action.UPDATE_NODE_LABEL, hint)]})
    pod, before, after = make_pod("p"), make_node("old"), make_node("new")
    world.rejected(pod, "A")
    world.queue.on_event(NODE_LABEL, before, after)
    assert seen == [(pod, before, after)]


def test_a_hint_that_raises_counts_as_a_yes_and_is_reported() -> None:
    def hint(_pod: Pod, _before: Any, _after: Any) -> bool:
        raise KeyError("zone")

    world = World({"A": [Interest(Resource.NODE, Action.ADD, hint)]})
    world.rejected(make_pod("p"), "A")
    assert world.queue.on_event(NODE_ADD)
    assert [(failure.plugin, failure.pod) for failure in world.failures] == [("A", "default/p")]


def test_only_pods_whose_rejecting_plugins_registered_the_event_are_looked_at() -> None:
    asked: list[str] = []

    def hint(pod: Pod, _before: Any, _after: Any) -> bool:
        asked.append(pod.name)
        return False

    world = World(
        {
            "A": [Interest(Resource.NODE, Action.ADD, hint)],
            "B": [Interest(Resource.NODE, Action.ADD, hint)],
            "C": [Interest(Resource.PVC, Action.ADD, hint)],
        }
    )
    for name, plugins in {"a": "A", "c": "C", "ab": "AB", "bc": "BC"}.items():
        world.rejected(make_pod(name), *plugins)
    prechecked: list[str] = []

    def precheck(pod: Pod) -> bool:
        prechecked.append(pod.name)
        return True

    world.queue.on_event(NODE_ADD, precheck=precheck)
    assert sorted(prechecked) == ["a", "ab", "bc"], "each once"
    assert sorted(asked) == ["a", "ab", "ab", "bc"], "by each rejecting plugin that listens"


# Pods that are alike


class Colours:
    """A pod waits for its own colour; an event is about the colour it carries. "any" stands for every colour."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def of_pod(self, pod: Pod) -> set[str] | None:
        return None if pod.labels["colour"] == "any" else {pod.labels["colour"]}

    def of_event(self, _before: Any, after: str) -> set[str] | None:
        return None if after == "any" else {after}

    def hint(self, pod: Pod, _before: Any, after: str) -> bool:
        self.asked.append(pod.name)
        return after == "any" or pod.labels["colour"] in ("any", after)


def coloured(*colours: str) -> dict[str, Pod]:
    return {f"{colour}-{number}": painted(f"{colour}-{number}", colour) for number, colour in enumerate(colours)}


def painted(name: str, colour: str) -> Pod:
    return make_pod(name, labels={"colour": colour})


@pytest.mark.parametrize("by_signature", [True, False])
def test_a_hint_that_answers_by_signature_is_asked_once_for_pods_that_share_it(by_signature: bool) -> None:
    colours = Colours()
    world = World({"A": [Interest(Resource.NODE, Action.ADD, colours.hint, by_signature=by_signature)]})
    queued = {name: world.rejected(pod, "A") for name, pod in coloured("red", "red", "blue").items()}
    world.queue.on_event(NODE_ADD, None, "red")
    assert len(colours.asked) == (2 if by_signature else 3)
    assert [name for name, each in queued.items() if each.queue == "backoff"] == ["red-0", "red-1"]


def test_what_rejected_pods_and_who_is_left_out_sets_them_apart() -> None:
    colours = Colours()
    hears = [Interest(Resource.NODE, Action.ADD, colours.hint, by_signature=True)]
    world = World({"A": hears, "B": [NO]})
    pods = coloured("red", "red", "red")
    queued = [world.rejected(pod, plugin) for pod, plugin in zip(pods.values(), "ABA", strict=True)]
    world.queue.on_event(NODE_ADD, None, "red", precheck=lambda pod: pod.name != "red-0")
    assert [each.queue for each in queued] == ["unschedulable", "unschedulable", "backoff"]


@pytest.mark.parametrize(
    ("event", "asked", "woken"),
    [
        ("red", {"red-0", "any-2"}, {"red-0", "any-2"}),
        ("green", {"any-2"}, {"any-2"}),
        ("any", {"red-0", "blue-1", "any-2"}, {"red-0", "blue-1", "any-2"}),
    ],
)
def test_only_pods_that_wait_for_what_an_event_is_about_are_looked_at(
    event: str, asked: set[str], woken: set[str]
) -> None:
    colours = Colours()
    world = World({"A": [Interest(Resource.NODE, Action.ADD, colours.hint, by_signature=True, concerns=colours)]})
    queued = {name: world.rejected(pod, "A") for name, pod in coloured("red", "blue", "any").items()}
    world.queue.on_event(NODE_ADD, None, event)
    assert set(colours.asked) == asked
    assert {name for name, each in queued.items() if each.queue == "backoff"} == woken


def test_a_pod_that_changes_waits_for_something_else() -> None:
    colours = Colours()
    world = World({"A": [Interest(Resource.NODE, Action.ADD, colours.hint, by_signature=True, concerns=colours)]})
    queued = world.rejected(painted("p", "red"), "A")
    world.queue.update(queued.pod, painted("p", "blue"))
    assert not world.queue.on_event(NODE_ADD, None, "red")
    assert world.queue.on_event(NODE_ADD, None, "blue")


def test_who_fails_to_say_what_it_is_about_is_asked_about_all() -> None:
    class NoIdeaOfPods(Colours):
        def of_pod(self, pod: Pod) -> set[str] | None:
            raise KeyError(pod.name)

    class NoIdeaOfEvents(Colours):
        def of_event(self, _before: Any, after: str) -> set[str] | None:
            raise KeyError(after)

    for colours in (NoIdeaOfPods(), NoIdeaOfEvents()):
        world = World({"A": [Interest(Resource.NODE, Action.ADD, colours.hint, by_signature=True, concerns=colours)]})
        queued = world.rejected(painted("p", "red"), "A")
        world.queue.on_event(NODE_ADD, None, "blue")
        assert (colours.asked, queued.queue) == (["p"], "unschedulable")


def test_events_go_to_the_plugins_of_the_pods_profile() -> None:
    world = World()
    hints = {"first": {"A": [ALWAYS]}, "second": {"A": [NO]}}
    queue = SchedulingQueue(ByKey(), world.clock, world.nominator, QueuePlugins({}, hints), QueueSettings())
    for profile in ("first", "second", "unknown"):
        queue.add(make_pod(profile, spec={"schedulerName": profile}))
        queued = queue.pop()
        assert queued is not None
        queued.unschedulable_plugins = {"A"}
        queue.add_unschedulable(queued)
    assert queue.on_event(NODE_ADD)
    places = {queued.pod.name: queued.queue for queued in queue}
    assert places == {"first": "backoff", "second": "unschedulable", "unknown": "backoff"}


def test_an_event_nobody_registered_is_not_even_kept_for_pods_in_flight() -> None:
    world = World({"A": [ALWAYS]})
    world.add(make_pod("p"))
    world.pop()
    assert not world.queue.on_event(NODE_LABEL)
    assert world.queue.in_flight.events() == ()


@pytest.mark.parametrize(
    ("registered", "happened", "heard"),
    [
        (Event(Resource.POD, Action.DELETE), POD_GONE, True),
        (Event(Resource.POD, Action.DELETE), Event(Resource.UNSCHEDULED_POD, Action.DELETE), True),
        (Event(Resource.NODE, Action.UPDATE), NODE_LABEL, True),
        (Event(Resource.NODE, Action.UPDATE_NODE_LABEL), Event(Resource.NODE, Action.UPDATE), False),
        (Event(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL), NODE_LABEL, True),
        (Event(Resource.NODE, Action.ADD | Action.UPDATE_NODE_TAINT), NODE_LABEL, False),
        (Event(Resource.ANY, Action.ADD), NODE_ADD, True),
        (Event(Resource.ANY, Action.ALL), Event("widgets.example.com", Action.UPDATE), True),
        (Event(Resource.PVC, Action.ADD), NODE_ADD, False),
    ],
)
def test_a_registration_hears_of_what_it_covers(registered: Event, happened: Event, heard: bool) -> None:
    world = World({"A": [Interest(registered.resource, registered.action)]})
    world.rejected(make_pod("p"), "A")
    assert world.queue.on_event(happened) == heard


class TestWildcards:
    def test_they_bring_back_every_pod_whatever_rejected_it(self) -> None:
        world = World({"A": [NO]})
        world.gate.holding = {"Gates": {"gated"}}
        world.add(make_pod("gated"))
        world.rejected(make_pod("p"), "A")
        world.rejected(make_pod("q"), pending=["B"])
        world.gate.holding = {}
        assert world.queue.on_event(UNSCHEDULABLE_TIMEOUT)
        assert [world.place(name) for name in ("gated", "p", "q")] == ["active", "backoff", "backoff"]

    def test_with_a_pod_they_are_for_that_pod_alone(self) -> None:
        world = World()
        for name in ("p", "q"):
            world.rejected(make_pod(name), "A")
        assert world.queue.on_event(FORCE_ACTIVATE, None, make_pod("p"))
        assert [world.place(name) for name in ("p", "q")] == ["backoff", "unschedulable"]

    def test_with_another_object_they_are_for_no_pod(self) -> None:
        world = World()
        world.rejected(make_pod("p"), "A")
        assert not world.queue.on_event(UNSCHEDULABLE_TIMEOUT, None, make_node("n"))


class TestBuilding:
    """What a profile's plugins registered, as the queue sees it."""

    @pytest.mark.parametrize(
        ("actions", "added"),
        [
            ([(Resource.NODE, Action.ADD)], True),
            ([(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL)], True),
            ([(Resource.NODE, Action.ADD | Action.UPDATE_NODE_TAINT)], False),
            ([(Resource.NODE, Action.ADD), (Resource.NODE, Action.UPDATE_NODE_TAINT)], False),
            ([(Resource.NODE, Action.ALL)], False),
            ([(Resource.NODE, Action.UPDATE_NODE_LABEL)], False),
            ([(Resource.POD, Action.ADD)], False),
        ],
    )
    def test_who_waits_for_nodes_but_not_for_taints_hears_of_taints_too(
        self, actions: list[tuple[str, Action]], added: bool
    ) -> None:
        interests = [Interest(resource, action, says(False)) for resource, action in actions]

        class Some(Plugin):
            def interests(self) -> Iterable[Interest]:
                return interests

        extra = [Interest(Resource.NODE, Action.UPDATE_NODE_TAINT, None)] if added else []
        assert build_hints([make(Some)], KNOWN["1.36"]) == {"Some": interests + extra}
        assert build_hints([make(Some)], KNOWN["1.37"]) == {"Some": interests}

    def test_who_does_not_say_hears_of_all_usual_kinds_and_of_its_own(self) -> None:
        class Open(Plugin):
            resources = ("widgets.example.com/v1",)

        hints = build_hints([make(Open)])
        heard = {interest.resource for interest in hints["Open"]}
        assert {Resource.POD, Resource.NODE, Resource.PVC, "widgets.example.com"} <= heard
        assert Resource.RESOURCE_SLICE not in heard
        assert Resource.VOLUME_ATTACHMENT not in heard
        assert all(interest.action == Action.ALL and interest.hint is None for interest in hints["Open"])

    def test_who_waits_for_nothing_is_not_listed(self) -> None:
        class Patient(Plugin):
            def interests(self) -> Iterable[Interest]:
                return ()

        assert build_hints([make(Patient)]) == {}

    def test_extenders_hear_of_everything_a_plugin_without_interests_does(self) -> None:
        class Open(Plugin):
            pass

        hints = build_hints([make(Open)], extenders=True)
        assert hints[EXTENDER] == hints["Open"]
        assert EXTENDER not in build_hints([make(Open)])
        world = World(hints)
        world.rejected(make_pod("p"), EXTENDER)
        assert world.queue.on_event(NODE_LABEL)
