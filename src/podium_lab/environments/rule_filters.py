"""Finds where the engine's own filters let pods go, apart from what changes from decision to decision.

Pods with the same selectors, affinity, tolerations, spreading, namespace and labels have the same rule. Each rule is
judged once, by the profile's filters, on the empty cluster, without what the pod requests.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from podium.config import SchedulerConfig, default_config
from podium.config.points import Point
from podium.engine.decide import find_feasible
from podium.engine.sampling import Sampling
from podium.framework.cycle import Cycle
from podium.kube import Node, Pod
from podium.kube.pod import ResourceRequirements, Toleration
from podium.kube.selector import compile_label_selector
from podium.plugins import load_registry
from podium_lab.environments.limits import not_modelled, zone_constraint
from podium_lab.simulator.pods import PodTemplate
from podium_lab.simulator.profiles import configuration
from podium_lab.simulator.reading import LoadedScenario
from podium_lab.simulator.run import SimulatedRun

MOST_RULES = 1024


class RuleFilters:
    """The rules of a scenario's pods, numbered as they come, and the nodes that each allows."""

    def __init__(self, loaded: LoadedScenario, nodes: Sequence[Node]) -> None:
        self._loaded = loaded
        registry = load_registry(())
        contender = loaded.scenario.profiles[0]
        config = configuration(loaded, contender, registry)
        self._refuse_others(config, default_config(registry))
        self._names = [node.metadata.name for node in nodes]
        run = SimulatedRun(loaded, contender.name, 0, config, registry)
        run.set_up()
        self._scheduler = run.scheduler
        self._profile = next(iter(run.scheduler.profiles.values()))
        self.rules: dict[bytes, PodTemplate] = {}
        self._allowed: dict[bytes, tuple[NDArray[np.bool_], NDArray[np.bool_]]] = {}
        self._groups: dict[bytes, Any] = {}

    def _refuse_others(self, config: SchedulerConfig, default: SchedulerConfig) -> None:
        known = set(default.profiles[0].plugins[Point.FILTER])
        for name in config.profiles[0].plugins[Point.FILTER]:
            if name not in known:
                raise not_modelled(self._loaded, f"the filter {name}")

    def rule_of(self, template: PodTemplate) -> bytes:
        """The rule of a pod."""
        spec = template.spec
        parts = (
            spec.node_selector,
            spec.affinity,
            spec.tolerations,
            spec.node_name,
            spec.topology_spread_constraints,
            template.namespace,
            sorted(template.labels.items()),
        )
        rule = msgspec.json.encode(parts)
        if rule not in self.rules:
            if len(self.rules) >= MOST_RULES:
                raise not_modelled(self._loaded, f"more than {MOST_RULES} combinations of selectors and labels")
            self.rules[rule] = template
            constraint = zone_constraint(self._loaded, template)
            if constraint is not None:
                self._groups.setdefault(_group(constraint, template), (constraint, template))
        return rule

    def allowed(self, rules: Sequence[bytes]) -> NDArray[np.bool_]:
        """bool[rules, nodes]: where pods of each rule may go."""
        return np.array([self._judged(rule)[0] for rule in rules]).reshape(len(rules), len(self._names))

    def eligible(self, rules: Sequence[bytes]) -> NDArray[np.bool_]:
        """bool[rules, nodes]: the nodes that count for spreading: selectors and affinity alone decide."""
        return np.array([self._judged(rule)[1] for rule in rules]).reshape(len(rules), len(self._names))

    def spreading(self, rules: Sequence[bytes]) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
        """int32[rules]: the group of each rule, or −1; its highest skew; int32[rules, groups]: 1 where pods count."""
        groups = list(self._groups)
        spread = np.full(len(rules), -1, dtype=np.int32)
        skew = np.zeros(len(rules), dtype=np.int32)
        counted = np.zeros((len(rules), max(len(groups), 1)), dtype=np.int32)
        for r, rule in enumerate(rules):
            template = self.rules[rule]
            constraint = zone_constraint(self._loaded, template)
            if constraint is not None:
                spread[r], skew[r] = groups.index(_group(constraint, template)), constraint.max_skew
            for g, group in enumerate(groups):
                of_group, owner = self._groups[group]
                same = owner.namespace == template.namespace
                counted[r, g] = same and compile_label_selector(of_group.label_selector).matches(template.labels)
                if counted[r, g] and (self._judged(rule)[1] != self._judged(self.rule_of(owner))[1]).any():
                    raise not_modelled(self._loaded, "spreading among pods with different node selectors")
        return spread, skew, counted

    def _judged(self, rule: bytes) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        found = self._allowed.get(rule)
        if found is None:
            spec = self.rules[rule].spec
            bare = replace(
                spec,
                containers=tuple(replace(each, resources=ResourceRequirements(), ports=()) for each in spec.containers),
                init_containers=(),
                overhead={},
                topology_spread_constraints=(),
            )
            anywhere = replace(bare, tolerations=(Toleration(operator="Exists"),))
            found = self._allowed[rule] = self._where(bare), self._where(anywhere)
        return found

    def _where(self, spec: Any) -> NDArray[np.bool_]:
        cluster = self._scheduler.cluster
        search = find_feasible(self._profile, Cycle(Pod(spec=spec), cluster), Sampling(100))
        fitting = {cluster.names[row] for row in search.feasible.tolist()}
        return np.array([name in fitting for name in self._names])


def _group(constraint: Any, template: PodTemplate) -> bytes:
    return msgspec.json.encode((constraint.label_selector, template.namespace))
