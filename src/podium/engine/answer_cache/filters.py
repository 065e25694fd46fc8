"""Caches what filters answered: which rows can take the pod, and why the others cannot.

Every filter has its answer about every row, and each row the number of filters that refuse it; those with none are
feasible. Pods nominated to a node count as one filter more, asked about the nodes that have some.

Also caches why pods of one signature fit nowhere, from one failure to the next.

The status of a row is that of the first filter to refuse it. Placing, evicting or nominating a pod changes a row or
two, so the statuses of all rows are cached and only rows that changed since the last failure are looked at again. What
was handed out is never changed: a new failure gets a copy.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

import numpy as np

from podium.cluster import Cluster, Nodes, Rows
from podium.engine.answer_cache.changed_rows import FEW_ROWS, ChangedRows, RowAnswers, RowSet, no_status
from podium.engine.decide import NodeSearch
from podium.framework.answer_keys import AnswerKeys
from podium.framework.answers import failure, node_status_of
from podium.framework.cycle import Cycle
from podium.framework.depends_on import NodePart
from podium.framework.diagnosis import NodeStatuses, PreFilterOutcome, Refusals, Verdict, refusal_of
from podium.framework.methods import FilterMethods, PreFilterMethods
from podium.framework.plugin import Plugin
from podium.framework.profile import ProfileRuntime
from podium.framework.status import Code, Status
from podium.framework.timer import Step


class CachedFilters:
    """The answers of all filters, and the feasible set that follows.

    Methods that ask plugins give False where their answers cannot be cached.
    """

    def __init__(self, runtime: ProfileRuntime, cluster: Cluster, keys: AnswerKeys) -> None:
        self._runtime = runtime
        self._cluster = cluster
        self._rows = cluster.columns.rows
        pre_filters = {each.plugin: each for each in runtime.pre_filters}
        filters = {each.plugin: each for each in runtime.filters}
        self.cached = [
            CachedFilter(plugin, plugin in keys.plugins, pre_filters.get(plugin), filters.get(plugin))
            for plugin in dict.fromkeys((*pre_filters, *filters))
        ]
        self.all_fresh = False
        """No filter is to be asked about all rows."""
        self.by_row: list[CachedFilter] = []
        """Filters to be asked about rows where pods came or went, and about those where the node changed."""
        self.by_node: list[CachedFilter] = []
        self.skipped: set[str] = set()
        self._objecting: CachedFilter | None = None
        self.doubtful: RowSet = {}
        """Rows that may have become feasible, or no longer be."""
        self.feasible = np.zeros(self._rows, dtype=np.bool_)
        self.feasible_rows: Rows = np.zeros(0, dtype=np.intp)
        """In visiting order."""
        self.count = 0
        self.feasible_changed = True
        """Whether the feasible rows or their order changed; the reader sets it back."""
        self._refusals = np.zeros(self._rows, dtype=np.int16)
        self._order_version = -1
        self._start = 0
        self._nominations = runtime.handle.nominator.changes.cursor()
        self._nominated_rows: RowSet = {}
        self._no_room = RowAnswers()  # rows refused because of the pods nominated to them
        answers = {cached.plugin: cached.answers for cached in self.cached}
        self._refusing = [("", self._no_room), *((plugin.name, answers[plugin]) for plugin in filters)]
        self.failure = CachedFailure(cluster, self._verdicts)

    def _verdicts(self) -> Iterator[tuple[str, Verdict]]:
        """Who refuses rows, in the order in which refusals count; "" stands for nominated pods."""
        for name, answers in self._refusing:
            if answers.numbers is not None:
                yield name, Verdict(answers.numbers, answers.status_of)

    # Stale filters, about all rows

    def prepare(self, cycle: Cycle) -> CachedFilter | None:
        """PreFilter of all stale filters, before any is asked; the one that objects, if one does.

        The one that objected last time goes first: it may still, and then no other needs to be asked.
        """
        last = self._objecting
        self._objecting = None
        for cached in self.cached if last is None else (last, *(each for each in self.cached if each is not last)):
            plugin = cached.pre_filters
            if not cached.stale or plugin is None:
                continue
            try:
                answer = plugin.pre_filter(cycle)
            except Exception as error:  # whatever the plugin raises
                raise failure(Step.PRE_FILTER, plugin.name, error) from error
            cached.skipped = isinstance(answer, Status) and answer.code == Code.SKIP
            if answer is not None and not cached.skipped:
                cached.rejects = isinstance(answer, Status)
                self._objecting = cached
                return cached
            (self.skipped.add if cached.skipped else self.skipped.discard)(plugin.name)
        return None

    def ask_stale(self, cycle: Cycle) -> bool:
        for cached in self.cached:
            if cached.stale and not self._ask(cached, cycle):
                return False
        self.all_fresh = True
        self.by_row = [cached for cached in self.cached if cached.asks and cached.node_part > NodePart.OBJECT]
        self.by_node = [cached for cached in self.cached if cached.asks and cached.node_part == NodePart.OBJECT]
        return True

    def _ask(self, cached: CachedFilter, cycle: Cycle) -> bool:
        cached.stale = False
        verdict = None
        if cached.filters is not None and not cached.skipped:
            verdict = self._runtime.judge(cached.filters, cycle, Nodes(self._cluster), self._cluster.present)
        if verdict is not None and verdict.fails:
            return False
        answers = cached.answers
        if answers.numbers is not None:
            self._refusals -= answers.numbers != 0
        if verdict is None:
            answers.replace(None, no_status)
            return True
        answers.replace(verdict.codes.copy(), verdict.status_of)
        self._refusals += verdict.codes != 0
        return True

    # Fresh filters, about changed rows

    def ask_about(self, filters: list[CachedFilter], cycle: Cycle, changed: ChangedRows) -> bool:
        if not self.all_fresh:
            filters = [cached for cached in filters if not cached.stale]
        few = len(changed.rows) <= FEW_ROWS
        for cached in filters:
            ask_one = cached.ask_one
            if ask_one is None or not few:
                if not self._ask_with_arrays(cached, cycle, changed):
                    return False
                continue
            for node in changed.infos:
                try:
                    answer = ask_one(cycle, node)
                except Exception as error:  # whatever the plugin raises
                    raise failure(Step.FILTER, cached.plugin.name, error) from error
                numbers = cached.answers.numbers
                if answer is not None or (numbers is not None and numbers[node.row]):
                    self._set(cached, node.row, node_status_of(cached.plugin, answer))
        return True

    def _ask_with_arrays(self, cached: CachedFilter, cycle: Cycle, changed: ChangedRows) -> bool:
        if not changed.rows:
            return True
        nodes = changed.nodes
        assert cached.filters is not None
        verdict = self._runtime.judge(cached.filters, cycle, nodes, self._cluster.present[nodes.rows])
        if verdict is None:
            for row in changed.rows:
                self._set(cached, row, None)
            return True
        if verdict.fails:
            return False
        for row, code in zip(changed.rows, verdict.codes.tolist(), strict=True):
            self._set(cached, row, verdict.status_of(code) if code else None)
        return True

    def _set(self, cached: CachedFilter, row: int, status: Status | None) -> None:
        change = cached.answers.set_status(row, status, self._rows)
        if change:
            self._refusals[row] += change
            self.doubtful[row] = None

    # What follows

    def settle(self, cycle: Cycle, changed: ChangedRows | None, *, all_rows: bool, start: int) -> bool:
        """The feasible set, from the answers; `all_rows`: some filter was asked about all of them."""
        renominated = self._ask_beside_nominated(cycle, changed, all_rows)
        if renominated is None:
            return False
        self.failure.make_stale(None if all_rows else (*(() if changed is None else changed.all_rows), *renominated))
        cluster = self._cluster
        moved = self._order_version != cluster.order.version or start != self._start
        if all_rows:
            feasible = (self._refusals == 0) & cluster.present
            moved = moved or not np.array_equal(feasible, self.feasible)
            self.feasible = feasible
            self.doubtful = {}
        elif self.doubtful:
            for row in self.doubtful:
                fits = not self._refusals[row] and bool(cluster.present[row])
                if fits != self.feasible[row]:
                    self.feasible[row] = fits
                    moved = True
            self.doubtful = {}
        if moved:
            self.feasible_changed = True
            self._order_version, self._start = cluster.order.version, start
            order = cluster.order.rows
            if start:
                order = np.roll(order, -start)
            turns = np.flatnonzero(self.feasible[order])  # numbers pick scattered rows faster than a mask does
            self.count = len(turns)
            self.feasible_rows = order if self.count == len(order) else order[turns]
        return True

    @property
    def nominations_changed(self) -> bool:
        return not self._nominations.at_end

    def _ask_beside_nominated(self, cycle: Cycle, changed: ChangedRows | None, all_rows: bool) -> RowSet | None:
        """Ask again about nodes that other pods are nominated to, where that or the row changed; gives those rows, None
        where the answers cannot be cached."""
        if not self._nominated_rows and self._nominations.at_end:
            return {}
        nominator, row_of, names = self._runtime.handle.nominator, self._cluster.row_of, self._nominations.read()
        if names is None or all_rows or nominator.outranks is not None:  # that order moves with time
            rows = dict(self._nominated_rows)
            self._nominated_rows = {row_of[name]: None for name in nominator.nodes() if name in row_of}
            rows |= self._nominated_rows
        else:
            rows = {row: None for row in (() if changed is None else changed.all_rows) if row in self._nominated_rows}
            for name in names:
                row = row_of.get(name)
                if row is not None:
                    rows[row] = None
                    if nominator.on(name):
                        self._nominated_rows[row] = None
                    else:
                        self._nominated_rows.pop(row, None)
        if self._nominated_rows and self._runtime.active_filters(cycle).beyond_rows:
            return None
        for row in rows:
            occupied = self._cluster.present[row] and row in self._nominated_rows
            status = self._runtime.run_filters_beside_rivals(cycle, row) if occupied else None
            self._refusals[row] += self._no_room.set_status(row, status, self._rows)
        self.doubtful.update(rows)
        return rows


class CachedFilter:
    """One filter plugin's answers."""

    __slots__ = (
        "answers",
        "ask_one",
        "filters",
        "has_key",
        "node_part",
        "plugin",
        "pre_filters",
        "rejects",
        "skipped",
        "stale",
    )

    def __init__(
        self,
        plugin: Plugin,
        has_key: bool,
        pre_filters: PreFilterMethods | None,
        filters: FilterMethods | None,
    ) -> None:
        self.plugin = plugin
        self.has_key = has_key
        self.pre_filters = pre_filters
        self.filters = filters
        self.node_part = plugin.depends_on.node
        self.rejects = False
        """Whether its last objection at PreFilter was a rejection, and not a set of nodes."""
        self.ask_one = None if filters is None else filters.filter_node
        self.skipped = False
        self.stale = True
        self.answers = RowAnswers()

    @property
    def asks(self) -> bool:
        return self.filters is not None and not self.skipped


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
