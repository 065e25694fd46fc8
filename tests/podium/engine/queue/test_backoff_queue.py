"""How long failed pods wait, in what order they leave, and what time alone brings back."""

from __future__ import annotations

import pytest

from podium.engine.queue.scheduling_queue import Pending
from podium.framework import Action, Interest, QueuedPod, Resource
from tests.podium.engine.queue.queues import NODE_ADD, ByKey, ByLess, World
from tools.kit.builders import make_pod

HINTS = {"Fit": [Interest(Resource.NODE, Action.ADD)]}
SORTERS = pytest.mark.parametrize("sorter", [ByKey(), ByLess()], ids=["by key", "by less"])


def failed(world: World, name: str, *, at: float, times: int = 1, priority: int = 0) -> QueuedPod:
    """A pod that backs off, rejected for the so-many-th time at this moment."""
    world.clock.advance(at - world.clock.now())
    world.add(make_pod(name, priority=priority))
    queued = world.pop()
    queued.unschedulable_count = times - 1
    world.fail(queued, "Fit")
    world.queue.on_event(NODE_ADD)
    assert queued.queue == "backoff"
    return queued


@pytest.mark.parametrize(("times", "seconds"), [(1, 1), (2, 2), (3, 4), (4, 8), (5, 10), (6, 10), (40, 10), (3000, 10)])
def test_the_wait_doubles_up_to_the_maximum(times: int, seconds: int) -> None:
    world = World(HINTS)
    queued = world.rejected(make_pod("p"), "Fit")
    queued.unschedulable_count = times
    queued.backoff_expiration = None
    world.queue.on_event(NODE_ADD)
    assert queued.backoff_expiration == 1000 + seconds


@pytest.mark.parametrize(
    ("initial", "maximum", "waits"), [(2, 7, [2, 4, 7, 7]), (5, 5, [5, 5]), (0.5, 3, [0, 1, 2, 3])]
)
def test_the_first_and_the_longest_wait_are_configured(initial: float, maximum: float, waits: list[int]) -> None:
    for count, seconds in enumerate(waits, start=1):
        world = World(HINTS, initial_backoff=initial, max_backoff=maximum)
        queued = world.rejected(make_pod("p"), "Fit")
        queued.unschedulable_count = count
        world.queue.on_event(NODE_ADD)
        assert queued.backoff_expiration == 1000 + seconds


def test_a_maximum_of_zero_means_no_wait() -> None:
    world = World(HINTS, initial_backoff=1, max_backoff=0)
    queued = world.rejected(make_pod("p"), "Fit")
    world.queue.on_event(NODE_ADD)
    assert queued.queue == "active"


def test_errors_in_a_row_count_instead_of_rejections() -> None:
    world = World(HINTS)
    queued = world.rejected(make_pod("p"), "Fit")
    queued.unschedulable_count = 7
    world.queue.activate([queued.pod])
    world.fail(world.pop())
    assert (queued.queue, queued.backoff_expiration) == ("backoff", 1001)
    world.queue.activate([queued.pod])
    world.fail(world.pop())
    assert queued.backoff_expiration == 1002


def test_a_pod_that_never_failed_has_nothing_to_wait_for() -> None:
    world = World({"Gates": [Interest(Resource.POD, Action.UPDATE_POD_LABEL)]})
    world.gate.holding = {"Gates": {"p"}}
    before = make_pod("p")
    world.add(before)
    world.gate.holding = {}
    world.queue.update(before, make_pod("p", labels={"x": "y"}))
    assert world.place("p") == "active"


@pytest.mark.parametrize("failed_at", [1000.0, 1000.25, 1000.999])
def test_a_pod_is_held_until_the_second_of_its_expiration_is_over(failed_at: float) -> None:
    world = World()
    world.clock.advance(failed_at - 1000)
    queued = world.rejected(make_pod("p"))
    assert queued.backoff_expiration == 1001
    assert world.queue.next_timer() == 1002
    world.clock.advance(1001.999 - failed_at)
    world.queue.flush_backoff()
    assert queued.queue == "backoff"
    world.clock.advance(0.001)
    world.queue.flush_backoff()
    assert queued.queue == "active"
    assert world.counted[-1] == ("active", "BackoffComplete")
    assert world.queue.next_timer() is None


