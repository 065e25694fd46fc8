"""Where pods go when they are added, changed, deleted, popped, failed and activated."""

from __future__ import annotations

import pytest

from podium.engine.queue.scheduling_queue import Pending, SchedulingQueue
from podium.engine.queue.sub_queues import QueuePlugins, QueueSettings
from podium.framework import Action, Interest, QueuedPod, Resource
from podium.kube import Pod
from tests.podium.engine.queue.queues import NODE_ADD, ByKey, ByLess, World, says
from tools.kit.builders import make_pod

ON_NODE_ADD = {"Fit": [Interest(Resource.NODE, Action.ADD)]}
ON_OWN_LABEL = {"Fit": [Interest(Resource.POD, Action.UPDATE_POD_LABEL)]}

SORTERS = pytest.mark.parametrize("sorter", [ByKey(), ByLess()], ids=["by key", "by less"])


@SORTERS
def test_pods_leave_by_priority_then_by_time(sorter: ByLess) -> None:
    world = World(sorter=sorter)
    world.add(make_pod("low", priority=1))
    world.clock.advance(1)
    world.add(make_pod("high-late", priority=5), make_pod("mid", priority=3))
    world.clock.advance(1)
    world.add(make_pod("high-later", priority=5), make_pod("low-late", priority=1))
    assert world.pop_names() == ["high-late", "high-later", "mid", "low", "low-late"]


@SORTERS
def test_pods_of_the_same_moment_leave_in_the_order_they_came(sorter: ByLess) -> None:
    world = World(sorter=sorter)
    names = [f"p{number}" for number in range(50)]
    world.add(*(make_pod(name) for name in names))
    assert world.pop_names() == names


def test_an_empty_queue_gives_nothing() -> None:
    world = World()
    assert world.queue.pop() is None
    assert not world.queue.ready


def test_popping_counts_attempts_and_cycles() -> None:
    world = World(ON_NODE_ADD)
    queued = world.rejected(make_pod("p"), "Fit")
    assert (queued.attempts, world.queue.cycles) == (1, 1)
    world.clock.advance(60)
    world.queue.on_event(NODE_ADD)
    assert world.pop() is queued
    assert (queued.attempts, world.queue.cycles) == (2, 2)


def test_a_pod_in_flight_is_in_no_place() -> None:
    world = World()
    world.add(make_pod("p"))
    assert len(world.queue) == 1
    queued = world.pop()
    assert (queued.queue, len(world.queue), len(world.queue.in_flight)) == ("", 0, 1)
    assert world.queue.in_flight.pods() == [queued.pod]


def test_a_pod_that_is_in_flight_already_is_dropped_and_the_next_popped() -> None:
    world = World()
    world.add(make_pod("first"))
    world.pop()
    world.add(make_pod("first"), make_pod("second"))
    assert world.pop().pod.name == "second"
    assert len(world.queue) == 0
    assert world.queue.cycles == 2


def test_the_first_attempt_keeps_its_time() -> None:
    world = World(ON_NODE_ADD)
    queued = world.rejected(make_pod("p"), "Fit")
    world.clock.advance(60)
    world.queue.on_event(NODE_ADD)
    assert (queued.initial_attempt, queued.timestamp) == (1000.0, 1000.0)


def test_adding_a_pod_again_replaces_its_record() -> None:
    world = World()
    world.add(make_pod("p", priority=1), make_pod("other", priority=2))
    newer = make_pod("p", priority=3)
    world.add(newer)
    assert len(world.queue) == 2
    assert world.pop().pod is newer


def test_adding_a_rejected_pod_again_makes_it_active() -> None:
    world = World(ON_NODE_ADD)
    world.rejected(make_pod("p"), "Fit")
    world.add(make_pod("p"))
    assert world.queue.pending() == Pending(1, 0, 0, 0)
    assert world.pop().attempts == 1


