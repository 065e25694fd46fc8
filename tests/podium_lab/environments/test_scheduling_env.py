"""The exact environment: valid for Gymnasium, the same for the same seed, and true to the simulation."""

from __future__ import annotations

import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pytest

pytest.importorskip("gymnasium")

import gymnasium

from podium.cluster import Nodes
from podium.plugins import load_registry
from podium_lab.environments.built_in import chosen_scenario
from podium_lab.environments.rewards import RewardedPlacement
from podium_lab.environments.scheduling_env import SchedulingEnv
from podium_lab.learning.extra import LearningError
from podium_lab.models.features import feature_arrays
from podium_lab.models.heuristics import OBJECTIVES
from podium_lab.models.node_arrays import NodeArrays
from podium_lab.models.schema import NODE, F, G, P
from podium_lab.simulator.profiles import configuration
from podium_lab.simulator.reading import LoadedScenario, load_scenario
from podium_lab.simulator.run import SimulatedRun
from tests.podium_lab.environments.random_scenarios import random_scenario
from tests.podium_lab.simulator.scenarios import SMALL

NAME = "podium_lab:Podium/Scheduling-v0"
MEASURED = """
usage: {interval: 10s, late: 5s, connections: 7}
"""


def small(extra: str = "") -> LoadedScenario:
    return load_scenario(SMALL + extra, "small.yaml")


def play(env: Any, seed: int, most: int = 1000) -> list[tuple[int, float]]:
    observation, _ = env.reset(seed=seed)
    seen: list[tuple[int, float]] = []
    over = False
    while not over and len(seen) < most:
        action = int(observation["mask"].argmax())
        observation, reward, over, _, _ = env.step(action)
        seen.append((action, reward))
    return seen


def test_gymnasium_makes_and_accepts_it() -> None:
    env = gymnasium.make(NAME, objective="most-allocated", scenario=small(), max_steps=20)
    from gymnasium.utils.env_checker import check_env

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped, skip_render_check=True)


@pytest.mark.parametrize("first", ["podium_lab", "gymnasium"])
def test_it_is_registered_whichever_is_imported_first(first: str) -> None:
    code = f"import {first}, gymnasium, podium_lab; print(gymnasium.spec('Podium/Scheduling-v0').id)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (found.stdout.strip(), found.stderr) == ("Podium/Scheduling-v0", "")


def test_podium_lab_imports_neither_gymnasium_nor_jax() -> None:
    code = "import sys, podium_lab; print([each for each in ('gymnasium', 'jax', 'optax') if each in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert found.stdout.strip() == "[]"


def test_the_same_seed_gives_the_same_trajectory() -> None:
    env = SchedulingEnv(scenario=small(MEASURED), objective="least-connections")
    assert play(env, 5) == play(env, 5)
    assert play(env, 5) != play(env, 6)


def test_every_pod_of_the_simulation_is_placed_when_all_fit() -> None:
    loaded = load_scenario(SMALL.replace("{cpu: 4, memory: 8Gi}", "{cpu: 400, memory: 800Gi}"), "roomy.yaml")
    assert len(play(SchedulingEnv(scenario=loaded), 3)) == 60


def test_the_pods_are_those_of_the_simulation_with_the_seed() -> None:
    loaded = small()
    registry = load_registry(())
    run = SimulatedRun(loaded, "default", 7, configuration(loaded, loaded.scenario.profiles[0], registry), registry)
    assert run.run().table[-1].size
    env = SchedulingEnv(scenario=loaded)
    env.reset(seed=7)
    assert env._episode is not None
    assert env._episode.pod is not None
    assert env._episode.pod.key == "default/pod-0"


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_reward_of_every_objective_varies_without_a_scenario(objective: str) -> None:
    env = SchedulingEnv(objective=objective)
    env.reset(seed=1)
    rng = np.random.default_rng(1)
    rewards = []
    for _ in range(70):
        _, reward, over, truncated, _ = env.step(int(rng.choice(np.flatnonzero(env.action_masks()))))
        assert not over
        assert not truncated
        rewards.append(reward)
    assert len({round(each, 6) for each in rewards}) > 5


