"""Decides for one pod which nodes can take it, and which of them is best.

PreFilter, then Filter on every node at once, then Score on the feasible ones, then the choice. Nothing here changes
the cluster. A decision keeps what was found, so that an explanation can be drawn from it; messages and per-node
statuses are made only when they are asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from podium.cluster import Cluster, Nodes, Rows
from podium.cluster.view import BareNodes, without_pods
from podium.engine.choice import first_in_order, top_of_heap
from podium.engine.extender_steps import (
    best_position,
    choose_among_nodes,
    left_by_extenders,
    see_nodes_of,
    with_extenders_scores,
)
from podium.engine.sampling import Sampling
from podium.framework.answers import ScoreTable
from podium.framework.cycle import Cycle
from podium.framework.diagnosis import Diagnosis, NodeStatuses, Nomination, PreFilterOutcome, Refusals
from podium.framework.extender import EXTENDER, interested
from podium.framework.normalize import Scores
from podium.framework.notes import SharedNoteError
from podium.framework.profile import ProfileRuntime
from podium.framework.status import Code, PluginError, Status
from podium.framework.timer import Step

NO_NODES = "no nodes available to schedule pods"


class NodeSearch:
    """What the filters found: the feasible rows in visiting order, and why the others are not.

    Where the statuses are known already they are given; otherwise they are put together when they are asked for.
    """

    def __init__(
        self,
        cluster: Cluster,
        outcome: PreFilterOutcome,
        statuses: NodeStatuses | None = None,
        placement: Rows | None = None,
    ) -> None:
        self.nodes = len(cluster.order.rows if placement is None else placement)
        self.rows = cluster.columns.rows
        """Rows there were; nodes that come later may get others."""
        self._row_of = cluster.row_of
        self.outcome = outcome
        self.feasible: Rows = np.zeros(0, dtype=np.intp)
        self.refusals: Refusals | None = None
        self.visited: NDArray[np.bool_] | None = None
        self.overrides: dict[int, Status] = {}
        self.nominated_statuses: dict[str, Status] = {}
        """Refusals by extenders that were asked about the nominated node alone, by node name."""
        self.extender_statuses: dict[str, Status] = {}
        """Refusals by extenders among the nodes that filters had left, by node name."""
        self.cut_by_extenders = False
        self.bare = False
        self._statuses = statuses
        self._first: Diagnosis | None = None

    def row_of(self, name: str) -> int | None:
        return self._row_of.get(name)

    def statuses(self) -> NodeStatuses:
        """The status of every node that was refused."""
        statuses = self._statuses_by_plugins()
        statuses.set_named(self.extender_statuses, self._row_of)
        return statuses

    def _statuses_by_plugins(self) -> NodeStatuses:
        if self._statuses is not None:
            return self._statuses
        outcome = self.outcome
        if outcome.status is not None:
            return NodeStatuses(self.rows, outcome.status)
        absent = None
        if outcome.node_names is not None:
            absent = Status.unresolvable(f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(outcome.restricting))}]")
        statuses = NodeStatuses(self.rows, absent)
        statuses.set_named(self.nominated_statuses, self._row_of)
        if self.refusals is not None:
            visited = np.ones(len(self.refusals.rows), dtype=np.bool_) if self.visited is None else self.visited
            for status, rows in self.refusals.kinds(visited):
                statuses.add_group(status, rows)
        for row, status in self.overrides.items():
            statuses.set(row, status)
        return statuses

    def diagnosis(self) -> Diagnosis:
        """Why no node was found, as far as filters can say; each caller gets one of its own."""
        first = self._first
        if first is None:
            first = self._first = self._diagnose()
        diagnosis = Diagnosis(self.nodes, first.statuses, first.notes)
        diagnosis.unschedulable_plugins |= first.unschedulable_plugins
        diagnosis.pending_plugins |= first.pending_plugins
        diagnosis.pre_filter_message = first.pre_filter_message
        return diagnosis

    def _diagnose(self) -> Diagnosis:
        diagnosis = Diagnosis(self.nodes, self._statuses_by_plugins())
        diagnosis.unschedulable_plugins |= self.outcome.restricting
        if self.outcome.status is not None:
            diagnosis.pre_filter_message = self.outcome.status.message
            diagnosis.blame(self.outcome.status)
        for status, number in diagnosis.statuses.counts():
            if number:
                diagnosis.blame(status)
        diagnosis.statuses.set_named(self.extender_statuses, self._row_of)
        if self.cut_by_extenders:
            diagnosis.unschedulable_plugins.add(EXTENDER)
        return diagnosis


class Decision:
    """The chosen row (None: no feasible node), with the search and the scores behind it."""

    __slots__ = ("row", "scores", "search")

    def __init__(self, search: NodeSearch, row: int | None, scores: ScoreTable | None) -> None:
        self.search = search
        self.row = row
        self.scores = scores

    def totals(self) -> tuple[Rows, Scores]:
        """The feasible rows in visiting order with their total scores, where there were several."""
        assert self.scores is not None
        return self.search.feasible, self.scores.total


def decide(runtime: ProfileRuntime, cycle: Cycle, sampling: Sampling) -> Decision:
    """Find the best node for the cycle's pod; raises PluginError when a plugin fails."""
    search = find_feasible(runtime, cycle, sampling)
    feasible = search.feasible
    if not len(feasible):
        return Decision(search, None, None)
    if len(feasible) == 1:
        return Decision(search, int(feasible[0]), None)
    handle = runtime.handle
    if handle.extenders and interested(handle.extenders, cycle.pod):
        scores = score_beside_extenders(runtime, cycle, search)
        scores, named = with_extenders_scores(handle, cycle, feasible, scores)
        return Decision(search, int(feasible[best_position(scores.total, named, handle)]), scores)
    scores = score(runtime, cycle, feasible)
    if runtime.first_of_equals:
        return Decision(search, first_in_order(scores.total, feasible, cycle.cluster.order.rows), scores)
    return Decision(search, int(feasible[top_of_heap(scores.total)]), scores)


