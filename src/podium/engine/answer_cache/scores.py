"""The scores' half of kept answers: every plugin's part of the total, and the order of the rows that follows.

A row's total and its rank among equals are put together in one number, so that the best row is the highest number. It
is −1 where the pod cannot go. Scores are asked for only when there is a choice: until then, rows that changed wait.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import index
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.cluster import Cluster, NodeInfo, Nodes, Rows
from podium.config.points import Point
from podium.engine.answer_cache.changed_rows import FEW_ROWS, Again, Backlog, Freshness
from podium.engine.answer_cache.filters import KeptFilters, Unkeepable
from podium.engine.choice import visiting_key, walk_key
from podium.framework.cycle import Cycle
from podium.framework.normalize import MAX_SCORE, Normalizer, Scores
from podium.framework.plugin import Scope
from podium.framework.profile import ProfileRuntime, ScoreTable

RANK_BITS = 26
HIGHEST_TOTAL = 1 << (62 - RANK_BITS)

Mask = NDArray[np.bool_]


class KeptScores:
    """What all score plugins say of the rows that `filters` let through, and which row is best."""

    def __init__(
        self, runtime: ProfileRuntime, cluster: Cluster, fresh: Mapping[Any, Freshness], filters: KeptFilters
    ) -> None:
        self._runtime = runtime
        self._cluster = cluster
        self._filters = filters
        rows = self._rows = cluster.columns.rows
        preparing = runtime.at(Point.PRE_SCORE)
        self.kept = [
            KeptScore(plugin, fresh[plugin], plugin in preparing, runtime.weights[plugin.name], rows)
            for plugin in runtime.at(Point.SCORE)
        ]
        self._too_heavy = sum(kept.weight for kept in self.kept) * MAX_SCORE >= HIGHEST_TOTAL
        self._wide_by_row = any(kept.follows_pods for kept in self.kept)
        self.complete = False
        """No score is to be asked in full."""
        self._by_row: list[KeptScore] = []
        """Scores to be asked about rows where pods came or went."""
        self._plain = False
        """Whether these need nothing but to be asked about one node."""
        self.skipped: set[str] = set()
        self.behind, self.nodes_behind = Backlog(cluster), Backlog(cluster)
        """Rows to ask about again: all, and those of them where the node changed."""
        self._total = np.zeros(rows, dtype=np.int64)
        self._rank = np.zeros(rows, dtype=np.int64)
        self._composite = np.full(rows, -1, dtype=np.int64)

    def best(self, cycle: Cycle) -> int:
        """The row to take, with every score brought up to date."""
        touched, nodes, moved = self.behind.taken(), self.nodes_behind.taken(), self._filters.moved
        if moved or nodes.rows or not self.complete or (touched.rows and self._wide_by_row):
            self._refresh(cycle, touched, nodes, moved)
        elif touched.rows:
            self._refresh_rows(cycle, touched)
        return int(self._composite.argmax())

    def table(self, rows: Rows) -> ScoreTable:
        """The weighted scores of some rows, as of the last choice."""
        parts = {kept.plugin.name: kept.part[rows] for kept in self.kept if not kept.skipped}
        return ScoreTable(parts, self._total[rows])

    def _refresh(self, cycle: Cycle, touched: Again, nodes: Again, moved: bool) -> None:
        whole = moved
        for kept in self.kept:
            elsewhere = moved or nodes.rows or (touched.rows and kept.follows_pods)
            if kept.stale or (not kept.local and elsewhere and not kept.skipped):
                (self._ask_local if kept.local else self._ask_wide)(kept, cycle)
                whole = True
            elif kept.local and not kept.skipped:
                again = nodes if kept.scope == Scope.NODE else touched
                whole = self._ask_about(kept, cycle, again, moved) or whole
        self.complete, self._filters.moved = True, False
        self._by_row = [kept for kept in self.kept if kept.local and not kept.skipped and kept.scope > Scope.NODE]
        self._plain = all(kept.ask_one is not None and kept.normalizer is None for kept in self._by_row)
        if moved:
            order = visiting_key if self._runtime.first_of_equals else walk_key
            self._rank[self._filters.feasible_rows] = order(self._filters.count, RANK_BITS)
        if whole:
            self._compose()
        else:
            self._place(touched.rows)

    def _refresh_rows(self, cycle: Cycle, touched: Again) -> None:
        """The usual case: pods came or went on some rows, and nothing else moved."""
        if self._plain and len(touched.rows) <= FEW_ROWS:
            for node in touched.infos:
                self._rescore(cycle, node)
            return
        whole = False
        for kept in self._by_row:
            whole = self._ask_about(kept, cycle, touched, False) or whole
        if whole:
            self._compose()
        else:
            self._place(touched.rows)

    def _rescore(self, cycle: Cycle, node: NodeInfo) -> None:
        """One row anew, where each score can be asked about one node and stands for itself."""
        row, gain, feasible = node.row, 0, self._filters.feasible[node.row]
        for kept in self._by_row:
            score = index(kept.ask_one(cycle, node))
            if not 0 <= score <= MAX_SCORE and feasible:
                raise Unkeepable
            part, before = score * kept.weight, kept.part.item(row)
            if part != before:
                kept.part[row] = part
                gain += part - before
        if gain:
            self._total[row] += gain
            if feasible:
                self._composite[row] += gain << RANK_BITS

    # One plugin

    def _ask_local(self, kept: KeptScore, cycle: Cycle) -> None:
        """A score that depends on each row alone, asked about all rows."""
        kept.stale = False
        self._prepare(kept, cycle)
        kept.raw = None if kept.skipped else self._raw(kept, cycle, Nodes(self._cluster)).copy()
        self._normalize(kept)

    def _ask_wide(self, kept: KeptScore, cycle: Cycle) -> None:
        """A score that looks beyond the row, asked about the feasible nodes."""
        kept.stale = False
        self._prepare(kept, cycle)
        part = np.zeros(self._rows, dtype=np.int64)
        if not kept.skipped:
            rows = self._filters.feasible_rows
            part[rows] = self._runtime.score_of(kept.plugin, cycle, Nodes(self._cluster, rows)) * kept.weight
        self._replace(kept, part)

    def _prepare(self, kept: KeptScore, cycle: Cycle) -> None:
        if kept.prepares:
            nodes = Nodes(self._cluster, self._filters.feasible_rows)
            kept.skipped = not self._runtime.prepare_score(kept.plugin, cycle, nodes)
            (self.skipped.add if kept.skipped else self.skipped.discard)(kept.plugin.name)

    def _raw(self, kept: KeptScore, cycle: Cycle, nodes: Nodes) -> Scores:
        """Raw scores of the chosen rows; 0 for rows without a node, which one-node plugins cannot be asked about."""
        if hasattr(kept.plugin, "score"):
            return self._runtime.raw_score_of(kept.plugin, cycle, nodes)
        raw = np.zeros(len(nodes), dtype=np.int64)
        present = np.flatnonzero(self._cluster.present[nodes.rows])
        raw[present] = self._runtime.raw_score_of(kept.plugin, cycle, Nodes(self._cluster, nodes.rows[present]))
        return raw

    def _ask_about(self, kept: KeptScore, cycle: Cycle, again: Again, moved: bool) -> bool:
        """A local score of some rows anew, and what follows; whether that moved all rows."""
        if again.rows:
            self._ask_rows(kept, cycle, again)
        if kept.normalizer is not None and (again.rows or moved) and kept.outgrown(self._filters.feasible):
            self._normalize(kept)
            return True
        return False

    def _ask_rows(self, kept: KeptScore, cycle: Cycle, again: Again) -> None:
        """Raw scores of some rows anew, and their parts while the highest score stands."""
        raw, parts = kept.raw, kept.part
        assert raw is not None
        scores: list[int]
        if kept.ask_one is not None and len(again.rows) <= FEW_ROWS:
            scores = [index(kept.ask_one(cycle, node)) for node in again.infos]
        else:
            scores = self._raw(kept, cycle, again.nodes).tolist()
        shares = scores
        if kept.normalizer is not None:
            shares = kept.shares(np.array(scores)).tolist()
            raw[again.rows] = scores
        for row, share in zip(again.rows, shares, strict=True):
            if not 0 <= share <= MAX_SCORE and self._filters.feasible[row]:
                raise Unkeepable  # or its highest score moved; the long way tells
            part, before = share * kept.weight, parts.item(row)
            if part != before:
                self._total[row] += part - before
                parts[row] = part

    def _normalize(self, kept: KeptScore) -> None:
        """The weighted, normalised part of every row; rows that are not feasible get whatever the formula gives."""
        if kept.raw is None:
            self._replace(kept, np.zeros(self._rows, dtype=np.int64))
            return
        kept.outgrown(self._filters.feasible)
        shares = kept.shares(kept.raw)
        self._runtime.check_scores(kept.plugin, shares[self._filters.feasible_rows])
        self._replace(kept, shares * kept.weight)

    def _replace(self, kept: KeptScore, part: Scores) -> None:
        self._total += part - kept.part
        kept.part = part

    # All together

    def _place(self, rows: list[int]) -> None:
        """The number of some rows."""
        total, rank, feasible, composite = self._total, self._rank, self._filters.feasible, self._composite
        for row in rows:
            composite[row] = int(total[row]) << RANK_BITS | int(rank[row]) if feasible[row] else -1

    def _compose(self) -> None:
        """The number of every row."""
        composite = self._composite
        np.left_shift(self._total, RANK_BITS, out=composite)
        composite |= self._rank
        composite[~self._filters.feasible] = -1
        if self._too_heavy or int(composite.min()) < -1:
            raise Unkeepable  # totals too high to be put together with ranks, or below zero


class KeptScore:
    """One score plugin's part of the total, and its raw scores where they depend on the row alone."""

    __slots__ = (
        "_highest",
        "ask_one",
        "follows_pods",
        "fresh",
        "local",
        "normalizer",
        "part",
        "plugin",
        "prepares",
        "raw",
        "scope",
        "skipped",
        "stale",
        "weight",
    )

    def __init__(self, plugin: Any, fresh: Freshness, prepares: bool, weight: int, rows: int) -> None:
        self.plugin = plugin
        self.fresh = fresh
        self.prepares = prepares
        self.weight = weight
        self.scope: Scope = plugin.score_scope
        self.normalizer: Normalizer | None = plugin.normalizer
        custom = self.normalizer is None and hasattr(plugin, "normalize")
        self.local = self.scope < Scope.CLUSTER and not custom
        self.follows_pods = custom and Scope.NODE < self.scope < Scope.CLUSTER
        """Normalised over all nodes, so that pods that come to one or leave it may move every score."""
        self.ask_one: Any = getattr(plugin, "score_node", None)
        self.skipped = False
        self.stale = True
        self.raw: Scores | None = None
        self.part: Scores = np.zeros(rows, dtype=np.int64)
        self._highest = 0

    def outgrown(self, feasible: Mask) -> bool:
        """Find the highest score of the feasible rows; whether it moved."""
        assert self.raw is not None
        before, self._highest = self._highest, int(self.raw.max(initial=0, where=feasible))
        return before != self._highest

    def shares(self, raw: Scores) -> Scores:
        return raw if self.normalizer is None else self.normalizer.shares(raw, self._highest)
