"""Runs one profile: its plugins, at each extension point, the way kube-scheduler runs them.

The order of plugins, what each status means at each point, and the words of every message are kube-scheduler's. Filters
run on all nodes at once; on each node the first plugin to refuse decides. Nodes that another pod is nominated to are
judged twice, with and without that pod, and must pass both times.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Set
from copy import copy
from typing import cast

import numpy as np
from numpy.typing import NDArray

from podium.cluster import HostPort, NodeInfo, Nodes, PlacedPod
from podium.config.points import Point
from podium.config.registry import Registry
from podium.config.resolved import Profile
from podium.framework import methods
from podium.framework.answer_keys import Dependence, dependence_of
from podium.framework.answers import (
    FailedOnNodeError,
    OutOfRangeError,
    ScoreTable,
    check_range,
    checked_result,
    describe,
    failure,
    for_each,
    is_mistake,
    node_status_of,
    not_this,
    out_of_range,
    raw_scores_of,
    rejection_or_error,
    running,
    seconds_of,
    status_of,
    verdict_of,
)
from podium.framework.cycle import Cycle
from podium.framework.declarations import with_checked_attributes
from podium.framework.depends_on import NodePart
from podium.framework.diagnosis import (
    Diagnosis,
    PostFilterResult,
    PreFilterOutcome,
    Refusals,
    Verdict,
    no_node_left,
    outcome_code,
    refusal_of,
)
from podium.framework.gang import GangPlugin
from podium.framework.handle import Handle
from podium.framework.methods import (
    ActiveFilters,
    FilterMethods,
    PreEnqueueMethods,
    PreScoreMethods,
    ScoreMethods,
    active_filters_of,
)
from podium.framework.normalize import Scores
from podium.framework.notes import SharedNoteError, check_notes, shared_notes
from podium.framework.plugin import Plugin
from podium.framework.plugin_failures import PluginFailure, line_of
from podium.framework.protocols import (
    AdjustPods,
    PlacementFeasiblePlugin,
    PlacementGeneratePlugin,
    PlacementScorePlugin,
)
from podium.framework.status import NO_WAITS, SKIP, Code, PluginError, Status, Wait, Waits, code_of, permit_code
from podium.framework.timer import Step, timed, timed_decision
from podium.kube import Pod

_ONE = np.ones(1, dtype=np.bool_)
_UNSEEN = frozenset({Step.PRE_ENQUEUE, Step.UNRESERVE, Step.POST_BIND})
"""Steps whose errors no event of the pod shows."""


class ProfileRuntime:
    """A profile's plugins at work; its extension points are timed by the timer of its handle."""

    def __init__(self, profile: Profile, registry: Registry, handle: Handle) -> None:
        self.name = profile.scheduler_name
        self.profile = profile
        self.weights = profile.weights
        handle.runtime = self
        handle.scheduler_name = profile.scheduler_name
        self.handle = handle
        self.timer = handle.timer.for_profile(self.name)
        self.plugins: dict[str, Plugin] = {}
        for names in profile.plugins.values():
            for name in names:
                if name not in self.plugins:
                    self.plugins[name] = self._construct(registry, name)
        self.dependences = {plugin: dependence_of(plugin) for plugin in self.plugins.values()}
        self._resolve(profile.plugins)

    def _construct(self, registry: Registry, name: str) -> Plugin:
        plugin_type = cast("type[Plugin]", registry[name])
        try:
            self.handle.initializing = name
            return with_checked_attributes(plugin_type(self.profile.args.get(name), self.handle))
        except Exception as error:  # whatever the plugin raises
            line = "" if isinstance(error, PluginError) or plugin_type.trusted else line_of(error)
            raise PluginError(f'initializing plugin "{name}": {describe(error)}{line}') from error

    def _resolve(self, names: Mapping[Point, tuple[str, ...]]) -> None:
        """Find the methods of the plugins at each point, in running order."""
        self._at = {point: tuple(self.plugins[name] for name in names.get(point, ())) for point in Point}
        at, timer = self._at, self.timer
        self.pre_enqueues = tuple(methods.pre_enqueue(plugin, timer) for plugin in at[Point.PRE_ENQUEUE])
        self.pre_filters = tuple(methods.pre_filter(plugin, timer) for plugin in at[Point.PRE_FILTER])
        self.filters = tuple(methods.filtering(plugin, timer) for plugin in at[Point.FILTER])
        self.post_filters = tuple(methods.post_filter(plugin, timer) for plugin in at[Point.POST_FILTER])
        self.pre_scores = tuple(methods.pre_score(plugin, timer) for plugin in at[Point.PRE_SCORE])
        self.scores = tuple(methods.scoring(plugin, timer) for plugin in at[Point.SCORE])
        reserving = [methods.reserving(plugin, timer) for plugin in at[Point.RESERVE]]
        self._reserves = tuple((each.name, each.reserve) for each in reserving if each.reserve is not None)
        self._unreserves = tuple(
            (each.name, each.unreserve) for each in reversed(reserving) if each.unreserve is not None
        )
        self.permits = tuple(methods.permit(plugin, timer) for plugin in at[Point.PERMIT])
        self.gang_plugins = tuple(plugin for plugin in at[Point.PERMIT] if isinstance(plugin, GangPlugin))
        self.pre_binds = tuple(methods.pre_bind(plugin, timer) for plugin in at[Point.PRE_BIND])
        self.binds = tuple(methods.bind(plugin, timer) for plugin in at[Point.BIND])
        self.post_binds = tuple(methods.post_bind(plugin, timer) for plugin in at[Point.POST_BIND])
        self.placement_feasibles = [each for each in self.plugins.values() if isinstance(each, PlacementFeasiblePlugin)]
        """As in kube-scheduler, at whichever points they are enabled."""
        generators = [each for each in at[Point.PLACEMENT_GENERATE] if isinstance(each, PlacementGeneratePlugin)]
        self.placement_generator = generators[0] if generators else None
        self.placement_scorers = tuple(
            each for each in at[Point.PLACEMENT_SCORE] if isinstance(each, PlacementScorePlugin)
        )
        self._active_filters: dict[frozenset[str], ActiveFilters] = {}
        self.first_of_equals = any(plugin.first_of_equals for plugin in at[Point.SCORE])
        """Whether ties go to the first node in the order of the cluster."""

    def at(self, point: Point) -> tuple[Plugin, ...]:
        """The plugins of an extension point, in running order."""
        return self._at[point]

    def dependences_at(self, *points: Point) -> list[Dependence]:
        """What the plugins of some extension points declare that their answers depend on, each plugin once."""
        return [
            self.dependences[plugin] for plugin in dict.fromkeys(each for point in points for each in self._at[point])
        ]

    def only(self, names: Collection[str], weights: Mapping[str, int] | None = None) -> ProfileRuntime:
        """A subset of the plugins at work; with weights of their own, where some are given."""
        subset = copy(self)
        subset._resolve(
            {point: tuple(each.name for each in at if each.name in names) for point, at in self._at.items()}
        )
        subset.weights = {**self.weights, **(weights or {})}
        return subset

    # Before the cycle

    @timed(Step.PRE_ENQUEUE, code_of)
    def run_pre_enqueue(self, pod: Pod, first: str) -> Status | None:
        """Whether the pod may enter the queue; `first` names the plugin that held it last time."""
        plugins: Iterable[PreEnqueueMethods] = self.pre_enqueues
        for plugin in sorted(plugins, key=lambda each: each.name != first) if first else plugins:
            try:
                status = plugin.pre_enqueue(pod)
                if status is not None:
                    status = status_of(Step.PRE_ENQUEUE, status)
            except Exception as raised:  # whatever the plugin raises
                status = Status.error(str(self.failed(Step.PRE_ENQUEUE, plugin.name, raised, pod)))
            if status is not None:
                return status.by(plugin.name)
        return None

    # Filtering

    @timed_decision(Step.PRE_FILTER, outcome_code)
    def run_pre_filter(self, cycle: Cycle) -> PreFilterOutcome:
        """Which nodes are left at all, and what plugins note about the pod."""
        return self.run_pre_filter_untimed(cycle)

    def run_pre_filter_untimed(self, cycle: Cycle) -> PreFilterOutcome:
        rejection: Status | None = None
        names: frozenset[str] | None = None
        restricting: set[str] = set()
        for plugin in self.pre_filters:
            try:
                answer = plugin.pre_filter(cycle)
            except Exception as error:  # whatever the plugin raises
                raise self.failed(Step.PRE_FILTER, plugin.name, error, cycle.pod) from error
            if isinstance(answer, Status):
                if answer.code == Code.SKIP:
                    cycle.skipped_filters.add(plugin.name)
                elif answer.code == Code.UNRESOLVABLE:
                    return PreFilterOutcome(answer.by(plugin.name), None, frozenset())
                elif answer.code == Code.UNSCHEDULABLE:
                    rejection = answer.by(plugin.name)
                elif answer.code != Code.SUCCESS:
                    raise PluginError(f"{running(Step.PRE_FILTER, plugin.name)}: {answer.message}")
            elif isinstance(answer, Set):
                restricting.add(plugin.name)
                names = frozenset(answer) if names is None else names & answer
                if not names:
                    return PreFilterOutcome(no_node_left(restricting), names, frozenset(restricting))
            elif answer is not None:
                wrong = not_this("None, a Status or a set of node names", answer)
                raise self.failed(Step.PRE_FILTER, plugin.name, wrong, cycle.pod)
        return PreFilterOutcome(rejection, names, frozenset(restricting))

    def run_filters(self, cycle: Cycle, nodes: Nodes, undecided: NDArray[np.bool_] | None = None) -> Refusals:
        """What the filters say of every chosen node (of those marked `undecided`, where given)."""
        refusals = Refusals(nodes.rows)
        left = np.ones(len(nodes), dtype=np.bool_) if undecided is None else undecided
        for plugin in self.filters if len(nodes) else ():
            if plugin.name in cycle.skipped_filters:
                continue
            cycle.undecided = nodes, left
            verdict = self.judge(plugin, cycle, nodes, left)
            if verdict is not None:
                left = refusals.add(plugin.name, verdict, left)
                if not np.count_nonzero(left):
                    break
        return refusals

    def judge(self, plugin: FilterMethods, cycle: Cycle, nodes: Nodes, undecided: NDArray[np.bool_]) -> Verdict | None:
        """One filter plugin's verdict on the chosen nodes; None when all pass."""
        try:
            if plugin.filter_each is not None:
                return plugin.filter_each(cycle, nodes, undecided)
            assert plugin.filter is not None
            return verdict_of(plugin.plugin, plugin.filter(cycle, nodes), nodes)
        except Exception as error:  # whatever the plugin raises
            raise self.failed(Step.FILTER, plugin.name, error, cycle.pod) from error

    def run_filters_on(self, cycle: Cycle, row: int, *, only_moving: bool = False) -> Status | None:
        """One node's verdict under plain filters; `only_moving`: those that pods on it can move."""
        active, node = self.active_filters(cycle), NodeInfo(cycle.cluster, row)
        for plugin in active.moving if only_moving else active.filters:
            status = self._judge_node(plugin, cycle, node)
            if status is not None:
                if status.code == Code.ERROR:
                    raise PluginError(f"{running(Step.FILTER, plugin.name)}: {status.message}")
                return status.by(plugin.name)
        return None

    def _judge_node(self, plugin: FilterMethods, cycle: Cycle, node: NodeInfo) -> Status | None:
        if plugin.filter_node is not None:
            try:
                answer = plugin.filter_node(cycle, node)
                return None if answer is None else node_status_of(plugin.plugin, answer)
            except Exception as error:  # whatever the plugin raises
                raise self.failed(Step.FILTER, plugin.name, error, cycle.pod, node.name) from error
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
        if self.active_filters(cycle).sums_only:
            return self._filters_beside_sums(cycle, row, others)
        with cluster.dry_run():
            return self._filters_beside(cycle, row, others)

    def active_filters(self, cycle: Cycle) -> ActiveFilters:
        """The filter plugins that have something to say about the pod, after PreFilter."""
        skipped = frozenset(cycle.skipped_filters)
        known = self._active_filters.get(skipped)
        if known is None:
            known = self._active_filters[skipped] = active_filters_of(self.filters, self.pre_filters, skipped)
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
        crowded, ports = cycle.clone(), cycle.cluster.ports
        added: list[tuple[PlacedPod, list[HostPort]]] = []
        try:
            for placed in others:
                cycle.cluster.put_on(placed)
                added.append((placed, ports.show(placed.facts.ports, row)))  # a victim's port is taken by this pod
                self.add_pod(crowded, placed)
            return self.run_filters_on(crowded, row)
        finally:
            for placed, shown in reversed(added):
                cycle.cluster.take_off(placed)
                ports.hide(shown, row)
                cycle.cluster.counts.discard_if_empty(placed.pod_class)

    def add_pod(self, cycle: Cycle, placed: PlacedPod) -> None:
        """Bring the cycle's notes to where they would be with this pod placed."""
        for plugin in self.active_filters(cycle).followers:
            if plugin.add_pod is not None:
                self._adjust(Step.ADD_POD, plugin.plugin, plugin.add_pod, cycle, placed)

    def remove_pod(self, cycle: Cycle, placed: PlacedPod) -> None:
        """Bring the cycle's notes to where they would be without this pod."""
        for plugin in self.active_filters(cycle).followers:
            if plugin.remove_pod is not None:
                self._adjust(Step.REMOVE_POD, plugin.plugin, plugin.remove_pod, cycle, placed)

    def _adjust(self, step: Step, plugin: Plugin, method: AdjustPods, cycle: Cycle, placed: PlacedPod) -> None:
        notes = {} if plugin.trusted else shared_notes(cycle, plugin.name)
        try:
            status = status_of(step, method(cycle, placed))
        except Exception as error:  # whatever the plugin raises
            raise self.failed(step, plugin.name, error, cycle.pod) from error
        if notes:
            try:
                check_notes(cycle, plugin.name, notes)
            except SharedNoteError as error:
                self.handle.on_failure(PluginFailure(plugin.name, step, cycle.pod.key, "", error))
                raise
        if status is not None:
            raise PluginError(f"{running(step, plugin.name)}: {status.message}")

    @timed(Step.POST_FILTER, outcome_code)
    def run_post_filter(self, cycle: Cycle, diagnosis: Diagnosis) -> PostFilterResult:
        """Try to make room. The first success ends it; refusals are collected into one message."""
        nomination = None
        reasons: list[str] = []
        rejector = ""
        for plugin in self.post_filters:
            try:
                result = checked_result(plugin.post_filter(cycle, diagnosis))
                status = status_of(Step.POST_FILTER, result.status)
            except Exception as error:  # whatever the plugin raises
                raise self.failed(Step.POST_FILTER, plugin.name, error, cycle.pod) from error
            if status is None:
                return PostFilterResult(None, result.nomination, result.message)
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

    @timed_decision(Step.PRE_SCORE)
    def run_pre_score(self, cycle: Cycle, nodes: Nodes) -> None:
        """Prepare all score plugins; those that have nothing to say are skipped in this cycle."""
        cycle.skipped_scores = {
            plugin.name for plugin in self.pre_scores if not self.prepare_score(plugin, cycle, nodes)
        }

    def prepare_score(self, plugin: PreScoreMethods, cycle: Cycle, nodes: Nodes) -> bool:
        """Run one plugin's PreScore; False when the plugin has nothing to say about this pod."""
        try:
            answer = plugin.pre_score(cycle, nodes)
            if answer is None or answer is SKIP:
                return answer is None
            status = status_of(Step.PRE_SCORE, answer)
        except Exception as error:  # whatever the plugin raises
            raise self.failed(Step.PRE_SCORE, plugin.name, error, cycle.pod) from error
        if status is None or status.code == Code.SKIP:
            return status is None
        raise PluginError(f"{running(Step.PRE_SCORE, plugin.name)}: {status.message}")

    @timed_decision(Step.SCORE)
    def run_scores(self, cycle: Cycle, nodes: Nodes) -> ScoreTable:
        """Every score plugin on every feasible node: raw, normalised, checked, weighted, summed."""
        by_plugin: dict[str, Scores | int] = {}
        total = np.zeros(len(nodes), dtype=np.int64)
        everywhere = 0
        for plugin in self.scores:
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

    def score_of(self, plugin: ScoreMethods, cycle: Cycle, nodes: Nodes) -> Scores:
        """One plugin's scores of the feasible nodes, normalised and checked, not weighted."""
        return for_each(self._points(plugin, cycle, nodes), len(nodes))

    def raw_score_of(self, plugin: ScoreMethods, cycle: Cycle, nodes: Nodes) -> Scores:
        return for_each(self._raw_points(plugin, cycle, nodes), len(nodes))

    def _points(self, plugin: ScoreMethods, cycle: Cycle, nodes: Nodes) -> Scores | int:
        """The same as `score_of`, as one number where it is the same for all nodes."""
        points = self._raw_points(plugin, cycle, nodes)
        if plugin.normalizer is not None:
            points = plugin.normalizer.apply(points)
        elif plugin.normalize is not None:
            scores = for_each(points, len(nodes))
            try:
                points = raw_scores_of(plugin.normalize(cycle, nodes, scores), nodes, "normalize")
            except Exception as error:  # whatever the plugin raises
                raise self.failed(Step.NORMALIZE, plugin.name, error, cycle.pod) from error
        try:
            check_range(points)
        except OutOfRangeError as error:
            node = "" if error.position is None else nodes.info(error.position).name
            self.handle.on_failure(PluginFailure(plugin.name, Step.SCORE, cycle.pod.key, node, error))
            raise out_of_range(plugin.name, error, logged=True) from None
        return points

    def _raw_points(self, plugin: ScoreMethods, cycle: Cycle, nodes: Nodes) -> Scores | int:
        rows, every_row = nodes.chosen, cycle.cluster.columns.rows
        try:
            if plugin.score_each is not None:
                return plugin.score_each(cycle, nodes)
            assert plugin.score is not None
            # Where each node's score is its own, whole columns are cheaper to work with than copies of most of each.
            whole = rows is not None and plugin.node_part < NodePart.ANYTHING and 2 * len(rows) > every_row
            scored = Nodes(cycle.cluster) if whole else nodes
            answer = plugin.score(cycle, scored)
            if type(answer) is int:
                return answer
            scores = raw_scores_of(answer, scored)
        except Exception as error:  # whatever the plugin raises
            raise self.failed(Step.SCORE, plugin.name, error, cycle.pod) from error
        return scores if rows is None or not whole else scores.take(rows)

    # After the choice

    @timed(Step.RESERVE, code_of)
    def run_reserve(self, cycle: Cycle, node_name: str) -> Status | None:
        """Let plugins count the pod on its node; the first to refuse ends it."""
        for name, reserve in self._reserves:
            try:
                answer = reserve(cycle, node_name)
                status = None if answer is None else status_of(Step.RESERVE, answer)
            except Exception as error:  # whatever the plugin raises
                raise self.failed(Step.RESERVE, name, error, cycle.pod, node_name) from error
            if status is not None:
                return rejection_or_error(Step.RESERVE, status.by(name))
        return None

    @timed(Step.UNRESERVE)
    def run_unreserve(self, cycle: Cycle, node_name: str) -> None:
        """Undo Reserve, all plugins in reverse order. What one raises must not keep the others from undoing theirs."""
        for name, unreserve in self._unreserves:
            try:
                unreserve(cycle, node_name)
            except Exception as error:  # whatever the plugin raises
                self.failed(Step.UNRESERVE, name, error, cycle.pod, node_name)

    @timed(Step.PERMIT, permit_code)
    def run_permit(self, cycle: Cycle, node_name: str) -> Status | Waits:
        """A rejection, or how long each plugin wants the pod held (empty: not at all)."""
        if not self.permits:
            return NO_WAITS
        waits = Waits()
        for plugin in self.permits:
            try:
                answer = plugin.permit(cycle, node_name)
                if isinstance(answer, Wait):
                    waits[plugin.name] = seconds_of(answer)
                    waits.reason = answer.reason
                    continue
                status = status_of(Step.PERMIT, answer)
            except Exception as error:  # whatever the plugin raises
                raise self.failed(Step.PERMIT, plugin.name, error, cycle.pod, node_name) from error
            if status is not None:
                return rejection_or_error(Step.PERMIT, status.by(plugin.name))
        return waits

    def failed(self, step: Step, plugin: str, error: Exception, pod: Pod, node: str = "") -> PluginError:
        """Record what a plugin raised or wrongly answered; the sentence that fails the pod's cycle."""
        if isinstance(error, FailedOnNodeError):
            node, error = error.node, error.error
        sentence = failure(step, plugin, error)
        if step in _UNSEEN or is_mistake(error):
            self.handle.on_failure(PluginFailure(plugin, step, pod.key, node, error))
            sentence.logged = True
        return sentence
