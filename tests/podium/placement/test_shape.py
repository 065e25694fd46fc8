from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.config.field import FieldPath
from podium.placement.shape import Shape, UtilizationShapePoint, shape_errors


def points(*pairs: tuple[int, int]) -> list[UtilizationShapePoint]:
    return [UtilizationShapePoint(utilization=utilization, score=score) for utilization, score in pairs]


@pytest.mark.parametrize(
    ("shape", "utilization", "score"),
    [
        pytest.param(((0, 10), (70, 0)), 37, 48, id="a falling line is rounded toward zero, not down"),
        pytest.param(((0, 0), (100, 10)), 37, 37, id="rising"),
        pytest.param(((20, 3), (80, 9)), 0, 30, id="before the first point"),
        pytest.param(((20, 3), (80, 9)), 100, 90, id="behind the last point"),
        pytest.param(((20, 3), (80, 9)), 20, 30, id="on the first point"),
        pytest.param(((20, 3), (80, 9)), 80, 90, id="on the last point"),
        pytest.param(((0, 0), (40, 10), (100, 0)), 41, 99, id="behind a peak: -100/60 is -1"),
        pytest.param(((50, 7),), 3, 70, id="one point is a constant"),
    ],
)
def test_the_line(shape: tuple[tuple[int, int], ...], utilization: int, score: int) -> None:
    assert Shape(points(*shape)).at(utilization) == score


SHAPES = st.lists(st.tuples(st.integers(0, 100), st.integers(0, 10)), min_size=1, max_size=5, unique_by=lambda p: p[0])


@given(SHAPES)
def test_every_utilization_follows_the_formula(pairs: list[tuple[int, int]]) -> None:
    pairs.sort()

    def expected(p: int) -> int:
        if p <= pairs[0][0]:
            return pairs[0][1] * 10
        for (left, low), (right, high) in pairwise(pairs):
            if p <= right:
                return low * 10 + math.trunc(Fraction((high - low) * 10 * (p - left), right - left))
        return pairs[-1][1] * 10

    shape = Shape(points(*pairs))
    wanted = [expected(p) for p in range(101)]
    assert [shape.at(p) for p in range(101)] == wanted
    assert shape.at_each(np.arange(101)).tolist() == wanted
    assert shape.at_each(np.array([-7, 300])).tolist() == [wanted[0], wanted[100]]
    assert (shape.at(-7), shape.at(300)) == (wanted[0], wanted[100])


@pytest.mark.parametrize(
    ("shape", "errors"),
    [
        (((0, 0), (100, 10)), []),
        ((), ["shape: Required value: at least one point must be specified"]),
        (
            ((10, 1), (10, 2), (5, 3)),
            ["shape[1].utilization: Invalid value: 10: values must be sorted in increasing order"],
        ),
        (
            ((-1, 11), (101, -1)),
            [
                "shape[0].utilization: Invalid value: -1: not in valid range [0, 100]",
                "shape[0].score: Invalid value: 11: not in valid range [0, 10]",
                "shape[1].utilization: Invalid value: 101: not in valid range [0, 100]",
                "shape[1].score: Invalid value: -1: not in valid range [0, 10]",
            ],
        ),
    ],
)
def test_limits(shape: tuple[tuple[int, int], ...], errors: list[str]) -> None:
    assert [str(error) for error in shape_errors(points(*shape), FieldPath(("shape",)))] == errors