def make_room(runtime: ProfileRuntime, cycle: Cycle, diagnosis: Diagnosis) -> Nomination | None:
    """Run PostFilter and write its message into the diagnosis; returns the nomination it asks for."""
    if not runtime.post_filters:
        return Nomination("")
    try:
        result = runtime.run_post_filter(cycle, diagnosis)
    except PluginError as error:
        if isinstance(error.__cause__, SharedNoteError):
            raise error.__cause__ from None  # the diagnosis may rest on the note that was changed
        diagnosis.post_filter_message = str(error)
        return None
    diagnosis.post_filter_message = result.message if result.status is None else result.status.message
    return result.nomination


def score(runtime: ProfileRuntime, cycle: Cycle, feasible: Rows) -> ScoreTable:
    """Score the feasible rows, in their order."""
    if not runtime.scores:
        return ScoreTable({}, np.ones(len(feasible), dtype=np.int64))
    every_row = len(feasible) == cycle.cluster.columns.rows
    nodes = Nodes(cycle.cluster, None if every_row else feasible)  # whole columns need no copying
    runtime.run_pre_score(cycle, nodes)
    table = runtime.run_scores(cycle, nodes)
    return table.of(feasible) if every_row else table


def score_beside_extenders(runtime: ProfileRuntime, cycle: Cycle, search: NodeSearch) -> ScoreTable:
    """Score what extenders left, which may be in any order and not quite the nodes we know."""
    if not search.bare:
        nodes = Nodes(cycle.cluster, search.feasible)
        runtime.run_pre_score(cycle, nodes)
        return runtime.run_scores(cycle, nodes)
    nodes = BareNodes(cycle.cluster, search.feasible)
    runtime.run_pre_score(cycle, nodes)
    with without_pods(cycle.cluster):
        return runtime.run_scores(cycle, nodes)


