"""Compiles a pod's spreading rules: its own constraints, or the defaults with a selector found for it.

Rules are compiled once per specification and kept. Default rules are kept too, for as long as the pod's services and
controller select as they did.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from podium.cluster import PodFacts, PodQuery, QueryTerm
from podium.cluster.facts import FactsCache
from podium.kube import Pod, TopologySpreadConstraint
from podium.kube.selector import IN, Requirement, Selector, SelectorError, compile_label_selector
from podium.plugins.pod_topology_spread.args import DO_NOT_SCHEDULE, SCHEDULE_ANYWAY
from podium.plugins.pod_topology_spread.default_selector import Basis, DefaultSelectors

HONOR = "Honor"
_WORDS = {DO_NOT_SCHEDULE: "hard", SCHEDULE_ANYWAY: "soft"}


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
