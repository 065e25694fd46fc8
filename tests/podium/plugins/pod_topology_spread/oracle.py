"""PodTopologySpread the long way: every pod of every node looked at, every node on its own, no columns.

Kept as close as possible to the words of the specification, so that it can be checked by reading.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from podium.kube import Node, Pod, ReplicaSet, ReplicationController, Service, StatefulSet, TopologySpreadConstraint
from podium.kube.selector import IN, Requirement, Selector, compile_label_selector, compile_node_selector
from podium.kube.toleration import untolerated

HOSTNAME = "kubernetes.io/hostname"
UNEVEN = "node(s) didn't match pod topology spread constraints"
NO_LABEL = f"{UNEVEN} (missing required label)"
SYSTEM = (
    TopologySpreadConstraint(topology_key=HOSTNAME, max_skew=3, when_unsatisfiable="ScheduleAnyway"),
    TopologySpreadConstraint(
        topology_key="topology.kubernetes.io/zone", max_skew=5, when_unsatisfiable="ScheduleAnyway"
    ),
)

Controller = ReplicaSet | StatefulSet | ReplicationController


class Scene(NamedTuple):
    nodes: Sequence[Node]
    pods: Sequence[Pod]
    services: Sequence[Service]
    controllers: Sequence[Controller]
    pod: Pod
    defaults: Sequence[TopologySpreadConstraint] | None = None
    """None: the system's own."""
    changes: Sequence[tuple[int, Pod, str]] = ()
    """Pods that came (1) or went (-1) on a node since PreFilter counted."""

    def constraints(self, action: str) -> list[tuple[TopologySpreadConstraint, Selector]]:
        own = self.pod.spec.topology_spread_constraints
        if own:
            return [(each, self.own_selector(each)) for each in own if each.when_unsatisfiable == action]
        defaults = SYSTEM if self.defaults is None else self.defaults
        selector = self.default_selector()
        if selector.empty:
            return []
        return [(each, selector) for each in defaults if each.when_unsatisfiable == action]

    def own_selector(self, constraint: TopologySpreadConstraint) -> Selector:
        selector, labels = compile_label_selector(constraint.label_selector), self.pod.labels
        return selector.and_also(
            Requirement(key, IN, (labels[key],)) for key in constraint.match_label_keys if key in labels
        )

    def default_selector(self) -> Selector:
        pod, labels = self.pod, dict[str, str]()
        for service in self.services:
            wanted = service.spec.selector
            if service.namespace == pod.namespace and wanted and wanted.items() <= pod.labels.items():
                labels |= wanted
        requirements: tuple[Requirement, ...] = ()
        owner = pod.metadata.controller
        for controller in self.controllers:
            if owner is None or (owner.kind, owner.name) != (type(controller).__name__, controller.name):
                continue
            if pod.namespace != controller.namespace:
                continue
            if isinstance(controller, ReplicationController):
                labels |= controller.spec.selector
            elif controller.spec.selector is not None:
                requirements = compile_label_selector(controller.spec.selector).requirements
        return Selector().and_also((*(Requirement(k, IN, (v,)) for k, v in labels.items()), *requirements))

    def require_all(self) -> bool:
        return bool(self.pod.spec.topology_spread_constraints) or self.defaults is not None

    def included(self, constraint: TopologySpreadConstraint, node: Node) -> bool:
        """Whether the constraint's policies let the node take part."""
        if constraint.node_affinity_policy in (None, "Honor") and not self.meets_affinity(node):
            return False
        tolerations = self.pod.spec.tolerations
        return constraint.node_taints_policy != "Honor" or untolerated(node.taints, tolerations) is None

    def meets_affinity(self, node: Node) -> bool:
        spec = self.pod.spec
        if not spec.node_selector.items() <= node.labels.items():
            return False
        if spec.affinity is None or spec.affinity.node_affinity is None or spec.affinity.node_affinity.required is None:
            return True
        return compile_node_selector(spec.affinity.node_affinity.required).matches(node.labels, node.name)

    def pods_on(self, node: Node, selector: Selector) -> int:
        if selector.empty:
            return 0
        return sum(
            pod.node_name == node.name
            and pod.namespace == self.pod.namespace
            and not pod.terminating
            and selector.matches(pod.labels)
            for pod in self.pods
        )


