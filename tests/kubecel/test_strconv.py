"""Whole numbers from outside: any length, ASCII digits only, 64 bits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubecel.strconv import MOST, parse_int64


@given(st.integers(-MOST, MOST), st.integers(0, 40))
def test_what_fits_is_read_as_it_is(number: int, zeros: int) -> None:
    sign, digits = ("-", str(-number)) if number < 0 else ("", str(number))
    assert parse_int64(sign + "0" * zeros + digits) == number


@given(st.integers(20, 6000))
def test_what_does_not_fit_is_the_largest_number(length: int) -> None:
    assert parse_int64("9" * length) == MOST
    assert parse_int64("-" + "9" * length) == -MOST


def test_zeros_of_any_number_are_zero() -> None:
    assert parse_int64("0" * 5000) == 0


@pytest.mark.parametrize("text", ["", "-", "+", "1.0", "²", "٣", " 1", "1_0", "0x1", "1e3"])
def test_what_is_no_whole_number(text: str) -> None:
    assert parse_int64(text) is None
