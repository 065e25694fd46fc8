"""One profile at run time: its plugins, and each extension point run the way kube-scheduler runs it.

The order of plugins, what each status means at each point, and the words of every message are kube-scheduler's. Filters
run on all nodes at once; on each node the first plugin to refuse decides. Nodes that another pod is nominated to are
judged twice, with and without that pod, and must pass both times.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Set
from copy import copy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium.cluster import NodeInfo, Nodes, PlacedPod, Rows
from podium.config.points import Point
from podium.config.registry import Registry
from podium.config.resolved import Profile
from podium.framework.answers import (
    ask,
    call,
    check_range,
    filter_by_node,
    for_each,
    node_status_of,
    raw_scores_of,
    score_by_node,
    status_of,
    told,
    verdict_of,
)
from podium.framework.cycle import Cycle
from podium.framework.diagnosis import Diagnosis, PostFilterResult, Refusals, refusal_of
from podium.framework.handle import Handle
from podium.framework.normalize import Scores
from podium.framework.observer import Stopwatch
from podium.framework.plugin import Plugin, Scope
from podium.framework.status import SKIP, Code, PluginError, Status, Wait
from podium.framework.verdict import Verdict
from podium.kube import Pod

PRE_ENQUEUE = 'running PreEnqueue plugin "{}"'
PRE_SCORE = 'running PreScore plugin "{}"'
SCORE = 'running Score plugins: plugin "{}" failed with'
RESERVE = 'running Reserve plugin "{}"'

_ONE = np.ones(1, dtype=np.bool_)


class PreFilterOutcome(NamedTuple):
    """What PreFilter found: a rejection, or the node names left (None: all), and who restricted them."""

    status: Status | None
    node_names: frozenset[str] | None
    restricting: frozenset[str]


class ScoreTable:
    """Weighted scores per plugin and in sum, one entry per feasible node."""

    __slots__ = ("_by_plugin", "_rows", "total")

    def __init__(self, by_plugin: Mapping[str, Scores | int], total: Scores, rows: Rows | None = None) -> None:
        """A plugin may have one score for all nodes. Its scores are those at `rows`, where these are given."""
        self._by_plugin = by_plugin
        self._rows = rows
        self.total = total

    @property
    def by_plugin(self) -> dict[str, Scores]:
        rows, entries = self._rows, len(self.total)
        return {
            name: for_each(scores, entries) if rows is None or isinstance(scores, int) else scores[rows]
            for name, scores in self._by_plugin.items()
        }

    def of(self, rows: Rows) -> ScoreTable:
        """The entries at some positions; plugins' are picked out when somebody asks for them."""
        return ScoreTable(self._by_plugin, self.total[rows], rows)


class InForce(NamedTuple):
    """The filters that have something to say about a pod, and how far they look."""

    filters: tuple[Any, ...]
    moving: tuple[Any, ...]
    """Those that pods on the node can move."""
    beyond_rows: bool
    """Some depend on more than each node's own row."""
    followers: tuple[Any, ...]
    """PreFilter plugins whose notes follow pods that come and go."""
    sums_only: bool
    """No filter looks at more of a node's pods than sums and their number, and no notes follow them."""


