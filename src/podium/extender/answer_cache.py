"""Answers about all nodes, kept for pods alike: a request then costs a look into an array.

This is for plugins whose answer about a node depends on that node's row alone (scopes NODE, TOTALS and PODS) and on
what their marks tell (load that is measured, what was learnt). The cluster's journals tell which rows changed; only
these are asked about again while the marks stand. A kind of pod is worth keeping answers for when a second pod of it
comes. Kinds used longest ago are forgotten.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.cluster import Cluster, Nodes
from podium.framework import Cycle, PluginError, Scope, Status
from podium.framework.watermarks import watermark_of

MOST_KINDS = 64
MOST_MET = 4096

Numbers = NDArray[np.int64]
Ask = Callable[[Cycle, Nodes], tuple[Numbers, list[Status]]]
"""A number for each node, and what the numbers stand for, from 1 on."""


class Kept:
    """The answers for one kind of pod: a number per row of the cluster, and the statuses these stand for."""

    def __init__(self, cluster: Cluster) -> None:
        self.cursor = cluster.row_cursor()
        self.numbers: Numbers = np.zeros(0, dtype=np.int64)
        self.statuses: list[Status] = []
        self.marks: list[Hashable] = []


class KeptAnswers:
    def __init__(self, cluster: Cluster, plugins: Sequence[Any], ask: Ask) -> None:
        scopes = [_scope_of(plugin) for plugin in plugins]
        self.possible = bool(scopes) and max(scopes) < Scope.CLUSTER
        self._pods = bool(scopes) and max(scopes) > Scope.NODE
        self._see_claims = any(plugin.sees_claims for plugin in plugins)
        self._markers = [marker for plugin in plugins if (marker := watermark_of(plugin)) is not None]
        self._cluster = cluster
        self._ask = ask
        self._kept: OrderedDict[bytes, Kept] = OrderedDict()
        self._met: OrderedDict[bytes, str] = OrderedDict()

    def of(self, cycle: Cycle) -> Kept | None:
        """What is kept for pods like the cycle's, up to date; None where that is not worth it, or a plugin fails."""
        kind = cycle.facts.signature
        if self._see_claims and cycle.facts.claims:
            return None
        marks = [marker(cycle) for marker in self._markers]
        if None in marks:
            return None
        kept = self._kept.get(kind)
        if kept is None:
            if self._is_new(kind, cycle.pod.uid):
                return None
            kept = self._kept[kind] = Kept(self._cluster)
            if len(self._kept) > MOST_KINDS:
                self._kept.popitem(last=False)
        else:
            self._kept.move_to_end(kind)
        try:
            self._refresh(kept, cycle, marks)
        except PluginError:  # may be about a node that nobody asks about now: the long way finds out
            del self._kept[kind]
            return None
        return kept

    def _is_new(self, kind: bytes, uid: str) -> bool:
        first = self._met.setdefault(kind, uid)
        if len(self._met) > MOST_MET:
            self._met.popitem(last=False)
        return first == uid

    def _refresh(self, kept: Kept, cycle: Cycle, marks: list[Hashable]) -> None:
        cluster = self._cluster
        changed, stand = self._changed(kept), kept.marks == marks
        kept.marks = marks
        if changed is not None and not changed and stand:
            return
        if changed is None or not stand or 2 * len(changed) > cluster.columns.rows:
            kept.numbers, kept.statuses = self._ask(cycle, Nodes(cluster))
            return
        rows = np.array(changed, dtype=np.intp)
        numbers, statuses = self._ask(cycle, Nodes(cluster, rows))
        if statuses:
            known = {status: number for number, status in enumerate(kept.statuses, start=1)}
            for status in statuses:
                if known.setdefault(status, len(known) + 1) > len(kept.statuses):
                    kept.statuses.append(status)
            numbers = np.array([0, *(known[status] for status in statuses)], dtype=np.int64)[numbers]
        kept.numbers[rows] = numbers

    def _changed(self, kept: Kept) -> list[int] | None:
        """The rows that changed since; None where all have to be asked about."""
        changed = kept.cursor.read()
        if changed is None or len(kept.numbers) != self._cluster.columns.rows:
            return None
        nodes, pods = changed
        return list(dict.fromkeys((*nodes, *pods) if self._pods else nodes))


def _scope_of(plugin: Any) -> Scope:
    points = type(plugin).points
    scopes = [plugin.filter_scope] if "filter" in points else []
    return max([*scopes, plugin.score_scope] if "score" in points else scopes, default=Scope.CLUSTER)
