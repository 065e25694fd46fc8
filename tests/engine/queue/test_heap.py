"""Both heaps against a sorted list, through any series of pushes, changes, removals and pops."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.engine.queue.heap import KeyedHeap, LessHeap, PodHeap
from podium.framework import QueuedPod
from tests.builders import make_pod
from tests.engine.queue.queues import ByKey

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
