"""Turns a scenario and a seed into arrays: all that an episode of the batched environment is made of.

The nodes, the pods, their order, requests and lifetimes are those that `podium simulate` has with the same seed. What
selectors, affinity and taints allow is decided by the engine's own filters, once for each rule: pods with the same
selectors, affinity, tolerations, spreading, namespace and labels have the same one. A rule is judged on the empty
cluster, without what the pod requests, because that changes from decision to decision.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any, NamedTuple

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from kubecel.quantity import milli, units
from podium.config import SchedulerConfig, default_config
from podium.config.durations import SECOND
from podium.config.points import Point
from podium.engine.decide import find_feasible
from podium.engine.sampling import Sampling
from podium.framework.cycle import Cycle
from podium.kube import Node, Pod
from podium.kube.pod import ResourceRequirements, Toleration
from podium.kube.requests import pod_requests
from podium.kube.selector import compile_label_selector
from podium.plugins import load_registry
from podium_lab.environments.limits import (
    MIB,
    NVIDIA,
    ZONE,
    check_scenario,
    check_template,
    not_modelled,
    zone_constraint,
)
from podium_lab.environments.survey import ScenarioSurvey, gpus_of, survey
from podium_lab.models.features import pod_class
from podium_lab.models.schema import CPU, GPU, MEMORY, PODS
from podium_lab.simulator.distributions import generator
from podium_lab.simulator.nodes import gpu_capacity, node_latencies, scenario_nodes
from podium_lab.simulator.pods import PodArrival, PodTemplate
from podium_lab.simulator.profiles import configuration
from podium_lab.simulator.reading import LoadedScenario
from podium_lab.simulator.run import SimulatedRun
from podium_lab.simulator.usage import traits_sampler
from podium_lab.simulator.workload import arrivals
from podium_plugins.latency_aware import limits_of

NEVER = 2**31 - 1
"""Milliseconds: later than any episode ends."""
WHOLE = 1000

Array = Any


class EpisodeTables(NamedTuple):
    """One episode; a pool of them has one more axis in front. W nodes, N pods, R rules, Z zones, S spread groups."""

    capacity: Array
    """int32[W, 4]: thousandths of a core, MiB, thousandths of a GPU, pods; zeros where there is no node."""
    zone: Array
    """int32[W]: the number of the node's zone; Z − 1 where it has none."""
    latency: Array
    """float32[W]: milliseconds to the users; NaN where the node has none."""
    allowed: Array
    """bool[R, W]: where selectors, affinity and taints let pods of the rule go."""
    spread: Array
    """int32[R]: the spread group that the rule is bound to; −1 for none."""
    skew: Array
    """int32[R]: the highest allowed difference of that group between zones."""
    spread_zones: Array
    """bool[R, Z]: the zones that count."""
    counted: Array
    """int32[R, S]: 1 where pods of the rule count in the group."""
    rule: Array
    """int32[N]"""
    request: Array
    """int32[N, 4]"""
    use: Array
    """int32[N, 4]: what the pod really uses: thousandths of a core, MiB, connections, hundreds of bytes a second."""
    pod_class: Array
    limits: Array
    """float32[N, 2]: soft and hard latency in milliseconds; NaN without."""
    priority: Array
    at: Array
    """int32[N]: when the pod comes, in milliseconds."""
    queue: Array
    """int32[N]: how many pods wait: it, and those that came with it and are behind it."""
    ends: Array
    """int32[N + 1]: when it ends, if it is placed; the last is NEVER."""
    leaving: Array
    """int32[N + AT_ONCE]: the pods by their ends; N stands for none."""
    scraped: Array
    """bool[M, W]: of which nodes a measurement becomes known; the last row stands for all later ones."""
    nodes: Array
    """int32: how many nodes there are."""
    pods: Array
    """int32: how many pods come."""


AT_ONCE = 4
"""Departures that are handled together."""


class Timing(NamedTuple):
    """What is common to all episodes of a scenario; milliseconds."""

    interval: int
    """Between measurements; NEVER where nothing is measured."""
    late: int
    survey: ScenarioSurvey


