"""Where patterns match: what Python's `re` finds, where both know the syntax."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubecel.re2 import compile_finder

ATOMS = st.sampled_from(["a", "b", ".", "[ab]", "^", "$", r"\b", "", "c"])
PATTERNS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda two: f"(?:{two[0]}|{two[1]})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "*?", "+?", "??"])).map(
            lambda two: f"(?:{two[0]}x){two[1]}"
        ),
    ),
    max_leaves=6,
)


@given(PATTERNS, st.text(alphabet="abcx \n", max_size=12))
def test_the_first_match_is_where_re_finds_it(pattern: str, text: str) -> None:
    expected = re.search(pattern.replace("$", r"\Z"), text)
    assert compile_finder(pattern).find(text) == (expected.span() if expected else None)


@pytest.mark.parametrize(
    ("pattern", "text", "most", "expected"),
    [
        ("a*", "baac", -1, ["", "aa", ""]),
        ("a|b", "aab", 2, ["a", "a"]),
        ("x", "abc", -1, []),
        ("", "ab", -1, ["", "", ""]),
        ("(?U)a+", "aaa", -1, ["a", "a", "a"]),
    ],
)
def test_all_matches_are_found_as_go_finds_them(pattern: str, text: str, most: int, expected: list[str]) -> None:
    assert compile_finder(pattern).find_all(text, most) == expected
