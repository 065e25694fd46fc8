"""PreEnqueue: pods that may not be tried yet are parked until the plugin that holds them hears what it waits for."""

from __future__ import annotations

import pytest

from podium.engine.queue.scheduling_queue import Pending, SchedulingQueue
from podium.engine.queue.sub_queues import PRE_ENQUEUE, QueuePlugins, QueueSettings
from podium.framework import Action, Event, Interest, PluginError, Resource, Status
from podium.kube import Pod
from tests.podium.engine.queue.queues import NODE_ADD, POD_GONE, PROFILE, ByKey, World, says
from tools.kit.builders import make_pod

CLAIM_ADD = Event(Resource.PVC, Action.ADD)

HINTS = {
    "Gates": [Interest(Resource.POD, Action.UPDATE_POD_GATES_ELIMINATED)],
    "Evicting": [Interest(Resource.POD, Action.DELETE, says(False))],
    "Claims": [Interest(Resource.PVC, Action.ADD)],
    "Fit": [Interest(Resource.POD, Action.DELETE), Interest(Resource.NODE, Action.ADD)],
}


def gated(world: World, plugin: str, name: str = "p") -> Pod:
    world.gate.holding = {plugin: {name}}
    pod = make_pod(name)
    world.add(pod)
    return pod


def test_a_gated_pod_is_parked_and_counted_apart() -> None:
    world = World(HINTS)
    gated(world, "Gates")
    queued = world.queue.get("default/p")
    assert queued is not None
    assert (queued.gated, queued.gating_plugin, queued.unschedulable_plugins) == (True, "Gates", {"Gates"})
    assert world.queue.pending() == Pending(0, 0, 0, 1)
    assert world.counted == [("unschedulable", "UnscheduledPodAdd")]
    assert queued.initial_attempt is None
    assert world.queue.pop() is None


@pytest.mark.parametrize("status", [Status.unschedulable("no"), Status.error("broken"), Status.pending("later")])
def test_any_objection_gates(status: Status) -> None:
    world = World()
    queue = SchedulingQueue(
        ByKey(),
        world.clock,
        world.nominator,
        QueuePlugins({PROFILE: lambda _pod, _first: status.by("Any")}, {}),
        QueueSettings(),
    )
    queue.add(make_pod("p"))
    assert queue.pending() == Pending(0, 0, 0, 1)


def test_the_event_the_gating_plugin_waits_for_lets_the_pod_in() -> None:
    world = World(HINTS)
    gated(world, "Claims")
    assert not world.queue.on_event(NODE_ADD)
    world.gate.holding = {}
    assert world.queue.on_event(CLAIM_ADD)
    queued = world.queue.get("default/p")
    assert queued is not None
    assert (queued.queue, queued.gated) == ("active", False)
    assert world.counted[-1] == ("active", "PersistentVolumeClaimAdd")


def test_a_pod_that_is_still_held_stays_and_has_entered_again() -> None:
    world = World(HINTS)
    gated(world, "Claims")
    assert not world.queue.on_event(CLAIM_ADD)
    assert world.queue.pending() == Pending(0, 0, 0, 1)
    assert world.counted[-1] == ("unschedulable", "PersistentVolumeClaimAdd")


def test_events_that_only_other_rejecting_plugins_wait_for_pass_a_gated_pod_by() -> None:
    world = World(HINTS)
    queued = world.rejected(make_pod("p"), "Fit")
    world.gate.holding = {"Evicting": {"p"}}
    world.queue.on_event(NODE_ADD)
    assert (queued.gating_plugin, queued.unschedulable_plugins) == ("Evicting", {"Fit", "Evicting"})
    world.gate.holding = {}
    world.gate.asked.clear()
    assert not world.queue.on_event(NODE_ADD)
    assert world.gate.asked == []
    assert world.queue.on_event(POD_GONE), "Evicting hears of it, and Fit says it helps"
    assert queued.queue == "backoff"


def test_the_gating_plugin_alone_does_not_bring_a_pod_back_if_its_hint_says_no() -> None:
    world = World(HINTS)
    gated(world, "Evicting")
    world.gate.holding = {}
    assert not world.queue.on_event(POD_GONE)
    assert world.place("p") == "unschedulable"


def test_the_plugin_that_held_the_pod_is_asked_first() -> None:
    world = World(HINTS)
    pod = gated(world, "Gates")
    assert world.gate.asked == [("p", "")]
    world.gate.holding = {"Claims": {"p"}, "Gates": {"p"}}
    world.queue.activate([pod])
    assert world.gate.asked[-1] == ("p", "Gates")
    queued = world.queue.get("default/p")
    assert queued is not None
    assert queued.gating_plugin == "Gates"


