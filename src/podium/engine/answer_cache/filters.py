"""The filters' half of kept answers: which rows can take the pod, and why the others cannot.

Every filter keeps what it said of every row, and each row the number of filters that refuse it; those with none are
feasible. Pods nominated to a node count as one filter more, asked about the nodes that have some.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.cluster import Cluster, Nodes, Rows
from podium.config.points import Point
from podium.engine.answer_cache.changed_rows import FEW_ROWS, Again, Freshness, RowSet
from podium.engine.answer_cache.failures import FitsNowhere
from podium.framework.answers import node_status_of
from podium.framework.cycle import Cycle
from podium.framework.plugin import Scope
from podium.framework.profile import ProfileRuntime
from podium.framework.status import Code, Status
from podium.framework.verdict import Codes, Verdict

Mask = NDArray[np.bool_]


class Unkeepable(Exception):  # noqa: N818 (not an error: the caller decides the long way)
    """The answers for these pods cannot be kept."""


class TurnedAway(Exception):  # noqa: N818
    """PreFilter has something to say about this pod because of its claims; what is kept for its family holds."""


class KeptFilters:
    """What all filters say, and the feasible set that follows."""

    def __init__(self, runtime: ProfileRuntime, cluster: Cluster, fresh: Mapping[Any, Freshness]) -> None:
        self._runtime = runtime
        self._cluster = cluster
        self._rows = cluster.columns.rows
        preparing, judging = runtime.at(Point.PRE_FILTER), runtime.at(Point.FILTER)
        self.kept = [
            KeptFilter(plugin, fresh[plugin], plugin in preparing, plugin in judging)
            for plugin in dict.fromkeys((*preparing, *judging))
        ]
        self.complete = False
        """No filter is to be asked in full."""
        self.by_row: list[KeptFilter] = []
        """Filters to be asked about rows where pods came or went, and about those where the node changed."""
        self.by_node: list[KeptFilter] = []
        self.skipped: set[str] = set()
        self.changed: RowSet = {}
        """Rows that may have become feasible, or no longer be."""
        self.feasible = np.zeros(self._rows, dtype=np.bool_)
        self.feasible_rows: Rows = np.zeros(0, dtype=np.intp)
        """In visiting order."""
        self.count = 0
        self.moved = True
        """Whether the feasible rows or their order changed; whoever heeds it sets it back."""
        self._refusals = np.zeros(self._rows, dtype=np.int16)
        self._order_version = -1
        self._start = 0
        self._nominations = runtime.handle.nominator.changes.cursor()
        self._held: RowSet = {}
        self._crowded = Said()  # rows refused because of pods nominated to them
        said_by = {kept.plugin: kept.said for kept in self.kept}
        self._refusing = [("", self._crowded), *((plugin.name, said_by[plugin]) for plugin in judging)]
        self.nowhere = FitsNowhere(cluster, self._verdicts)

    def _verdicts(self) -> Iterator[tuple[str, Verdict]]:
        """Who refuses rows, in the order in which refusals count; "" stands for nominated pods."""
        for name, said in self._refusing:
            if said.codes is not None:
                yield name, Verdict(said.codes, said.status_of)

    # Asking in full

    def prepare(self, cycle: Cycle) -> None:
        """PreFilter of all filters to be asked in full, before any is: one that objects leaves the rest as it is."""
        for kept in self.kept:
            if not kept.stale or not kept.prepares:
                continue
            answer = kept.plugin.pre_filter(cycle)
            kept.skipped = isinstance(answer, Status) and answer.code == Code.SKIP
            if answer is not None and not kept.skipped:
                raise TurnedAway if cycle.facts.may_attach and kept.fresh.marker is not None else Unkeepable
            (self.skipped.add if kept.skipped else self.skipped.discard)(kept.plugin.name)

    def ask_in_full(self, cycle: Cycle) -> None:
        """Ask whom it must be asked of about all rows."""
        for kept in self.kept:
            if kept.stale:
                self._ask(kept, cycle)
        self.complete = True
        self.by_row = [kept for kept in self.kept if kept.asks and kept.scope > Scope.NODE]
        self.by_node = [kept for kept in self.kept if kept.asks and kept.scope == Scope.NODE]

    def _ask(self, kept: KeptFilter, cycle: Cycle) -> None:
        kept.stale = False
        verdict = None
        if kept.asks:
            verdict = self._runtime.judge(kept.plugin, cycle, Nodes(self._cluster), self._cluster.present)
        if verdict is not None and verdict.fails:
            raise Unkeepable
        if kept.said.codes is not None:
            self._refusals -= kept.said.codes != 0
        kept.said.replace(verdict)
        if kept.said.codes is not None:
            self._refusals += kept.said.codes != 0

    # Asking about rows

    def fresh(self, filters: list[KeptFilter]) -> list[KeptFilter]:
        """Those that are not to be asked in full."""
        return filters if self.complete else [kept for kept in filters if not kept.stale]

    def ask_about(self, filters: list[KeptFilter], cycle: Cycle, again: Again) -> None:
        if len(again.rows) > FEW_ROWS:
            for kept in filters:
                self._note(kept, again.rows, self._judged(kept, cycle, again))
            return
        for kept in filters:
            if kept.ask_one is None:
                self._note(kept, again.rows, self._judged(kept, cycle, again))
                continue
            for node in again.infos:
                answer, codes = kept.ask_one(cycle, node), kept.said.codes
                if answer is not None or (codes is not None and codes[node.row]):
                    self._note(kept, [node.row], [node_status_of(kept.plugin, answer)])

    def _judged(self, kept: KeptFilter, cycle: Cycle, again: Again) -> list[Status | None]:
        """One filter's answers about some rows, asked with arrays."""
        if not again.rows:
            return []
        verdict = self._runtime.judge(kept.plugin, cycle, again.nodes, self._cluster.present[again.nodes.rows])
        if verdict is None:
            return [None] * len(again.rows)
        if verdict.fails:
            raise Unkeepable
        return [verdict.status_of(code) if code else None for code in verdict.codes.tolist()]

    def _note(self, kept: KeptFilter, rows: list[int], statuses: list[Status | None]) -> None:
        for row, status in zip(rows, statuses, strict=True):
            change = kept.said.note(row, status, self._rows)
            if change:
                self._refusals[row] += change
                self.changed[row] = None

    # What follows

    def settle(self, cycle: Cycle, touched: Again | None, whole: bool, start: int) -> None:
        """The feasible set, from what was noted; `whole`: some filter was asked in full."""
        crowded = self._heed_nominated(cycle, touched, whole)
        self.nowhere.moved(None if whole else (*(() if touched is None else touched.asked), *crowded))
        cluster = self._cluster
        moved = self._order_version != cluster.order.version or start != self._start
        if whole:
            feasible = (self._refusals == 0) & cluster.present
            moved = moved or not np.array_equal(feasible, self.feasible)
            self.feasible = feasible
            self.changed = {}
        elif self.changed:
            for row in self.changed:
                fits = not self._refusals[row] and bool(cluster.present[row])
                if fits != self.feasible[row]:
                    self.feasible[row] = fits
                    moved = True
            self.changed = {}
        if moved:
            self.moved = True
            self._order_version, self._start = cluster.order.version, start
            order = cluster.order.rows
            if start:
                order = np.roll(order, -start)
            self.count = int(np.count_nonzero(self.feasible))
            self.feasible_rows = order if self.count == len(order) else order[self.feasible[order]]

    @property
    def nominations_moved(self) -> bool:
        return not self._nominations.at_end

    def _heed_nominated(self, cycle: Cycle, touched: Again | None, whole: bool) -> RowSet:
        """Judge nodes again that others are nominated to, where that or the row changed; returns those rows."""
        nominator = self._runtime.handle.nominator
        if not self._held and not self.nominations_moved:
            return {}
        changes = self._nominations.read()
        row_of = self._cluster.row_of
        if changes is None or whole:
            again = dict(self._held)
            self._held = {row_of[name]: None for name in nominator.nodes() if name in row_of}
            again |= self._held
        else:
            again = {row: None for row in (touched.asked if touched is not None else ()) if row in self._held}
            for name in changes:
                row = row_of.get(name)
                if row is not None:
                    again[row] = None
                    if nominator.on(name):
                        self._held[row] = None
                    else:
                        self._held.pop(row, None)
        if self._held and self._runtime.in_force(cycle).beyond_rows:
            raise Unkeepable
        for row in again:
            present = self._cluster.present[row] and row in self._held
            status = self._runtime.run_filters_beside_rivals(cycle, row) if present else None
            self._refusals[row] += self._crowded.note(row, status, self._rows)
        self.changed.update(again)
        return again


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

    __slots__ = ("_judges", "ask_one", "fresh", "plugin", "prepares", "said", "scope", "skipped", "stale")

    def __init__(self, plugin: Any, fresh: Freshness, prepares: bool, judges: bool) -> None:
        self.plugin = plugin
        self.fresh = fresh
        self.prepares = prepares
        self._judges = judges
        self.scope: Scope = plugin.filter_scope
        self.ask_one = getattr(plugin, "filter_node", None)
        self.skipped = False
        self.stale = True
        self.said = Said()

    @property
    def asks(self) -> bool:
        return self._judges and not self.skipped
