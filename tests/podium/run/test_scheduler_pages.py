"""The pages behind `podium queue` and `podium explain`: who waits, in which order, until when, and for what."""

from __future__ import annotations

from typing import Any

from podium import Cycle, Plugin, Status, Wait
from podium.kube import Pod
from podium.run.scheduler_pages import QueueQuestion, queue_of, read_question
from tests.podium.engine.schedulers import World
from tools.kit.builders import make_node, make_pod

WIDE = {"cpu": "64"}


class Hold(Plugin):
    """Holds pods whose label says so."""

    def permit(self, cycle: Cycle, node_name: str) -> Wait | None:
        return Wait(60) if "hold" in cycle.pod.labels else None


class Fussy(Plugin):
    """Rejects pods whose label says so, until anything happens, and breaks on others."""

    def filter_node(self, cycle: Cycle, node: Any) -> Status | None:
        if "broken" in cycle.pod.labels:
            raise ValueError("broken")
        return Status.unschedulable("rejected") if "rejected" in cycle.pod.labels else None


def world() -> World:
    return World("SchedulingGates", "NodeResourcesFit", Hold, Fussy, nodes=[make_node("n1", cpu=8)])


def page(found: World, **options: Any) -> dict[str, Any]:
    return queue_of(found.scheduler, found.clock.now(), QueueQuestion(**options), leads=True)


def shown(found: World, **options: Any) -> list[tuple[int | None, str, str]]:
    return [(each["position"], each["pod"], each["queue"]) for each in page(found, **options)["pods"]]


def filled() -> World:
    """A pod in each state, and two to be tried."""
    found = world()
    found.attempt(make_pod("held", labels={"hold": "yes"}), make_pod("wide", requests=WIDE))
    found.attempt(make_pod("broken", labels={"broken": "yes"}))
    found.add(make_pod("gated", spec={"schedulingGates": [{"name": "g"}]}))
    found.add(make_pod("low"), make_pod("high", priority=7))
    return found


def test_pods_come_in_the_order_in_which_they_will_be_tried_then_those_that_wait_for_something_else() -> None:
    assert shown(filled()) == [
        (1, "default/high", "active"),
        (2, "default/low", "active"),
        (3, "default/broken", "backoff"),
        (None, "default/held", "permit"),
        (None, "default/wide", "unschedulable"),
        (None, "default/gated", "gated"),
    ]


def test_pods_that_back_off_are_in_the_order_of_their_next_try() -> None:
    found = world()
    found.attempt(make_pod("rejected", labels={"rejected": "yes"}))
    found.add(make_node("n1", cpu=9))  # wakes it
    found.pass_time(2.0)
    found.try_next()
    found.add(make_node("n1", cpu=10))
    found.attempt(make_pod("broken", labels={"broken": "yes"}))
    entries = page(found)["pods"]
    assert [each["pod"] for each in entries] == ["default/broken", "default/rejected"]
    assert [each["nextTry"][14:19] for each in entries] == ["46:44", "46:45"]


def test_a_pod_says_how_often_it_was_tried_when_it_is_tried_again_and_what_wakes_it() -> None:
    entries = {each["pod"]: each for each in page(filled())["pods"]}
    wide, broken, gated = (entries[f"default/{name}"] for name in ("wide", "broken", "gated"))
    assert (wide["attempts"], broken["attempts"], gated["attempts"]) == (1, 1, 0)
    assert wide["since"] == "1970-01-12T13:46:40.000000Z"
    assert wide["waitsFor"][0]["plugin"] == "NodeResourcesFit"
    assert "Node: Add, UpdateNodeAllocatable" in wide["waitsFor"][0]["events"]
    assert wide["nextTry"] == "1970-01-12T13:52:10.000000Z"  # five minutes, at the next look for such pods
    assert broken["nextTry"] == "1970-01-12T13:46:42.000000Z"
    assert gated["nextTry"] is None
    assert [each["plugin"] for each in gated["waitsFor"]] == ["SchedulingGates"]


def test_a_pod_held_at_permit_says_who_holds_it_and_until_when() -> None:
    (held,) = (each for each in page(filled())["pods"] if each["queue"] == "permit")
    assert held["message"] == 'plugin "Hold" holds the pod for up to 1m0s before it goes to n1'
    assert (held["nextTry"], held["waitsFor"]) == ("1970-01-12T13:47:40.000000Z", [{"plugin": "Hold", "events": []}])


def test_counts_are_of_all_pods_whatever_is_asked_for() -> None:
    found = filled()
    found.add(make_pod("web", namespace="shop"))
    counts = {"active": 3, "backoff": 1, "unschedulable": 1, "gated": 1, "permit": 1}
    assert page(found, limit=1)["counts"] == counts
    assert shown(found, limit=1) == [(1, "default/high", "active")]
    assert shown(found, namespace="shop") == [(3, "shop/web", "active")]


def test_next_tries_come_true() -> None:
    found = world()
    found.attempt(make_pod("wide", requests=WIDE))
    start = found.clock.now()
    queued = found.queued("wide")
    due = found.queue.next_try(queued)
    assert due is not None
    found.pass_time(due - start - 1)
    assert found.place("wide") == "unschedulable"
    found.pass_time(1)
    assert found.place("wide") == "active"


def test_a_limit_that_is_none_is_left_out() -> None:
    assert read_question({"limit": "5", "namespace": "shop"}) == QueueQuestion("shop", 5)
    assert [read_question({"limit": each}).limit for each in ("-1", "x", "9" * 40, "")] == [500] * 4


def test_a_plugin_that_knows_a_time_has_its_pod_tried_then() -> None:
    class Later(Plugin):
        def filter_node(self, cycle: Cycle, node: Any) -> Status | None:
            self.handle.wake_at(cycle.pod, 1_000_020.0)
            return Status.unschedulable("later")

        def interests(self) -> list[Any]:
            return []

    found = World(Later, nodes=[make_node("n1")])
    pod: Pod = make_pod("p")
    found.attempt(pod)
    assert found.queue.next_try(found.queued("p")) == 1_000_020.0
