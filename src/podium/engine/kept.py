"""Answers kept from one pod to the next: why deciding is fast.

Pods made from one template get the same answers from every plugin, and placing one changes a single row. So for each
family of pods (equal but for the names of claims, in one profile) the plugins' answers over all rows are kept, and
before the next pod of that family only what moved is asked again:

- a plugin whose answer depends on the node's own row is asked about the rows in the journals, no others;
- a plugin that looks further, or at claims, is asked in full, but only when its mark moved (for scores that are not
  skipped: or the feasible set);
- shares of the highest score are recomputed in full only when the highest score moved.

The best node is then one argmax. Nothing here decides differently from `decide`: when anything is unusual (no
feasible node, nodes named by PreFilter, a plugin that fails) the caller takes that way instead.
"""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.cluster import Cluster, NodeInfo, Nodes, Rows
from podium.engine.choice import walk_key
from podium.engine.decide import Search
from podium.engine.moves import FEW_ROWS, Again, Backlog, Freshness, Moves, RowSet
from podium.framework.answers import node_status_of
from podium.framework.cycle import Cycle
from podium.framework.diagnosis import Refusals
from podium.framework.normalize import MAX_SCORE, Normalizer, Scores
from podium.framework.plugin import Scope
from podium.framework.profile import PreFilterOutcome, ProfileRuntime, ScoreTable
from podium.framework.status import Code, Status
from podium.framework.verdict import Codes, Verdict

RANK_BITS = 26
HIGHEST_TOTAL = 1 << (62 - RANK_BITS)

Mask = NDArray[np.bool_]


class Unkeepable(Exception):  # noqa: N818 (not an error: the caller decides the long way)
    """The answers for these pods cannot be kept."""


class TurnedAway(Exception):  # noqa: N818
    """PreFilter has something to say about this pod because of its claims; what is kept for its family holds."""