@SORTERS
def test_an_update_of_an_active_pod_replaces_it_and_sorts_it_again(sorter: ByLess) -> None:
    world = World(sorter=sorter)
    before = make_pod("p", priority=1)
    world.add(before, make_pod("other", priority=2))
    world.queue.update(before, make_pod("p", priority=3))
    assert [queued.pod.priority for queued in (world.pop(), world.pop())] == [3, 2]
    assert world.queue.pop() is None


@SORTERS
def test_an_update_of_a_pod_that_backs_off_leaves_it_there(sorter: ByLess) -> None:
    world = World(sorter=sorter)
    pods = [make_pod(name) for name in ("a", "b")]
    world.add(*pods)
    for queued in (world.pop(), world.pop()):
        world.fail(queued, "Fit")
    for pod in pods:
        world.queue.activate([pod])
    for queued in (world.pop(), world.pop()):
        world.queue.on_event(NODE_ADD)
        world.fail(queued)
    assert world.queue.pending() == Pending(0, 2, 0, 0)
    changed = make_pod("a", labels={"x": "y"})
    world.queue.update(pods[0], changed)
    assert world.place("a") == "backoff"
    assert [queued.pod for queued in world.queue] == [changed, pods[1]]


def test_an_update_of_an_unknown_pod_makes_it_active() -> None:
    world = World()
    world.queue.update(make_pod("p"), make_pod("p", labels={"x": "y"}))
    assert world.place("p") == "active"
    assert world.counted == [("active", "UnscheduledPodAdd")]


def test_an_update_that_a_rejecting_plugin_waits_for_brings_the_pod_back() -> None:
    world = World(ON_OWN_LABEL)
    before, after = make_pod("p"), make_pod("p", labels={"x": "y"})
    queued = world.rejected(before, "Fit")
    world.queue.update(before, after)
    assert (queued.queue, queued.pod) == ("backoff", after)
    assert world.counted[-1] == ("backoff", "TargetPodUpdatePodLabel")


def test_an_update_that_no_rejecting_plugin_waits_for_leaves_the_pod_but_replaces_it() -> None:
    world = World(ON_OWN_LABEL)
    before, after = make_pod("p"), make_pod("p", spec={"tolerations": [{"operator": "Exists"}]})
    queued = world.rejected(before, "Fit")
    counted = list(world.counted)
    world.queue.update(before, after)
    assert (queued.queue, queued.pod) == ("unschedulable", after)
    assert world.counted == counted


def test_an_update_stops_at_the_first_event_that_brings_the_pod_back() -> None:
    asked: list[str] = []

    def noting(name: str, answer: bool) -> Interest:
        def hint(_pod: Pod, _before: object, _after: object) -> bool:
            asked.append(name)
            return answer

        action = {"label": Action.UPDATE_POD_LABEL, "toleration": Action.UPDATE_POD_TOLERATION}[name]
        return Interest(Resource.POD, action, hint)

    for answer, expected in ((True, ["label"]), (False, ["label", "toleration"])):
        asked.clear()
        world = World({"Fit": [noting("label", answer), noting("toleration", answer)]})
        before = make_pod("p")
        world.rejected(before, "Fit")
        world.queue.update(before, make_pod("p", labels={"x": "y"}, spec={"tolerations": [{"operator": "Exists"}]}))
        assert asked == expected


def test_a_recreated_pod_takes_over_the_record_of_its_name() -> None:
    world = World()
    before = make_pod("p")
    world.add(before)
    queued = world.queue.get("default/p")
    after = make_pod("p", metadata={"uid": "another"})
    world.queue.update(before, after)
    assert world.pop() is queued
    assert queued is not None
    assert queued.pod is after


def test_a_recreated_pod_whose_former_self_is_in_flight_is_a_new_pod() -> None:
    world = World()
    before = make_pod("p")
    world.add(before)
    former = world.pop()
    world.queue.update(before, make_pod("p", metadata={"uid": "another"}))
    assert world.place("p") == "active"
    former.unschedulable_plugins = {"Fit"}
    assert not world.queue.add_unschedulable(former)
    assert (len(world.queue), len(world.queue.in_flight)) == (1, 0)


