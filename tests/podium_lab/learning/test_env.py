"""The environment: valid for Gymnasium, the same for the same seed, and true to the kernel."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba")
pytest.importorskip("gymnasium")

from podium_lab.learning.env import PlacementEnv
from podium_lab.learning.kernel import KernelRun, Scorer
from podium_lab.learning.lists import find_list, find_nodes, node_specs, pod_spec
from podium_plugins.gpu.terms import GROUPS, TERMS
from tests.podium_lab.learning.lists import write_lists

pytestmark = pytest.mark.long  # compiling takes most of the time


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> Any:
    data = write_lists(tmp_path_factory.mktemp("lists"), nodes=12, pods=80)
    pods = [pod_spec(pod) for pod in find_list("made", data).pods]
    return PlacementEnv(node_specs(find_nodes(data)), pods)


def play(env: Any, seed: int) -> list[tuple[int, float]]:
    """An episode that always takes the first node that fits."""
    seen = []
    observation, _ = env.reset(seed=seed)
    over = False
    while not over:
        action = int(observation["mask"].argmax())
        observation, reward, over, _, _ = env.step(action)
        seen.append((action, reward))
        assert all(np.isfinite(each).all() for each in observation.values())
    return seen


def test_gymnasium_accepts_it(env: Any) -> None:
    check_env = pytest.importorskip("gymnasium.utils.env_checker").check_env
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_env(env, skip_render_check=True)


def test_the_same_seed_gives_the_same_episode(env: Any) -> None:
    assert play(env, 5) == play(env, 5)
    assert play(env, 5) != play(env, 6)


def test_rewards_add_up_to_the_gpu_that_was_placed(env: Any) -> None:
    total = sum(reward for _, reward in play(env, 1))
    offered = env.episode.capacity
    used = offered - int(env.episode.memory.free.sum())
    first = offered * total
    assert first <= used <= first + 8000, "pods placed before the first step are in no reward"
    assert env.episode.placed + env.episode.dropped == 80


def world(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    data = write_lists(tmp_path_factory.mktemp("lists"), nodes=12, pods=80)
    return node_specs(find_nodes(data)), [pod_spec(pod) for pod in find_list("made", data).pods]


@pytest.mark.parametrize("seed", range(3))
def test_who_takes_the_node_with_the_best_sum_of_terms_decides_as_the_kernel(
    seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """From the empty cluster to the full one: what is shown of nodes is what the kernel scores them by."""
    nodes, pods = world(tmp_path_factory)
    weights = np.zeros((len(GROUPS), len(TERMS)))
    weights[:, :35] = np.random.default_rng(seed).normal(size=(len(GROUPS), 35))
    weights[1:, 37] = -0.5
    scorer = Scorer(weights, 50.0, 5.0)
    env = PlacementEnv(nodes, pods, scorer=scorer)
    observation, _ = env.reset(seed=seed)
    run = KernelRun(env.episode.plan, scorer, "fixed")
    counts: dict[Any, int] = {}
    for kind in env.episode.plan.kinds:
        counts[kind] = counts.get(kind, 0) + 1
    run.static(counts)
    over, asked = False, 0
    while not over:
        at, fits = env.episode.at, observation["mask"].astype(bool)
        group = int(observation["pod"][3:].argmax())
        raw = observation["nodes"].astype(float) @ weights[group, [*range(35), 37]]
        points = np.clip(np.floor(50.0 + 5.0 * raw + 0.5), 0, 100)
        best = int(np.where(fits, points, -1).argmax())
        assert best == run.chosen[at]
        observation, _, over, _, _ = env.step(best)
        asked += 1
    assert asked > 40
    assert env.episode.placed == int((run.chosen >= 0).sum())
