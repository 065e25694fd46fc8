"""Gives a score as a function of utilization, drawn as straight lines between points.

Plugins let users draw such a shape: points (utilization in percent, score 0–10), the scores scaled to 0–100. Between
two points the line is walked in whole numbers, the step rounded toward zero even where the line falls:

    f(p) = y₀ for p ≤ u₀;  yᵢ₋₁ + (yᵢ − yᵢ₋₁)·(p − uᵢ₋₁) / (uᵢ − uᵢ₋₁) for p ≤ uᵢ;  the last y beyond

so the points (0, 100), (70, 0) give 48 at 37, where rounding down would give 47.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from podium.config.field import FieldError, FieldPath
from podium.config.types import Int32
from podium.framework.normalize import MAX_SCORE, Scores

MAX_POINT_SCORE = 10
MAX_UTILIZATION = 100


class UtilizationShapePoint(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """One point as it is configured."""

    utilization: Int32 = 0
    score: Int32 = 0


class Shape:
    """The function through some configured points, for utilizations of 0–100."""

    __slots__ = ("_column", "_values")

    def __init__(self, points: Sequence[UtilizationShapePoint]) -> None:
        scaled = [(point.utilization, point.score * (MAX_SCORE // MAX_POINT_SCORE)) for point in points]
        self._values = [_on_the_line(scaled, p) for p in range(MAX_UTILIZATION + 1)]
        self._column = np.array(self._values, dtype=np.int64)

    def at(self, utilization: int) -> int:
        return self._values[min(max(utilization, 0), MAX_UTILIZATION)]

    def at_each(self, utilizations: Scores) -> Scores:
        return self._column[np.clip(utilizations, 0, MAX_UTILIZATION)]


def _on_the_line(points: Sequence[tuple[int, int]], p: int) -> int:
    left_u, left_y = points[0]
    if p <= left_u:
        return left_y
    for u, y in points[1:]:
        if p <= u:
            rise = (y - left_y) * (p - left_u)
            step = abs(rise) // (u - left_u)
            return left_y + (step if rise >= 0 else -step)
        left_u, left_y = u, y
    return left_y


def shape_errors(points: Sequence[UtilizationShapePoint], path: FieldPath) -> Iterator[FieldError]:
    """What is wrong with configured points."""
    if not points:
        yield FieldError.required(path, "at least one point must be specified")
        return
    for i in range(1, len(points)):
        if points[i - 1].utilization >= points[i].utilization:
            at = path.index(i).child("utilization")
            yield FieldError.invalid(at, points[i].utilization, "values must be sorted in increasing order")
            break
    for i, point in enumerate(points):
        if not 0 <= point.utilization <= MAX_UTILIZATION:
            at = path.index(i).child("utilization")
            yield FieldError.invalid(at, point.utilization, f"not in valid range [0, {MAX_UTILIZATION}]")
        if not 0 <= point.score <= MAX_POINT_SCORE:
            at = path.index(i).child("score")
            yield FieldError.invalid(at, point.score, f"not in valid range [0, {MAX_POINT_SCORE}]")