def test_a_rejected_pod_woken_after_its_wait_is_active_at_once() -> None:
    for later, place in ((1.9, "backoff"), (2.0, "active")):
        world = World(HINTS)
        queued = world.rejected(make_pod("p"), "Fit")
        world.clock.advance(later)
        world.queue.on_event(NODE_ADD)
        assert queued.queue == place
        assert world.counted[-1] == (place, "NodeAdd")


@SORTERS
def test_an_idle_scheduler_takes_rejected_pods_before_their_wait_is_over(sorter: ByLess) -> None:
    world = World(HINTS, sorter=sorter)
    queued = world.rejected(make_pod("p"), "Fit")
    world.queue.on_event(NODE_ADD)
    assert queued.queue == "backoff"
    assert world.queue.ready
    assert world.pop() is queued
    assert world.counted[-1] == ("active", "PopFromBackoffQ")


def test_active_pods_go_before_pods_that_back_off() -> None:
    world = World(HINTS)
    world.rejected(make_pod("waiting", priority=9), "Fit")
    world.queue.on_event(NODE_ADD)
    world.add(make_pod("new"))
    assert world.pop_names() == ["new", "waiting"]


def test_pods_that_failed_by_an_error_are_never_taken_early() -> None:
    world = World(HINTS)
    world.rejected(make_pod("p"))
    assert world.queue.pending() == Pending(0, 1, 0, 0)
    assert not world.queue.ready
    assert world.queue.pop() is None


@SORTERS
def test_pods_back_off_by_expiration_and_within_a_second_by_priority(sorter: ByLess) -> None:
    world = World(HINTS, sorter=sorter)
    late = failed(world, "late", at=1000.1, times=2, priority=9)
    low = failed(world, "low", at=1000.1, priority=1)
    high = failed(world, "high", at=1000.5, priority=5)
    same = failed(world, "same", at=1000.6, priority=5)
    assert [queued.backoff_expiration for queued in (low, high, same, late)] == [1001, 1001, 1001, 1002]
    assert world.pop_names() == ["high", "same", "low", "late"]


@SORTERS
def test_a_pod_that_changes_while_it_backs_off_is_sorted_again(sorter: ByLess) -> None:
    world = World(HINTS, sorter=sorter)
    first, second = failed(world, "first", at=1000), failed(world, "second", at=1000)
    world.queue.update(second.pod, make_pod("second", priority=1))
    assert [queued.pod.name for queued in world.queue] == ["second", "first"]
    assert world.pop() is second
    assert world.pop() is first


def test_pods_that_failed_by_an_error_go_by_expiration_alone() -> None:
    world = World()
    world.add(make_pod("high", priority=9), make_pod("low", priority=1))
    high, low = world.pop(), world.pop()
    world.fail(low)
    world.clock.advance(0.5)
    world.fail(high)
    assert high.backoff_expiration == low.backoff_expiration == 1001
    assert [queued.pod.name for queued in world.queue] == ["low", "high"]


@SORTERS
def test_a_flush_takes_all_pods_whose_wait_is_over_and_no_others(sorter: ByLess) -> None:
    world = World(HINTS, sorter=sorter)
    for name, count in (("one", 1), ("two", 2), ("three", 3)):
        world.rejected(make_pod(name), "Fit").unschedulable_count = count
    world.queue.on_event(NODE_ADD)
    world.rejected(make_pod("error"))
    world.gate.asked.clear()
    world.clock.advance(3)
    world.queue.flush_backoff()
    places = {name: world.place(name) for name in ("one", "two", "three", "error")}
    assert places == {"one": "active", "two": "active", "three": "backoff", "error": "active"}
    assert world.gate.asked == [], "PreEnqueue was asked when they began to back off"


