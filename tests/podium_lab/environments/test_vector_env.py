"""The batched environment as a VectorEnv: seeds, autoreset, equal to so many single ones, and arrays for others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax")
pytest.importorskip("gymnasium")

import gymnasium

from podium_lab.environments.scheduling_env import SchedulingEnv
from podium_lab.environments.vector_env import SchedulingVectorEnv
from podium_lab.simulator.reading import load_scenario
from podium_lab.simulator.scenario import ScenarioError
from tests.podium_lab.environments.random_scenarios import random_scenario
from tests.podium_lab.simulator.scenarios import SMALL

pytestmark = pytest.mark.long  # compiling takes most of the time


@pytest.fixture(scope="module")
def envs() -> SchedulingVectorEnv:
    return SchedulingVectorEnv(num_envs=3, scenario=random_scenario(2), objective="least-connections")


def play(envs: Any, seed: int, steps: int) -> list[Any]:
    observation, _ = envs.reset(seed=seed)
    seen = []
    for _ in range(steps):
        observation, rewards, over, truncated, info = envs.step(observation["mask"].argmax(axis=1))
        assert envs.observation_space.contains(observation)
        assert not truncated.any()
        seen.append((observation, rewards, over, info))
    return seen


def test_gymnasium_makes_it() -> None:
    made = gymnasium.make_vec(
        "podium_lab:Podium/Scheduling-v0",
        num_envs=2,
        vectorization_mode="vector_entry_point",
        scenario=random_scenario(2),
    )
    assert made.metadata["autoreset_mode"] is gymnasium.vector.AutoresetMode.SAME_STEP
    observation, info = made.reset(seed=1)
    assert observation["mask"].shape == info["action_mask"].shape == observation["nodes"].shape[:2]


def test_the_same_seed_gives_the_same_trajectory(envs: SchedulingVectorEnv) -> None:
    first, again, other = play(envs, 5, 30), play(envs, 5, 30), play(envs, 6, 30)
    for one, same in zip(first, again, strict=True):
        assert all((one[0][name] == same[0][name]).all() for name in one[0])
        assert one[1].tolist() == same[1].tolist()
    assert [each[1].tolist() for each in first] != [each[1].tolist() for each in other]


def test_an_episode_that_is_over_begins_again_in_the_same_step(envs: SchedulingVectorEnv) -> None:
    seen = play(envs, 5, 40)
    ends = [each for each in seen if each[2].any()]
    assert len(ends) >= 2
    for observation, _, over, info in ends:
        assert info["_final_obs"].tolist() == over.tolist()
        assert not info["final_obs"]["mask"][over].any()
        assert observation["nodes"][over][..., 4:8].max() == 0.0, "the new cluster is empty"


def test_so_many_clusters_are_so_many_single_ones(envs: SchedulingVectorEnv) -> None:
    together = play(envs, 9, 15)
    for number in range(3):
        single = SchedulingVectorEnv(num_envs=1, scenario=random_scenario(2), objective="least-connections")
        alone = play(single, 9 + number, 15)
        for one, all_of_them in zip(alone, together, strict=True):
            np.testing.assert_array_equal(one[0]["nodes"][0], all_of_them[0]["nodes"][number])
            assert one[1][0] == all_of_them[1][number]


def test_the_exact_environment_gives_the_same_rewards(envs: SchedulingVectorEnv) -> None:
    exact = SchedulingEnv(scenario=random_scenario(2), objective="least-connections")
    exact.reset(seed=9)
    observation, _ = envs.reset(seed=9)
    total = expected = 0.0
    over = False
    while not over:
        fits, action = observation["mask"][0].any(), observation["mask"].argmax(axis=1)
        if fits:
            expected += exact.step(int(action[0]))[1]
        observation, rewards, ends, _, _ = envs.step(action)
        total, over = total + float(rewards[0]), bool(ends[0])
    assert total == pytest.approx(expected, abs=0.05)


def test_arrays_go_to_other_libraries_without_copying() -> None:
    envs = SchedulingVectorEnv(num_envs=2, scenario=random_scenario(2), arrays="jax")
    observation, _ = envs.reset(seed=1)
    taken = np.from_dlpack(observation["nodes"])
    assert taken.ctypes.data == observation["nodes"].unsafe_buffer_pointer()
    _, rewards, _, _, _ = envs.step(np.array([0, 1], dtype=np.int32))
    assert hasattr(rewards, "__dlpack__")


def test_a_scenario_with_more_than_is_modelled_is_refused_by_name() -> None:
    wrong = load_scenario(SMALL + "faults: [{kind: fail, at: 1m}]\n", "faulty.yaml")
    with pytest.raises(ScenarioError, match="faults: the batched environment doesn't model it"):
        SchedulingVectorEnv(scenario=wrong)