class Kept:
    """What one profile's plugins say of one family of pods, over all rows."""

    def __init__(self, runtime: ProfileRuntime, cluster: Cluster) -> None:
        self._runtime = runtime
        self._cluster = cluster
        columns = 5 + len(runtime.at("filter")) + 2 * len(runtime.at("score"))
        self.bytes = 8 * cluster.columns.rows * columns
        """About how much memory the kept arrays take at most."""
        self._build()

    def _build(self) -> None:
        runtime, rows = self._runtime, self._cluster.columns.rows
        self.rows = rows
        self.data: dict[str, Any] = {}
        self.skipped_filters: set[str] = set()
        self.skipped_scores: set[str] = set()
        self._feasible = np.zeros(rows, dtype=np.bool_)
        self._feasible_rows: Rows = np.zeros(0, dtype=np.intp)
        self._feasible_count = 0
        self._feasible_moved = True
        self._refusals = np.zeros(rows, dtype=np.int16)
        self._total = np.zeros(rows, dtype=np.int64)
        self._rank = np.zeros(rows, dtype=np.int64)
        self._composite = np.full(rows, -1, dtype=np.int64)
        fresh = {plugin: Freshness(plugin) for plugin in runtime.plugins.values()}
        preparing, judging = runtime.at("preFilter"), runtime.at("filter")
        self._filters = [
            KeptFilter(plugin, fresh[plugin], plugin in preparing, plugin in judging)
            for plugin in dict.fromkeys((*preparing, *judging))
        ]
        preparing = runtime.at("preScore")
        self._scores = [
            KeptScore(plugin, fresh[plugin], plugin in preparing, runtime.weights[plugin.name], rows)
            for plugin in runtime.at("score")
        ]
        self._too_heavy = sum(kept.weight for kept in self._scores) * MAX_SCORE >= HIGHEST_TOTAL
        self._everything: list[KeptFilter | KeptScore] = [*self._filters, *self._scores]
        used = dict.fromkeys(kept.fresh for kept in self._everything)
        self._watched = [each for each in used if each.marker is not None]
        self._complete = False  # no filter is to be asked in full
        self._moves = Moves(self._cluster)
        self._order_version = -1
        self._start = 0
        self._nominated = -1
        self._held: RowSet = {}
        self._crowded = Said()  # rows refused because of pods nominated to them
        self._behind, self._nodes_behind = (
            Backlog(self._cluster),
            Backlog(self._cluster),
        )  # where scores are not asked yet

    def decide(self, cycle: Cycle, start: int = 0) -> int | Search:
        """The best row, or why there is none, with nodes visited from `start` on."""
        if self._cluster.columns.rows != self.rows:
            self._build()
        if start != self._start:
            self._start, self._order_version = start, -1
        cycle.data, cycle.skipped_filters, cycle.skipped_scores = self.data, self.skipped_filters, self.skipped_scores
        watch = self._runtime.watch
        began = 0.0 if watch is None else watch.now()
        self._refresh_filters(cycle)
        if watch is not None:
            watch.took("Filter", Code.SUCCESS, began)
            watch.evaluated("Filter", self.skipped_filters)
            began = watch.now()
        answer: int | Search
        if not self._feasible_count:
            answer = self._search()
        elif self._feasible_count == 1:
            answer = int(self._feasible.argmax())
        else:
            self._refresh_scores(cycle)
            answer = int(self._composite.argmax())
            if watch is not None:
                watch.took("Score", Code.SUCCESS, began)
                watch.evaluated("Score", self.skipped_scores)
        cycle.data = dict(self.data)  # what this pod's plugins note from here on is theirs alone
        return answer

    def table(self) -> tuple[Rows, ScoreTable]:
        """The feasible rows in visiting order with their weighted scores, as of the last choice."""
        rows = self._feasible_rows
        parts = {kept.plugin.name: kept.part[rows] for kept in self._scores if not kept.skipped}
        return rows, ScoreTable(parts, self._total[rows])

    def _search(self) -> Search:
        """What the filters found, for a pod that none of them lets through."""
        search = Search(self._cluster, PreFilterOutcome(None, None, frozenset()))
        search.refusals = Refusals(np.arange(self.rows))
        left = self._cluster.present
        if self._crowded.codes is not None:
            left = search.refusals.add("", Verdict(self._crowded.codes, self._crowded.status_of), left)
        kept_of = {kept.plugin: kept for kept in self._filters}
        for kept in map(kept_of.__getitem__, self._runtime.at("filter")):
            if kept.said.codes is not None:
                left = search.refusals.add(kept.plugin.name, Verdict(kept.said.codes, kept.said.status_of), left)
        return search

    # Filters

    def _refresh_filters(self, cycle: Cycle) -> None:
        """Bring every filter's answers up to date, and with them the feasible set."""
        moves = self._moves.moved()
        if moves is None:
            for each in self._everything:
                each.stale = True
            self._complete = False
        lost = self._check_marks(cycle)
        if lost:
            self._prepare_filters(cycle)
        self._moves.catch_up()
        nodes, touched = moves or ({}, {})
        if lost:
            for kept in self._filters:
                if kept.stale:
                    self._ask_filter(kept, cycle)
            self._complete = True
            self._by_row = [kept for kept in self._filters if kept.asks and kept.scope > Scope.NODE]
            self._by_node = [kept for kept in self._filters if kept.asks and kept.scope == Scope.NODE]
        if touched:
            self._behind.add(self._ask_filters_about(self._by_row, cycle, touched))
        if nodes:
            self._nodes_behind.add(self._ask_filters_about(self._by_node, cycle, nodes))
        crowded = self._refresh_crowded(cycle, None if lost else touched)
        self._refresh_feasible(None if lost else {**touched, **crowded})

    def _refresh_crowded(self, cycle: Cycle, touched: RowSet | None) -> RowSet:
        """Judge nodes again that others are nominated to, where that or the row changed; returns those rows."""
        nominator = self._runtime.handle.nominator
        changes = nominator.changes.since(self._nominated)
        self._nominated = nominator.changes.end
        if changes == [] and not self._held:
            return {}
        row_of = self._cluster.row_of
        if changes is None or touched is None:
            again = dict(self._held)
            self._held = {row_of[name]: None for name in nominator.nodes() if name in row_of}
            again |= self._held
        else:
            again = {row: None for row in touched if row in self._held}
            for name in changes:
                row = row_of.get(name)
                if row is not None:
                    again[row] = None
                    if nominator.on(name):
                        self._held[row] = None
                    else:
                        self._held.pop(row, None)
        if self._held and self._runtime.looks_beyond_rows(cycle):
            raise Unkeepable
        for row in again:
            present = self._cluster.present[row] and row in self._held
            status = self._runtime.run_filters_beside_rivals(cycle, row) if present else None
            self._refusals[row] += self._crowded.note(row, status, self.rows)
        return again

    def _check_marks(self, cycle: Cycle) -> bool:
        """Whether some filter must be asked in full; which plugins must is noted with them."""
        lost = [fresh for fresh in self._watched if fresh.moved(cycle)]
        if lost:
            for each in self._everything:
                if each.fresh in lost:
                    each.stale = True
            self._watched = [fresh for fresh in self._watched if fresh.mark != ()]
            self._complete = self._complete and not any(kept.stale for kept in self._filters)
        return not self._complete

    def _prepare_filters(self, cycle: Cycle) -> None:
        """PreFilter of all filters to be asked in full, before any is: one that objects leaves the rest as it is."""
        for kept in self._filters:
            if not kept.stale or not kept.prepares:
                continue
            answer = kept.plugin.pre_filter(cycle)
            kept.skipped = isinstance(answer, Status) and answer.code == Code.SKIP
            if answer is not None and not kept.skipped:
                raise TurnedAway if cycle.facts.may_attach and kept.fresh.marker is not None else Unkeepable
            (self.skipped_filters.add if kept.skipped else self.skipped_filters.discard)(kept.plugin.name)

    def _ask_filter(self, kept: KeptFilter, cycle: Cycle) -> None:
        kept.stale = False
        plugin = kept.plugin
        verdict = None
        if kept.asks:
            verdict = self._runtime.judge(plugin, cycle, Nodes(self._cluster), self._cluster.present)
        if verdict is not None and verdict.fails:
            raise Unkeepable
        if kept.said.codes is not None:
            self._refusals -= kept.said.codes != 0
        kept.said.replace(verdict)
        if kept.said.codes is not None:
            self._refusals += kept.said.codes != 0

    def _ask_filters_about(self, filters: list[KeptFilter], cycle: Cycle, rows: RowSet) -> Again:
        again = Again(self._cluster, rows)
        if again.rows:
            for kept in filters:
                self._ask_filter_about(kept, cycle, again)
        return again

    def _ask_filter_about(self, kept: KeptFilter, cycle: Cycle, again: Again) -> None:
        plugin, said = kept.plugin, kept.said
        statuses: list[Status | None]
        if kept.one_by_one and len(again.rows) <= FEW_ROWS:
            statuses = [
                node_status_of(plugin, plugin.filter_node(cycle, NodeInfo(self._cluster, row))) for row in again.rows
            ]
        else:
            present = self._cluster.present[again.nodes.rows]
            verdict = self._runtime.judge(plugin, cycle, again.nodes, present)
            if verdict is None:
                if said.codes is None:
                    return
                statuses = [None] * len(again.rows)
            elif verdict.fails:
                raise Unkeepable
            else:
                statuses = [verdict.status_of(code) if code else None for code in verdict.codes.tolist()]
        for row, status in zip(again.rows, statuses, strict=True):
            change = said.note(row, status, self.rows)
            if change:
                self._refusals[row] += change

    def _refresh_feasible(self, touched: RowSet | None) -> None:
        cluster = self._cluster
        moved = self._order_version != cluster.order.version
        if touched is None:
            feasible = (self._refusals == 0) & cluster.present
            moved = moved or not np.array_equal(feasible, self._feasible)
            self._feasible = feasible
        else:
            for row in touched:
                fits = not self._refusals[row] and bool(cluster.present[row])
                if fits != self._feasible[row]:
                    self._feasible[row] = fits
                    moved = True
        if moved:
            self._feasible_moved = True
            self._order_version = cluster.order.version
            order = cluster.order.rows
            if self._start:
                order = np.roll(order, -self._start)
            self._feasible_count = int(np.count_nonzero(self._feasible))
            self._feasible_rows = order if self._feasible_count == len(order) else order[self._feasible[order]]
            self._rank[self._feasible_rows] = walk_key(self._feasible_count, RANK_BITS)

    # Scores

    def _refresh_scores(self, cycle: Cycle) -> None:
        """Bring every score's part of the total up to date, and with them the order of the rows."""
        touched, nodes, moved = self._behind.taken(), self._nodes_behind.taken(), self._feasible_moved
        whole = moved
        for kept in self._scores:
            if kept.local:
                if kept.stale:
                    self._ask_local(kept, cycle)
                    whole = True
                elif not kept.skipped:
                    again = nodes if kept.scope == Scope.NODE else touched
                    if again.rows:
                        self._ask_score_about(kept, cycle, again)
                    if kept.normalizer is not None and (again.rows or moved) and kept.outgrown(self._feasible):
                        self._normalize(kept)
                        whole = True
            elif kept.stale or ((moved or nodes.rows) and not kept.skipped):
                self._ask_wide(kept, cycle)
                whole = True
        self._feasible_moved = False
        if whole:
            self._compose()
            return
        for row in touched.rows:
            total, rank = int(self._total[row]), int(self._rank[row])
            self._composite[row] = (total << RANK_BITS) | rank if self._feasible[row] else -1

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
        part = np.zeros(self.rows, dtype=np.int64)
        if not kept.skipped:
            nodes = Nodes(self._cluster, self._feasible_rows)
            part[self._feasible_rows] = self._runtime.score_of(kept.plugin, cycle, nodes) * kept.weight
        self._replace(kept, part)

    def _prepare(self, kept: KeptScore, cycle: Cycle) -> None:
        if kept.prepares:
            nodes = Nodes(self._cluster, self._feasible_rows)
            kept.skipped = not self._runtime.prepare_score(kept.plugin, cycle, nodes)
            (self.skipped_scores.add if kept.skipped else self.skipped_scores.discard)(kept.plugin.name)

    def _raw(self, kept: KeptScore, cycle: Cycle, nodes: Nodes) -> Scores:
        """Raw scores of the chosen rows; 0 for rows without a node, which one-node plugins cannot be asked about."""
        if hasattr(kept.plugin, "score"):
            return self._runtime.raw_score_of(kept.plugin, cycle, nodes)
        raw = np.zeros(len(nodes), dtype=np.int64)
        present = np.flatnonzero(self._cluster.present[nodes.rows])
        raw[present] = self._runtime.raw_score_of(kept.plugin, cycle, Nodes(self._cluster, nodes.rows[present]))
        return raw

    def _ask_score_about(self, kept: KeptScore, cycle: Cycle, again: Again) -> None:
        """Raw scores of some rows anew, and what follows from them while the highest score stands."""
        plugin, raw = kept.plugin, kept.raw
        assert raw is not None
        scores: list[int]
        if kept.one_by_one and len(again.rows) <= FEW_ROWS:
            scores = [index(plugin.score_node(cycle, NodeInfo(self._cluster, row))) for row in again.rows]
        else:
            scores = self._raw(kept, cycle, again.nodes).tolist()
        shares: list[int] = scores if kept.normalizer is None else kept.shares(np.array(scores)).tolist()
        for row, score, share in zip(again.rows, scores, shares, strict=True):
            raw[row] = score
            if not 0 <= share <= MAX_SCORE and self._feasible[row]:
                raise Unkeepable  # or its highest score moved; the long way tells
            part, before = share * kept.weight, int(kept.part[row])
            if part != before:
                self._total[row] += part - before
                kept.part[row] = part

    def _normalize(self, kept: KeptScore) -> None:
        """The weighted, normalised part of every row; rows that are not feasible get whatever the formula gives."""
        if kept.raw is None:
            self._replace(kept, np.zeros(self.rows, dtype=np.int64))
            return
        kept.outgrown(self._feasible)
        shares = kept.shares(kept.raw)
        self._runtime.check_scores(kept.plugin, shares[self._feasible_rows])
        self._replace(kept, shares * kept.weight)

    def _replace(self, kept: KeptScore, part: Scores) -> None:
        self._total += part - kept.part
        kept.part = part

    def _compose(self) -> None:
        """One number per row that sorts by total, then by who comes first among equals; −1 where the pod cannot go."""
        composite = self._composite
        np.left_shift(self._total, RANK_BITS, out=composite)
        composite |= self._rank
        composite[~self._feasible] = -1
        if self._too_heavy or int(composite.min()) < -1:
            raise Unkeepable  # totals too high to be put together with ranks, or below zero


