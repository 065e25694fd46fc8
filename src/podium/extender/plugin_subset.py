"""Runs a subset of a profile's plugins on given nodes: one function of an agent, or all of them.

Plugins run the way the engine runs them (PreFilter and Filter; PreScore, Score and Normalize), on the nodes of the
request alone. Where their answer about a node depends on that node only, and pods of the same signature come again,
answers about all nodes are cached, so that a request costs a look into an array. At log level debug plugins are asked
every time, so that what they log is there for every request.

The cache is the row-local form of the engine's: for plugins whose answer about a node depends on that node's
row alone (`depends_on` with a `node` below ANYTHING) and on their answer keys (load that is measured, what was learnt).
While the keys stand, plugins are asked about changed rows only. The entries used longest ago are dropped.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from podium.cluster import Cluster, Mask, Nodes, PlacedPod, Rows
from podium.config.points import Point
from podium.engine.answer_cache.changed_rows import Numbers, RowAnswers, StatusOf, no_status, read_changes
from podium.engine.answer_cache.store import SignatureHistory, UnexpectedErrors
from podium.engine.decide import NodeSearch
from podium.engine.scheduler import Scheduler
from podium.extender.assembly import runtime_of
from podium.extender.responses import Points, scaled_to_points
from podium.framework import Cycle, NodePart, PluginError, Status
from podium.framework.answer_keys import AnswerKeys, Dependence
from podium.framework.profile import ProfileRuntime
from podium.framework.status import Code
from podium.kube import Pod
from podium.serving.log import LOG

MOST_ENTRIES = 64

Ask = Callable[[Cycle, Nodes], tuple[Numbers, StatusOf]]
"""A number for each node, the caller's own, and what the numbers stand for."""


class _Entry:
    """The answers for one signature, and how far they are fresh."""

    __slots__ = ("answers", "cursor", "keys")

    def __init__(self, cluster: Cluster, dependences: Sequence[Dependence]) -> None:
        self.answers = RowAnswers()
        self.cursor = cluster.row_cursor()
        self.keys = AnswerKeys(dependences)


class RowAnswerCache:
    """The answers of some plugins together, by signature of pods."""

    def __init__(self, runtime: ProfileRuntime, plugins: Sequence[Any], ask: Ask, errors: UnexpectedErrors) -> None:
        furthest = max((plugin.depends_on.node for plugin in plugins), default=NodePart.ANYTHING)
        self.possible = furthest < NodePart.ANYTHING
        self._pods = furthest > NodePart.OBJECT
        self._claims = any(plugin.depends_on.claims for plugin in plugins)
        self._dependences = [runtime.dependences[plugin] for plugin in plugins]
        self._cluster = runtime.handle.cluster
        self._ask = ask
        self._errors = errors
        self._report = runtime.handle.report
        self._entries: OrderedDict[bytes, _Entry] = OrderedDict()
        self._history: SignatureHistory[bytes] = SignatureHistory()

    def of(self, cycle: Cycle) -> RowAnswers | None:
        """The answers for pods like the cycle's, up to date; None where that is not worth it, or a plugin fails."""
        if self._claims and cycle.facts.claims:
            return None
        signature = cycle.facts.signature
        entry = self._entries.get(signature)
        if entry is None:
            if not self._history.worth_an_entry(signature, cycle.pod.uid):
                return None
            entry = self._entries[signature] = _Entry(self._cluster, self._dependences)
            if len(self._entries) > MOST_ENTRIES:
                self._entries.popitem(last=False)
        else:
            self._entries.move_to_end(signature)
        try:
            return entry.answers if self._refresh(entry, cycle) else None
        except PluginError:  # may be about a node that is not asked about now: without the cache it is seen
            del self._entries[signature]
        except Exception as error:  # a mistake of the cache: the answer is made without it
            del self._entries[signature]
            self._errors.add(error, self._report)
        return None

    def _refresh(self, entry: _Entry, cycle: Cycle) -> bool:
        """Bring an entry up to date; False where a plugin cannot tell its answer key."""
        cluster, answers, moved = self._cluster, entry.answers, entry.keys.moved(cycle)
        if not entry.keys.tellable:
            return False  # once it can, it counts as moved
        changes = read_changes(entry.cursor, cluster)
        if moved or changes is None or answers.numbers is None or len(answers.numbers) != cluster.columns.rows:
            answers.replace(*self._ask(cycle, Nodes(cluster)))
            return True
        nodes, nodes_and_pods = changes
        changed = nodes_and_pods if self._pods else nodes
        if changed:
            rows = np.array(list(changed), dtype=np.intp)
            answers.set_rows(rows, *self._ask(cycle, Nodes(cluster, rows)))
        return True


class FilteredNodes(NamedTuple):
    """Which of the nodes pass, and why others do not, by position."""

    passed: Mask
    refused: Mapping[int, Status]