class TestPodsForgotten:
    """Hints may be wrong: a pod that nothing has woken for five minutes gets another chance."""

    def test_more_than_five_minutes_are_too_long(self) -> None:
        world = World()
        queued = world.rejected(make_pod("p"), "Fit")
        world.clock.advance(300)
        world.queue.flush_unschedulable()
        assert queued.queue == "unschedulable"
        world.clock.advance(0.5)
        world.queue.flush_unschedulable()
        assert queued.queue == "active"
        assert queued.flushed
        assert world.counted[-1] == ("active", "UnschedulableTimeout")

    def test_a_pod_still_backing_off_goes_there(self) -> None:
        world = World(max_in_unschedulable=1.0, initial_backoff=10)
        queued = world.rejected(make_pod("p"), "Fit")
        world.clock.advance(2)
        world.queue.flush_unschedulable()
        assert queued.queue == "backoff"

    def test_a_pod_held_by_a_gate_is_asked_about_and_then_waits_anew(self) -> None:
        world = World()
        world.gate.holding = {"Gates": {"p"}}
        world.add(make_pod("p"))
        for moment in (301.0, 602.0):
            world.clock.advance(1000 + moment - world.clock.now())
            world.gate.asked.clear()
            world.queue.flush_unschedulable()
            assert world.gate.asked == [("p", "Gates")]
            assert world.counted[-1] == ("unschedulable", "UnschedulableTimeout")
            world.clock.advance(300)
            world.queue.flush_unschedulable()
            assert world.gate.asked == [("p", "Gates")]
        queued = world.queue.get("default/p")
        assert queued is not None
        assert not queued.flushed

    def test_failing_again_clears_the_mark(self) -> None:
        world = World()
        queued = world.rejected(make_pod("p"), "Fit")
        world.clock.advance(301)
        world.queue.flush_unschedulable()
        world.fail(world.pop(), "Fit")
        assert (queued.flushed, queued.flushed_at) == (False, 0.0)
        world.clock.advance(300)
        world.queue.flush_unschedulable()
        assert queued.queue == "unschedulable"

    def test_pods_in_flight_come_back_too_if_any_was_forgotten(self) -> None:
        for forgotten, place in ((True, "backoff"), (False, "unschedulable")):
            world = World()
            if forgotten:
                world.rejected(make_pod("forgotten"), "Fit")
            world.clock.advance(301)
            world.add(make_pod("p"))
            queued = world.pop()
            world.queue.flush_unschedulable()
            world.fail(queued, "Fit")
            assert queued.queue == place


class TestTimer:
    """For drivers that jump from one moment to the next."""

    def test_nothing_waiting_needs_no_timer(self) -> None:
        world = World()
        world.add(make_pod("p"))
        assert world.queue.next_timer() is None

    def test_the_first_wait_to_be_over_counts(self) -> None:
        world = World(HINTS)
        world.rejected(make_pod("error"))
        world.rejected(make_pod("p"), "Fit").unschedulable_count = 3
        world.queue.on_event(NODE_ADD)
        assert world.queue.next_timer() == 1002
        world.clock.advance(2)
        world.queue.tick()
        assert world.place("error") == "active"
        assert world.queue.next_timer() == 1005

    @pytest.mark.parametrize(
        ("rejected_at", "looked_at"), [(0.0, 330.0), (0.1, 330.0), (29.9, 330.0), (30.0, 360.0), (45.0, 360.0)]
    )
    def test_forgotten_pods_are_looked_for_every_thirty_seconds(self, rejected_at: float, looked_at: float) -> None:
        world = World(start=0.0)
        world.clock.advance(rejected_at)
        world.queue.tick()
        queued = world.rejected(make_pod("p"), "Fit")
        assert world.queue.next_timer() == looked_at
        world.clock.advance(looked_at - 0.5 - rejected_at)
        world.queue.tick()
        assert queued.queue == "unschedulable"
        assert world.queue.next_timer() == looked_at
        world.clock.advance(0.5)
        world.queue.tick()
        assert queued.queue == "active"

    def test_a_late_tick_keeps_the_rhythm(self) -> None:
        world = World(start=0.0)
        world.clock.advance(75)
        world.queue.tick()
        world.rejected(make_pod("p"), "Fit")
        assert world.queue.next_timer() == 390