class Said:
    """What was said of rows: a code per row (None while nothing was refused), and what codes mean.

    Codes of the last full answer are explained by its verdict; statuses heard about single rows since then get
    negative codes of our own.
    """

    __slots__ = ("_number", "_statuses", "_verdict", "codes")

    def __init__(self) -> None:
        self.replace(None)

    def replace(self, verdict: Verdict | None) -> None:
        """A full answer replaces all that was known."""
        self._verdict = verdict
        self.codes: Codes | None = None if verdict is None else verdict.codes.copy()
        self._statuses: list[Status] = []
        self._number: dict[Status, int] = {}

    def note(self, row: int, status: Status | None, rows: int) -> int:
        """An answer about one row; +1 when the row is refused now and was not, −1 the other way round."""
        codes = self.codes
        if codes is None:
            if status is None:
                return 0
            codes = self.codes = np.zeros(rows, dtype=np.int64)
        before = bool(codes[row])
        codes[row] = 0 if status is None else self._code(status)
        return (status is not None) - before

    def _code(self, status: Status) -> int:
        code = self._number.get(status)
        if code is None:
            self._statuses.append(status)
            code = self._number[status] = -len(self._statuses)
        return code

    def status_of(self, code: int) -> Status:
        if code < 0:
            return self._statuses[-code - 1]
        assert self._verdict is not None
        return self._verdict.status_of(code)


class KeptFilter:
    """One filter plugin's answers."""

    __slots__ = ("_judges", "fresh", "one_by_one", "plugin", "prepares", "said", "scope", "skipped", "stale")

    def __init__(self, plugin: Any, fresh: Freshness, prepares: bool, judges: bool) -> None:
        self.plugin = plugin
        self.fresh = fresh
        self.prepares = prepares
        self._judges = judges
        self.scope: Scope = plugin.filter_scope
        self.one_by_one = hasattr(plugin, "filter_node")
        self.skipped = False
        self.stale = True
        self.said = Said()

    @property
    def asks(self) -> bool:
        return self._judges and not self.skipped


class KeptScore:
    """One score plugin's part of the total, and its raw scores where they depend on the row alone."""

    __slots__ = (
        "_highest",
        "fresh",
        "local",
        "normalizer",
        "one_by_one",
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
        self.one_by_one = hasattr(plugin, "score_node")
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
