"""Steps many placement environments at once: arrays with one row per environment, for training that needs many steps.

An environment that is over begins again with its next step (Gymnasium's next-step mode): that step's action is ignored,
its reward is 0, and its observation is the first of the new episode.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from podium_lab.learning.env import FEATURES, NO_WEIGHTS, POD, Episode, spaces_of
from podium_lab.learning.extra import needed
from podium_lab.learning.kernel import KernelPlan, Scorer, Workload, plan_of
from podium_lab.learning.kernel_state import KernelNode, KernelPod

gymnasium = needed("gymnasium")
vector = needed("gymnasium.vector")


class PlacementBatch(vector.VectorEnv):  # type: ignore[misc, name-defined]
    """So many clusters that are filled at the same time, each with the pods in an order of its own."""

    metadata: dict[str, Any] = {"autoreset_mode": vector.AutoresetMode.NEXT_STEP}  # noqa: RUF012  (Gymnasium's form)

    def __init__(
        self,
        number: int,
        nodes: Sequence[KernelNode],
        pods: Sequence[KernelPod],
        workload: Workload | None = None,
        scorer: Scorer = NO_WEIGHTS,
    ) -> None:
        self.num_envs, self._scorer = number, scorer
        self._workload = workload or Counter((pod.cpu, pod.request) for pod in pods)
        self.single_observation_space, self.single_action_space = spaces_of(nodes)
        self.observation_space = vector.utils.batch_space(self.single_observation_space, number)
        self.action_space = vector.utils.batch_space(self.single_action_space, number)
        self._plan = plan_of(nodes, pods)
        self._shown = np.zeros((number, len(nodes), FEATURES), dtype=np.float32)
        self._masks = np.zeros((number, len(nodes)), dtype=np.bool_)
        self._pods = np.zeros((number, POD), dtype=np.float32)
        self._prices = np.zeros((number, self.single_observation_space["global"].shape[0]), dtype=np.float32)
        self._episodes: list[Episode] = []

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        seeds = list(range(seed, seed + self.num_envs)) if isinstance(seed, int) else seed or [None] * self.num_envs
        self._random = [np.random.default_rng(each) for each in seeds]
        self._episodes = [self._begun(i) for i in range(self.num_envs)]
        return self._observation(), {}

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        rewards = np.zeros(self.num_envs)
        over = np.zeros(self.num_envs, dtype=np.bool_)
        for i, (episode, action) in enumerate(zip(self._episodes, actions.tolist(), strict=True)):
            if episode.over:
                self._episodes[i] = self._begun(i)
            else:
                rewards[i] = episode.step(action)
                over[i] = episode.over
        return self._observation(), rewards, over, np.zeros_like(over), {}

    def _begun(self, i: int) -> Episode:
        plan = _in_order(self._plan, self._random[i].permutation(len(self._plan.gpu)))
        return Episode(plan, self._workload, self._scorer, self._shown[i], self._masks[i])

    def _observation(self) -> dict[str, Any]:
        for i, episode in enumerate(self._episodes):
            self._pods[i] = episode.pod()
            self._prices[i] = episode.memory.prices
        return {
            "nodes": self._shown.copy(),
            "pod": self._pods.copy(),
            "global": self._prices.copy(),
            "mask": self._masks.astype(np.int8),
        }


def _in_order(plan: KernelPlan, order: Any) -> KernelPlan:
    pods = plan.pods._replace(**{name: np.take(each, order) for name, each in plan.pods._asdict().items()})
    kinds = tuple(plan.kinds[i] for i in order.tolist())
    return plan._replace(pods=pods, gpu=np.take(plan.gpu, order), kinds=kinds)
