"""Computes with ranges of sizes and costs: from the least to the most that is possible, never beyond 64 bits."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

MOST: Final = 2**64 - 1


def _times(one: int, factor: float) -> int:
    if one > 0 and factor > 0 and float(one) > MOST / factor:
        return MOST
    return min(MOST, math.ceil(float(one) * factor))


class Span(NamedTuple):
    """The least and the most that a size or a cost can be."""

    least: int
    most: int

    def plus(self, other: Span) -> Span:
        return Span(min(MOST, self.least + other.least), min(MOST, self.most + other.most))

    def times(self, other: Span) -> Span:
        return Span(min(MOST, self.least * other.least), min(MOST, self.most * other.most))

    def scaled(self, factor: float) -> Span:
        """Times a factor, rounded up."""
        return Span(_times(self.least, factor), _times(self.most, factor))

    def union(self, other: Span) -> Span:
        return Span(min(self.least, other.least), max(self.most, other.most))


def fixed(number: int) -> Span:
    return Span(number, number)


FREE: Final = Span(0, 0)
ONE: Final = Span(1, 1)
ANYTHING: Final = Span(0, MOST)


class EntrySizes(NamedTuple):
    """The sizes of keys (or indices) and values of a list or map."""

    is_list: bool
    key: Span
    value: Span

    def union(self, other: EntrySizes) -> EntrySizes:
        return EntrySizes(self.is_list, self.key.union(other.key), self.value.union(other.value))


class CallEstimate(NamedTuple):
    """What a call costs, and how large its result is where that is known."""

    cost: Span
    size: Span | None = None
