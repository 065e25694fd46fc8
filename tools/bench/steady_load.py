"""Provides measured load for a benchmark: every node has a number for whatever series a plugin follows.

Nothing is fetched, so what is measured is the cost of scoring by load: the refresh itself happens beside the cycle, in
a running scheduler too. New numbers for all nodes come every five notional seconds, thus every 5,000 decisions: at
20,000 decisions a second that is sixty times as often as a source that is asked every 15 seconds has some.
"""

from __future__ import annotations

from collections.abc import Iterable
from zlib import crc32

from podium.load.readings import GivenLoad

FULL = 100.0
"""Numbers stay below this: read as a share of a node's CPU or memory they make sense, and any scale is as good."""
STEP = 7.0
"""By how much all numbers move at a refresh."""
INTERVAL = 5.0
"""Notional seconds between refreshes."""


class SteadyLoad(GivenLoad):
    """Numbers that differ from node to node and move with every refresh, the same in every run."""

    def __init__(self) -> None:
        super().__init__()
        self.refreshes = 0
        self._levels: dict[str, float] = {}
        self._next = 0.0

    def refresh(self, nodes: Iterable[str], now: float) -> None:
        """New numbers for these nodes, where anybody follows any and the last ones are old enough."""
        if not self.followed or now < self._next:
            return
        self.refreshes += 1
        self._next = now + INTERVAL
        levels, shift = self._levels, self.refreshes * STEP
        values: dict[str, float] = {}
        for name in nodes:
            level = levels.get(name)
            if level is None:
                level = levels[name] = crc32(name.encode()) % 1000 / 10
            values[name] = (level + shift) % FULL
        for readings in self.followed.values():
            readings.write(values, now)
