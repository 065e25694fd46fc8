"""Measured values become scores: by share, by place or on a fixed scale."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.load.scaling import Better, Missing, Scale, as_score, as_scores, rounded, rounded_all, scaled, where_missing

MEASURED = st.dictionaries(st.text(min_size=1, max_size=4), st.floats(-1e308, 1e308), max_size=12)


@pytest.mark.parametrize(
    ("scale", "better", "values", "scores"),
    [
        ("minmax", "lower", [10, 20, 40], [100, 67, 0]),
        ("minmax", "higher", [10, 20, 40], [0, 33, 100]),
        ("minmax", "lower", [7, 7], [100, 100]),
        ("rank", "lower", [10, 20, 40, 80, 1000], [100, 75, 50, 25, 0]),
        ("rank", "higher", [10, 20, 40, 80, 1000], [0, 25, 50, 75, 100]),
        ("rank", "lower", [1, 5, 5], [100, 50, 50]),
        ("rank", "lower", [3], [100]),
        ("range", "lower", [0, 25, 50, 75], [100, 75, 50, 25]),
        ("range", "higher", [0, 25, 50, 200], [0, 25, 50, 100]),
        ("range", "lower", [-10], [100]),
    ],
)
def test_scales(scale: Scale, better: Better, values: list[float], scores: list[int]) -> None:
    measured = {str(i): value for i, value in enumerate(values)}
    assert list(scaled(measured, better, scale, (0.0, 100.0)).values()) == scores


@given(MEASURED, st.sampled_from(["lower", "higher"]), st.sampled_from(["minmax", "rank", "range"]))
def test_scores_lie_within_0_and_100_and_a_better_value_never_scores_less(
    measured: dict[str, float], better: Better, scale: Scale
) -> None:
    scores = scaled(measured, better, scale, (-5.0, 5.0))
    assert scores.keys() == measured.keys()
    assert all(0 <= score <= 100 for score in scores.values())
    ordered = sorted(measured, key=lambda name: measured[name], reverse=better == "lower")
    ranked = [scores[name] for name in ordered]
    assert ranked == sorted(ranked)


@pytest.mark.parametrize(("rule", "score"), [("neutral", 40), ("worst", 0), ("best", 100)])
def test_a_node_of_which_nothing_is_known(rule: Missing, score: int) -> None:
    assert where_missing({"a": 10, "b": 40, "c": 90}, rule) == score


@pytest.mark.parametrize(
    ("number", "expected"),
    [(0.5, 1), (1.5, 2), (2.5, 3), (-0.5, -1), (-2.5, -3), (0.49999999999999994, 0), (2.4, 2), (1e17, 10**17)],
)
def test_halves_go_away_from_zero(number: float, expected: int) -> None:
    assert rounded(number) == expected
    assert rounded_all(np.array([number])).tolist() == [expected]


@given(st.floats(-1e15, 1e15))
def test_both_forms_round_as_decimals_do(number: float) -> None:
    expected = int(Decimal(number).quantize(Decimal(1), ROUND_HALF_UP))
    assert rounded(number) == expected == rounded_all(np.array([number]))[0]


def test_scores_stay_within_0_and_100_and_are_numbers() -> None:
    assert as_scores(np.array([-3.0, 99.5, 250.0, np.nan, np.inf])).tolist() == [0, 100, 100, 0, 100]
    assert [as_score(each) for each in (-3.0, 99.5, 250.0)] == [0, 100, 100]
