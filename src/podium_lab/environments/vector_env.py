"""Offers many clusters at once as a Gymnasium VectorEnv, stepped by one compiled function (`dynamics`).

Cluster i begins with the episode of seed + i; when an episode is over, the same step begins the cluster's next one
(autoreset mode SAME_STEP): the observation is that one's first, and `info["final_obs"]` the end of the other. A pod
that fits nowhere is shown with a mask of zeros; the action is then ignored. With `arrays="jax"` observations, rewards
and ends are JAX arrays, which other libraries take over without copying: `torch.from_dlpack(observation["nodes"])`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np

from podium_lab.environments import dynamics
from podium_lab.environments.built_in import chosen_scenario
from podium_lab.environments.dynamics import ClusterBatch, Game
from podium_lab.environments.episode_tables import EpisodeSource, EpisodeTables
from podium_lab.environments.rewards import Reward
from podium_lab.environments.scheduling_env import chosen_reward, spaces_of
from podium_lab.learning.extra import needed
from podium_lab.simulator.reading import LoadedScenario
from podium_lab.simulator.scenario import Scenario

gymnasium = needed("gymnasium", "train")
vector = needed("gymnasium.vector", "train")
jax = needed("jax", "train")

LARGEST_SEED = 2**31


class SchedulingVectorEnv(vector.VectorEnv):  # type: ignore[misc, name-defined]
    """So many clusters that are scheduled at the same time."""

    metadata: dict[str, Any] = {"autoreset_mode": vector.AutoresetMode.SAME_STEP}  # noqa: RUF012  (Gymnasium's form)

    def __init__(
        self,
        num_envs: int = 1,
        objective: str | Reward = "least-allocated",
        scenario: str | Path | Scenario | LoadedScenario | None = None,
        episodes: int | None = None,
        arrays: Literal["numpy", "jax"] = "numpy",
    ) -> None:
        """`episodes`: how many different ones there are, by default four for each cluster; then they come again."""
        chosen_reward(objective)
        self.num_envs = num_envs
        self._source = EpisodeSource(chosen_scenario(scenario))
        self._game = Game.of(self._source.timing, objective)
        self._number = max(episodes or 4 * num_envs, num_envs)
        self._arrays = arrays
        self.single_observation_space, self.single_action_space = spaces_of(self._source.width)
        self.observation_space = vector.utils.batch_space(self.single_observation_space, num_envs)
        self.action_space = vector.utils.batch_space(self.single_action_space, num_envs)
        self._tables: EpisodeTables | None = None
        self._state: ClusterBatch | None = None

        def begin(tables: EpisodeTables) -> Any:
            state = dynamics.begin(self._game, tables, jax.numpy.arange(num_envs))
            return state, dynamics.observe(self._game, tables, state)

        def step(tables: EpisodeTables, state: ClusterBatch, actions: Any) -> Any:
            state, outcome = dynamics.step(self._game, tables, state, actions)
            return state, dynamics.observe(self._game, tables, state), outcome

        self._begin, self._step = jax.jit(begin), jax.jit(step, donate_argnums=1)

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Cluster i begins with the episode of `seed + i`, or of its own seed; without one, seeds are drawn."""
        first = seed if isinstance(seed, int) else None
        super().reset(seed=first)
        drawn = int(self.np_random.integers(LARGEST_SEED)) if first is None else first
        seeds = [drawn + i for i in range(self._number)]
        if isinstance(seed, list):
            seeds[: len(seed)] = [number if own is None else own for own, number in zip(seed, seeds, strict=False)]
        self._tables = jax.tree.map(jax.numpy.asarray, self._source.pool(seeds))
        self._state, features = self._begin(self._tables)
        shown = self._shown(features)
        return shown, {"action_mask": shown["mask"]}

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        if self._state is None or self._tables is None:
            raise gymnasium.error.ResetNeeded("call reset() first")
        taken = jax.numpy.from_dlpack(actions) if self._arrays == "jax" else np.asarray(actions)
        self._state, features, outcome = self._step(self._tables, self._state, taken)
        shown = self._shown(features)
        info: dict[str, Any] = {"action_mask": shown["mask"], "placed": self._given(outcome.placed)}
        over = self._given(outcome.over)
        if bool(over.any()):
            info["final_obs"] = {name: 0 * part for name, part in shown.items()}
            info["_final_obs"] = over
        return shown, self._given(outcome.reward), over, 0 * over > 0, info

    def action_masks(self) -> Any:
        """bool[B, W], under the name that libraries for masked actions ask for."""
        assert self._state is not None, "reset() comes first"
        return self._given(self._state.mask)

    def heuristic_actions(self, objective: str) -> Any:
        """What the greedy heuristic of an objective does."""
        assert self._state is not None, "reset() comes first"
        assert self._tables is not None
        scores = dynamics.heuristic_scores(self._game, self._tables, self._state, objective)
        return self._given(scores.argmax(axis=-1))

    def _shown(self, features: Any) -> dict[str, Any]:
        parts = {"nodes": features.nodes, "pod": features.pod, "global": features.globals}
        shown = {name: self._given(part) for name, part in parts.items()}
        return {**shown, "mask": self._given(features.mask.astype(np.int8))}

    def _given(self, array: Any) -> Any:
        return array if self._arrays == "jax" else np.array(array)
