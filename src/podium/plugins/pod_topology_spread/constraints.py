"""Compiles a pod's spreading rules: its own constraints, or the defaults with a selector found for it.

Rules are compiled once per specification and kept. Default rules are kept too, for as long as the pod's services and
controller select as they did.

Also selects the pods that belong together where a pod does not say so: those of its services and its controller.

The selector is the sum of the selectors of all services that match the pod, in its namespace, and of the
ReplicationController, ReplicaSet or StatefulSet that controls it. A pod that has none of them gets an empty selector,
which means that no default constraint applies to it.

Services are filed by what they select, so that a pod finds its own among thousands; the index is built again when a
service changed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from podium.cluster import Objects, PodFacts, PodQuery, QueryTerm
from podium.cluster.facts import FactsCache
from podium.cluster.selector_index import SelectorIndex
from podium.kube import LabelSelector, Pod, TopologySpreadConstraint
from podium.kube.selector import (
    EVERYTHING,
    IN,
    Requirement,
    Selector,
    SelectorError,
    compile_label_selector,
    selector_from_labels,
)
from podium.plugins.pod_topology_spread.args import DO_NOT_SCHEDULE, SCHEDULE_ANYWAY

HONOR = "Honor"
_WORDS = {DO_NOT_SCHEDULE: "hard", SCHEDULE_ANYWAY: "soft"}
Controllers = dict[str, str] | LabelSelector | None
"""How a controller selects its pods: a plain map (ReplicationController) or a label selector (the others)."""

Basis = tuple[int, Controllers]


class Constraint(NamedTuple):
    """One constraint, ready to count with."""

    topology_key: str
    max_skew: int
    min_domains: int
    honors_affinity: bool
    """Nodes that the pod's node selector or affinity rules out do not count."""
    honors_taints: bool
    """Nodes whose taints the pod does not tolerate do not count."""
    selector: Selector
    query: PodQuery | None
    """Counts the pods to spread, terminating ones left out; None for an empty selector, which counts none."""
    matches_itself: bool


class Rules(NamedTuple):
    """The constraints of one action (DoNotSchedule or ScheduleAnyway), or why they cannot be read."""

    constraints: tuple[Constraint, ...] = ()
    keys: tuple[str, ...] = ()
    require_all: bool = True
    """Only nodes that have all topology keys take part. Not so for the system's own defaults."""
    error: str = ""


NO_RULES = Rules()


class RuleBook:
    """The rules of any pod; `defaults` are the constraints of pods that have none."""

    def __init__(
        self, defaults: tuple[TopologySpreadConstraint, ...], system: bool, selectors: DefaultSelectors
    ) -> None:
        self._defaults = {action: tuple(_acting(defaults, action)) for action in _WORDS}
        self._system = system
        self._selectors = selectors

    def rules(self, pod: Pod, facts: PodFacts, action: str) -> Rules:
        basis: Basis | None = None
        if not pod.spec.topology_spread_constraints:
            if not self._defaults[action]:
                return NO_RULES
            basis = self._selectors.basis(pod)
            if basis is None:
                return NO_RULES
        known: tuple[Basis | None, Rules] | None = facts.notes.get((self, action))
        if known is not None and known[0] == basis:
            return known[1]
        rules = own_rules(pod, action) if basis is None else self._default_rules(pod, action, basis)
        facts.notes[self, action] = basis, rules
        return rules

    def constraints(self, pod: Pod, facts: FactsCache) -> list[Constraint]:
        """All constraints of the pod, of either action; quick where neither the pod nor a default has any."""
        if not pod.spec.topology_spread_constraints and self._selectors.basis(pod) is None:
            return []
        known = facts.of(pod)
        return [constraint for action in _WORDS for constraint in self.rules(pod, known, action).constraints]

    def _default_rules(self, pod: Pod, action: str, basis: Basis) -> Rules:
        selector = self._selectors.selector(pod, basis)
        if selector.empty:
            return NO_RULES
        constraints = [_compile(constraint, selector, pod) for constraint in self._defaults[action]]
        return _rules(constraints, require_all=not self._system)


