"""Numbers in annotations: what Go reads is read, nothing else is."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.framework.row_numbers import read_decimal, read_whole


@pytest.mark.parametrize(
    "text", [None, "", " 7", "7 ", "7\n", "1_000", "0x10", "N/A", "None", "1,5", "--1", "٣", "1e", "."]
)
def test_what_is_no_number_is_none(text: str | None) -> None:
    assert read_decimal(text) is None
    assert read_whole(text) is None


@pytest.mark.parametrize(
    ("text", "number"),
    [("7", 7.0), ("+7", 7.0), ("-7.5", -7.5), (".5", 0.5), ("5.", 5.0), ("1E+3", 1000.0), ("1e-3", 0.001)],
)
def test_decimals_have_a_sign_a_point_and_an_exponent(text: str, number: float) -> None:
    assert read_decimal(text) == number


@pytest.mark.parametrize("text", ["inf", "+Inf", "-INFINITY"])
def test_infinity_is_told_from_nothing(text: str) -> None:
    number = read_decimal(text)
    assert number is not None
    assert math.isinf(number)


@pytest.mark.parametrize("text", ["nan", "NaN", "NAN"])
def test_no_number_is_told_from_nothing(text: str) -> None:
    number = read_decimal(text)
    assert number is not None
    assert math.isnan(number)


def test_numbers_too_large_are_none() -> None:
    assert read_decimal("1e999") is None


@pytest.mark.parametrize("text", ["5.5", "5.0", "1e3", "nan", "inf"])
def test_a_whole_number_is_digits_only(text: str) -> None:
    assert read_whole(text) is None


@given(st.integers())
def test_every_whole_number_is_read_back(number: int) -> None:
    assert read_whole(str(number)) == number


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_finite_decimal_is_read_back(number: float) -> None:
    assert read_decimal(str(number)) == number


@given(st.text(max_size=8))
def test_any_text_is_read_or_refused(text: str) -> None:
    assert read_whole(text) is None or read_decimal(text) == float(text)
