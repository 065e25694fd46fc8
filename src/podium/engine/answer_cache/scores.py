"""Caches what score plugins answered: each one's part of the total, and the order of the rows that follows.

A row's total and its rank among equals are packed into one number, so that the best row is the highest number. It is
−1 where the pod cannot go. Scores are asked for only when there is a choice: until then, changed rows are pending.
"""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np

from podium.cluster import Cluster, NodeInfo, Nodes, Rows
from podium.engine.answer_cache.changed_rows import FEW_ROWS, ChangedRows, PendingRows
from podium.engine.answer_cache.filters import CachedFilters
from podium.engine.choice import order_key, walk_key
from podium.framework.answers import ScoreTable, check_scores, failure
from podium.framework.cycle import Cycle
from podium.framework.depends_on import NodePart
from podium.framework.methods import PreScoreMethods, ScoreMethods
from podium.framework.normalize import MAX_SCORE, Scores
from podium.framework.profile import ProfileRuntime
from podium.framework.status import SUCCESS, Code, PluginError
from podium.framework.timer import Step, timed_cached

RANK_BITS = 26
"""The lowest bits of a packed number hold the rank: `walk_key` gives a million nodes ranks below 2^26."""
HIGHEST_TOTAL = 1 << (62 - RANK_BITS)
"""Totals from here on would reach the sign bit of a packed number."""


def _code_of_choice(row: int | None) -> Code | None:
    return None if row is None else SUCCESS


