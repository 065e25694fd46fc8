"""Pods held at Permit: let go by the last plugin, or turned away by the first that gives up."""

from __future__ import annotations

import pytest

from podium.framework import Code, Status
from podium.framework.waiting import WaitingPod, WaitingPods
from tools.kit.builders import make_pod


class Held:
    """A pod held since time 1000, and how its wait ended."""

    def __init__(self, **waits: float) -> None:
        self.pods = WaitingPods()
        self.ends: list[Status | None] = []
        self.pod: WaitingPod = self.pods.add(make_pod(), "n1", waits, 1000.0)
        self.pod.on_settled = lambda: self.ends.append(self.pod.outcome)

    @property
    def uid(self) -> str:
        return self.pod.pod.uid


def timeout(plugin: str, waited: str) -> Status:
    return Status.unschedulable(f"rejected due to timeout after waiting {waited} at plugin {plugin}").by(plugin)


def test_every_plugin_that_holds_a_pod_must_let_it_go() -> None:
    held = Held(A=10, B=20)
    held.pod.allow("A")
    held.pod.allow("stranger")
    assert (held.pod.settled, list(held.pod.pending)) == (False, ["B"])
    held.pod.allow("B")
    assert held.ends == [None]


def test_one_rejection_is_enough() -> None:
    held = Held(A=10, B=20)
    assert held.pod.reject("B", "no quota")
    assert held.ends == [Status.unschedulable("no quota").by("B")]


def test_a_preempted_pod_is_not_unschedulable() -> None:
    held = Held(A=10)
    assert held.pod.preempt("DefaultPreemption", "preempted")
    assert held.ends == [Status(Code.ERROR, ("preempted",), "DefaultPreemption")]


def test_a_wait_ends_once() -> None:
    held = Held(A=10)
    held.pod.allow("A")
    assert not held.pod.reject("A", "too late")
    assert not held.pod.preempt("A", "too late")
    held.pods.expire(5000.0)
    assert held.ends == [None]


def test_the_first_time_limit_to_pass_rejects_the_pod() -> None:
    held = Held(A=30, B=10, C=60)
    held.pods.expire(1009.9)
    assert held.ends == []
    held.pods.expire(1031.0)
    assert held.ends == [timeout("B", "10s")]


def test_a_plugin_that_let_go_has_no_limit_any_more() -> None:
    held = Held(A=10, B=60)
    held.pod.allow("A")
    assert held.pod.deadline == 1060.0
    held.pods.expire(1059.0)
    assert held.ends == []


def test_nobody_waits_longer_than_15_minutes() -> None:
    held = Held(A=3600)
    held.pods.expire(1899.9)
    assert held.ends == []
    held.pods.expire(1900.0)
    assert held.ends == [timeout("A", "15m0s")]


@pytest.mark.parametrize(
    ("seconds", "written"),
    [(0, "0s"), (0.0005, "500µs"), (0.25, "250ms"), (1.5, "1.5s"), (60, "1m0s"), (90.5, "1m30.5s"), (1e9, "15m0s")],
)
def test_the_time_waited_is_written_as_go_writes_it(seconds: float, written: str) -> None:
    held = Held(A=seconds)
    held.pods.expire(9999.0)
    assert held.ends == [timeout("A", written)]


def test_pods_are_found_by_uid_until_removed() -> None:
    held = Held(A=10)
    assert (held.pods.get(held.uid), len(held.pods), list(held.pods)) == (held.pod, 1, [held.pod])
    held.pods.remove(held.uid)
    held.pods.remove(held.uid)
    assert (held.pods.get(held.uid), len(held.pods)) == (None, 0)


def test_a_pod_may_leave_while_all_are_looked_at() -> None:
    pods = WaitingPods()
    for number in range(3):
        waiting = pods.add(make_pod(f"p{number}"), "n1", {"A": 10}, 1000.0)
        waiting.on_settled = lambda uid=waiting.pod.uid: pods.remove(uid)
    pods.expire(1010.0)
    assert len(pods) == 0
