"""Quantities: every legal form, exact, rounded away from zero, capped."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubecel.quantity import MAX, NANO, QuantityError, canonical, format_nano, milli, parse, units
from podium.kube.meta import Amount

DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}


@pytest.mark.parametrize(
    ("amount", "nano"),
    [
        ("0", 0),
        ("1", 10**9),
        ("100m", 10**8),
        ("1.5", 15 * 10**8),
        (".5", 5 * 10**8),
        ("5.", 5 * 10**9),
        ("+3", 3 * 10**9),
        ("-3", -3 * 10**9),
        ("007", 7 * 10**9),
        ("1n", 1),
        ("1u", 1000),
        ("1k", 10**12),
        ("1E", 10**27),
        ("1Ki", 1024 * 10**9),
        ("1.5Gi", 1610612736 * 10**9),
        ("1e3", 10**12),
        ("1E3", 10**12),
        ("1e+3", 10**12),
        ("12e-3", 12 * 10**6),
        (" 1 ", 10**9),
        (2, 2 * 10**9),
        (0.5, 5 * 10**8),
        (1e21, MAX * NANO),
    ],
)
def test_every_legal_form_is_read_exactly(amount: Amount, nano: int) -> None:
    assert parse(amount) == nano


@pytest.mark.parametrize(
    ("amount", "nano"),
    [("0.1n", 1), ("-0.1n", -1), ("1.1n", 2), ("0.0000000001", 1), ("1e-10", 1), ("1e-100000000", 1), ("0e-100", 0)],
)
def test_what_is_finer_than_a_nano_is_rounded_away_from_zero(amount: str, nano: int) -> None:
    assert parse(amount) == nano


@pytest.mark.parametrize("amount", ["8Ei", "16Ei", "9223372036854775808", "1e19", "1e999999999", 2**63])
def test_what_is_larger_than_an_int64_is_capped(amount: Amount) -> None:
    assert units(amount) == MAX
    assert milli(amount) == MAX


def test_a_large_negative_quantity_is_capped_too() -> None:
    assert units("-16Ei") == -MAX


@pytest.mark.parametrize(
    ("amount", "in_milli", "in_units"),
    [
        ("1", 1000, 1),
        ("1m", 1, 1),
        ("1.0001", 1001, 2),
        ("1n", 1, 1),
        ("-1m", -1, -1),
        ("-1.5", -1500, -2),
        ("0.1m", 1, 1),
        ("1.0001Mi", 1048680858, 1048681),
    ],
)
def test_milli_and_units_round_away_from_zero(amount: str, in_milli: int, in_units: int) -> None:
    assert (milli(amount), units(amount)) == (in_milli, in_units)


@pytest.mark.parametrize(
    ("amount", "problem"),
    [
        ("", "it is not a number"),
        ("abc", "it is not a number"),
        ("Ki", "it is not a number"),
        ("1.2.3", "it is not a number"),
        ("--1", "it is not a number"),
        ("1GB", '"GB" is not a suffix'),
        ("1K", '"K" is not a suffix'),
        ("1ki", '"ki" is not a suffix'),
        ("1e", '"e" is not a suffix'),
        ("1e1.5", '"e1.5" is not a suffix'),
        ("1 Gi", '" Gi" is not a suffix'),
        ("1_000", '"_000" is not a suffix'),
        ("1e99999999999999999999", '"e99999999999999999999" is not a suffix'),
        (float("inf"), "it is not a number"),
    ],
)
def test_a_bad_quantity_says_what_is_wrong_and_what_to_write(amount: Amount, problem: str) -> None:
    with pytest.raises(QuantityError) as raised:
        parse(amount)
    assert str(raised.value) == (
        f'quantity "{amount}" cannot be read because {problem}; write a number with one of the suffixes n u m k M G T P'
        ' E or Ki Mi Gi Ti Pi Ei, such as "500m", "2" or "1.5Gi"'
    )


def test_an_endless_quantity_is_refused() -> None:
    with pytest.raises(QuantityError, match="has 5000 characters"):
        parse("1" * 5000)


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        ("0", "0"),
        ("0Gi", "0"),
        ("1500m", "1500m"),
        ("1.5", "1500m"),
        ("1000m", "1"),
        ("1000", "1k"),
        ("1024", "1024"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("0.5Ki", "512"),
        ("1.0001Mi", "1048680857600u"),
        ("12e6", "12e6"),
        ("5000e3", "5e6"),
        ("-2048Ki", "-2Mi"),
    ],
)
def test_the_canonical_form_keeps_the_kind_of_suffix(amount: str, text: str) -> None:
    assert canonical(amount) == text


numbers = st.decimals(min_value=-(10**6), max_value=10**6, places=6, allow_nan=False)
written = st.tuples(numbers, st.sampled_from([*DECIMAL, *BINARY]))


def exact(number: Decimal, suffix: str) -> Fraction:
    return Fraction(number) * (Fraction(10) ** DECIMAL[suffix] if suffix in DECIMAL else 2 ** BINARY[suffix])


def away_from_zero(value: Fraction) -> int:
    magnitude = -(-abs(value).numerator // abs(value).denominator)
    return min(magnitude, MAX) * (1 if value >= 0 else -1)


@given(written)
def test_the_value_is_that_of_exact_arithmetic(quantity: tuple[Decimal, str]) -> None:
    number, suffix = quantity
    nano = exact(number, suffix) * NANO
    expected = -(-abs(nano).numerator // abs(nano).denominator)
    assert abs(parse(f"{number:f}{suffix}")) == min(expected, MAX * NANO)
    assert parse(f"{number:f}{suffix}") * number >= 0


@given(written)
def test_units_and_milli_are_the_value_rounded_away_from_zero(quantity: tuple[Decimal, str]) -> None:
    number, suffix = quantity
    value = Fraction(parse(text := f"{number:f}{suffix}"), NANO)
    assert units(text) == away_from_zero(value)
    assert milli(text) == away_from_zero(value * 1000)


@given(written, written)
def test_order_is_kept(one: tuple[Decimal, str], other: tuple[Decimal, str]) -> None:
    texts = [f"{number:f}{suffix}" for number, suffix in (one, other)]
    if exact(*one) <= exact(*other):
        assert parse(texts[0]) <= parse(texts[1])
        assert units(texts[0]) <= units(texts[1])


@given(st.integers(-MAX * NANO, MAX * NANO), st.booleans())
def test_what_is_formatted_reads_back_as_the_same_quantity(nano: int, binary: bool) -> None:
    text = format_nano(nano, binary=binary)
    assert parse(text) == nano
    assert "." not in text


@given(written)
def test_the_canonical_form_is_a_fixed_point(quantity: tuple[Decimal, str]) -> None:
    text = canonical(f"{quantity[0]:f}{quantity[1]}")
    assert canonical(text) == text