class CachedScores:
    """The answers of all score plugins about the rows that `filters` let through, and which row is best.

    Methods that ask plugins give False where their answers cannot be cached.
    """

    def __init__(self, runtime: ProfileRuntime, cluster: Cluster, filters: CachedFilters) -> None:
        self._runtime = runtime
        self.timer = runtime.timer
        self._cluster = cluster
        self._filters = filters
        rows = self._rows = cluster.columns.rows
        pre_scores = {each.plugin: each for each in runtime.pre_scores}
        self.cached = [
            CachedScore(each, pre_scores.get(each.plugin), runtime.weights[each.name], rows) for each in runtime.scores
        ]
        self._too_heavy = sum(cached.weight for cached in self.cached) * MAX_SCORE >= HIGHEST_TOTAL
        self._wide_by_row = any(cached.follows_pods for cached in self.cached)
        self.all_fresh = False
        """No score is to be asked for about all rows."""
        self._by_row: list[CachedScore] = []
        """Scores to be asked for about rows where pods came or went."""
        self._normalized_by_row: list[CachedScore] = []
        """Those of them that are normalised."""
        self._one_by_one = False
        """Whether all can be asked about one node."""
        self.skipped: set[str] = set()
        self.pending, self.pending_nodes = PendingRows(cluster), PendingRows(cluster)
        """Changed rows: all, and those of them where the node changed."""
        self._total = np.zeros(rows, dtype=np.int64)
        self._rank = np.zeros(rows, dtype=np.int64)
        self._ranked: Rows | None = None
        """The order of nodes that ranks were given by, where the first of equals is taken."""
        self._packed = np.full(rows, -1, dtype=np.int64)

    @timed_cached(Step.SCORE, _code_of_choice)
    def best(self, cycle: Cycle) -> int | None:
        """The row to take, with every score up to date; None where the answers cannot be cached."""
        changed, nodes, moved = self.pending.take(), self.pending_nodes.take(), self._filters.feasible_changed
        if moved or nodes.rows or not self.all_fresh or (changed.rows and self._wide_by_row):
            cacheable = self._refresh(cycle, changed, nodes, moved)
        elif changed.rows:
            cacheable = self._refresh_rows(cycle, changed)
        else:
            cacheable = True
        return int(self._packed.argmax()) if cacheable else None

    def table(self, rows: Rows) -> ScoreTable:
        """The weighted scores of some rows, as of the last choice."""
        parts = {cached.plugin.name: cached.part[rows] for cached in self.cached if not cached.skipped}
        return ScoreTable(parts, self._total[rows])

    def totals(self, rows: Rows) -> Scores:
        """The total scores of some rows, as of the last choice."""
        return self._total[rows]

    def _refresh(self, cycle: Cycle, changed: ChangedRows, nodes: ChangedRows, moved: bool) -> bool:
        all_rows = moved
        for cached in self.cached:
            elsewhere = moved or nodes.rows or (changed.rows and cached.follows_pods)
            if cached.stale or (not cached.local and elsewhere and not cached.skipped):
                (self._ask_local if cached.local else self._ask_wide)(cached, cycle)
                all_rows = True
            elif cached.local and not cached.skipped:
                rows = nodes if cached.node_part == NodePart.OBJECT else changed
                if not self._ask_about(cached, cycle, rows):
                    return False
                all_rows = self._renormalize(cached, moved) or all_rows
        self.all_fresh, self._filters.feasible_changed = True, False
        self._by_row = [
            cached
            for cached in self.cached
            if cached.local and not cached.skipped and cached.node_part > NodePart.OBJECT
        ]
        self._normalized_by_row = [cached for cached in self._by_row if cached.normalizer is not None]
        self._one_by_one = all(cached.ask_one is not None for cached in self._by_row)
        if moved:
            # Among rows with equal totals the highest rank wins: in the order of kube-scheduler's heap, or of nodes.
            if self._runtime.first_of_equals:
                order = self._cluster.order.rows
                if order is not self._ranked:  # a list of rows is never changed in place
                    self._rank[order], self._ranked = order_key(len(order), RANK_BITS), order
            else:
                self._rank[self._filters.feasible_rows] = walk_key(self._filters.count, RANK_BITS)
        if all_rows:
            return self._pack()
        self._pack_rows(changed.rows)
        return True

    def _refresh_rows(self, cycle: Cycle, changed: ChangedRows) -> bool:
        """The usual case: pods came or went on some rows, and nothing else changed."""
        all_rows = False
        if self._one_by_one and len(changed.rows) <= FEW_ROWS:
            for node in changed.infos:
                if not self._rescore(cycle, node):
                    return False
            for cached in self._normalized_by_row:
                all_rows = self._renormalize(cached, False) or all_rows
            return self._pack() if all_rows else True
        for cached in self._by_row:
            if not self._ask_about(cached, cycle, changed):
                return False
            all_rows = self._renormalize(cached, False) or all_rows
        if all_rows:
            return self._pack()
        self._pack_rows(changed.rows)
        return True

    def _rescore(self, cycle: Cycle, node: NodeInfo) -> bool:
        """Refresh one row, where each score can be asked about one node."""
        row, gain, feasible = node.row, 0, self._filters.feasible[node.row]
        for cached in self._by_row:
            try:
                score = index(cached.ask_one(cycle, node))
            except Exception as error:  # whatever the plugin raises
                raise _failed(cached, error) from error
            if cached.normalizer is not None:
                cached.set_raw(row, score, feasible)
                if cached.outgrown:
                    continue  # all rows are normalised after this
                score = cached.share(score)
            if not 0 <= score <= MAX_SCORE and feasible:
                return False
            part, before = score * cached.weight, cached.part.item(row)
            if part != before:
                cached.part[row] = part
                gain += part - before
        if gain:
            self._total[row] += gain
            if feasible:
                self._packed[row] += gain << RANK_BITS  # the total is in the upper bits; the rank below stays
        return True

    # One plugin

    def _ask_local(self, cached: CachedScore, cycle: Cycle) -> None:
        """A score that depends on each row alone, asked about all rows."""
        cached.stale = False
        self._prepare(cached, cycle)
        cached.raw = None if cached.skipped else self._raw(cached, cycle, Nodes(self._cluster)).copy()
        self._normalize(cached)

    def _ask_wide(self, cached: CachedScore, cycle: Cycle) -> None:
        """A score that looks beyond the row, asked about the feasible nodes."""
        cached.stale = False
        self._prepare(cached, cycle)
        part = np.zeros(self._rows, dtype=np.int64)
        if not cached.skipped:
            rows = self._filters.feasible_rows
            part[rows] = self._runtime.score_of(cached.methods, cycle, Nodes(self._cluster, rows)) * cached.weight
        self._replace(cached, part)

    def _prepare(self, cached: CachedScore, cycle: Cycle) -> None:
        if cached.pre_score is not None:
            nodes = Nodes(self._cluster, self._filters.feasible_rows)
            cached.skipped = not self._runtime.prepare_score(cached.pre_score, cycle, nodes)
            (self.skipped.add if cached.skipped else self.skipped.discard)(cached.plugin.name)

    def _raw(self, cached: CachedScore, cycle: Cycle, nodes: Nodes) -> Scores:
        """Raw scores of the chosen rows; 0 for rows without a node, which one-node plugins cannot be asked about."""
        if cached.methods.score is not None:
            return self._runtime.raw_score_of(cached.methods, cycle, nodes)
        raw = np.zeros(len(nodes), dtype=np.int64)
        present = np.flatnonzero(self._cluster.present[nodes.rows])
        raw[present] = self._runtime.raw_score_of(cached.methods, cycle, Nodes(self._cluster, nodes.rows[present]))
        return raw

    def _ask_about(self, cached: CachedScore, cycle: Cycle, changed: ChangedRows) -> bool:
        """Refresh a local score of some rows: raw, and its part of the total while the highest score stands."""
        if not changed.rows:
            return True
        parts = cached.part
        scores: list[int]
        if cached.ask_one is not None and len(changed.rows) <= FEW_ROWS:
            try:
                scores = [index(cached.ask_one(cycle, node)) for node in changed.infos]
            except Exception as error:  # whatever the plugin raises
                raise _failed(cached, error) from error
        else:
            scores = self._raw(cached, cycle, changed.nodes).tolist()
        shares = scores
        if cached.normalizer is not None:
            for row, score in zip(changed.rows, scores, strict=True):
                cached.set_raw(row, score, self._filters.feasible[row])
            if cached.outgrown:
                return True  # all rows are normalised after this
            shares = [cached.share(score) for score in scores]
        for row, share in zip(changed.rows, shares, strict=True):
            if not 0 <= share <= MAX_SCORE and self._filters.feasible[row]:
                return False  # a wrong score: without the cache it is seen which
            part, before = share * cached.weight, parts.item(row)
            if part != before:
                self._total[row] += part - before
                parts[row] = part
        return True

    def _renormalize(self, cached: CachedScore, moved: bool) -> bool:
        """Normalise all rows where the highest score is another now; whether it is."""
        if cached.normalizer is None or not (cached.outgrown or moved):
            return False
        outgrown = cached.outgrown
        if not cached.find_highest(self._filters.feasible_rows) and not outgrown:
            return False
        self._normalize(cached)
        return True

    def _normalize(self, cached: CachedScore) -> None:
        """The weighted, normalised part of every row; rows that are not feasible get whatever the formula gives."""
        if cached.raw is None:
            self._replace(cached, np.zeros(self._rows, dtype=np.int64))
            return
        cached.find_highest(self._filters.feasible_rows)
        shares = cached.shares(cached.raw)
        check_scores(cached.plugin.name, shares[self._filters.feasible_rows])
        self._replace(cached, shares * cached.weight)

    def _replace(self, cached: CachedScore, part: Scores) -> None:
        self._total += part - cached.part
        cached.part = part

    # All together

    def _pack_rows(self, rows: list[int]) -> None:
        total, rank, feasible, packed = self._total, self._rank, self._filters.feasible, self._packed
        for row in rows:
            packed[row] = int(total[row]) << RANK_BITS | int(rank[row]) if feasible[row] else -1

    def _pack(self) -> bool:
        """Total and rank of every row in one number: the total above, the rank in the lowest bits."""
        packed = self._packed
        np.left_shift(self._total, RANK_BITS, out=packed)
        packed |= self._rank
        np.putmask(packed, ~self._filters.feasible, -1)
        return not self._too_heavy and int(packed.min()) >= -1  # totals below zero, or too high for the upper bits


