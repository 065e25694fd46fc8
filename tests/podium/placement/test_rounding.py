from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.placement.rounding import as_score, as_scores, rounded, rounded_all


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