def test_an_objective_may_be_a_function() -> None:
    def first_node(_xp: Any, placed: RewardedPlacement) -> Any:
        return 1.0 * (placed.node == 0)

    env = SchedulingEnv(objective=first_node, scenario=small())
    env.reset(seed=1)
    assert [env.step(position)[1] for position in (0, 1, 0)] == [1.0, 0.0, 1.0]


def test_an_unknown_objective_is_refused_by_name() -> None:
    with pytest.raises(LearningError, match='there is no objective "tidy"; write one of least-allocated'):
        SchedulingEnv(objective="tidy", scenario=small())


def test_what_is_shown_matches_schema_and_mask() -> None:
    env = SchedulingEnv(scenario=random_scenario(1))
    observation, info = env.reset(seed=2)
    width = env.action_space.n
    assert {name: part.shape for name, part in observation.items()} == {
        "nodes": (width, F),
        "pod": (P,),
        "global": (G,),
        "mask": (width,),
    }
    assert observation["mask"].tolist() == info["action_mask"].tolist() == env.action_masks().astype(int).tolist()


def test_what_was_placed_is_shown_as_requested_of_its_node() -> None:
    env = SchedulingEnv(scenario=load_scenario(SMALL.replace("exponential: 2m", "exponential: 20h"), "staying.yaml"))
    env.reset(seed=1)
    env.step(2)
    observation = env.step(2)[0]
    requested = NODE.index("cpu-requested")
    assert observation["nodes"][:, requested].tolist() == [0.0, 0.0, 0.5, 0.0]
    assert observation["nodes"][:, NODE.index("empty")].tolist() == [1.0, 1.0, 0.0, 1.0]


def test_metrics_become_known_late() -> None:
    env = SchedulingEnv(scenario=small(MEASURED))
    env.reset(seed=1)
    ages = set()
    over = False
    while not over:
        over = env.step(0)[2]
        episode = env._episode
        assert episode is not None
        if episode.shown is not None:
            ages |= set(episode.shown.cluster.age[~np.isnan(episode.shown.cluster.age)].tolist())
    assert min(ages) >= 5.0
    assert max(ages) < 15.0


def test_the_step_limit_truncates_and_the_end_terminates() -> None:
    env = SchedulingEnv(scenario=small(), max_steps=3)
    env.reset(seed=1)
    assert [env.step(0)[2:4] for _ in range(3)] == [(False, False), (False, False), (False, True)]
    everything = SchedulingEnv(scenario=small())
    everything.reset(seed=1)
    over = truncated = False
    while not over:
        observation, _, over, truncated, _ = everything.step(0)
    assert not truncated
    assert not observation["mask"].any()


def test_the_built_in_scenario_is_one_that_simulate_reads() -> None:
    assert len(chosen_scenario(None).scenario.nodes) == 3  # type: ignore[arg-type]


def test_features_are_those_that_model_score_computes() -> None:
    """What was trained is what is served: the environment's arrays against those of the plugin, on the same cluster."""
    env = SchedulingEnv(scenario=small())
    env.reset(seed=3)
    episode = env._episode
    assert episode is not None
    for _ in range(30):
        decision = episode._open
        assert decision is not None
        arrays = NodeArrays(decision.runtime.handle, {}, with_gpus=False)
        rows = np.sort(decision.rows)
        situation = arrays.of(decision.cycle, Nodes(decision.cycle.cluster, rows))
        served = feature_arrays(np, situation.cluster, situation.pod)
        shown = episode.features()
        np.testing.assert_allclose(shown.nodes[rows], served.nodes, atol=1e-6)
        np.testing.assert_allclose(shown.pod, served.pod, atol=1e-6)
        np.testing.assert_allclose(shown.globals, served.globals, atol=1e-6)
        env.step(int(rows[-1]))
