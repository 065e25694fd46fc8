import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.config import Duration

SECOND = 10**9


@pytest.mark.parametrize(
    ("text", "nanoseconds", "canonical"),
    [
        ("0", 0, "0s"),
        ("0s", 0, "0s"),
        ("-0", 0, "0s"),
        ("15s", 15 * SECOND, "15s"),
        ("1m30s", 90 * SECOND, "1m30s"),
        ("90s", 90 * SECOND, "1m30s"),
        ("10m", 600 * SECOND, "10m0s"),
        ("1h", 3600 * SECOND, "1h0m0s"),
        ("1.5h", 5400 * SECOND, "1h30m0s"),
        ("+5s", 5 * SECOND, "5s"),
        ("-1.5s", -1_500_000_000, "-1.5s"),
        ("300ms", 300_000_000, "300ms"),
        ("1.5ms", 1_500_000, "1.5ms"),
        ("12us", 12_000, "12µs"),
        ("12µs", 12_000, "12µs"),
        ("12μs", 12_000, "12µs"),
        ("7ns", 7, "7ns"),
        (".5s", 500_000_000, "500ms"),
        ("5.s", 5 * SECOND, "5s"),
        ("0.3333333333333333333h", 20 * 60 * SECOND, "20m0s"),
        ("0.100000000000000000000h", 360 * SECOND, "6m0s"),
        ("9223372036854775807ns", 2**63 - 1, "2562047h47m16.854775807s"),
        ("-9223372036854775808ns", -(2**63), "-2562047h47m16.854775808s"),
    ],
)
def test_a_duration_is_read_to_the_nanosecond_and_printed_as_go_does(
    text: str, nanoseconds: int, canonical: str
) -> None:
    assert Duration.parse(text) == nanoseconds
    assert str(Duration.parse(text)) == canonical


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", 'time: invalid duration ""'),
        ("3", 'time: missing unit in duration "3"'),
        ("1d", 'time: unknown unit "d" in duration "1d"'),
        ("s", 'time: invalid duration "s"'),
        (".s", 'time: invalid duration ".s"'),
        ("-", 'time: invalid duration "-"'),
        ("1s5", 'time: missing unit in duration "1s5"'),
        ("15 s", 'time: unknown unit " s" in duration "15 s"'),
        ("9223372036854775808ns", 'time: invalid duration "9223372036854775808ns"'),
        ("3000000h", 'time: invalid duration "3000000h"'),
        ("99999999999999999999d", 'time: invalid duration "99999999999999999999d"'),
    ],
)
def test_what_is_no_duration_is_refused_in_gos_words(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        Duration.parse(text)


@given(st.integers(min_value=-(2**63), max_value=2**63 - 1))
def test_printing_and_reading_gives_the_same_duration(nanoseconds: int) -> None:
    assert Duration.parse(str(Duration(nanoseconds))) == nanoseconds
