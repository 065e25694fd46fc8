"""Defines what sources bring back, in one shape for all of them, and the error for what they cannot bring."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Protocol, TypeVar

from podium.load.series import Series, SeriesPart
from podium.load.sources.matching import NodeIndex

T = TypeVar("T")

SLICE = 200
"""Samples that are handled between two breaths of the event loop: well under a millisecond."""


class SourceError(Exception):
    """A source cannot be asked, or its answer is of no use; one sentence that says why."""


@dataclass
class Measured:
    """One series after a refresh, by name of node."""

    measured_at: float
    values: dict[str, float] = field(default_factory=dict)
    times: dict[str, float] = field(default_factory=dict)
    samples: int = 0
    """How many samples the source sent."""
    unmatched: int = 0
    """Those that belong to no node that is known."""
    duplicates: int = 0
    """Those beyond the first for their node."""
    not_finite: int = 0
    """NaN, infinities, and what is no number at all."""
    stranger: Mapping[str, str] | None = None
    """The labels of the first sample that belongs to no node."""
    missing: tuple[SeriesPart, ...] = ()
    """The parts of the series without samples, where the others have some."""

    def outcomes(self) -> dict[str, int]:
        """How many samples came to what end."""
        used = self.samples - self.unmatched - self.duplicates - self.not_finite
        return {
            "used": used,
            "unmatched": self.unmatched,
            "duplicate": self.duplicates,
            "not_finite": self.not_finite,
        }


Measurements = Mapping[Series, "Measured | SourceError"]


class SeriesFetcher(Protocol):
    """One source, asked for all series that are followed of it at once."""

    async def ask(self, wanted: Iterable[Series], nodes: NodeIndex, now: float) -> Measurements:
        """What each series measures; raises SourceError where the source as a whole does not answer."""

    async def close(self) -> None: ...


async def in_slices(items: Iterable[T]) -> AsyncIterator[list[T]]:
    """The items, a slice at a time, with the event loop free in between."""
    rest: Iterator[T] = iter(items)
    while part := list(islice(rest, SLICE)):
        yield part
        await asyncio.sleep(0)
