"""Caches why pods of one signature fit nowhere, from one failure to the next.

The status of a row is that of the first filter to refuse it. Placing, evicting or nominating a pod changes a row or
two, so the statuses of all rows are cached and only rows that changed since the last failure are looked at again. What
was handed out is never changed: a new failure gets a copy.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

import numpy as np

from podium.cluster import Cluster
from podium.engine.answer_cache.changed_rows import RowSet
from podium.engine.decide import NodeSearch
from podium.framework.diagnosis import NodeStatuses, Refusals, refusal_of
from podium.framework.profile import PreFilterOutcome
from podium.framework.status import Status
from podium.framework.verdict import Verdict

NO_OBJECTION = PreFilterOutcome(None, None, frozenset())


class CachedFailure:
    """The statuses of all rows as of the last failure, and which rows are stale since."""

    def __init__(self, cluster: Cluster, verdicts: Callable[[], Iterable[tuple[str, Verdict]]]) -> None:
        """`verdicts`: by plugin, what is known of all rows, in the order in which refusals count."""
        self._cluster = cluster
        self._verdicts = verdicts
        self._statuses: NodeStatuses | None = None
        self._stale: RowSet = {}

    def release(self) -> None:
        """Let go of the filters, which refer to this object, too."""
        self._verdicts = tuple

    def make_stale(self, rows: Collection[int] | None) -> None:
        """These rows may have other statuses from now on; None: any row may."""
        if self._statuses is None:
            return
        if rows is None or len(self._stale) > self._cluster.columns.rows // 2:
            self._statuses = None
            self._stale.clear()
        else:
            self._stale.update(dict.fromkeys(rows))

    def search(self) -> NodeSearch:
        """What the filters found, for a pod that none of them lets through."""
        if self._statuses is None:
            self._statuses = self._of_all_rows()
        elif self._stale:
            self._statuses = self._statuses.copy()
            present = self._cluster.present
            for row in self._stale:
                self._statuses.set(row, self._of_row(row) if present[row] else None)
            self._stale.clear()
        return NodeSearch(self._cluster, NO_OBJECTION, self._statuses)

    def _of_all_rows(self) -> NodeStatuses:
        rows = self._cluster.columns.rows
        refusals = Refusals(np.arange(rows))
        left = self._cluster.present
        for plugin, verdict in self._verdicts():
            left = refusals.add(plugin, verdict, left)
        statuses = NodeStatuses(rows)
        for status, refused in refusals.kinds(np.ones(rows, dtype=np.bool_)):
            statuses.add_group(status, refused)
        return statuses

    def _of_row(self, row: int) -> Status | None:
        for plugin, verdict in self._verdicts():
            code = int(verdict.codes[row])
            if code:
                status = refusal_of(plugin, verdict, code)
                return status if status.plugin else status.by(plugin)
        return None