class ProfileRuntime:
    watch: Stopwatch | None = None
    """Set where extension points are timed."""

    def __init__(self, profile: Profile, registry: Registry, handle: Handle) -> None:
        self.name = profile.scheduler_name
        self.profile = profile
        self.weights = profile.weights
        handle.runtime = self
        handle.scheduler_name = profile.scheduler_name
        self.handle = handle
        self.plugins: dict[str, Any] = {}
        for names in profile.plugins.values():
            for name in names:
                if name not in self.plugins:
                    self.plugins[name] = self._construct(registry, name)
        self._at = {point: tuple(self.plugins[name] for name in names) for point, names in profile.plugins.items()}
        self._reserving = tuple(plugin for plugin in self.at(Point.RESERVE) if hasattr(plugin, "reserve"))
        self._in_force: dict[frozenset[str], InForce] = {}
        self.first_of_equals = any(plugin.first_of_equals for plugin in self.at(Point.SCORE))
        """Whether ties go to the first node in the order of the cluster."""

    def _construct(self, registry: Registry, name: str) -> Plugin:
        kind: Any = registry[name]
        plugin: Plugin = call(f'initializing plugin "{name}"', kind, self.profile.args.get(name), self.handle)
        return plugin

    def at(self, point: Point) -> tuple[Any, ...]:
        """The plugins of an extension point, in running order."""
        return self._at.get(point, ())

    def only(self, names: Collection[str], weights: Mapping[str, int] | None = None) -> ProfileRuntime:
        """The same plugins at work, but none besides these; with weights of their own, where some are given."""
        part = copy(self)
        part._at = {
            point: tuple(plugin for plugin in plugins if plugin.name in names) for point, plugins in self._at.items()
        }
        part._reserving = tuple(plugin for plugin in self._reserving if plugin.name in names)
        part._in_force = {}
        part.first_of_equals = any(plugin.first_of_equals for plugin in part.at(Point.SCORE))
        part.weights = {**self.weights, **(weights or {})}
        return part

    # Before the cycle

    def run_pre_enqueue(self, pod: Pod, first: str = "") -> Status | None:
        """Whether the pod may enter the queue; `first` names the plugin that held it last time."""
        plugins = (
            sorted(self.at(Point.PRE_ENQUEUE), key=lambda plugin: plugin.name != first)
            if first
            else self.at(Point.PRE_ENQUEUE)
        )
        for plugin in plugins:
            try:
                status = ask(PRE_ENQUEUE, plugin, plugin.pre_enqueue, pod)
                if status is not None:
                    status = status_of(PRE_ENQUEUE.format(plugin.name), status)
            except PluginError as error:
                self.handle.report(str(error))
                status = Status.error(str(error))
            if status is not None:
                by_name: Status = status.by(plugin.name)
                return by_name
        return None

    # Filtering

    def run_pre_filter(self, cycle: Cycle) -> PreFilterOutcome:
        rejection: Status | None = None
        names: frozenset[str] | None = None
        restricting: set[str] = set()
        for plugin in self.at(Point.PRE_FILTER):
            answer = call(f'running PreFilter plugin "{plugin.name}"', plugin.pre_filter, cycle)
            if isinstance(answer, Status):
                if answer.code == Code.SKIP:
                    cycle.skipped_filters.add(plugin.name)
                elif answer.code == Code.UNRESOLVABLE:
                    return PreFilterOutcome(answer.by(plugin.name), None, frozenset())
                elif answer.code == Code.UNSCHEDULABLE:
                    rejection = answer.by(plugin.name)
                elif answer.code != Code.SUCCESS:
                    raise PluginError(f'running PreFilter plugin "{plugin.name}": {answer.message}')
            elif isinstance(answer, Set):
                restricting.add(plugin.name)
                names = frozenset(answer) if names is None else names & answer
                if not names:
                    return PreFilterOutcome(_no_node_left(restricting), names, frozenset(restricting))
            elif answer is not None:
                raise PluginError(
                    f'running PreFilter plugin "{plugin.name}": it must give None, a Status or a set of node names, '
                    f"got {type(answer).__name__}"
                )
        return PreFilterOutcome(rejection, names, frozenset(restricting))

    def run_filters(self, cycle: Cycle, nodes: Nodes, undecided: NDArray[np.bool_] | None = None) -> Refusals:
        """What the filters say of every chosen node (of those marked `undecided`, where given)."""
        refusals = Refusals(nodes.rows)
        left = np.ones(len(nodes), dtype=np.bool_) if undecided is None else undecided
        for plugin in self.at(Point.FILTER) if len(nodes) else ():
            if plugin.name in cycle.skipped_filters:
                continue
            verdict = self.judge(plugin, cycle, nodes, left)
            if verdict is not None:
                left = refusals.add(plugin.name, verdict, left)
                if not np.count_nonzero(left):
                    break
        return refusals

    def judge(self, plugin: Any, cycle: Cycle, nodes: Nodes, undecided: NDArray[np.bool_]) -> Verdict | None:
        """One filter plugin's verdict on the chosen nodes; None when all pass."""
        what = f'running "{plugin.name}" filter plugin'
        if hasattr(plugin, "filter"):
            return call(what, lambda: verdict_of(plugin, plugin.filter(cycle, nodes), nodes))
        return call(what, filter_by_node, plugin, cycle, nodes, undecided)

    def run_filters_on(self, cycle: Cycle, row: int, *, only_moving: bool = False) -> Status | None:
        """One node's verdict under plain filters; `only_moving`: those that pods on it can move."""
        in_force, node = self.in_force(cycle), NodeInfo(cycle.cluster, row)
        for plugin in in_force.moving if only_moving else in_force.filters:
            status = self._judge_node(plugin, cycle, node)
            if status is not None:
                if status.code == Code.ERROR:
                    raise PluginError(f'running "{plugin.name}" filter plugin: {status.message}')
                return status.by(plugin.name)
        return None

    def _judge_node(self, plugin: Any, cycle: Cycle, node: NodeInfo) -> Status | None:
        if hasattr(plugin, "filter_node"):
            try:
                answer = plugin.filter_node(cycle, node)
                return None if answer is None else node_status_of(plugin, answer)
            except Exception as error:
                raise PluginError(f'running "{plugin.name}" filter plugin: {told(error)}') from error
        verdict = self.judge(plugin, cycle, Nodes(cycle.cluster, np.array([node.row])), _ONE)
        code = 0 if verdict is None else int(verdict.codes[0])
        return None if verdict is None or not code else refusal_of(plugin.name, verdict, code)

    def run_filters_with_nominated(self, cycle: Cycle, row: int, *, only_moving: bool = False) -> Status | None:
        """One node's verdict, leaving room for pods nominated to it: passes with them and without them."""
        status = self.run_filters_beside_rivals(cycle, row)
        return status or self.run_filters_on(cycle, row, only_moving=only_moving)

    def run_filters_beside_rivals(self, cycle: Cycle, row: int) -> Status | None:
        """One node's verdict with the pods in place that are nominated to it and go before this one."""
        cluster = cycle.cluster
        rivals = self.handle.nominator.rivals(cycle.pod, cluster.names[row])
        if not rivals:
            return None
        others = [cluster.stand_in(pod, row) for pod in rivals]
        if self.in_force(cycle).sums_only:
            return self._filters_beside_sums(cycle, row, others)
        with cluster.dry_run():
            return self._filters_beside(cycle, row, others)

    def in_force(self, cycle: Cycle) -> InForce:
        """The filter plugins that have something to say about the pod, after PreFilter."""
        skipped = frozenset(cycle.skipped_filters)
        known = self._in_force.get(skipped)
        if known is None:
            filters = tuple(plugin for plugin in self.at(Point.FILTER) if plugin.name not in skipped)
            furthest = max((plugin.filter_scope for plugin in filters), default=Scope.NODE)
            followers = tuple(
                plugin
                for plugin in self.at(Point.PRE_FILTER)
                if plugin.name not in skipped and (hasattr(plugin, "add_pod") or hasattr(plugin, "remove_pod"))
            )
            known = self._in_force[skipped] = InForce(
                filters,
                tuple(plugin for plugin in filters if plugin.filter_scope > Scope.NODE),
                beyond_rows=furthest == Scope.CLUSTER,
                followers=followers,
                sums_only=furthest <= Scope.TOTALS and not followers,
            )
        return known

    def _filters_beside_sums(self, cycle: Cycle, row: int, others: list[PlacedPod]) -> Status | None:
        for placed in others:
            cycle.cluster.count_in(placed)
        try:
            return self.run_filters_on(cycle, row)
        finally:
            for placed in reversed(others):
                cycle.cluster.count_out(placed)
                cycle.cluster.counts.discard_if_empty(placed.pod_class)

    def _filters_beside(self, cycle: Cycle, row: int, others: list[PlacedPod]) -> Status | None:
        crowded = cycle.clone()
        added: list[PlacedPod] = []
        try:
            for placed in others:
                cycle.cluster.put_on(placed)
                added.append(placed)
                self.add_pod(crowded, placed)
            return self.run_filters_on(crowded, row)
        finally:
            for placed in reversed(added):
                cycle.cluster.take_off(placed)
                cycle.cluster.counts.discard_if_empty(placed.pod_class)

    def add_pod(self, cycle: Cycle, placed: PlacedPod) -> None:
        """Bring the cycle's notes to where they would be with this pod placed."""
        self._adjust(cycle, placed, "add_pod", "AddPod")

    def remove_pod(self, cycle: Cycle, placed: PlacedPod) -> None:
        self._adjust(cycle, placed, "remove_pod", "RemovePod")

    def _adjust(self, cycle: Cycle, placed: PlacedPod, method: str, label: str) -> None:
        for plugin in self.in_force(cycle).followers:
            if hasattr(plugin, method):
                what = f'running {label} on PreFilter plugin "{plugin.name}"'
                status = status_of(what, call(what, getattr(plugin, method), cycle, placed))
                if status is not None:
                    raise PluginError(f"{what}: {status.message}")

    def run_post_filter(self, cycle: Cycle, diagnosis: Diagnosis) -> PostFilterResult:
        """Try to make room. The first success ends it; refusals are collected into one message."""
        nomination = None
        reasons: list[str] = []
        rejector = ""
        for plugin in self.at(Point.POST_FILTER):
            what = f'running PostFilter plugin "{plugin.name}"'
            result = call(what, plugin.post_filter, cycle, diagnosis)
            if not isinstance(result, PostFilterResult):
                raise PluginError(f"{what}: it must give a PostFilterResult, got {type(result).__name__}")
            status = status_of(what, result.status)
            if status is None:
                return PostFilterResult(None, result.nomination)
            if status.code == Code.UNRESOLVABLE:
                return PostFilterResult(status.by(plugin.name), result.nomination)
            if not status.rejected:
                return PostFilterResult(Status(Code.ERROR, status.reasons, plugin.name))
            if result.nomination is not None:
                nomination = result.nomination
            reasons += status.reasons
            rejector = rejector or plugin.name
        return PostFilterResult(Status(Code.UNSCHEDULABLE, tuple(reasons), rejector), nomination)

    # Scoring

    def run_pre_score(self, cycle: Cycle, nodes: Nodes) -> None:
        cycle.skipped_scores = {
            plugin.name for plugin in self.at(Point.PRE_SCORE) if not self.prepare_score(plugin, cycle, nodes)
        }

    def prepare_score(self, plugin: Any, cycle: Cycle, nodes: Nodes) -> bool:
        """Run one plugin's PreScore; False when the plugin has nothing to say about this pod."""
        answer = ask(PRE_SCORE, plugin, plugin.pre_score, cycle, nodes)
        if answer is None or answer is SKIP:
            return answer is None
        what = PRE_SCORE.format(plugin.name)
        status = status_of(what, answer)
        if status is None or status.code == Code.SKIP:
            return status is None
        raise PluginError(f"{what}: {status.message}")

    def run_scores(self, cycle: Cycle, nodes: Nodes) -> ScoreTable:
        """Every score plugin on every feasible node: raw, normalised, checked, weighted, summed."""
        by_plugin: dict[str, Scores | int] = {}
        total = np.zeros(len(nodes), dtype=np.int64)
        everywhere = 0
        for plugin in self.at(Point.SCORE):
            if plugin.name not in cycle.skipped_scores:
                points = self._points(plugin, cycle, nodes)
                weight = self.weights[plugin.name]
                if weight != 1:
                    points = points * weight
                by_plugin[plugin.name] = points
                if isinstance(points, int):
                    everywhere += points
                else:
                    total += points
        total += everywhere
        return ScoreTable(by_plugin, total)

    def score_of(self, plugin: Any, cycle: Cycle, nodes: Nodes) -> Scores:
        """One plugin's scores of the feasible nodes, normalised and checked, not weighted."""
        return for_each(self._points(plugin, cycle, nodes), len(nodes))

    def raw_score_of(self, plugin: Any, cycle: Cycle, nodes: Nodes) -> Scores:
        return for_each(self._raw_points(plugin, cycle, nodes), len(nodes))

    def _points(self, plugin: Any, cycle: Cycle, nodes: Nodes) -> Scores | int:
        """The same as `score_of`, as one number where it is the same for all nodes."""
        points = self._raw_points(plugin, cycle, nodes)
        if plugin.normalizer is not None:
            points = plugin.normalizer.apply(points)
        elif hasattr(plugin, "normalize"):
            scores = for_each(points, len(nodes))
            what = f'running Normalize on Score plugins: plugin "{plugin.name}" failed with'
            points = call(what, lambda: raw_scores_of(plugin.normalize(cycle, nodes, scores), nodes))
        self.check_scores(plugin, points)
        return points

    def _raw_points(self, plugin: Any, cycle: Cycle, nodes: Nodes) -> Scores | int:
        if not hasattr(plugin, "score"):
            return ask(SCORE, plugin, score_by_node, plugin, cycle, nodes)  # type: ignore[no-any-return]
        rows, every_row = nodes.chosen, cycle.cluster.columns.rows
        # Where each node's score is its own, whole columns are cheaper to work with than copies of most of each.
        whole = rows is not None and plugin.score_scope < Scope.CLUSTER and 2 * len(rows) > every_row
        asked = Nodes(cycle.cluster) if whole else nodes
        answer = ask(SCORE, plugin, plugin.score, cycle, asked)
        if type(answer) is int:
            return answer
        scores: Scores = ask(SCORE, plugin, raw_scores_of, answer, asked)
        return scores if rows is None or not whole else scores.take(rows)

    @staticmethod
    def check_scores(plugin: Any, scores: Scores | int) -> None:
        try:
            check_range(scores)
        except PluginError as error:
            what = "applying score defaultWeights on Score plugins"
            raise PluginError(f'{what}: plugin "{plugin.name}" {error}') from None

    # After the choice

    def run_reserve(self, cycle: Cycle, node_name: str) -> Status | None:
        for plugin in self._reserving:
            answer = ask(RESERVE, plugin, plugin.reserve, cycle, node_name)
            if answer is not None:
                what = RESERVE.format(plugin.name)
                status = status_of(what, answer)
                if status is not None:
                    return _rejection_or_error(what, status.by(plugin.name))
        return None

    def run_unreserve(self, cycle: Cycle, node_name: str) -> None:
        """Undo Reserve, all plugins in reverse order. What one raises must not keep the others from undoing theirs."""
        for plugin in reversed(self.at(Point.RESERVE)):
            if hasattr(plugin, "unreserve"):
                try:
                    plugin.unreserve(cycle, node_name)
                except Exception as error:
                    self.handle.report(f'running Unreserve plugin "{plugin.name}": {told(error)}')

    def run_permit(self, cycle: Cycle, node_name: str) -> Status | dict[str, float]:
        """A rejection, or how long each plugin wants the pod held (empty: not at all)."""
        waits: dict[str, float] = {}
        for plugin in self.at(Point.PERMIT):
            what = f'running Permit plugin "{plugin.name}"'
            answer = call(what, plugin.permit, cycle, node_name)
            if isinstance(answer, Wait):
                waits[plugin.name] = _seconds(what, answer)
                continue
            status = status_of(what, answer)
            if status is not None:
                return _rejection_or_error(what, status.by(plugin.name))
        return waits

    def rows_named(self, names: Iterable[str]) -> Rows:
        """The rows of those named nodes that exist, in visiting order."""
        cluster = self.handle.cluster
        wanted = np.zeros(cluster.columns.rows, dtype=np.bool_)
        wanted[[cluster.row_of[name] for name in names if name in cluster.row_of]] = True
        order = cluster.order.rows
        rows: Rows = order[wanted[order]]
        return rows


def _no_node_left(restricting: set[str]) -> Status:
    names = sorted(restricting)
    if len(names) == 1:
        return Status.unresolvable(f"node(s) didn't satisfy plugin {names[0]}")
    return Status.unresolvable(f"node(s) didn't satisfy plugin(s) [{' '.join(names)}] simultaneously")


def _seconds(what: str, wait: Wait) -> float:
    if isinstance(wait.seconds, int | float) and wait.seconds >= 0:
        return wait.seconds
    raise PluginError(f"{what}: Wait needs a number of seconds, at least 0, got {wait.seconds!r}")


def _rejection_or_error(what: str, status: Status) -> Status:
    return status if status.rejected else Status(Code.ERROR, (f"{what}: {status.message}",), status.plugin)