@pytest.mark.parametrize("place", ["active", "backoff", "unschedulable"])
def test_a_deleted_pod_is_in_no_place(place: str) -> None:
    world = World(ON_NODE_ADD)
    pod = make_pod("p", status={"nominatedNodeName": "n1"})
    if place == "active":
        world.add(pod)
    else:
        world.rejected(pod, *(["Fit"] if place == "unschedulable" else []))
    assert world.place("p") == place
    assert world.nominator.node_of(pod.uid) == "n1"
    world.queue.delete(pod)
    assert (len(world.queue), world.queue.pop()) == (0, None)
    assert world.queue.pending() == Pending(0, 0, 0, 0)
    assert world.nominator.node_of(pod.uid) is None
    assert not world.queue.on_event(NODE_ADD)
    assert world.queue.next_timer() is None


def test_a_rejected_pod_waits_as_unschedulable() -> None:
    world = World(ON_NODE_ADD)
    world.clock.advance(5)
    queued = world.rejected(make_pod("p"), "Fit")
    assert queued.queue == "unschedulable"
    assert (queued.unschedulable_count, queued.consecutive_errors, queued.timestamp) == (1, 0, 1005.0)
    assert world.counted == [("active", "UnscheduledPodAdd"), ("unschedulable", "ScheduleAttemptFailure")]


def test_a_pod_that_failed_by_an_error_backs_off() -> None:
    world = World(ON_NODE_ADD)
    queued = world.rejected(make_pod("p"))
    assert queued.queue == "backoff"
    assert (queued.unschedulable_count, queued.consecutive_errors) == (0, 1)
    assert world.counted[-1] == ("backoff", "ScheduleAttemptFailure")


def test_a_rejection_ends_a_row_of_errors() -> None:
    world = World(ON_NODE_ADD)
    queued = world.rejected(make_pod("p"))
    world.queue.activate([queued.pod])
    world.fail(world.pop())
    assert queued.consecutive_errors == 2
    world.queue.activate([queued.pod])
    world.fail(world.pop(), "Fit")
    assert (queued.unschedulable_count, queued.consecutive_errors) == (1, 0)


@pytest.mark.parametrize("plugins", [["Fit"], []], ids=["from unschedulable", "from backoff"])
def test_an_activated_pod_is_tried_whatever_it_waits_for(plugins: list[str]) -> None:
    world = World()
    queued = world.rejected(make_pod("p"), *plugins)
    world.queue.activate([make_pod("p")])
    assert queued.queue == "active"
    assert world.counted[-1] == ("active", "ForceActivate")
    assert world.pop() is queued


def test_activating_an_active_or_unknown_pod_does_nothing() -> None:
    world = World()
    pod = make_pod("p")
    world.add(pod)
    world.queue.activate([pod, make_pod("unknown")])
    assert world.counted == [("active", "UnscheduledPodAdd")]
    assert len(world.queue) == 1


def test_pending_counts_the_pods_in_each_place() -> None:
    world = World(ON_NODE_ADD)
    world.gate.holding = {"Gates": {"gated"}}
    world.rejected(make_pod("waiting"), "Fit")
    world.rejected(make_pod("error"))
    world.add(make_pod("gated"), make_pod("active-1"), make_pod("active-2"))
    assert world.queue.pending() == Pending(active=2, backoff=1, unschedulable=1, gated=1)
    assert len(world.queue) == 5


def test_iterating_shows_active_pods_in_order_then_the_others() -> None:
    world = World(ON_NODE_ADD)
    world.rejected(make_pod("waiting"), "Fit")
    world.rejected(make_pod("error"))
    world.add(make_pod("low"), make_pod("high", priority=1))
    shown = [(queued.pod.name, queued.queue) for queued in world.queue]
    assert shown == [("high", "active"), ("low", "active"), ("error", "backoff"), ("waiting", "unschedulable")]


