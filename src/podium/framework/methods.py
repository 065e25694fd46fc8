"""Resolves the methods of each plugin once, when a profile is built, so that running them asks no more questions.

Every plugin at an extension point becomes one record: its name and its methods for that point, bound and timed (or not:
see `podium.framework.timer`). A method that it does not have is None.

Also finds which filters of a profile have something to say about a pod once PreFilter has run, and how far they look.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from typing import NamedTuple

from podium.cluster import Mask, Nodes
from podium.framework.answers import filter_by_node, score_by_node
from podium.framework.cycle import Cycle
from podium.framework.depends_on import NodePart
from podium.framework.diagnosis import Diagnosis, PostFilterResult, Verdict
from podium.framework.normalize import Normalizer, Scores
from podium.framework.plugin import Plugin
from podium.framework.protocols import (
    AddsPods,
    AdjustPods,
    BindPlugin,
    FilterNode,
    FilterNodes,
    FilterPlugin,
    NodeFilterPlugin,
    NodeScorePlugin,
    Normalize,
    NormalizePlugin,
    OnNode,
    PermitPlugin,
    PostBindPlugin,
    PostFilterPlugin,
    PreBindPlugin,
    PreBindPreFlightPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreScorePlugin,
    RemovesPods,
    ReservePlugin,
    ScoreNode,
    ScoreNodes,
    ScorePlugin,
    UnreservePlugin,
)
from podium.framework.status import Status, Wait
from podium.framework.timer import ProfileTimer, Step
from podium.kube import Pod


class PreEnqueueMethods(NamedTuple):
    name: str
    pre_enqueue: Callable[[Pod], Status | None]


@dataclass(frozen=True, slots=True, eq=False)
class PreFilterMethods:
    name: str
    plugin: Plugin
    pre_filter: Callable[[Cycle], Status | Set[str] | None]
    add_pod: AdjustPods | None
    remove_pod: AdjustPods | None


@dataclass(frozen=True, slots=True, eq=False)
class FilterMethods:
    name: str
    plugin: Plugin
    node_part: NodePart
    filter: FilterNodes | None
    filter_node: FilterNode | None
    filter_each: Callable[[Cycle, Nodes, Mask], Verdict] | None
    """The one-node form on every undecided node, where there is no other."""


class PostFilterMethods(NamedTuple):
    name: str
    post_filter: Callable[[Cycle, Diagnosis], PostFilterResult]


@dataclass(frozen=True, slots=True, eq=False)
class PreScoreMethods:
    name: str
    plugin: Plugin
    pre_score: Callable[[Cycle, Nodes], Status | None]


@dataclass(frozen=True, slots=True, eq=False)
class ScoreMethods:
    name: str
    plugin: Plugin
    node_part: NodePart
    score: ScoreNodes | None
    score_node: ScoreNode | None
    score_each: Callable[[Cycle, Nodes], Scores] | None
    """The one-node form on every node, where there is no other."""
    normalizer: Normalizer | None
    normalize: Normalize | None
    """None, too, where the `normalizer` does it."""


class ReserveMethods(NamedTuple):
    name: str
    reserve: Callable[[Cycle, str], Status | None] | None
    unreserve: Callable[[Cycle, str], None] | None


class PermitMethods(NamedTuple):
    name: str
    permit: Callable[[Cycle, str], Status | Wait | None]


class PreBindMethods(NamedTuple):
    name: str
    pre_bind_preflight: OnNode | None
    pre_bind: OnNode
    in_parallel: bool = False

    def timed(self, timer: ProfileTimer) -> PreBindMethods:
        preflight = self.pre_bind_preflight
        return PreBindMethods(
            self.name,
            None if preflight is None else timer.timed_effect(Step.PREFLIGHT, self.name, preflight),
            timer.timed_effect(Step.PRE_BIND, self.name, self.pre_bind),
            self.in_parallel,
        )


class BindMethods(NamedTuple):
    name: str
    bind: OnNode

    def timed(self, timer: ProfileTimer) -> BindMethods:
        return BindMethods(self.name, timer.timed_effect(Step.BIND, self.name, self.bind))


class PostBindMethods(NamedTuple):
    name: str
    post_bind: Callable[[Cycle, str], None]


# One function for each point: a plugin's methods there. That it has the point's own method, the configuration checked.


def pre_enqueue(plugin: Plugin, timer: ProfileTimer) -> PreEnqueueMethods:
    assert isinstance(plugin, PreEnqueuePlugin)
    return PreEnqueueMethods(plugin.name, timer.timed_plugin(Step.PRE_ENQUEUE, plugin.name, plugin.pre_enqueue))


def pre_filter(plugin: Plugin, timer: ProfileTimer) -> PreFilterMethods:
    assert isinstance(plugin, PreFilterPlugin)
    add_pod = remove_pod = None
    if isinstance(plugin, AddsPods):
        add_pod = timer.timed_plugin(Step.ADD_POD, plugin.name, plugin.add_pod)
    if isinstance(plugin, RemovesPods):
        remove_pod = timer.timed_plugin(Step.REMOVE_POD, plugin.name, plugin.remove_pod)
    timed = timer.timed_plugin(Step.PRE_FILTER, plugin.name, plugin.pre_filter)
    return PreFilterMethods(plugin.name, plugin, timed, add_pod, remove_pod)


def filtering(plugin: Plugin, timer: ProfileTimer) -> FilterMethods:
    nodes = node = each = None
    if isinstance(plugin, FilterPlugin):
        nodes = timer.timed_plugin(Step.FILTER, plugin.name, plugin.filter)
    if isinstance(plugin, NodeFilterPlugin):
        node = timer.timed_plugin(Step.FILTER, plugin.name, plugin.filter_node)
        each = _filtering_each(plugin, plugin.filter_node, node, timer) if nodes is None else None
    return FilterMethods(plugin.name, plugin, plugin.depends_on.node, nodes, node, each)


def post_filter(plugin: Plugin, timer: ProfileTimer) -> PostFilterMethods:
    assert isinstance(plugin, PostFilterPlugin)
    return PostFilterMethods(plugin.name, timer.timed_plugin(Step.POST_FILTER, plugin.name, plugin.post_filter))


def pre_score(plugin: Plugin, timer: ProfileTimer) -> PreScoreMethods:
    assert isinstance(plugin, PreScorePlugin)
    return PreScoreMethods(plugin.name, plugin, timer.timed_plugin(Step.PRE_SCORE, plugin.name, plugin.pre_score))


def scoring(plugin: Plugin, timer: ProfileTimer) -> ScoreMethods:
    nodes = node = each = normalize = None
    if isinstance(plugin, ScorePlugin):
        nodes = timer.timed_plugin(Step.SCORE, plugin.name, plugin.score)
    if isinstance(plugin, NodeScorePlugin):
        node = timer.timed_plugin(Step.SCORE, plugin.name, plugin.score_node)
        each = _scoring_each(plugin.score_node, node, timer) if nodes is None else None
    if isinstance(plugin, NormalizePlugin) and plugin.normalizer is None:
        normalize = timer.timed_plugin(Step.NORMALIZE, plugin.name, plugin.normalize)
    return ScoreMethods(plugin.name, plugin, plugin.depends_on.node, nodes, node, each, plugin.normalizer, normalize)


def reserving(plugin: Plugin, timer: ProfileTimer) -> ReserveMethods:
    reserve = unreserve = None
    if isinstance(plugin, ReservePlugin):
        reserve = timer.timed_plugin(Step.RESERVE, plugin.name, plugin.reserve)
    if isinstance(plugin, UnreservePlugin):
        unreserve = timer.timed_plugin(Step.UNRESERVE, plugin.name, plugin.unreserve)
    return ReserveMethods(plugin.name, reserve, unreserve)


def permit(plugin: Plugin, timer: ProfileTimer) -> PermitMethods:
    assert isinstance(plugin, PermitPlugin)
    return PermitMethods(plugin.name, timer.timed_plugin(Step.PERMIT, plugin.name, plugin.permit))


def pre_bind(plugin: Plugin, _timer: ProfileTimer) -> PreBindMethods:
    assert isinstance(plugin, PreBindPlugin)
    preflight = plugin.pre_bind_preflight if isinstance(plugin, PreBindPreFlightPlugin) else None
    return PreBindMethods(plugin.name, preflight, plugin.pre_bind, plugin.prepares_in_parallel)


def bind(plugin: Plugin, _timer: ProfileTimer) -> BindMethods:
    assert isinstance(plugin, BindPlugin)
    return BindMethods(plugin.name, plugin.bind)


def post_bind(plugin: Plugin, timer: ProfileTimer) -> PostBindMethods:
    assert isinstance(plugin, PostBindPlugin)
    return PostBindMethods(plugin.name, timer.timed_plugin(Step.POST_BIND, plugin.name, plugin.post_bind))


def _filtering_each(
    plugin: Plugin, plain: FilterNode, timed: FilterNode, timer: ProfileTimer
) -> Callable[[Cycle, Nodes, Mask], Verdict]:
    """Thousands of calls: they go through the timed method only where it would time them."""

    def filter_each(cycle: Cycle, nodes: Nodes, undecided: Mask) -> Verdict:
        return filter_by_node(plugin, timed if timer.sampled else plain, cycle, nodes, undecided)

    return filter_each


def _scoring_each(plain: ScoreNode, timed: ScoreNode, timer: ProfileTimer) -> Callable[[Cycle, Nodes], Scores]:
    def score_each(cycle: Cycle, nodes: Nodes) -> Scores:
        return score_by_node(timed if timer.sampled else plain, cycle, nodes)

    return score_each


class ActiveFilters(NamedTuple):
    """The filters that have something to say about a pod, and how far they look."""

    filters: tuple[FilterMethods, ...]
    moving: tuple[FilterMethods, ...]
    """Those that pods on the node can move."""
    beyond_rows: bool
    """Some depend on more than each node's own row."""
    followers: tuple[PreFilterMethods, ...]
    """PreFilter plugins whose notes follow pods that come and go."""
    sums_only: bool
    """No filter looks at more of a node's pods than sums and their number, and no notes follow them."""


def active_filters_of(
    filters: Sequence[FilterMethods], pre_filters: Sequence[PreFilterMethods], skipped: Set[str]
) -> ActiveFilters:
    """Those whose plugin PreFilter has not skipped."""
    left = tuple(plugin for plugin in filters if plugin.name not in skipped)
    furthest = max((plugin.node_part for plugin in left), default=NodePart.OBJECT)
    followers = tuple(
        plugin
        for plugin in pre_filters
        if plugin.name not in skipped and (plugin.add_pod is not None or plugin.remove_pod is not None)
    )
    return ActiveFilters(
        left,
        tuple(plugin for plugin in left if plugin.node_part > NodePart.OBJECT),
        beyond_rows=furthest == NodePart.ANYTHING,
        followers=followers,
        sums_only=furthest <= NodePart.TOTALS and not followers,
    )
