"""Measures environments for learning: decisions a second of the batched one, on one core, and of the exact one.

The cluster has 64 nodes of three sizes in three zones, and the pods of the built-in scenario five times as fast: with
spreading, lifetimes, departures, and measurements that are late or missing. Compiling is measured apart.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np

from podium_lab.environments import dynamics
from podium_lab.environments.built_in import chosen_scenario
from podium_lab.environments.engine_episode import EngineEpisode
from podium_lab.environments.episode_tables import EpisodeSource
from podium_lab.environments.rewards import REWARDS
from podium_lab.learning.extra import needed
from podium_lab.models.heuristics import HEURISTICS
from podium_lab.models.set_scorer import forward, initial_weights
from podium_lab.simulator.reading import LoadedScenario

EPISODES, STEPS, ROUNDS = 64, 100, 5


class EnvironmentSpeed(msgspec.Struct, frozen=True):
    """How fast one policy steps one environment."""

    environment: str
    policy: str
    nodes: int
    clusters: int
    decisions_per_s: float
    compile_s: float


def wide_scenario() -> LoadedScenario:
    """The built-in scenario with 64 nodes, and pods five times as fast."""
    loaded = chosen_scenario(None)
    scenario = loaded.scenario
    assert isinstance(scenario.nodes, list)
    counts = (32, 21, 11)
    groups = [msgspec.structs.replace(group, count=count) for group, count in zip(scenario.nodes, counts, strict=True)]
    assert isinstance(scenario.workload, list)
    sources = []
    for source, seconds in zip(scenario.workload, (3, 2.4, 12), strict=True):
        assert source.generate is not None
        interval = msgspec.structs.replace(source.generate.interval, exponential=seconds)  # type: ignore[type-var]
        sources.append(
            msgspec.structs.replace(source, generate=msgspec.structs.replace(source.generate, interval=interval))
        )
    changed = msgspec.structs.replace(scenario, nodes=groups, workload=sources)
    return msgspec.structs.replace(loaded, scenario=changed)


def measure_environments(
    objective: str, clusters: Sequence[int], tell: Callable[[str, bool], None]
) -> list[EnvironmentSpeed]:
    """The batched environment with the objective's heuristic and with the set scorer, and the exact one."""
    jax = needed("jax", "train")
    jnp = jax.numpy

    loaded = wide_scenario()
    source = EpisodeSource(loaded)
    tables = jax.tree.map(jnp.asarray, source.pool(range(EPISODES)))
    game = dynamics.Game.of(source.timing, objective)
    weights = {name: jnp.asarray(each) for name, each in initial_weights(np.random.default_rng(0)).items()}

    def heuristic(state: Any) -> Any:
        return dynamics.heuristic_scores(game, tables, state, objective).argmax(axis=-1)

    def scorer(state: Any) -> Any:
        return forward(jnp, weights, dynamics.observe(game, tables, state))[0].argmax(axis=-1)

    found = []
    for number in clusters:
        for name, policy in ((objective, heuristic), ("set scorer", scorer)):
            tell(f"{name}, {number} clusters", False)

            def many(state: Any, policy: Any = policy) -> Any:
                def one(state: Any, _: Any) -> Any:
                    return dynamics.step(game, tables, state, policy(state))

                return jax.lax.scan(one, state, None, length=STEPS)

            run = jax.jit(many, donate_argnums=0)
            state = jax.jit(lambda e: dynamics.begin(game, tables, e))(jnp.arange(number) % EPISODES)
            began = time.perf_counter()
            state, _ = jax.block_until_ready(run(state))
            compiled = time.perf_counter() - began
            best = 0.0
            for _ in range(ROUNDS):
                began = time.perf_counter()
                state, _ = jax.block_until_ready(run(state))
                best = max(best, number * STEPS / (time.perf_counter() - began))
            found.append(EnvironmentSpeed("batched", name, source.width, number, round(best), round(compiled, 1)))
            tell(name, True)
    tell("the exact environment", False)
    found.append(_exact(loaded, source, objective))
    tell("exact", True)
    return found


def _exact(loaded: LoadedScenario, source: EpisodeSource, objective: str) -> EnvironmentSpeed:
    known = source.timing.survey
    episode = EngineEpisode(loaded, 1, source.width, known, REWARDS[objective], masked=objective == "latency-aware")
    began, steps = time.perf_counter(), 0
    while episode.shown is not None and steps < 5 * STEPS:
        shown = episode.shown
        episode.features()
        scores = HEURISTICS[objective](np, shown.cluster, shown.pod, shown.gpus)
        episode.step(int(np.where(shown.cluster.mask, scores, -np.inf).argmax()))
        steps += 1
    return EnvironmentSpeed("exact", objective, source.width, 1, round(steps / (time.perf_counter() - began)), 0.0)