def has_all(node: Node, constraints: Iterable[tuple[TopologySpreadConstraint, Selector]]) -> bool:
    return all(constraint.topology_key in node.labels for constraint, _selector in constraints)


def refusals(scene: Scene) -> dict[str, str] | None:
    """Why each refused node is refused; None when no constraint is hard."""
    constraints = scene.constraints("DoNotSchedule")
    if not constraints:
        return None
    domains = [_domains(scene, constraints, constraint, selector) for constraint, selector in constraints]
    found: dict[str, str] = {}
    for node in scene.nodes:
        for (constraint, selector), counts in zip(constraints, domains, strict=True):
            value = node.labels.get(constraint.topology_key)
            if value is None:
                found[node.name] = NO_LABEL
                break
            enough_domains = len(counts) >= (constraint.min_domains or 1)
            least = min(counts.values()) if enough_domains else 0
            if counts.get(value, 0) + selector.matches(scene.pod.labels) - least > constraint.max_skew:
                found[node.name] = UNEVEN
                break
    return found


def _domains(
    scene: Scene,
    constraints: list[tuple[TopologySpreadConstraint, Selector]],
    constraint: TopologySpreadConstraint,
    selector: Selector,
) -> dict[str, int]:
    counts: dict[str, int] = {}
    for node in scene.nodes:
        if has_all(node, constraints) and scene.included(constraint, node):
            value = node.labels[constraint.topology_key]
            counts[value] = counts.get(value, 0) + scene.pods_on(node, selector)
            for delta, pod, where in scene.changes:
                if where == node.name and pod.namespace == scene.pod.namespace and selector.matches(pod.labels):
                    counts[value] += delta
    return counts


class SoftScores(NamedTuple):
    raw: list[int]
    normalized: list[int]


def scores(scene: Scene, feasible: Sequence[Node]) -> SoftScores | None:
    """The scores of the feasible nodes, in their order; None when no constraint is soft."""
    constraints = scene.constraints("ScheduleAnyway")
    if not constraints:
        return None
    ignored = [scene.require_all() and not has_all(node, constraints) for node in feasible]
    taking_part = [node for node, left_out in zip(feasible, ignored, strict=True) if not left_out]
    counts: list[dict[str, int]] = []
    weights: list[float] = []
    for constraint, selector in constraints:
        key = constraint.topology_key
        domains = {node.labels.get(key, "") for node in taking_part}
        size = len(taking_part) if key == HOSTNAME else len(domains)
        weights.append(math.log(size + 2))
        counts.append(dict.fromkeys(domains, 0))
        for node in scene.nodes:
            if scene.require_all() and not has_all(node, constraints):
                continue
            value = node.labels.get(key, "")
            if value in domains and scene.included(constraint, node):
                counts[-1][value] += scene.pods_on(node, selector)
    raw = []
    for node, left_out in zip(feasible, ignored, strict=True):
        score = 0.0
        for (constraint, selector), weight, by_value in zip(constraints, weights, counts, strict=True):
            if not left_out and constraint.topology_key in node.labels:
                of_node = constraint.topology_key == HOSTNAME
                pods = scene.pods_on(node, selector) if of_node else by_value[node.labels[constraint.topology_key]]
                score += float(pods) * weight + float(constraint.max_skew - 1)
        raw.append(_round(score))
    judged = [score for score, left_out in zip(raw, ignored, strict=True) if not left_out]
    lowest, highest = min(judged, default=0), max(judged, default=0)
    normalized = [
        0 if left_out else 100 if highest == 0 else 100 * (highest + lowest - score) // highest
        for score, left_out in zip(raw, ignored, strict=True)
    ]
    return SoftScores(raw, normalized)


def _round(number: float) -> int:
    whole = math.floor(number)
    return whole + 1 if number - whole >= 0.5 else whole