class CachedScore:
    """One score plugin's part of the total, and its raw scores where they depend on the row alone."""

    __slots__ = (
        "_highest",
        "ask_one",
        "follows_pods",
        "local",
        "methods",
        "node_part",
        "normalizer",
        "outgrown",
        "part",
        "plugin",
        "pre_score",
        "raw",
        "skipped",
        "stale",
        "weight",
    )

    def __init__(self, methods: ScoreMethods, pre_score: PreScoreMethods | None, weight: int, rows: int) -> None:
        self.methods = methods
        self.plugin = methods.plugin
        self.pre_score = pre_score
        self.weight = weight
        self.node_part = methods.node_part
        self.normalizer = methods.normalizer
        custom = methods.normalize is not None
        self.local = self.node_part < NodePart.ANYTHING and not custom
        self.follows_pods = custom and NodePart.OBJECT < self.node_part < NodePart.ANYTHING
        """Normalised over all nodes, so that pods that come to one or leave it may move every score."""
        self.ask_one: Any = methods.score_node
        self.skipped = False
        self.stale = True
        self.raw: Scores | None = None
        self.part: Scores = np.zeros(rows, dtype=np.int64)
        self._highest = 0
        self.outgrown = False
        """Whether the highest score may be another, since a feasible row has more, or one that had it has less."""

    def set_raw(self, row: int, score: int, feasible: bool) -> None:
        """Take over a row's raw score, where there is a normalizer."""
        assert self.raw is not None
        before = self.raw.item(row)
        if score != before:
            self.raw[row] = score
            if feasible and (score > self._highest or before == self._highest):
                self.outgrown = True

    def find_highest(self, feasible: Rows) -> bool:
        """Find the highest score of the feasible rows; whether it is another than before."""
        assert self.raw is not None
        self.outgrown = False
        before, self._highest = self._highest, int(self.raw.take(feasible).max(initial=0))
        return before != self._highest

    def shares(self, raw: Scores) -> Scores:
        return raw if self.normalizer is None else self.normalizer.shares(raw, self._highest)

    def share(self, raw: int) -> int:
        """The same for one row, where there is a normalizer."""
        assert self.normalizer is not None
        return self.normalizer.share(raw, self._highest)


def _failed(cached: CachedScore, error: Exception) -> PluginError:
    return failure(Step.SCORE, cached.plugin.name, error)
