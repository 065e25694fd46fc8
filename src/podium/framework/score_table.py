"""Holds the weighted scores of the feasible nodes, per plugin and in sum."""

from __future__ import annotations

from collections.abc import Mapping

from podium.cluster import Rows
from podium.framework.answers import for_each
from podium.framework.normalize import Scores


class ScoreTable:
    """Weighted scores per plugin and in sum, one entry per feasible node."""

    __slots__ = ("_by_plugin", "_rows", "total")

    def __init__(self, by_plugin: Mapping[str, Scores | int], total: Scores, rows: Rows | None = None) -> None:
        """A plugin may have one score for all nodes. Its scores are those at `rows`, where these are given."""
        self._by_plugin = by_plugin
        self._rows = rows
        self.total = total

    @property
    def by_plugin(self) -> dict[str, Scores]:
        rows, entries = self._rows, len(self.total)
        return {
            name: for_each(scores, entries) if rows is None or isinstance(scores, int) else scores[rows]
            for name, scores in self._by_plugin.items()
        }

    def of(self, rows: Rows) -> ScoreTable:
        """The entries at some positions; plugins' are picked out when they are asked for."""
        return ScoreTable(self._by_plugin, self.total[rows], rows)