class FilterSubset:
    """The filters of a plugin subset."""

    def __init__(self, engine: Scheduler, plugins: Sequence[str]) -> None:
        self._cluster = engine.cluster
        self._runtime = runtime_of(engine).only(plugins)
        filters = self._runtime.at(Point.FILTER)
        self._cache = RowAnswerCache(self._runtime, filters, self._ask_all, engine.answer_cache.errors)
        self._cacheable = self._cache.possible and not self._runtime.at(Point.PRE_FILTER)

    def filter_nodes(self, pod: Pod, rows: Rows) -> FilteredNodes:
        """Raises PluginError where a plugin fails."""
        cycle = Cycle(pod, self._cluster)
        if self._cacheable and not LOG.isEnabledFor(logging.DEBUG) and (answers := self._cache.of(cycle)) is not None:
            numbers = answers.pick(rows)
            passed = numbers == 0
            if np.count_nonzero(passed) == len(rows):
                return FilteredNodes(passed, {})
            where = np.flatnonzero(numbers).tolist()
            return FilteredNodes(passed, {position: answers.status_of(int(numbers[position])) for position in where})
        return filter_nodes(self._runtime, cycle, rows)

    def __bool__(self) -> bool:
        """Whether there is any filter."""
        return bool(self._runtime.at(Point.FILTER))

    def passes_without(self, pod: Pod, row: int, uids: Sequence[str]) -> bool:
        """Whether the node will do once these pods are gone from it."""
        cluster, runtime = self._cluster, self._runtime
        cycle = Cycle(pod, cluster)
        outcome = runtime.run_pre_filter(cycle)
        if outcome.status is not None:
            return False
        if outcome.node_names is not None and cluster.names[row] not in outcome.node_names:
            return False
        placed = [found for uid in uids if (found := cluster.pods_on[row].get(uid)) is not None]
        off: list[PlacedPod] = []
        with cluster.dry_run():
            try:
                for victim in placed:
                    cluster.take_off(victim)
                    off.append(victim)
                    runtime.remove_pod(cycle, victim)
                return runtime.run_filters_on(cycle, row) is None
            finally:
                for victim in reversed(off):
                    cluster.put_on(victim)

    def _ask_all(self, cycle: Cycle, nodes: Nodes) -> tuple[Points, StatusOf]:
        """The number of each node's status, 0 where it passes."""
        refusals = self._runtime.run_filters(cycle, nodes, self._cluster.present[nodes.rows])
        if any(verdict.fails for _plugin, verdict in refusals.verdicts):
            raise PluginError("some nodes cannot be judged")
        numbers = np.zeros(self._cluster.columns.rows, dtype=np.int64)
        statuses: list[Status] = []
        for status, rows in refusals.kinds(np.ones(len(nodes), dtype=np.bool_)):
            statuses.append(status)
            numbers[rows] = len(statuses)
        return numbers[nodes.rows], lambda number: statuses[number - 1]


def filter_nodes(runtime: ProfileRuntime, cycle: Cycle, rows: Rows) -> FilteredNodes:
    """The filters' statuses of some nodes of the cycle's cluster."""
    cluster = cycle.cluster
    search = NodeSearch(cluster, runtime.run_pre_filter(cycle))
    passed = np.ones(len(rows), dtype=np.bool_)
    if search.outcome.status is not None:
        passed[:] = False
    else:
        if search.outcome.node_names is not None:
            wanted = search.outcome.node_names
            passed &= np.array([cluster.names[row] in wanted for row in rows.tolist()], dtype=np.bool_)
        search.refusals = runtime.run_filters(cycle, Nodes(cluster, rows), passed.copy())
        passed &= search.refusals.passed
    if passed.all():
        return FilteredNodes(passed, {})
    statuses = search.statuses()
    refused = {position: statuses.get(int(rows[position])) for position in np.flatnonzero(~passed).tolist()}
    for status in refused.values():
        if status.code == Code.ERROR:
            raise PluginError(f'running "{status.plugin}" filter plugin: {status.message}')
    return FilteredNodes(passed, refused)


class ScoreSubset:
    """The mean score of a plugin subset, weighted, as points of an extender."""

    def __init__(self, engine: Scheduler, weights: Mapping[str, int], most_points: int) -> None:
        self._cluster = engine.cluster
        self._runtime = runtime_of(engine).only(weights, weights)
        self._most = most_points
        self._weights = sum(weights.values())
        plugins = self._runtime.at(Point.SCORE)
        self._cache = RowAnswerCache(self._runtime, plugins, self._ask_all, engine.answer_cache.errors)
        normal = all(each.normalizer is None and each.normalize is None for each in self._runtime.scores)
        prepared = self._runtime.at(Point.PRE_FILTER) or self._runtime.at(Point.PRE_SCORE)
        self._cacheable = self._cache.possible and normal and not prepared

    def points(self, pod: Pod, rows: Rows) -> Points:
        """Raises PluginError where a plugin fails."""
        cycle = Cycle(pod, self._cluster)
        if self._cacheable and not LOG.isEnabledFor(logging.DEBUG) and (answers := self._cache.of(cycle)) is not None:
            return answers.pick(rows)
        if self._runtime.at(Point.PRE_FILTER):
            self._runtime.run_pre_filter(cycle)
        return self._ask(cycle, Nodes(self._cluster, rows))

    def _ask_all(self, cycle: Cycle, nodes: Nodes) -> tuple[Points, StatusOf]:
        return self._ask(cycle, nodes), no_status

    def _ask(self, cycle: Cycle, nodes: Nodes) -> Points:
        self._runtime.run_pre_score(cycle, nodes)
        return scaled_to_points(self._runtime.run_scores(cycle, nodes).total, self._weights, self._most)
