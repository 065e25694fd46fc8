"""Offers placement as a Gymnasium environment, `podium/Placement-v0`: one step is one pod with a choice.

    observation  nodes (nodes × terms: state terms before minus after, action terms, price), pod, global (prices), mask
    action       the position of a node; one that the mask excludes is taken as the first that it allows
    reward       GPU placed as a share of the capacity

A pod that fits one node is placed without asking, one that fits none is dropped; there is no way to refuse a pod. Terms
are those of `podium_plugins.gpu.terms`, within ±100; nodes and filters are the kernel's. The device that a share gets
is the one that a policy's score is best with, where one is given, otherwise the one with the least left that suffices.

Going from one choice to the next is compiled code. It remembers terms by shape of pods and node, as a run remembers
scores, and computes only nodes that changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium_lab.learning.extra import compiled, needed
from podium_lab.learning.kernel import KernelPlan, KernelRun, Scorer, Workload, call, plan_of
from podium_lab.learning.kernel_choice import Memory, put, refresh, renew_prices
from podium_lab.learning.kernel_score import KernelNetwork, Rule, Scratch
from podium_lab.learning.kernel_state import (
    NOT_FEASIBLE,
    Bools,
    ClassTable,
    Ints,
    KernelNode,
    KernelNodes,
    KernelPod,
    KernelPods,
    KernelShapes,
)
from podium_lab.learning.lists import shuffled
from podium_plugins.gpu.knowledge import PRICE_STEP, Knowledge
from podium_plugins.gpu.terms import ACTION, GROUPS, STATE, TERMS, group_of

gymnasium = needed("gymnasium")
WEIGHED = len(STATE) + len(ACTION)
FEATURES = WEIGHED + 1
POD = 3 + len(GROUPS)
HOSTS, RULE = 7, 6
"""Which of the kernel's arguments says whether H, Hf and Hg are computed, and which how nodes are scored."""
MOST = 100.0
"""Terms are kept within this."""
NO_WEIGHTS = Scorer(np.zeros((len(GROUPS), len(TERMS))), 0.0, 1.0)


class Episode:
    """Pods of a plan that are placed one after another; what is shown is written into given arrays."""

    def __init__(self, plan: KernelPlan, workload: Workload, scorer: Scorer, shown: Any, mask: Any) -> None:
        run = KernelRun(plan, scorer._replace(network=None), "fixed")
        arguments: list[Any] = list(run.arguments(workload, len(plan.gpu) + 1))
        arguments[HOSTS] = True  # all terms are shown
        arguments[RULE], arguments[-1] = showing(arguments[RULE], arguments[-1])
        self._arguments, self._counts = arguments, np.zeros(4, dtype=np.int64)
        self.plan, self.memory, self._shown, self.mask = plan, arguments[-1], shown, mask
        self.capacity = sum(plan.capacity.values())
        self.at = self.placed = self.dropped = 0
        self._go_on(-1)

    @property
    def over(self) -> bool:
        return self.at >= len(self.plan.gpu)

    def step(self, action: int) -> float:
        """Place the pod; gives the share of the capacity that was placed until the next choice."""
        return self._go_on(action if self.mask[action] else int(self.mask.argmax()))

    def _go_on(self, action: int) -> float:
        counts = self._counts
        call(go_on, self.at, action, *self._arguments, self._shown, self.mask, counts)
        self.at = int(counts[NEXT])
        self.placed += int(counts[PLACED])
        self.dropped += int(counts[DROPPED])
        return float(counts[GPU]) / self.capacity

    def pod(self) -> Any:
        """float32[POD] of the pod that is to be placed."""
        pod = np.zeros(POD, dtype=np.float32)
        if not self.over:
            cpu, request = self.plan.kinds[self.at]
            pod[:3] = min(cpu / 10_000, MOST), min(request.gpus, MOST), request.milli / 1000
            pod[3 + group_of(request.gpus, request.milli)] = 1.0
        return pod


def spaces_of(nodes: Sequence[KernelNode]) -> tuple[Any, Any]:
    """What is parts, and what can be done."""
    spaces, many = gymnasium.spaces, len(nodes)
    models = {node.model for node in nodes if node.gpus}
    parts = {
        "nodes": spaces.Box(-MOST, MOST, (many, FEATURES), np.float32),
        "pod": spaces.Box(0.0, MOST, (POD,), np.float32),
        "global": spaces.Box(0.0, MOST, (len(models) + 1,), np.float32),
        "mask": spaces.MultiBinary(many),
    }
    return spaces.Dict(parts), spaces.Discrete(many)