def find_feasible(runtime: ProfileRuntime, cycle: Cycle, sampling: Sampling) -> NodeSearch:
    cluster = cycle.cluster
    outcome = runtime.run_pre_filter(cycle)
    search = NodeSearch(cluster, outcome, placement=cycle.placement)
    if outcome.status is not None:
        return search
    alone = runtime.timer.time_decision(Step.FILTER, _found, cycle, _find, cycle, runtime, search, sampling)
    handle = runtime.handle
    if handle.extenders and not alone:
        found = len(search.feasible)
        search.feasible, search.extender_statuses, search.bare = left_by_extenders(handle, cycle, search.feasible)
        search.cut_by_extenders = len(search.feasible) != found
    return search


def _found(_alone: bool) -> Code:
    """Filtering succeeds whether or not a node is left."""
    return Code.SUCCESS


def _find(cycle: Cycle, runtime: ProfileRuntime, search: NodeSearch, sampling: Sampling) -> bool:
    """The nominated or hinted node, if it will do (True), or all others that do."""
    cluster, outcome, handle = cycle.cluster, search.outcome, runtime.handle
    nominated = cluster.row_of.get(cycle.pod.status.nominated_node_name or cycle.hinted_node)
    placement = cycle.placement
    if nominated is not None and placement is not None and nominated not in placement:
        nominated = None
    if nominated is not None and cluster.nodes[nominated] is not None:
        try:
            status = runtime.run_filters_with_nominated(cycle, nominated)
            if status is None:
                search.feasible = np.array([nominated], dtype=np.intp)
                if handle.extenders:
                    search.feasible, search.nominated_statuses, _bare = left_by_extenders(
                        handle, cycle, search.feasible
                    )
                if len(search.feasible):
                    return True
            else:
                search.overrides[nominated] = status
                # As in kube-scheduler, a plugin that refuses the nominated node counts among those that restrict nodes.
                search.outcome = outcome._replace(restricting=outcome.restricting | {status.plugin})
        except PluginError as error:
            handle.report(f"pod {cycle.pod.key} on its nominated node: {error}")
    rows = cluster.order.rows if placement is None else placement
    if outcome.node_names is not None:
        named = _rows_named(cluster, outcome.node_names)
        rows = named if placement is None else placement[np.isin(placement, named)]
    limit = _enough(runtime, cycle, sampling, len(rows))
    _filter(runtime, cycle, search, rows, limit, sampling)
    return False


def _rows_named(cluster: Cluster, names: Iterable[str]) -> Rows:
    """The rows of those named nodes that exist, in visiting order."""
    wanted = np.zeros(cluster.columns.rows, dtype=np.bool_)
    wanted[[cluster.row_of[name] for name in names if name in cluster.row_of]] = True
    order = cluster.order.rows
    rows: Rows = order[wanted[order]]
    return rows


def _enough(runtime: ProfileRuntime, cycle: Cycle, sampling: Sampling, nodes: int) -> int:
    """How many feasible nodes are enough. What goes through an extender costs as much as in kube-scheduler, so there
    is no reason to look at more than it would."""
    extenders, percentage = runtime.handle.extenders, runtime.profile.percentage_of_nodes_to_score
    if not extenders:
        return sampling.limit(nodes, percentage) if runtime.scores else 1
    if not runtime.scores and not choose_among_nodes(extenders):
        return 1
    return sampling.limit(nodes, percentage, as_kube_scheduler=see_nodes_of(extenders, cycle.pod))


