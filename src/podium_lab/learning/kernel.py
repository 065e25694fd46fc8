"""Places a sequence of pods on a cluster with one rule: the compiled copy of engine and plugins.

Its decisions are those of `podium simulate` with GpuShare and the plugin of the rule; tests compare them one by one.

Pods stay (a static run), or come and go (a churn run). A static run goes in parts, so that what is known of the
workload can grow between them. In a churn run pods that do not fit are dropped, or wait: first come, first served,
later ones may overtake, and the waiting are tried when a pod leaves the node they might fit on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from podium.engine.choice import walk_key
from podium_lab.learned.network import PlacementNetwork
from podium_lab.learning.extra import compiled
from podium_lab.learning.kernel_choice import TIES, Memory, account, choose, put
from podium_lab.learning.kernel_score import (
    BEST_FIT,
    CLUSTERING,
    DOT_PROD,
    FGD,
    LEARNED,
    PACKING,
    RANDOM,
    KernelNetwork,
    Rule,
    Scratch,
)
from podium_lab.learning.kernel_state import (
    NOT_FEASIBLE,
    ClassTable,
    Floats,
    Ints,
    KernelNode,
    KernelNodes,
    KernelPod,
    KernelPods,
    KernelShapes,
    class_table,
    nodes_of,
    numbering,
    shapes_of,
)
from podium_plugins.gpu.knowledge import Knowledge, constrained_demand, knowledge_of, price
from podium_plugins.gpu.request import WHOLE, GpuRequest
from podium_plugins.gpu.terms import ACTION, GROUPS, STATE, TERMS
from podium_plugins.gpu.typical_pods import grown, most_of
from podium_plugins.gpu_share.fgd import score_limits


@compiled
def run_static(
    first: int,
    last: int,
    pods: KernelPods,
    ties: int,
    nodes: KernelNodes,
    shapes: KernelShapes,
    table: ClassTable,
    known: Knowledge,
    rule: Rule,
    hosts: bool,
    scratch: Scratch,
    memory: Memory,
    chosen: Ints,
    devices: Ints,
) -> None:
    """Place pods `first` to `last`, in order; `chosen` gets the node of each or −1, `devices` the device of shares."""
    for i in range(first, last):
        s = pods.shape[i]
        need = pods.memory[i]
        n = choose(s, need, pods.models[i], ties, nodes, shapes, table, known, rule, hosts, scratch, memory)
        chosen[i] = n
        if n >= 0:
            devices[i] = put(n, s, need, nodes, shapes, table, known, rule, hosts, scratch, memory)


@compiled
def push(times: Floats, items: Ints, size: int, time: float, item: int) -> None:
    """Put an item into a heap of so many, by time."""
    i = size
    while i > 0:
        above = (i - 1) // 2
        if times[above] <= time:
            break
        times[i] = times[above]
        items[i] = items[above]
        i = above
    times[i] = time
    items[i] = item


@compiled
def pop(times: Floats, items: Ints, size: int) -> int:
    """Take the earliest item out of a heap of so many."""
    item = items[0]
    time = times[size - 1]
    moved = items[size - 1]
    last = size - 1
    i = 0
    while True:
        below = 2 * i + 1
        if below >= last:
            break
        if below + 1 < last and times[below + 1] < times[below]:
            below += 1
        if times[below] >= time:
            break
        times[i] = times[below]
        items[i] = items[below]
        i = below
    times[i] = time
    items[i] = moved
    return int(item)


@compiled
def run_churn(
    arrival: Floats,
    lifetime: Floats,
    end: float,
    counted_from: float,
    queue: bool,
    pods: KernelPods,
    ties: int,
    nodes: KernelNodes,
    shapes: KernelShapes,
    table: ClassTable,
    known: Knowledge,
    rule: Rule,
    hosts: bool,
    scratch: Scratch,
    memory: Memory,
    chosen: Ints,
    devices: Ints,
    waited: Floats,
) -> float:
    """Place pods as they arrive; gives the mean of the GPU thousandths in use from `counted_from` to `end`.

    `chosen` gets the node of each pod or −1, `waited` how long each waited (to the end where it never got a node).
    """
    number = len(arrival)
    times = np.zeros(number + 1)
    items = np.zeros(number + 1, dtype=np.int64)
    running = 0
    waiting = np.zeros(number + 1, dtype=np.int64)
    queued = 0
    used = 0
    total = 0.0
    now = 0.0
    i = 0
    while True:
        leaves = running > 0 and (i >= number or times[0] <= arrival[i])
        if not leaves and i >= number:
            break
        at = times[0] if leaves else arrival[i]
        if at > end:
            break
        total += used * max(0.0, at - max(now, counted_from))
        now = at
        if not leaves:
            s = pods.shape[i]
            n = choose(
                s, pods.memory[i], pods.models[i], ties, nodes, shapes, table, known, rule, hosts, scratch, memory
            )
            chosen[i] = n
            if n >= 0:
                devices[i] = put(n, s, pods.memory[i], nodes, shapes, table, known, rule, hosts, scratch, memory)
                used += shapes.gpus[s] * shapes.milli[s]
                push(times, items, running, now + lifetime[i], i)
                running += 1
            elif queue:
                waiting[queued] = i
                queued += 1
            i += 1
            continue
        gone = pop(times, items, running)
        running -= 1
        s = pods.shape[gone]
        n = chosen[gone]
        free = nodes.free[n, : nodes.gpus[n]]
        used -= shapes.gpus[s] * shapes.milli[s]
        if shapes.milli[s] < 1000 and shapes.gpus[s] > 0:
            free[devices[gone]] += shapes.milli[s]
        elif shapes.gpus[s] > 0:
            give_back(free, devices[gone])
        account(n, s, pods.memory[gone], -1, nodes, shapes, memory)
        still = 0
        for j in range(queued):
            pod = waiting[j]
            s = pods.shape[pod]
            found = -1
            if fits(n, s, pods.memory[pod], pods.models[pod], nodes, shapes):
                found = choose(
                    s,
                    pods.memory[pod],
                    pods.models[pod],
                    ties,
                    nodes,
                    shapes,
                    table,
                    known,
                    rule,
                    hosts,
                    scratch,
                    memory,
                )
            if found < 0:
                waiting[still] = pod
                still += 1
                continue
            chosen[pod] = found
            devices[pod] = put(found, s, pods.memory[pod], nodes, shapes, table, known, rule, hosts, scratch, memory)
            used += shapes.gpus[s] * shapes.milli[s]
            waited[pod] = now - arrival[pod]
            push(times, items, running, now + lifetime[pod], pod)
            running += 1
        queued = still
    total += used * max(0.0, end - max(now, counted_from))
    for j in range(queued):
        waited[waiting[j]] = end - arrival[waiting[j]]
    return total / (end - counted_from)


@compiled
def give_back(free: Ints, devices: int) -> None:
    """Free whole GPUs, given as bits."""
    for i in range(len(free)):
        if devices >> i & 1:
            free[i] = 1000


@compiled
def fits(n: int, s: int, need: int, models: int, nodes: KernelNodes, shapes: KernelShapes) -> bool:
    if nodes.cpu[n] < shapes.cpu[s] or nodes.memory[n] < need or nodes.slots[n] <= nodes.pods[n]:
        return False
    if not shapes.allowed[models, nodes.model[n]]:
        return False
    number = 0
    for i in range(nodes.gpus[n]):
        if nodes.free[n, i] >= shapes.milli[s]:
            number += 1
    return bool(number >= shapes.gpus[s])


RULES = {
    "FGD": FGD,
    "BestFit": BEST_FIT,
    "DotProd": DOT_PROD,
    "GpuPacking": PACKING,
    "GpuClustering": CLUSTERING,
    "Random": RANDOM,
}
"""The published policies, by name."""
Workload = Mapping[tuple[int, GpuRequest], int]
"""Numbers of pods by (thousandths of cpu, GPU request)."""


class Scorer(NamedTuple):
    """The numbers of a learned policy: points = ⌊offset + scale·score + ½⌋, within 0–100."""

    weights: Floats
    """float64[groups, terms]"""
    offset: float
    scale: float
    network: PlacementNetwork | None = None


class KernelPlan(NamedTuple):
    """A cluster and a sequence of pods, ready for any number of runs."""

    specs: tuple[KernelNode, ...]
    nodes: KernelNodes
    shapes: KernelShapes
    pods: KernelPods
    gpu: Ints
    """GPU thousandths that each pod asks for."""
    models: dict[str, int]
    capacity: dict[str, int]
    """GPU thousandths by model, of all nodes."""
    kinds: tuple[tuple[int, GpuRequest], ...]
    """What each pod counts as in a workload."""


def plan_of(nodes: Sequence[KernelNode], pods: Sequence[KernelPod]) -> KernelPlan:
    """Number everything; nodes are in the order in which ties are broken."""
    numbers = numbering(nodes, pods)
    shapes, sequence = shapes_of(pods, numbers)
    capacity: Counter[str] = Counter()
    for node in nodes:
        if node.gpus:
            capacity[node.model] += WHOLE * node.gpus
    gpu = np.array([pod.request.total for pod in pods], dtype=np.int64)
    kinds = tuple((pod.cpu, pod.request) for pod in pods)
    return KernelPlan(
        tuple(nodes), nodes_of(nodes, numbers), shapes, sequence, gpu, numbers.models, dict(capacity), kinds
    )


def kernel_network(network: PlacementNetwork | None) -> KernelNetwork:
    """The numbers of a network for compiled code."""
    if network is None:
        none = np.zeros((0, 0))
        return KernelNetwork(none, none, none, none, np.zeros(0), none)
    weights = network.first, network.bias, network.second, network.pooled, network.second_bias, network.last
    return KernelNetwork(*(np.ascontiguousarray(each) for each in weights))


def copied(array: Any) -> Any:
    return array.copy()


def call(function: Any, *arguments: Any) -> Any:
    """Compiled functions take a dozen arrays; types are checked where these are made."""
    return function(*arguments)


class KernelRun:
    """One run: a plan, a rule, and the state of nodes as pods are placed."""

    def __init__(self, plan: KernelPlan, rule: str | Scorer, ties: str, seed: int = 0) -> None:
        self._plan = plan
        self._ties = TIES[ties]
        learned = None if isinstance(rule, str) else rule
        self._kind = RULES[rule] if isinstance(rule, str) else LEARNED
        if self._kind == RANDOM:
            self._ties = TIES["fresh"]
        self._scorer = Scorer(np.zeros((len(GROUPS), len(TERMS))), 0.0, 1.0) if learned is None else learned
        self._hosts = bool(self._scorer.weights[:, STATE.index("H") : STATE.index("Hg") + 1].any())
        pods, models = len(plan.gpu), len(plan.models) + 1
        self.nodes = KernelNodes(*(copied(each) for each in plan.nodes))
        self.chosen: Ints = np.full(pods, -1, dtype=np.int64)
        """The node of each pod, by its position; −1 for none."""
        self.devices: Ints = np.full(pods, -1, dtype=np.int64)
        """The device of a share; whole GPUs as bits."""
        self.waited: Floats = np.zeros(pods)
        self._prices: Floats = np.zeros(models)
        self._random = np.random.SeedSequence([seed, 77]).generate_state(1, np.uint64) | np.uint64(1)
        self._free = np.zeros(models, dtype=np.int64)
        np.add.at(self._free, plan.nodes.model, plan.nodes.gpus * WHOLE)

    def static(self, workload: Workload | None = None) -> None:
        """Place all pods; a workload that is not given is counted from the pods as they come."""
        kinds = self._plan.kinds
        if workload is not None:
            self._static(0, len(kinds), workload)
            return
        counts: Counter[tuple[int, GpuRequest]] = Counter()
        counted = Counter(counts)
        first = known = 0
        for number, kind in enumerate(kinds, 1):
            counts[kind] += 1
            if grown(number, known):
                self._static(first, number - 1, counted)
                first, known, counted = number - 1, number, Counter(counts)
        self._static(first, len(kinds), counted)

    def churn(
        self, arrival: Floats, lifetime: Floats, end: float, counted_from: float, queue: bool, workload: Workload
    ) -> float:
        """Have pods come and go; gives the mean GPU thousandths in use."""
        arguments = arrival, lifetime, end, counted_from, queue, *self.arguments(workload, 2 * len(arrival) + 2)
        return float(call(run_churn, *arguments, self.chosen, self.devices, self.waited))

    def _static(self, first: int, last: int, workload: Workload) -> None:
        if last > first:
            arguments = self.arguments(workload, last - first + 1)
            call(run_static, first, last, *arguments, self.chosen, self.devices)

    def arguments(self, workload: Workload, changes: int) -> tuple[Any, ...]:
        """What compiled functions work on, for so many changes of nodes at most."""
        plan, scorer = self._plan, self._scorer
        typical = most_of(workload)
        table, known = class_table(typical, plan.models), knowledge_of(typical)
        limits = np.array(score_limits(table.all_pods), dtype=np.int64)
        network = kernel_network(scorer.network)
        rule = Rule(self._kind, scorer.weights, scorer.offset, scorer.scale, limits, network)
        nodes, shapes, width = len(plan.specs), len(plan.shapes.cpu), plan.nodes.free.shape[1]
        types, units = int(plan.nodes.type.max()) + 1, len(network.first)
        scratch = Scratch(
            np.zeros((nodes, len(STATE))),
            np.zeros(nodes, dtype=np.int64),
            np.full(nodes, -1, dtype=np.int64),
            np.zeros(len(STATE)),
            np.zeros(len(ACTION)),
            np.zeros(width, dtype=np.int64),
            np.zeros(2, dtype=np.int64),
        )
        demand = constrained_demand(((request, pods) for (_, request), pods in workload.items()), plan.capacity)
        offered = sum(plan.capacity.values())
        scar = {model: price(share, plan.capacity[model], offered) for model, share in demand.items()}
        memory = Memory(
            np.zeros((shapes, nodes)),
            np.full((shapes, nodes), -1, dtype=np.int64),
            np.full((shapes, types), 4 * NOT_FEASIBLE),
            np.full(shapes, -1, dtype=np.int64),
            np.zeros(changes, dtype=np.int64),
            np.zeros(1, dtype=np.int64),
            self._free,
            np.array([*(demand.get(model, 0.0) for model in plan.models), 0.0]),
            np.array([*(scar.get(model, 0.0) for model in plan.models), 0.0]),
            self._prices,
            self._random,
            (1 << 26) - 1 - walk_key(nodes, 26),
            np.zeros((shapes, nodes, units)),
            np.zeros((shapes, types), dtype=np.int64),
            np.zeros(nodes),
            np.zeros(nodes, dtype=np.bool_),
        )
        return plan.pods, self._ties, self.nodes, plan.shapes, table, known, rule, self._hosts, scratch, memory
