"""The batched environment against the engine, decision by decision: masks, features, rewards and ends are equal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax")

import jax
import jax.numpy as jnp

from podium_lab.environments import dynamics
from podium_lab.environments.engine_episode import EngineEpisode
from podium_lab.environments.episode_tables import EpisodeSource
from podium_lab.environments.rewards import REWARDS
from podium_lab.models.heuristics import OBJECTIVES
from podium_lab.simulator.reading import LoadedScenario
from tests.podium_lab.environments.random_scenarios import random_scenario

pytestmark = pytest.mark.long  # compiling takes most of the time

EACH = 50
"""Episodes of each random scenario: 20 scenarios make 1,000."""
CLOSE = 2e-3


class Pair:
    """An episode of the engine and the same one in the batch."""

    def __init__(self, episode: EngineEpisode) -> None:
        self.episode = episode
        self.expected: float | None = None
        self.found = 0.0
        self.over = False

    def compare(self, mask: Any, parts: tuple[Any, ...]) -> None:
        """What is shown is equal where the pod fits."""
        self.check_reward()
        shown = self.episode.features()
        assert shown.mask.tolist() == mask.tolist()
        for mine, own in zip(parts, (shown.nodes[mask], shown.pod, shown.globals), strict=True):
            np.testing.assert_allclose(mine, own, atol=CLOSE)

    def check_reward(self) -> None:
        if self.expected is not None:
            assert self.found == pytest.approx(self.expected, abs=CLOSE)
        self.expected, self.found = None, 0.0


def play(loaded: LoadedScenario, objective: str, seeds: range, choose: Callable[[Any], int]) -> int:
    """Both play the same episodes with the same actions; how many pods were placed."""
    source = EpisodeSource(loaded)
    game = dynamics.Game.of(source.timing, objective)
    tables = jax.tree.map(jnp.asarray, source.pool(seeds))
    step = jax.jit(lambda state, actions: dynamics.step(game, tables, state, actions))
    observe = jax.jit(lambda state: dynamics.observe(game, tables, state))
    state = jax.jit(lambda: dynamics.begin(game, tables, jnp.arange(len(seeds))))()
    reward, masked = REWARDS[objective], objective == "latency-aware"
    known = source.timing.survey
    pairs = [Pair(EngineEpisode(loaded, seed, source.width, known, reward, masked=masked)) for seed in seeds]
    placed = 0
    while not all(pair.over for pair in pairs):
        shown = jax.tree.map(np.asarray, observe(state))
        actions = np.zeros(len(pairs), dtype=np.int64)
        for i, pair in enumerate(pairs):
            if not pair.over and shown.mask[i].any():
                pair.compare(shown.mask[i], (shown.nodes[i][shown.mask[i]], shown.pod[i], shown.globals[i]))
                actions[i] = choose(shown.mask[i])
                pair.expected = pair.episode.step(int(actions[i]))
                placed += 1
        state, outcome = step(state, jnp.asarray(actions))
        for i, pair in enumerate(pairs):
            if not pair.over:
                pair.found += float(outcome.reward[i])
            if bool(outcome.over[i]) and not pair.over:
                pair.check_reward()
                assert pair.episode.over
                pair.over = True
    return placed


@pytest.mark.parametrize("seed", range(20))
def test_random_episodes_are_equal_to_the_engines(seed: int) -> None:
    rng = np.random.default_rng(seed)
    objective = OBJECTIVES[seed % len(OBJECTIVES)]
    placed = play(random_scenario(seed), objective, range(EACH), lambda mask: int(rng.choice(np.flatnonzero(mask))))
    assert placed > EACH
