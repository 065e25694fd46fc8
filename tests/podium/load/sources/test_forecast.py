"""What comes next: lines go on, waves go on, and nothing runs away."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.load.sources.usage import SHORTEST, next_value

RANGE = range(100)


@pytest.mark.parametrize(
    ("series", "expected"),
    [
        ([5.0] * 100, 5.0),
        ([0.0] * 100, 0.0),
        ([float(each) for each in RANGE], 100.0),
        ([3e9 - 1e6 * each for each in RANGE], 2.9e9),
        ([10 + math.sin(each / 5) for each in RANGE], 10 + math.sin(20)),
        ([float(each % 2) for each in RANGE], 0.0),
    ],
    ids=["level", "nothing", "rising", "falling", "a wave", "to and fro"],
)
def test_what_goes_on_goes_on(series: list[float], expected: float) -> None:
    assert next_value(series) == pytest.approx(expected, rel=1e-6, abs=1e-6)


def test_of_little_or_of_what_is_no_number_nothing_is_foretold() -> None:
    assert next_value([1.0] * (SHORTEST - 1)) is None
    assert next_value([1.0] * 50 + [math.nan]) is None
    assert next_value([math.inf] * 50) is None


@given(st.lists(st.floats(0, 1e12), min_size=SHORTEST, max_size=100))
def test_a_forecast_stays_near_what_was(series: list[float]) -> None:
    found = next_value(series)
    spread = max(series) - min(series)
    assert found is None or min(series) - spread - 1 <= found <= max(series) + spread + 1
