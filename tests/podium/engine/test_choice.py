"""Among equally good nodes the one is taken that a binary heap over the scores, in visiting order, gives up first."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.engine.choice import top_of_heap, walk_key

SCORES = st.lists(st.integers(0, 3), min_size=1, max_size=130)


def first_out(scores: list[int]) -> int:
    """The position that leaves a max-heap first: built from the last parent to the root by sifting down, where a right
    child wins only if it is better than the left one, and a parent gives way only to a better child."""
    heap = list(range(len(scores)))
    for root in range(len(heap) // 2 - 1, -1, -1):
        parent = root
        while (child := 2 * parent + 1) < len(heap):
            if child + 1 < len(heap) and scores[heap[child + 1]] > scores[heap[child]]:
                child += 1
            if scores[heap[child]] <= scores[heap[parent]]:
                break
            heap[parent], heap[child] = heap[child], heap[parent]
            parent = child
    return heap[0]


def walk(count: int, position: int = 0) -> list[int]:
    """The positions of the heap's tree: each before those below it, left before right."""
    if position >= count:
        return []
    return [position, *walk(count, 2 * position + 1), *walk(count, 2 * position + 2)]


@pytest.mark.parametrize(
    ("scores", "winner"),
    [
        ([7], 0),
        ([7, 7, 7], 0),
        ([1, 2, 2], 1),
        ([1, 1, 2, 2], 3),
        ([1, 1, 2, 1, 2], 4),
        ([0, 0, 5, 0, 0, 5, 5], 2),
        ([-1, -3, -1], 0),
    ],
)
def test_the_winner_among_equals(scores: list[int], winner: int) -> None:
    assert first_out(scores) == winner
    assert top_of_heap(np.array(scores)) == winner


@given(SCORES)
def test_the_winner_is_what_a_heap_gives_up_first(scores: list[int]) -> None:
    assert top_of_heap(np.array(scores)) == first_out(scores)


@given(SCORES)
def test_the_winner_is_the_first_highest_met_when_the_tree_is_walked(scores: list[int]) -> None:
    highest = [position for position in walk(len(scores)) if scores[position] == max(scores)]
    assert top_of_heap(np.array(scores)) == highest[0]


@given(st.integers(1, 300))
def test_keys_fall_along_the_walk(count: int) -> None:
    keys = walk_key(count, 26)
    assert np.argsort(-keys).tolist() == walk(count)


@given(SCORES)
def test_the_key_under_the_score_picks_the_same_node(scores: list[int]) -> None:
    composite = (np.array(scores, dtype=np.int64) << 26) | walk_key(len(scores), 26)
    assert int(composite.argmax()) == first_out(scores)


def test_keys_of_a_million_nodes_fit_in_26_bits() -> None:
    keys = walk_key(1_000_000, 26)
    assert int(keys.min()) >= 0
    assert int(keys.max()) < 1 << 26
    assert len(np.unique(keys)) == 1_000_000
