from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from podium.load.risk import LoadRisk, load_risk

AMOUNTS = st.integers(0, 2**40)
COMMITMENTS = st.one_of(st.tuples(AMOUNTS, AMOUNTS), AMOUNTS.map(lambda amount: (amount, amount)))
"""Requests and limits; often there are no limits, which count as the requests."""
NODES = st.lists(
    st.tuples(st.floats(-10, 200), st.one_of(st.just(0.0), st.floats(-1, 90)), COMMITMENTS, AMOUNTS).map(
        lambda node: (node[0], node[1], *node[2], node[3])
    ),
    max_size=8,
)


def over_rows(risk: LoadRisk, nodes: list[Any]) -> list[float]:
    columns: list[Any] = [np.array([node[i] for node in nodes], dtype=float if i < 2 else int) for i in range(5)]
    found: list[float] = risk.over_rows(*columns).tolist()
    return found


@given(NODES, NODES)
def test_the_risk_of_all_rows_is_that_of_each_also_when_some_change(nodes: list[Any], later: list[Any]) -> None:
    risk = LoadRisk()
    expected = [load_risk(*node) for node in nodes]
    assert over_rows(risk, nodes) == expected
    assert all(0 <= each <= 1 for each in expected)
    nodes[: len(later)] = later[: len(nodes)]
    assert over_rows(risk, nodes) == [load_risk(*node) for node in nodes]


def test_a_row_of_which_nothing_is_known_has_no_risk() -> None:
    assert over_rows(LoadRisk(), [(np.nan, np.nan, 1, 5, 10), (np.nan, 5.0, 1, 5, 10)]) == [0.0, 0.0]


def test_more_requests_and_less_load_are_less_risk() -> None:
    by_requests = [load_risk(40, 10, requested, 9000, 8000) for requested in range(0, 8001, 500)]
    assert by_requests == sorted(by_requests, reverse=True)
    assert by_requests[0] == 1.0
    assert by_requests[-1] == 0.0
    by_load = [load_risk(mean, 5, 3000, 9000, 8000) for mean in range(10, 65, 5)]
    assert by_load == sorted(by_load)


def test_load_that_cannot_exceed_requests_is_no_risk() -> None:
    assert [load_risk(mean, 8, 3000, 3000, 8000) for mean in (5, 30, 60, 90)] == [0.0] * 4
    assert load_risk(90, 0.5, 1, 1, 8000) == 1.0  # so unlikely that it is no condition any more
