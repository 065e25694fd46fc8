"""Offers placement as a Gymnasium environment, `podium/Placement-v0`: one step is one pod with a choice.

    observation  nodes (nodes × terms: state terms before minus after, action terms, price), pod, global (prices), mask
    action       the position of a node; one that the mask excludes is taken as the first that it allows
    reward       GPU placed as a share of the capacity

A pod that fits one node is placed without asking, one that fits none is dropped; there is no way to refuse a pod. Terms
are those of `podium_plugins.gpu.terms`, within ±100; nodes and filters are the kernel's. The device that a share gets
is the one that a policy's score is best with, where one is given, otherwise the one with the least left that suffices.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from podium_lab.learning.env_kernel import DROPPED, GPU, NEXT, PLACED, WEIGHED, go_on, showing
from podium_lab.learning.extra import needed
from podium_lab.learning.kernel import KernelPlan, KernelRun, Scorer, Workload, call, plan_of
from podium_lab.learning.kernel_state import KernelNode, KernelPod
from podium_lab.learning.lists import shuffled
from podium_plugins.gpu.terms import GROUPS, TERMS, group_of

gymnasium = needed("gymnasium")
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
