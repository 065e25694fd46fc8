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

from typing import Any

from podium.cluster import Cluster, Rows
from podium.config.points import Point
from podium.engine.answer_cache.changed_rows import Again, Freshness, Moves
from podium.engine.answer_cache.filters import KeptFilter, KeptFilters
from podium.engine.answer_cache.scores import KeptScore, KeptScores
from podium.engine.decide import Search
from podium.framework.cycle import Cycle
from podium.framework.profile import ProfileRuntime, ScoreTable
from podium.framework.status import SUCCESS


class Kept:
    """What one profile's plugins say of one family of pods, over all rows."""

    def __init__(self, runtime: ProfileRuntime, cluster: Cluster) -> None:
        self._runtime = runtime
        self._cluster = cluster
        columns = 6 + len(runtime.at(Point.FILTER)) + 2 * len(runtime.at(Point.SCORE))
        self.bytes = 8 * cluster.columns.rows * columns
        """About how much memory the kept arrays take at most."""
        self._build()

    def _build(self) -> None:
        runtime, cluster = self._runtime, self._cluster
        self.rows = cluster.columns.rows
        self.data: dict[str, Any] = {}
        fresh = {plugin: Freshness(plugin) for plugin in runtime.plugins.values()}
        self._filters = KeptFilters(runtime, cluster, fresh)
        self._scores = KeptScores(runtime, cluster, fresh, self._filters)
        self._everything: list[KeptFilter | KeptScore] = [*self._filters.kept, *self._scores.kept]
        used = dict.fromkeys(kept.fresh for kept in self._everything)
        self._watched = [(each, each.marker) for each in used if each.marker is not None]
        self._moves = Moves(cluster)
        self._failed: Search | None = None  # the last answer, if it was that there is no node

    def decide(self, cycle: Cycle, start: int = 0) -> int | Search:
        """The best row, or why there is none, with nodes visited from `start` on."""
        if self._cluster.columns.rows != self.rows:
            self._build()
        filters, scores = self._filters, self._scores
        cycle.data, cycle.skipped_filters, cycle.skipped_scores = self.data, filters.skipped, scores.skipped
        watch = self._runtime.watch
        began = 0.0 if watch is None else watch.now()
        if self._failed is None or not self._nothing_moved(cycle):
            self._failed = None
            self._refresh_filters(cycle, start)
        if watch is not None:
            watch.took["Filter"][SUCCESS](watch.now() - began)
            watch.evaluated("Filter", filters.skipped)
            began = watch.now()
        answer: int | Search
        if filters.count > 1:
            answer = scores.best(cycle)
            if watch is not None:
                watch.took["Score"][SUCCESS](watch.now() - began)
                watch.evaluated("Score", scores.skipped)
        elif filters.count:
            answer = int(filters.feasible.argmax())
        else:
            answer = self._failed = self._failed or filters.nowhere.search()
        cycle.data = dict(self.data)  # what this pod's plugins note from here on is theirs alone
        return answer

    def table(self) -> tuple[Rows, ScoreTable]:
        """The feasible rows in visiting order with their weighted scores, as of the last choice."""
        rows = self._filters.feasible_rows
        return rows, self._scores.table(rows)

    def _nothing_moved(self, cycle: Cycle) -> bool:
        """Whether all that filters depend on is as it was at the last answer."""
        if not self._moves.nothing or self._filters.nominations_moved:
            return False
        self._check_marks(cycle)
        return self._filters.complete

    def _refresh_filters(self, cycle: Cycle, start: int) -> None:
        """Bring every filter's answers up to date, and with them the feasible set."""
        filters, scores = self._filters, self._scores
        self._check_marks(cycle)
        moves = self._moves.moved()
        if moves is None:
            self._lose(self._everything)
        touched: Again | None = None
        if moves is not None:
            nodes, both = moves
            if both:
                touched = Again(self._cluster, both)
                filters.ask_about(filters.fresh(filters.by_row), cycle, touched)
                scores.behind.add(touched)
            if nodes:
                again = Again(self._cluster, nodes)
                filters.ask_about(filters.fresh(filters.by_node), cycle, again)
                filters.changed.update(dict.fromkeys(nodes))
                scores.nodes_behind.add(again)
        whole = not filters.complete
        if whole:  # after the rows: where PreFilter objects to this pod, what is fresh has been brought up to date
            filters.prepare(cycle)
            filters.ask_in_full(cycle)
        filters.settle(cycle, touched, whole, start)

    def _check_marks(self, cycle: Cycle) -> None:
        """Note with each plugin whether its mark moved."""
        lost = []
        for fresh, marker in self._watched:
            mark = marker(cycle)
            if mark is None or mark != fresh.mark:
                fresh.mark = mark
                lost.append(fresh)
        if lost:
            self._lose([each for each in self._everything if each.fresh in lost])
            self._watched = [each for each in self._watched if each[0].mark != ()]

    def _lose(self, answers: list[KeptFilter | KeptScore]) -> None:
        """These must be asked for in full."""
        for each in answers:
            each.stale = True
            if isinstance(each, KeptFilter):
                self._filters.complete = False
            else:
                self._scores.complete = False
