"""Regular expressions as Go has them: the answers of `re` where both know the syntax, in linear time."""

import random
import re
import time

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kubecel.re2 import CostError, PatternError, compile_pattern

ATOMS = st.sampled_from(
    [
        "a",
        "b",
        "-",
        r"\.",
        ".",
        "[ab]",
        "[^a]",
        "[a-c-]",
        r"\d",
        r"\W",
        r"[\s1]",
        "^",
        "$",
        r"\b",
        r"\B",
        "",
        "1",
        r"\x61",
    ]
)
PATTERNS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda two: f"(?:{two[0]}|{two[1]})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "{0,2}", "*?"])).map(
            lambda two: f"({two[0]}){two[1]}"
        ),
        inner.map(lambda each: f"(?i:{each})"),
        inner.map(lambda each: f"(?s:{each})"),
    ),
    max_leaves=6,
)


@given(PATTERNS, st.text(alphabet="abAB-. 1\né", max_size=8))
def test_what_matches_is_what_matches_in_re(pattern: str, text: str) -> None:
    assume(text or r"\B" not in pattern)  # Python finds no \B in an empty text.
    # Without (?m), Go's $ is the end of the text alone.
    reference = re.compile(pattern.replace("$", r"\Z"), re.ASCII)
    assert compile_pattern(pattern).search(text) == bool(reference.search(text))


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        (r"^\pL+$", "éλя", "é1"),
        (r"^\p{Nd}+\P{L}$", "1٣-", "1a"),
        (r"^[[:alpha:]_]+[[:^digit:]]$", "ab_x", "ab1"),
        (r"^\Qa.b*\E$", "a.b*", "axbb"),
        (r"(?m)^b$", "a\nb\nc", "a\nbc"),
        (r"^a$", "a", "a\n"),
        (r"(?i)^straße$", "STRAßE", "strase"),
        (r"(?i)^k$", "\u212a", "x"),
        (r"^(?P<name>a)(?<other>b)$", "ab", "a"),
        (r"^\x{1F600}\101\z", "😀A", "A"),
        (r"^a{,2}$", "a{,2}", "aa"),
        (r"^[\]a\-]+$", "]a-", "b"),
        (r"^[]a]+$", "]a", "b"),
        (r"^(a|)$", "", "b"),
        (r"^(?U)a+$", "aaa", "b"),
        (r"^(?s-i:.)\n$", "\n\n", "a"),
    ],
)
def test_what_only_go_knows(pattern: str, yes: str, no: str) -> None:
    assert compile_pattern(pattern).search(yes)
    assert not compile_pattern(pattern).search(no)


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("(a", "missing closing ): `(a`"),
        ("a)", "unexpected ): `a)`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("*a", "missing argument to repetition operator: `*`"),
        ("[a", "missing closing ]: `[a`"),
        ("[z-a]", "invalid character class range: `z-a`"),
        (r"\y", r"invalid escape sequence: `\y`"),
        (r"(a)\1", r"invalid escape sequence: `\1`"),
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("(a{100}){100}", "invalid repeat count: `{100}`"),
        ("a\\", "trailing backslash at end of expression: ``"),
        ("[[:letters:]]", "invalid character class range: `[:letters:]`"),
        ("(" * 200 + ")" * 200, f"expression nests too deeply: `{'(' * 200 + ')' * 200}`"),
    ],
)
def test_what_is_wrong_is_said_as_go_says_it(pattern: str, problem: str) -> None:
    with pytest.raises(PatternError) as refused:
        compile_pattern(pattern)
    assert str(refused.value) == problem


@pytest.mark.parametrize("pattern", ["^(a+)+$", "^(a|a)*$", "^(a|aa)+$", "(a*)*b", "a*a*a*a*b", "^(?:a?){30}a{30}b$"])
def test_no_pattern_makes_a_text_costly(pattern: str) -> None:
    began = time.process_time()
    assert not compile_pattern(pattern).search("a" * 100_000 + "!")
    assert time.process_time() - began < 5.0


def test_a_search_that_would_need_too_many_states_ends() -> None:
    began = time.process_time()
    text = "".join(random.Random(1).choices("ax", k=300_000))
    with pytest.raises(CostError, match="takes too long to match 300000 characters"):
        compile_pattern("x.{900}y$").search(text)
    assert time.process_time() - began < 20.0


def test_a_program_of_very_many_instructions_is_refused() -> None:
    with pytest.raises(PatternError, match="expression too large"):
        compile_pattern("(abcdefghijkl){1000}")
