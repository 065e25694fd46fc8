"""Both heaps against a sorted list, through any series of pushes, changes, removals and pops."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.engine.queue.heap import DriftingHeap, KeyedHeap, LessHeap, PodHeap
from podium.framework import QueuedPod
from tests.podium.engine.queue.queues import ByKey
from tools.kit.builders import make_pod

OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(["push", "push", "change", "replace", "remove", "pop"]), st.integers(0, 9), st.integers(0, 3)
    ),
    max_size=80,
)


def heap(kind: str) -> PodHeap:
    return KeyedHeap(ByKey().sort_key) if kind == "keyed" else LessHeap(ByKey().less)


def order(queued: QueuedPod) -> tuple[int, float, int]:
    return (-queued.pod.priority, queued.timestamp, queued.sequence)


@pytest.mark.parametrize("kind", ["keyed", "less"])
@given(operations=OPERATIONS)
def test_a_heap_gives_up_its_pods_in_order(kind: str, operations: list[tuple[str, int, int]]) -> None:
    tested = heap(kind)
    known: dict[str, QueuedPod] = {}
    for sequence, (operation, number, priority) in enumerate(operations):
        key = f"default/p{number}"
        pod = make_pod(f"p{number}", priority=priority)
        if operation == "pop":
            first = min(known.values(), key=order, default=None)
            assert tested.peek() is first
            assert tested.pop() is first
            if first is not None:
                del known[first.key]
        elif operation == "remove":
            assert tested.remove(key) == (known.pop(key, None) is not None)
        elif operation == "change" and key in known:
            known[key].pod = pod
            tested.push(known[key])
        elif operation == "replace" or key not in known:
            known[key] = QueuedPod(pod, float(priority % 2), sequence)
            tested.push(known[key])
        assert len(tested) == len(known)
        assert (key in tested) == (key in known)
        assert list(tested) == sorted(known.values(), key=order)


@pytest.mark.parametrize("kind", ["keyed", "less"])
def test_a_pod_that_left_and_changed_does_not_disturb_those_that_stayed(kind: str) -> None:
    tested = heap(kind)
    queued = [QueuedPod(make_pod(f"p{number}", priority=number), 0.0, number) for number in range(9)]
    for each in queued:
        tested.push(each)
    tested.remove(queued[8].key)
    queued[8].pod = make_pod("p8", priority=-1)
    tested.push(queued[8])
    popped = [tested.pop() for _ in queued]
    assert popped == [*reversed(queued[:8]), queued[8]]


def test_entries_left_behind_do_not_pile_up() -> None:
    tested = KeyedHeap(ByKey().sort_key)
    stays = QueuedPod(make_pod("stays"), 0.0)
    tested.push(stays)
    for number in range(5000):
        stays.pod = make_pod("stays", priority=number)
        tested.push(stays)
        tested.push(QueuedPod(make_pod("goes"), 0.0))
        tested.remove("default/goes")
    assert len(tested._heap) < 200
    assert tested.pop() is stays


def named(name: str) -> QueuedPod:
    return QueuedPod(make_pod(name), now=0.0)


def leaving(heap: PodHeap) -> list[str]:
    return [popped.pod.name for popped in iter(heap.pop, None)]


class Drifting:
    """Keys that a test moves."""

    def __init__(self, **urgency: float) -> None:
        self.urgency = urgency
        self.version = 1

    def sort_key(self, queued: QueuedPod) -> float:
        return self.urgency[queued.pod.name]

    def order_version(self) -> int:
        return self.version

    def key_moves(self, queued: QueuedPod) -> bool:
        return True


def test_keys_that_drift_are_taken_again_when_time_has_passed() -> None:
    sorter = Drifting(a=2.0, b=1.0, c=3.0)
    drifting = DriftingHeap(sorter)
    for name in "abc":
        drifting.push(named(name))
    sorter.urgency.update(a=9.0, b=8.0, c=7.0)
    sorter.version = 2
    assert leaving(drifting) == ["c", "b", "a"]


def test_the_first_of_a_drifting_heap_is_looked_at_once_more() -> None:
    sorter = Drifting(a=1.0, b=2.0, c=0.0)
    drifting = DriftingHeap(sorter)
    for name in "abc":
        drifting.push(named(name))
    assert drifting.pop() is not None, "which sorts it for this version"
    sorter.urgency["a"] = 5.0
    assert leaving(drifting) == ["b", "a"]