class PlacementEnv(gymnasium.Env):  # type: ignore[misc, name-defined]
    """Pods of a list, in random order, on a cluster that is empty at the start."""

    def __init__(
        self,
        nodes: Sequence[KernelNode],
        pods: Sequence[KernelPod],
        workload: Workload | None = None,
        scorer: Scorer = NO_WEIGHTS,
    ) -> None:
        """`workload` is what is known of the pods to come; without it, the pods themselves."""
        self._given, self._pods, self._scorer = tuple(nodes), tuple(pods), scorer
        self._workload = workload or Counter((pod.cpu, pod.request) for pod in pods)
        self.observation_space, self.action_space = spaces_of(self._given)
        self._shown = np.zeros((len(self._given), FEATURES), dtype=np.float32)
        self._mask = np.zeros(len(self._given), dtype=np.bool_)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        drawn = int(self.np_random.integers(2**31))
        sequence = [self._pods[i] for i in np.random.default_rng(drawn).permutation(len(self._pods))]
        plan = plan_of(shuffled(self._given, drawn), sequence)
        self.episode = Episode(plan, self._workload, self._scorer, self._shown, self._mask)
        return self._observation(), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        allowed = bool(self._mask[action])
        reward = self.episode.step(int(action))
        return self._observation(), reward, self.episode.over, False, {"allowed": allowed}

    def action_masks(self) -> Any:
        """The mask, under the name that libraries for masked actions ask for."""
        return self._mask

    def _observation(self) -> dict[str, Any]:
        return {
            "nodes": self._shown.copy(),
            "pod": self.episode.pod(),
            "global": self.episode.memory.prices.astype(np.float32),
            "mask": self._mask.astype(np.int8),
        }


gymnasium.register(id="podium/Placement-v0", entry_point=PlacementEnv)


NEXT, PLACED, DROPPED, GPU = range(4)
"""What `go_on` says: the next pod with a choice (behind the last: none), and pods and GPU thousandths on the way."""
Shown = NDArray[np.float32]


def showing(rule: Rule, memory: Memory) -> tuple[Rule, Memory]:
    """Have the first layer of a network, which is remembered, be the terms themselves."""
    none = np.zeros((0, 0))
    terms = KernelNetwork(np.eye(WEIGHED, len(TERMS)), none, none, none, np.zeros(0), none)
    shapes, nodes = memory.base.shape
    return rule._replace(network=terms), memory._replace(hidden=np.zeros((shapes, nodes, WEIGHED)))


@compiled
def go_on(
    pod: int,
    action: int,
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
    out: Shown,
    mask: Bools,
    counts: Ints,
) -> None:
    """Have node `action` hold a pod (−1: none yet), then go on to the next pod that fits several nodes.

    `out` gets nodes × terms of that pod, the price last, within ±100; `mask` the nodes that it fits.
    """
    counts[:] = 0
    i = pod
    if action >= 0:
        s = pods.shape[i]
        put(action, s, pods.memory[i], nodes, shapes, table, known, rule, hosts, scratch, memory)
        counts[PLACED] += 1
        counts[GPU] += shapes.gpus[s] * shapes.milli[s]
        i += 1
    while i < len(pods.shape):
        s = pods.shape[i]
        need = pods.memory[i]
        refresh(s, nodes, shapes, table, known, rule, hosts, scratch, memory)
        renew_prices(memory, PRICE_STEP)
        base = memory.base[s]
        allowed = shapes.allowed[pods.models[i]]
        feasible = 0
        only = -1
        for n in range(len(base)):
            mask[n] = base[n] != NOT_FEASIBLE and nodes.memory[n] >= need and allowed[nodes.model[n]]
            if mask[n]:
                feasible += 1
                only = n
        if feasible > 1:
            break
        if feasible == 1:
            put(only, s, need, nodes, shapes, table, known, rule, hosts, scratch, memory)
            counts[PLACED] += 1
            counts[GPU] += shapes.gpus[s] * shapes.milli[s]
        else:
            counts[DROPPED] += 1
        i += 1
    counts[NEXT] = i
    out[:, :] = 0.0
    if i >= len(pods.shape):
        mask[:] = False
        return
    s = pods.shape[i]
    half = 1.0 if pods.models[i] == 0 else 0.5
    last = out.shape[1] - 1
    for n in range(len(mask)):
        if mask[n]:
            for t in range(last):
                out[n, t] = min(max(memory.hidden[s, n, t], -100.0), 100.0)
            if shapes.gpus[s] > 0:
                out[n, last] = half * memory.prices[nodes.model[n]]
