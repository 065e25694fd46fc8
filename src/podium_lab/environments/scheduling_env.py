"""Offers scheduling as a Gymnasium environment, `Podium/Scheduling-v0`: exact, one cluster, one pod for each step.

    observation  nodes (W, F), pod (P), global (G): the features of `podium_lab.models.schema`; mask (W)
    action       the position of a node; one that the mask excludes counts as the first that it allows
    reward       by objective (`rewards`), and what it cost that pods fit nowhere before the next choice
    over         terminated when no pod is left to place, truncated after `max_steps`

Filters, placements and departures are those of `podium simulate` with the same seed: `reset(seed=7)` has the pods of
`podium simulate --seeds 7`. A pod that fits nowhere is not shown; it waits or leaves, as the scenario says.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from podium_lab.environments.built_in import chosen_scenario
from podium_lab.environments.engine_episode import EngineEpisode
from podium_lab.environments.rewards import REWARDS, Reward
from podium_lab.environments.survey import survey
from podium_lab.learning.extra import LearningError, needed
from podium_lab.models.heuristics import HEURISTICS
from podium_lab.models.schema import LIMIT, F, G, P
from podium_lab.simulator.nodes import scenario_nodes
from podium_lab.simulator.reading import LoadedScenario
from podium_lab.simulator.scenario import Scenario

gymnasium = needed("gymnasium", "train")

MOST_TRIED = 100
"""Seeds that are tried until an episode has a pod to place."""


def chosen_reward(objective: str | Reward) -> Reward:
    """The reward of an objective, by name, or a function of (array module, RewardedPlacement)."""
    if not isinstance(objective, str):
        return objective
    if objective not in REWARDS:
        raise LearningError(f'there is no objective "{objective}"; write one of {", ".join(REWARDS)}')
    return REWARDS[objective]


def spaces_of(width: int) -> tuple[Any, Any]:
    """The spaces of observations and actions for so many nodes."""
    spaces = gymnasium.spaces
    parts = {
        "nodes": spaces.Box(-LIMIT, LIMIT, (width, F), np.float32),
        "pod": spaces.Box(-LIMIT, LIMIT, (P,), np.float32),
        "global": spaces.Box(-LIMIT, LIMIT, (G,), np.float32),
        "mask": spaces.MultiBinary(width),
    }
    return spaces.Dict(parts), spaces.Discrete(width)


class SchedulingEnv(gymnasium.Env):  # type: ignore[misc, name-defined]
    """One cluster, decided pod by pod."""

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012  (Gymnasium's form)

    def __init__(
        self,
        objective: str | Reward = "least-allocated",
        scenario: str | Path | Scenario | LoadedScenario | None = None,
        width: int | None = None,
        max_steps: int | None = None,
    ) -> None:
        """`width`: positions for nodes, where more may join than there are at the start."""
        self._loaded = chosen_scenario(scenario)
        self._objective, self._reward = objective, chosen_reward(objective)
        self._known = survey(self._loaded)
        self._width = width or len(scenario_nodes(self._loaded))
        self._most = max_steps
        self.observation_space, self.action_space = spaces_of(self._width)
        self._episode: EngineEpisode | None = None
        self._steps = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """The scenario's seed is `seed`; without one, it's drawn."""
        super().reset(seed=seed)
        number = int(self.np_random.integers(2**31)) if seed is None else seed
        self._steps = 0
        for tried in range(MOST_TRIED):
            self._episode = EngineEpisode(
                self._loaded,
                number + tried,
                self._width,
                self._known,
                self._reward,
                masked=self._objective == "latency-aware",
            )
            if not self._episode.over:
                return self._observation()
        raise LearningError("no pod of the scenario fits any node")

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        episode = self._begun()
        reward = episode.step(int(action))
        self._steps += 1
        truncated = not episode.over and self._most is not None and self._steps >= self._most
        observation, info = self._observation()
        return observation, reward, episode.over, truncated, info

    def action_masks(self) -> Any:
        """bool[W], under the name that libraries for masked actions ask for."""
        shown = self._begun().shown
        return np.zeros(self._width, dtype=np.bool_) if shown is None else shown.cluster.mask

    def heuristic_action(self, objective: str | None = None) -> int:
        """What the greedy heuristic of an objective does, by default the environment's own."""
        shown = self._begun().shown
        name = objective or (self._objective if isinstance(self._objective, str) else "least-allocated")
        if shown is None:
            return 0
        scores = HEURISTICS[name](np, shown.cluster, shown.pod, shown.gpus)
        return int(np.where(shown.cluster.mask, scores, -np.inf).argmax())

    def _begun(self) -> EngineEpisode:
        if self._episode is None:
            raise gymnasium.error.ResetNeeded("call reset() first")
        return self._episode

    def _observation(self) -> tuple[dict[str, Any], dict[str, Any]]:
        episode = self._begun()
        if episode.over:
            empty = {name: np.zeros(space.shape, space.dtype) for name, space in self.observation_space.items()}
            return empty, {"action_mask": empty["mask"]}
        features = episode.features()
        mask = features.mask.astype(np.int8)
        shown = {"nodes": features.nodes, "pod": features.pod, "global": features.globals, "mask": mask}
        pod = episode.pod
        return shown, {"action_mask": mask, "pod": "" if pod is None else pod.key}