def test_without_anybody_counting_all_goes_the_same() -> None:
    world = World()
    queue = SchedulingQueue(ByKey(), world.clock, world.nominator, QueuePlugins({}, {}), QueueSettings())
    queue.add(make_pod("p"))
    queued = queue.pop()
    assert queued is not None
    assert queue.add_unschedulable(queued)
    assert queue.pending() == Pending(0, 1, 0, 0)


class TestNominations:
    """A nomination may be in the pod's status, or only in memory while the status is being written."""

    def nominated(self, world: World, uid: str = "default-p") -> str | None:
        return world.nominator.node_of(uid)

    def test_an_added_pod_brings_its_own(self) -> None:
        world = World()
        world.add(make_pod("p", status={"nominatedNodeName": "n1"}))
        assert self.nominated(world) == "n1"

    def test_a_gated_pod_brings_its_own_too(self) -> None:
        world = World()
        world.gate.holding = {"Gates": {"p"}}
        world.add(make_pod("p", status={"nominatedNodeName": "n1"}))
        assert self.nominated(world) == "n1"

    @pytest.mark.parametrize(
        ("old", "new", "memory", "kept"),
        [
            ("", "", "n1", "n1"),
            ("", "n2", "n1", "n2"),
            ("n1", "n2", "n1", "n2"),
            ("n1", "", "n1", None),
            ("", "", None, None),
        ],
    )
    @pytest.mark.parametrize("plugins", [None, ["Fit"], []], ids=["active", "unschedulable", "backoff"])
    def test_an_update_keeps_one_made_in_memory_only_if_neither_object_has_one(
        self, old: str, new: str, memory: str | None, kept: str | None, plugins: list[str] | None
    ) -> None:
        world = World()
        before = make_pod("p", status={"nominatedNodeName": old})
        after = make_pod("p", status={"nominatedNodeName": new})
        if plugins is None:
            world.add(before)
        else:
            world.rejected(before, *plugins)
        world.nominator.nominate(before, memory or "")
        world.queue.update(before, after)
        assert self.nominated(world) == kept
        if kept:
            assert world.nominator.on(kept) == [after]

    def test_coming_back_by_a_general_update_counts_what_the_status_says(self) -> None:
        world = World({"Fit": [Interest(Resource.POD, Action.UPDATE)]})
        before, after = make_pod("p"), make_pod("p", metadata={"annotations": {"x": "y"}})
        world.rejected(before, "Fit")
        world.clock.advance(60)
        world.nominator.nominate(before, "n1")
        world.queue.update(before, after)
        assert world.place("p") == "active"
        assert self.nominated(world) is None

    def test_an_update_of_a_recreated_pod_forgets_the_former_one(self) -> None:
        world = World()
        before = make_pod("p", status={"nominatedNodeName": "n1"})
        world.add(before)
        world.queue.update(before, make_pod("p", metadata={"uid": "another"}, status={"nominatedNodeName": "n2"}))
        assert self.nominated(world) is None
        assert self.nominated(world, "another") == "n2"

    def test_an_update_of_a_pod_in_flight_changes_nothing(self) -> None:
        world = World()
        before = make_pod("p", status={"nominatedNodeName": "n1"})
        world.add(before)
        world.pop()
        world.queue.update(before, make_pod("p"))
        assert self.nominated(world) == "n1"


def test_taking_back_says_whether_the_pod_was_queued_already() -> None:
    world = World()
    pod = make_pod("p")
    world.add(pod)
    assert not world.queue.add_unschedulable(QueuedPod(pod, 0.0))
    assert world.place("p") == "active"


def test_a_precheck_leaves_pods_out() -> None:
    world = World({"Fit": [Interest(Resource.NODE, Action.ADD, says(True))]})
    world.rejected(make_pod("low", priority=1), "Fit")
    world.rejected(make_pod("high", priority=9), "Fit")
    assert world.queue.on_event(NODE_ADD, precheck=lambda pod: pod.priority <= 5)
    assert (world.place("low"), world.place("high")) == ("backoff", "unschedulable")