def own_rules(pod: Pod, action: str) -> Rules:
    """The pod's own constraints; a label named in matchLabelKeys is asked for with the pod's own value."""
    constraints: list[Constraint] = []
    for constraint in _acting(pod.spec.topology_spread_constraints, action):
        try:
            selector = compile_label_selector(constraint.label_selector)
        except SelectorError as error:
            return Rules(error=f"obtaining pod's {_WORDS[action]} topology spread constraints: {error}")
        same = [Requirement(key, IN, (pod.labels[key],)) for key in constraint.match_label_keys if key in pod.labels]
        constraints.append(_compile(constraint, selector.and_also(same) if same else selector, pod))
    return _rules(constraints, require_all=True)


def _rules(constraints: list[Constraint], require_all: bool) -> Rules:
    keys = dict.fromkeys(constraint.topology_key for constraint in constraints)
    return Rules(tuple(constraints), tuple(keys), require_all)


def _acting(constraints: Iterable[TopologySpreadConstraint], action: str) -> Iterable[TopologySpreadConstraint]:
    return (constraint for constraint in constraints if constraint.when_unsatisfiable == action)


def _compile(constraint: TopologySpreadConstraint, selector: Selector, pod: Pod) -> Constraint:
    peers = QueryTerm(frozenset((pod.namespace,)), selector)
    return Constraint(
        topology_key=constraint.topology_key,
        max_skew=constraint.max_skew,
        min_domains=1 if constraint.min_domains is None else constraint.min_domains,
        honors_affinity=constraint.node_affinity_policy in (None, HONOR),
        honors_taints=constraint.node_taints_policy == HONOR,
        selector=selector,
        query=None if selector.empty else PodQuery((peers,), terminating=False),
        matches_itself=selector.matches(pod.labels),
    )


class DefaultSelectors:
    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._services: dict[str, SelectorIndex[Selector]] = {}
        self._services_version = -1

    def basis(self, pod: Pod) -> Basis | None:
        """What the pod's selector is made from, to see whether one made earlier still holds; None: of nothing."""
        if self._services_version != self._objects.services.version:
            self._file_services()
        controller = self._controller_selector(pod)
        if controller is None and pod.namespace not in self._services:
            return None
        return self._services_version, controller

    def selector(self, pod: Pod, basis: Basis) -> Selector:
        _version, controller = basis
        labels: dict[str, str] = {}
        services = self._services.get(pod.namespace)
        if services is not None:
            for service in services.candidates(pod.labels):
                if service.matches(pod.labels):
                    labels.update((requirement.key, requirement.values[0]) for requirement in service.requirements)
        if isinstance(controller, dict):
            return selector_from_labels(labels | controller)
        try:
            chosen = EVERYTHING if controller is None else compile_label_selector(controller)
        except SelectorError:
            chosen = EVERYTHING
        return selector_from_labels(labels).and_also(chosen.requirements)

    def _controller_selector(self, pod: Pod) -> Controllers:
        if not pod.metadata.owner_references:
            return None
        owner = pod.metadata.controller
        if owner is None:
            return None
        key = f"{pod.namespace}/{owner.name}"
        match owner.api_version, owner.kind:
            case "v1", "ReplicationController":
                controller = self._objects.replication_controllers.get(key)
                return None if controller is None else controller.spec.selector
            case "apps/v1", "ReplicaSet":
                replica_set = self._objects.replica_sets.get(key)
                return None if replica_set is None else replica_set.spec.selector
            case "apps/v1", "StatefulSet":
                stateful_set = self._objects.stateful_sets.get(key)
                return None if stateful_set is None else stateful_set.spec.selector
        return None

    def _file_services(self) -> None:
        self._services = {}
        for service in self._objects.services:
            if service.spec.selector:
                selector = selector_from_labels(service.spec.selector)
                self._services.setdefault(service.namespace, SelectorIndex()).add(selector, selector)
        self._services_version = self._objects.services.version
