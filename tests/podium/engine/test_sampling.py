"""How many feasible nodes are enough, and where the next search starts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.engine.sampling import Sampling, nodes_to_find


@pytest.mark.parametrize(
    ("nodes", "found"),
    [
        (0, 0),
        (1, 1),
        (50, 50),
        (99, 99),
        (100, 100),
        (200, 100),
        (300, 144),
        (500, 230),
        (1000, 420),
        (2000, 680),
        (5000, 500),
        (5625, 281),
        (6000, 300),
        (15000, 750),
    ],
)
def test_without_a_percentage_the_share_shrinks_as_the_cluster_grows(nodes: int, found: int) -> None:
    assert nodes_to_find(nodes, 0) == found


@pytest.mark.parametrize(
    ("nodes", "percentage", "found"),
    [
        pytest.param(99, 1, 99, id="small clusters are searched in full"),
        pytest.param(1000, 1, 100, id="never fewer than 100"),
        pytest.param(20000, 1, 200, id="below 5 percent, if said so"),
        pytest.param(999, 33, 329, id="rounded down"),
        pytest.param(5000, 100, 5000, id="100 percent is all of them"),
    ],
)
def test_a_percentage_counts_as_it_is(nodes: int, percentage: int, found: int) -> None:
    assert nodes_to_find(nodes, percentage) == found


@given(st.integers(0, 50_000), st.integers(0, 100))
def test_never_more_than_there_are_and_never_fewer_than_100(nodes: int, percentage: int) -> None:
    found = nodes_to_find(nodes, percentage)
    assert min(nodes, 100) <= found <= nodes


@pytest.mark.parametrize(
    ("configured", "profile", "parity", "limit"),
    [
        pytest.param(None, None, False, 1000, id="nothing said: every node, it costs little"),
        pytest.param(None, None, True, 420, id="exact agreement asked for: kube-scheduler's share"),
        pytest.param(0, None, False, 420, id="0 asks for that share"),
        pytest.param(30, None, False, 300, id="the configuration's percentage"),
        pytest.param(30, 50, False, 500, id="the profile's goes before it"),
        pytest.param(30, 0, False, 420, id="even when it is 0"),
        pytest.param(None, 20, True, 200, id="and in exact agreement"),
    ],
)
def test_which_percentage_counts(configured: int | None, profile: int | None, parity: bool, limit: int) -> None:
    assert Sampling(configured, parity).limit(1000, profile) == limit


def test_a_search_starts_where_the_last_one_ended_and_goes_round() -> None:
    sampling = Sampling()
    starts = []
    for seen in (3, 3, 5):
        sampling.advance(seen, 5)
        starts.append(sampling.next_start)
    assert starts == [3, 1, 1]


def test_a_start_beyond_a_shrunk_cluster_comes_back_into_it() -> None:
    sampling = Sampling(next_start=9)
    sampling.advance(4, 4)
    assert sampling.next_start == 1


def test_an_empty_cluster_moves_nothing() -> None:
    sampling = Sampling(next_start=2)
    sampling.advance(0, 0)
    assert sampling.next_start == 2