def test_a_pod_passed_on_from_one_gate_to_another_waits_for_the_other() -> None:
    world = World(HINTS)
    gated(world, "Claims")
    world.gate.holding = {"Evicting": {"p"}}
    world.queue.on_event(CLAIM_ADD)
    queued = world.queue.get("default/p")
    assert queued is not None
    assert (queued.gating_plugin, queued.unschedulable_plugins) == ("Evicting", {"Claims", "Evicting"})
    world.gate.asked.clear()
    world.queue.on_event(CLAIM_ADD)
    assert world.gate.asked == []
    assert world.queue.pending() == Pending(0, 0, 0, 1)


def test_an_update_asks_when_a_rejecting_plugin_waits_for_it_whatever_the_gate_waits_for() -> None:
    world = World(HINTS)
    world.gate.holding = {"Evicting": {"p"}}
    before = make_pod("p", spec={"schedulingGates": [{"name": "g"}]})
    world.add(before)
    queued = world.queue.get("default/p")
    assert queued is not None
    queued.unschedulable_plugins = {"Evicting", "Gates"}
    world.gate.holding = {}
    world.queue.update(before, make_pod("p"))
    assert queued.queue == "active"


def test_an_update_of_a_pod_that_stays_gated_is_no_entry() -> None:
    world = World(HINTS)
    world.gate.holding = {"Gates": {"p"}}
    before = make_pod("p", spec={"schedulingGates": [{"name": "g"}]})
    world.add(before)
    counted = list(world.counted)
    world.queue.update(before, make_pod("p"))
    assert world.gate.asked[-1] == ("p", "Gates")
    assert world.counted == counted
    assert world.queue.pending() == Pending(0, 0, 0, 1)


def test_a_pod_about_to_back_off_is_asked_about_and_parked_if_held() -> None:
    world = World(HINTS)
    world.add(make_pod("p"))
    queued = world.pop()
    world.gate.holding = {"Evicting": {"p"}}
    world.fail(queued)
    assert queued.queue == "unschedulable"
    assert world.queue.pending() == Pending(0, 0, 0, 1)
    assert world.counted[-1] == ("unschedulable", "ScheduleAttemptFailure")


def test_a_pod_activated_while_it_backs_off_is_not_asked_about_again() -> None:
    world = World()
    queued = world.rejected(make_pod("p"))
    assert queued.queue == "backoff"
    world.gate.holding = {"Gates": {"p"}}
    world.gate.asked.clear()
    world.queue.activate([queued.pod])
    assert queued.queue == "active"
    assert world.gate.asked == []


def test_a_rejected_pod_activated_against_a_gate_stays() -> None:
    world = World()
    queued = world.rejected(make_pod("p"), "Fit")
    world.gate.holding = {"Gates": {"p"}}
    world.queue.activate([queued.pod])
    assert queued.queue == "unschedulable"
    assert world.queue.pending() == Pending(0, 0, 0, 1)


def test_a_new_record_of_an_active_pod_is_dropped_if_it_is_held() -> None:
    world = World()
    first = make_pod("p")
    world.add(first)
    world.gate.holding = {"Gates": {"p"}}
    world.add(make_pod("p"))
    assert world.pop().pod is first
    assert len(world.queue) == 0


def test_a_new_record_of_a_gated_pod_replaces_it() -> None:
    world = World(HINTS)
    gated(world, "Gates")
    newer = make_pod("p", labels={"x": "y"})
    world.add(newer)
    assert [queued.pod for queued in world.queue] == [newer]
    assert world.queue.pending() == Pending(0, 0, 0, 1)


def test_a_plugin_that_breaks_holds_the_pod_and_is_reported() -> None:
    world = World()

    def broken(_pod: Pod, _first: str) -> Status | None:
        raise PluginError('running PreEnqueue plugin "Mine": ValueError: no')

    queue = SchedulingQueue(
        ByKey(),
        world.clock,
        world.nominator,
        QueuePlugins({PROFILE: broken}, {}, report=world.reports.append),
        QueueSettings(),
    )
    queue.add(make_pod("p"))
    queued = queue.get("default/p")
    assert queued is not None
    assert queued.gating_plugin == PRE_ENQUEUE
    assert world.reports == ['running PreEnqueue plugin "Mine": ValueError: no']


def test_the_plugins_of_the_pods_own_profile_are_asked() -> None:
    world = World()
    world.gate.holding = {"Gates": {"p"}}
    world.add(make_pod("p", spec={"schedulerName": "another"}))
    assert world.place("p") == "active"


def test_the_rejecting_plugins_of_a_diagnosis_are_left_alone() -> None:
    world = World(HINTS)
    world.add(make_pod("p"))
    queued = world.pop()
    of_the_diagnosis = {"Fit"}
    queued.unschedulable_plugins = of_the_diagnosis
    world.gate.holding = {"Evicting": {"p"}}
    world.queue.on_event(NODE_ADD)
    world.queue.add_unschedulable(queued)
    assert queued.gated
    assert of_the_diagnosis == {"Fit"}