class EpisodeSource:
    """Makes the episodes of a scenario, seed by seed. Raises ScenarioError for what can't be modelled."""

    def __init__(self, loaded: LoadedScenario, most_pods: int | None = None) -> None:
        check_scenario(loaded)
        self.loaded = loaded
        self._given = scenario_nodes(loaded)
        self._most = most_pods
        self._filters = RuleFilters(loaded, self._given)
        self._zones = sorted({node.metadata.labels[ZONE] for node in self._given if ZONE in node.metadata.labels})
        self._known: dict[int, tuple[PodTemplate, dict[str, Any]]] = {}
        self.width = len(self._given)
        usage = loaded.scenario.usage
        self.timing = Timing(
            NEVER if usage is None else round(usage.interval / SECOND * 1000),
            0 if usage is None else round(usage.late / SECOND * 1000),
            survey(loaded),
        )

    def tables(self, seed: int, *, drop: float = 0.0, stretch: float = 1.0) -> EpisodeTables:
        """The episode of a seed. For variety in training, `drop` leaves out that share of the nodes, and `stretch`
        multiplies the time between pods."""
        loaded, nodes = self.loaded, self._given
        order = np.arange(len(nodes))
        if loaded.scenario.node_order == "shuffled":
            order = generator(seed, "order").permutation(len(nodes))
        coming = list(islice(arrivals(loaded, seed, gpu_capacity(nodes)), self._most))
        known = [self._facts(arrival.template) for arrival in coming]
        rules = list(self._filters.rules)
        staying = np.ones(len(nodes), dtype=np.bool_)
        if drop:
            staying[generator(seed, "faults").permutation(len(nodes))[: round(drop * len(nodes))]] = False
        capacity = np.array([_offered(nodes[i]) if staying[i] else (0, 0, 0, 0) for i in order], dtype=np.int32)
        latencies = node_latencies(loaded, seed)
        latency = np.array([latencies.get(nodes[i].metadata.name, np.nan) for i in order], dtype=np.float32)
        zones = {name: number for number, name in enumerate(self._zones)}
        zone = np.array([zones.get(nodes[i].metadata.labels.get(ZONE, ""), len(zones)) for i in order], dtype=np.int32)
        allowed = self._filters.allowed(rules)[:, order] & staying[order]
        eligible = self._filters.eligible(rules)[:, order] & staying[order]
        number_of = {rule: number for number, rule in enumerate(rules)}
        spread, skew, counted = self._filters.spreading(rules)
        spread_zones = np.zeros((len(rules), len(zones) + 1), dtype=np.bool_)
        for r in range(len(rules)):
            spread_zones[r, zone[eligible[r]]] = True
        spread_zones[:, -1] = False
        at = np.array([round(each.at * 1000 * stretch) for each in coming], dtype=np.int64)
        lives = np.array([min(each.lifetime * 1000, NEVER) for each in coming])
        ends = np.minimum(at + np.maximum(np.rint(lives), 1), NEVER).astype(np.int32)
        leaving = np.argsort(ends, kind="stable").astype(np.int32)
        leaving = np.concatenate((leaving, np.full(AT_ONCE, len(coming), dtype=np.int32)))
        return EpisodeTables(
            capacity=capacity,
            zone=zone,
            latency=latency,
            allowed=allowed,
            spread=spread,
            skew=skew,
            spread_zones=spread_zones,
            counted=counted,
            rule=np.array([number_of[each["rule"]] for each in known], dtype=np.int32),
            request=np.array([each["request"] for each in known], dtype=np.int32).reshape(-1, 4),
            use=self._use(seed, coming),
            pod_class=np.array([each["class"] for each in known], dtype=np.int32),
            limits=np.array([each["limits"] for each in known], dtype=np.float32).reshape(-1, 2),
            priority=np.array([each["priority"] for each in known], dtype=np.float32),
            at=at.astype(np.int32),
            queue=(np.searchsorted(at, at, side="right") - np.arange(len(at))).astype(np.int32),
            ends=np.append(ends, np.int32(NEVER)),
            leaving=leaving,
            scraped=self._scraped(seed, int(at[-1]) if len(at) else 0, staying[order]),
            nodes=np.int32(staying.sum()),
            pods=np.int32(len(coming)),
        )

    def pool(self, seeds: Sequence[int], *, varied: bool = False) -> EpisodeTables:
        """The episodes of several seeds in one record, widened to equal sizes; `varied` leaves out up to three tenths
        of the nodes, and brings pods up to a third faster or slower."""
        episodes = []
        for seed in seeds:
            drawn = np.random.default_rng([seed, 11])
            drop, stretch = (drawn.uniform(0, 0.3), drawn.uniform(0.75, 1.33)) if varied else (0.0, 1.0)
            episodes.append(self.tables(seed, drop=drop, stretch=stretch))
        return EpisodeTables(
            *(
                _stacked(name, parts)
                for name, parts in zip(EpisodeTables._fields, zip(*episodes, strict=True), strict=True)
            )
        )

    # What is known of pods

    def _facts(self, template: PodTemplate) -> dict[str, Any]:
        found = self._known.get(id(template))
        if found is not None:
            return found[1]
        check_template(self.loaded, template)
        pod = template.pod("pod", 0.0)
        requests = pod_requests(pod)
        request = np.zeros(4, dtype=np.int64)
        request[CPU] = requests.get("cpu", 0)
        request[MEMORY] = -(-requests.get("memory", 0) // MIB)
        request[GPU] = WHOLE * requests.get(NVIDIA, 0)
        request[PODS] = 1
        facts = {
            "request": request,
            "rule": self._filters.rule_of(template),
            "class": pod_class(template.labels),
            "limits": limits_of(template.annotations)[:2],
            "priority": float(template.spec.priority or 0),
        }
        self._known[id(template)] = template, facts
        return facts

    def _use(self, seed: int, coming: Sequence[PodArrival]) -> NDArray[np.int32]:
        use = np.zeros((len(coming), 4), dtype=np.int32)
        model = self.loaded.scenario.usage
        if model is None:
            return use
        draw = traits_sampler(model, seed)
        for number, arrival in enumerate(coming):
            level, _, _, _, network, connections = draw()
            cpu = min(level, model.burst) * arrival.template.cpu
            memory = min(level, 1.0) * arrival.template.memory / MIB
            use[number] = round(cpu), round(memory), round(connections), round(network * cpu / 1e5)
        return use

    def _scraped(self, seed: int, last: int, present: NDArray[np.bool_]) -> NDArray[np.bool_]:
        model = self.loaded.scenario.usage
        missing = 0.0 if model is None else model.missing
        if not missing:
            return np.ones((1, self.width), dtype=np.bool_)
        rng = generator(seed, "scrapes")
        found = np.ones((last // self.timing.interval + 1, self.width), dtype=np.bool_)
        for row in found:
            row[present] = rng.random(int(present.sum())) >= missing
        return found


def _offered(node: Node) -> tuple[int, int, int, int]:
    offered = node.status.allocatable
    gpus = WHOLE * gpus_of(node)
    return milli(offered.get("cpu", 0)), units(offered.get("memory", 0)) // MIB, gpus, units(offered.get("pods", 0))


def _stacked(name: str, parts: Sequence[Any]) -> Any:
    """The parts of several episodes in one array; shorter ones are filled up with what does nothing."""
    arrays = [np.asarray(part) for part in parts]
    shape = tuple(max(sizes) for sizes in zip(*(each.shape for each in arrays), strict=True))
    out = np.full((len(arrays), *shape), _FILLED_WITH.get(name, 0), dtype=arrays[0].dtype)
    for number, each in enumerate(arrays):
        part: Any = (number, *(slice(0, size) for size in each.shape))
        out[part] = each
        if name == "leaving":
            out[number, len(each) :] = each[-1]
    return out


_FILLED_WITH = {"at": NEVER, "ends": NEVER, "spread": -1, "scraped": True}


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
