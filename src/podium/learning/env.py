"""Offers placement as a Gymnasium environment, `podium/Placement-v0`: one step is one pod with a choice.

    observation  nodes (nodes × terms: state terms before minus after, action terms, price), pod, global (prices), mask
    action       the position of a node; one that the mask excludes is taken as the first that it allows
    reward       GPU placed as a share of the capacity

A pod that fits one node is placed without asking, one that fits none is dropped; there is no way to refuse a pod.
Terms are those of `placement.gpu.terms`, nodes are those of the kernel, filters are the kernel's. Terms are divided by
constants, so that numbers are about 1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from podium.learning.env_kernel import observe_nodes, put_on
from podium.learning.extra import needed
from podium.learning.kernel import KernelRun, Scorer, Workload, call, plan_of
from podium.learning.kernel_choice import renew_prices
from podium.learning.kernel_state import KernelNode, KernelPod
from podium.learning.lists import shuffled
from podium.placement.gpu.prices import PRICE_STEP
from podium.placement.gpu.terms import ACTION, GROUPS, STATE, TERMS, group_of

gymnasium = needed("gymnasium")
FEATURES = len(STATE) + len(ACTION) + 1
POD = 3 + len(GROUPS)
HOSTS = 7
"""Which of the kernel's arguments says whether H, Hf and Hg are computed."""
MOST = 100.0
"""Terms are kept within this."""


class PlacementEnv(gymnasium.Env):  # type: ignore[misc, name-defined]
    """Pods of a list, in random order, on a cluster that is empty at the start."""

    def __init__(
        self, nodes: Sequence[KernelNode], pods: Sequence[KernelPod], workload: Workload | None = None
    ) -> None:
        """`workload` is what is known of the pods to come; without it, the pods themselves."""
        self._given, self._pods = tuple(nodes), tuple(pods)
        self._workload = workload or Counter((pod.cpu, pod.request) for pod in pods)
        spaces, many = gymnasium.spaces, len(self._given)
        self._models = sorted({node.model for node in self._given if node.gpus})
        self.action_space = spaces.Discrete(many)
        self.observation_space = spaces.Dict(
            {
                "nodes": spaces.Box(-MOST, MOST, (many, FEATURES), np.float32),
                "pod": spaces.Box(0.0, MOST, (POD,), np.float32),
                "global": spaces.Box(0.0, MOST, (len(self._models) + 1,), np.float32),
                "mask": spaces.MultiBinary(many),
            }
        )
        self._out = np.zeros((many, FEATURES))
        self._mask = np.zeros(many, dtype=np.bool_)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        drawn = int(self.np_random.integers(2**31))
        sequence = [self._pods[i] for i in np.random.default_rng(drawn).permutation(len(self._pods))]
        plan = self._plan = plan_of(shuffled(self._given, drawn), sequence)
        run = KernelRun(plan, Scorer(np.zeros((len(GROUPS), len(TERMS))), 0.0, 1.0), "fixed")
        self._arguments: list[Any] = list(run.arguments(self._workload, len(sequence) + 1))
        self._arguments[HOSTS] = True  # all terms are shown
        self._memory = self._arguments[-1]
        self._capacity = sum(plan.capacity.values())
        self._next = 0
        self.placed = self.dropped = 0
        self._advance()
        return self._observation(), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        allowed = bool(self._mask[action])
        node = int(action) if allowed else int(self._mask.argmax())
        reward = self._place(node)
        reward += self._advance()
        over = self._next >= len(self._plan.gpu)
        return self._observation(), reward, over, False, {"allowed": allowed}

    def _place(self, node: int) -> float:
        _, _, nodes, shapes = self._arguments[:4]
        put_on(node, self._next, self._plan.pods, nodes, shapes, self._memory)
        gpu = float(self._plan.gpu[self._next])
        self.placed += 1
        self._next += 1
        return gpu / self._capacity

    def _advance(self) -> float:
        """Go on to the next pod with a choice; gives the reward of those placed on the way."""
        reward = 0.0
        while self._next < len(self._plan.gpu):
            renew_prices(self._memory, PRICE_STEP)
            feasible = call(observe_nodes, self._next, *self._arguments, self._out, self._mask)
            if feasible > 1:
                return reward
            if feasible:
                reward += self._place(int(self._mask.argmax()))
            else:
                self.dropped += 1
                self._next += 1
        self._out[:], self._mask[:] = 0.0, False
        return reward

    def _observation(self) -> dict[str, Any]:
        pod = np.zeros(POD, dtype=np.float32)
        if self._next < len(self._plan.gpu):
            cpu, request = self._plan.kinds[self._next]
            pod[:3] = cpu / 10_000, request.gpus, request.milli / 1000
            pod[3 + group_of(request.gpus, request.milli)] = 1.0
        return {
            "nodes": np.clip(self._out, -MOST, MOST).astype(np.float32),
            "pod": np.clip(pod, 0.0, MOST),
            "global": self._memory.prices.astype(np.float32),
            "mask": self._mask.astype(np.int8),
        }


gymnasium.register(id="podium/Placement-v0", entry_point=PlacementEnv)
