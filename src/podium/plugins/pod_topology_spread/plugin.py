"""Decides by DoNotSchedule constraints which nodes are allowed, by ScheduleAnyway ones which are best.

`hard` has the rules for filtering, `soft` those for scoring. A pod without constraints of its own gets the default ones
if services or a controller select it, with a selector made from theirs.

Raw scores depend on the feasible nodes, not only on each node: how much a pod weighs grows with the number of domains
among them.

Also decides which events may make room for a pod that PodTopologySpread refused.

Pods matter if they are in the pod's namespace and have, or are promised, a node (or are the pod itself); nodes matter
if they carry all topology keys of the pod's DoNotSchedule constraints. A pod whose constraints cannot be read is woken
by anything that matters.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from podium.cluster import Cluster, Nodes, PlacedPod
from podium.framework import SKIP, Action, Cycle, DependsOn, Handle, Interest, Plugin, Resource, Scores, Status, Verdict
from podium.kube import Node, Pod
from podium.plugins.pod_topology_spread.args import DO_NOT_SCHEDULE, SCHEDULE_ANYWAY, PodTopologySpreadArgs
from podium.plugins.pod_topology_spread.constraints import DefaultSelectors, RuleBook, Rules
from podium.plugins.pod_topology_spread.hard import HardNotes, hard_notes, verdict
from podium.plugins.pod_topology_spread.layout import Layouts
from podium.plugins.pod_topology_spread.soft import SoftNotes, normalized, raw_scores, soft_notes

NAME = "PodTopologySpread"
SOFT = f"{NAME}/soft"


class PodTopologySpread(Plugin):
    name = NAME
    trusted = True
    Args = PodTopologySpreadArgs
    depends_on = DependsOn(claims=False)

    def __init__(self, args: PodTopologySpreadArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._cluster = handle.cluster
        self._book = RuleBook(args.defaults, args.system_defaulting, DefaultSelectors(handle.cluster.objects))
        self._layouts = Layouts(handle.cluster)

    def interests(self) -> Iterable[Interest]:
        hints = SpreadHints(self._cluster, self._book)
        pod_actions = Action.ADD | Action.UPDATE_POD_LABEL | Action.UPDATE_POD_TOLERATION | Action.DELETE
        node_actions = Action.ADD | Action.DELETE | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_TAINT
        return [
            Interest(Resource.POD, pod_actions, hints.after_pod_change, by_signature=True),
            Interest(Resource.NODE, node_actions, hints.after_node_change, by_signature=True),
        ]

    def answer_key(self, pod: Pod) -> Hashable:
        """Changes of the pods to spread, of node labels, and of taints where a constraint heeds them."""
        args: PodTopologySpreadArgs = self.args
        if not pod.spec.topology_spread_constraints and not args.defaults:
            return ()
        constraints = self._book.constraints(pod, self._cluster.facts)
        if not constraints:
            return (0,)
        cluster = self._cluster
        counted = [cluster.counts.column(constraint.query).version for constraint in constraints if constraint.query]
        heeds_taints = any(constraint.honors_taints for constraint in constraints)
        return cluster.labels.version, cluster.taints.version if heeds_taints else 0, *counted

    # Filtering

    def pre_filter(self, cycle: Cycle) -> Status | None:
        rules = self._book.rules(cycle.pod, cycle.facts, DO_NOT_SCHEDULE)
        if rules.error:
            return Status.error(f"get constraints from pod: {rules.error}")
        if not rules.constraints:
            return SKIP
        cycle.data[NAME] = hard_notes(cycle.pod, cycle.cluster, rules, self._layouts)
        return None

    def add_pod(self, cycle: Cycle, placed: PlacedPod) -> None:
        notes: HardNotes = cycle.data[NAME]
        notes.adjust(placed, 1)

    def remove_pod(self, cycle: Cycle, placed: PlacedPod) -> None:
        notes: HardNotes = cycle.data[NAME]
        notes.adjust(placed, -1)

    def filter(self, cycle: Cycle, nodes: Nodes) -> Verdict | None:
        notes: HardNotes = cycle.data[NAME]
        return verdict(notes, nodes)

    # Scoring

    def pre_score(self, cycle: Cycle, nodes: Nodes) -> Status | None:
        rules = self._book.rules(cycle.pod, cycle.facts, SCHEDULE_ANYWAY)
        if rules.error:
            return Status.error(f"calculating preScoreState: {rules.error}")
        if not rules.constraints:
            return SKIP
        cycle.data[SOFT] = soft_notes(cycle, nodes, rules, self._layouts)
        return None

    def score(self, cycle: Cycle, nodes: Nodes) -> Scores:
        notes: SoftNotes = cycle.data[SOFT]
        return raw_scores(notes, nodes)

    def normalize(self, cycle: Cycle, nodes: Nodes, scores: Scores) -> Scores:
        notes: SoftNotes = cycle.data[SOFT]
        return normalized(notes, nodes, scores)


class SpreadHints:
    """Judges events for pods with DoNotSchedule constraints."""

    def __init__(self, cluster: Cluster, book: RuleBook) -> None:
        self._cluster = cluster
        self._book = book

    def after_pod_change(self, pod: Pod, before: Pod | None, after: Pod | None) -> bool:
        if any(other is not None and not _involved(other, pod) for other in (before, after)):
            return False
        rules = self._rules(pod)
        if rules.error:
            return True
        if before is None or after is None:
            changed = before or after
            assert changed is not None, "an event speaks of an object"
            return any(constraint.selector.matches(changed.labels) for constraint in rules.constraints)
        if (
            after.uid == pod.uid
            and after.spec.tolerations != before.spec.tolerations
            and any(constraint.honors_taints for constraint in rules.constraints)
        ):
            return True
        return any(
            constraint.selector.matches(before.labels) != constraint.selector.matches(after.labels)
            for constraint in rules.constraints
        )

    def after_node_change(self, pod: Pod, before: Node | None, after: Node | None) -> bool:
        rules = self._rules(pod)
        if rules.error:
            return True
        if before is None or after is None:
            return any(node is not None and _has_keys(node, rules) for node in (before, after))
        if _has_keys(before, rules) != _has_keys(after, rules):
            return True
        return _has_keys(after, rules) and (
            before.taints != after.taints or any(before.labels[key] != after.labels[key] for key in rules.keys)
        )

    def _rules(self, pod: Pod) -> Rules:
        return self._book.rules(pod, self._cluster.facts.of(pod), DO_NOT_SCHEDULE)


def _involved(other: Pod, pod: Pod) -> bool:
    if other.uid == pod.uid:
        return True
    has_node = bool(other.node_name or other.status.nominated_node_name)
    return has_node and other.namespace == pod.namespace


def _has_keys(node: Node, rules: Rules) -> bool:
    return all(key in node.labels for key in rules.keys)