def _filter(
    runtime: ProfileRuntime, cycle: Cycle, search: NodeSearch, rows: Rows, limit: int, sampling: Sampling
) -> None:
    """Judge all rows at once, then keep what a search in visiting order that stops at `limit` would have seen."""
    start = sampling.next_start % len(rows) if len(rows) else 0
    visiting = np.concatenate((rows[start:], rows[:start])) if start else rows
    if not runtime.filters:
        search.feasible = visiting[:limit]
        sampling.advance(len(search.feasible) + len(search.nominated_statuses), search.nodes)
        return
    cluster = cycle.cluster
    tried_before = set(search.overrides)  # the nominated node, where it failed
    whole = search.outcome.node_names is None and cycle.placement is None
    nodes = Nodes(cluster) if whole else Nodes(cluster, rows)
    cycle.visiting = visiting
    refusals = runtime.run_filters(cycle, nodes, cluster.present if whole else None)
    search.refusals = refusals
    if whole:
        passed = refusals.passed & cluster.present
    else:
        passed = np.zeros(cluster.columns.rows, dtype=np.bool_)
        passed[rows[refusals.passed]] = True
    failed = _judge_beside_nominated(runtime, cycle, search, passed, rows)
    fits = passed[visiting]
    turns = np.flatnonzero(fits)  # numbers pick scattered rows faster than a mask does
    search.feasible = visiting[turns[:limit]]
    seen = len(visiting)
    if len(turns) > limit:
        # The search ends when it meets one feasible node more than it may keep; nodes behind that were never looked at.
        seen = int(turns[limit])
        looked_at = np.zeros(cluster.columns.rows, dtype=np.bool_)
        looked_at[visiting[:seen]] = True
        search.visited = looked_at[nodes.rows]
        search.overrides = {
            row: status for row, status in search.overrides.items() if looked_at[row] or row in tried_before
        }
    sampling.advance(seen + _tried_before_only(search, tried_before, visiting[:seen], fits[:seen]), search.nodes)
    if failed or any(verdict.fails for _plugin, verdict in refusals.verdicts):
        _raise_first_failure(search, visiting[:seen], failed)


def _tried_before_only(search: NodeSearch, tried_before: set[int], visited: Rows, fits: NDArray[np.bool_]) -> int:
    """How many nodes have a status from when the nominated node was tried and none from this search."""
    if not tried_before and not search.nominated_statuses:
        return 0
    refused = set(visited[~fits].tolist())
    return len(tried_before - refused) + sum(search.row_of(name) not in refused for name in search.nominated_statuses)


def _raise_first_failure(search: NodeSearch, visited: Rows, failed: Mapping[int, PluginError]) -> None:
    """A plugin failed on a node that was looked at: the whole decision fails with what it said of the first such.

    `failed`: rows on which one failed beside nominated pods.
    """
    first: Status | None = None
    positions_failed = np.flatnonzero(np.isin(visited, list(failed)))
    before = int(positions_failed[0]) if len(positions_failed) else len(visited)
    for status, rows in search.statuses().groups():
        if status.code == Code.ERROR:
            positions = np.flatnonzero(np.isin(visited[:before], rows))
            if len(positions):
                first, before = status, int(positions[0])
    if first is not None:
        raise PluginError(f'running "{first.plugin}" filter plugin: {first.message}')
    if before < len(visited):
        raise failed[int(visited[before])]


def _judge_beside_nominated(
    runtime: ProfileRuntime, cycle: Cycle, search: NodeSearch, passed: NDArray[np.bool_], rows: Rows
) -> dict[int, PluginError]:
    """Judge nodes again that pods of at least the same priority are nominated to; the rows where a plugin fails."""
    nominator = runtime.handle.nominator
    failed: dict[int, PluginError] = {}
    for name in nominator.nodes():
        row = cycle.cluster.row_of.get(name)
        if row is None or row not in rows or not nominator.rivals(cycle.pod, name):
            continue
        try:
            status = runtime.run_filters_with_nominated(cycle, row)
        except PluginError as error:
            failed[row] = error
            passed[row] = False
            continue
        passed[row] = status is None
        if status is not None:
            search.overrides[row] = status
    return failed
