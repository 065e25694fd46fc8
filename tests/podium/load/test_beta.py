from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.load.beta import NARROW, possible_from, probabilities, probability

SHARES = st.floats(0, 1)
PARAMETERS = st.floats(-4, 4).map(lambda power: 10.0**power)


def exactly(x: Fraction, a: int, b: int) -> Fraction:
    """I_x(a, b) for whole parameters is a binomial sum: the chance of at least a successes in a + b − 1 tries."""
    tries = a + b - 1
    return sum((math.comb(tries, j) * x**j * (1 - x) ** (tries - j) for j in range(a, tries + 1)), start=Fraction(0))


@pytest.mark.parametrize("a", [1, 2, 3, 7, 40, 200])
@pytest.mark.parametrize("b", [1, 2, 5, 33, 200])
@pytest.mark.parametrize("x", [Fraction(1, 1000), Fraction(1, 8), Fraction(1, 3), Fraction(1, 2), Fraction(15, 16)])
def test_whole_parameters_give_the_binomial_sum(x: Fraction, a: int, b: int) -> None:
    expected = float(exactly(x, a, b))
    assert probability(float(x), a, b) == pytest.approx(expected, rel=2e-12, abs=1e-15)


@pytest.mark.parametrize("x", [0.0, 1e-9, 0.1, 0.25, 0.5, 0.9, 1.0])
def test_known_forms(x: float) -> None:
    assert probability(x, 0.5, 0.5) == pytest.approx(
        2 / math.pi * math.asin(math.sqrt(x)), rel=1e-12
    )  # the arcsine law
    assert probability(x, 3.7, 1) == pytest.approx(x**3.7, rel=1e-12)
    assert probability(x, 1, 0.3) == pytest.approx(1 - (1 - x) ** 0.3, rel=1e-9)


def test_the_values_of_the_specification() -> None:
    alpha, beta = 0.4 * (0.24 / (0.0036 * 5) - 1), 0.6 * (0.24 / (0.0036 * 5) - 1)
    assert [alpha, beta] == pytest.approx([4.9333, 7.4], abs=1e-4)
    assert probability(0.375, alpha, beta) == pytest.approx(0.44522, abs=5e-6)
    assert probability(0.375, alpha, beta) / probability(0.875, alpha, beta) == pytest.approx(0.44524, abs=5e-6)


@given(SHARES, PARAMETERS, PARAMETERS)
def test_it_is_a_probability_and_mirrors(x: float, a: float, b: float) -> None:
    answer = probability(x, a, b)
    assert 0 <= answer <= 1
    if 1 - (1 - x) == x:
        assert probability(1 - x, b, a) == pytest.approx(1 - answer, abs=1e-9)


@given(st.tuples(SHARES, SHARES), PARAMETERS, PARAMETERS)
def test_more_is_more_likely(ends: tuple[float, float], a: float, b: float) -> None:
    low, high = sorted(ends)
    assert probability(low, a, b) <= probability(high, a, b) + 1e-10


@given(st.floats(0.01, 0.99), st.floats(0.1, 1e3), st.floats(0.1, 1e3))
def test_a_step_in_the_first_parameter_is_the_term_that_theory_gives(x: float, a: float, b: float) -> None:
    """I_x(a, b) = I_x(a + 1, b) + x^a·(1 − x)^b/(a·B(a, b))"""
    log_beta = math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
    term = math.exp(a * math.log(x) + b * math.log1p(-x) - log_beta) / a
    assert probability(x, a, b) == pytest.approx(probability(x, a + 1, b) + term, abs=1e-10)


@given(st.lists(st.tuples(st.floats(-0.1, 1.1), st.floats(1e-310, 1e7), st.floats(1e-310, 1e7)), max_size=12))
def test_both_forms_agree_to_the_last_bit(asked: list[tuple[float, float, float]]) -> None:
    x, a, b = (
        (np.array(column, dtype=np.float64) for column in zip(*asked, strict=True)) if asked else [np.empty(0)] * 3
    )
    assert probabilities(x, a, b).tolist() == [probability(*each) for each in asked]


def possible(a: float, b: float) -> float:
    return float(possible_from(np.array([a]), np.array([b]))[0])


@given(PARAMETERS, PARAMETERS, SHARES)
def test_what_is_said_to_be_possible_is_above_zero(a: float, b: float, further: float) -> None:
    least = possible(a, b)
    for x in (least, least + further * (1 - least)):
        assert x == 0 or probability(x, a, b) > 0


@pytest.mark.parametrize(("x", "a", "b"), [(0.05, 40.0, 10.0), (0.9, 4.0, 6.0), (0.5, 300.0, 700.0), (0.01, 2.0, 2.0)])
def test_the_usual_is_said_to_be_possible(x: float, a: float, b: float) -> None:
    assert x > possible(a, b)


def test_of_odd_distributions_nothing_is_said() -> None:
    assert [possible(a, 3.0) for a in (0.0, 1e-5, 2 * NARROW)] == [1.0] * 3


@pytest.mark.parametrize("share", [0.1, 0.5, 0.8])
@pytest.mark.parametrize("z", [-2.0, -0.5, 0.0, 1.0, 3.0])
def test_narrow_distributions_go_over_smoothly(share: float, z: float) -> None:
    size = NARROW / min(share, 1 - share)
    x = share + z * math.sqrt(share * (1 - share) / size)
    wide = probability(x, share * size * 0.999, (1 - share) * size * 0.999)
    narrow = probability(x, share * size * 1.001, (1 - share) * size * 1.001)
    assert wide == pytest.approx(narrow, abs=5e-4)
    assert probability(share, share * 1e12, (1 - share) * 1e12) == pytest.approx(0.5, abs=1e-5)
