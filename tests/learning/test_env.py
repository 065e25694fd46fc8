"""The environment: valid for Gymnasium, the same for the same seed, and true to the kernel."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba")
pytest.importorskip("gymnasium")

from podium.learning.env import PlacementEnv
from podium.learning.kernel import KernelRun, Scorer
from podium.learning.lists import find_list, find_nodes, node_specs, pod_spec
from podium.placement.gpu.terms import GROUPS, TERMS
from tests.learning.lists import write_lists


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
    offered = env._capacity
    used = offered - int(env._memory.free.sum())
    first = offered * total
    assert first <= used <= first + 8000, "pods placed before the first step are in no reward"
    assert env.placed + env.dropped == 80


def test_what_it_shows_is_what_the_kernel_scores(env: Any, tmp_path: Path) -> None:
    """The weighted sum of a node's row is the kernel's score of that node, where there is one device to choose."""
    observation, _ = env.reset(seed=3)
    rng = np.random.default_rng(1)
    weights = np.zeros((len(GROUPS), len(TERMS)))
    weights[:, : len(TERMS) - 3] = rng.normal(size=len(TERMS) - 3)
    run = KernelRun(env._plan, Scorer(weights, 0.0, 1.0), "fixed")
    counts: dict[Any, int] = {}
    for kind in env._plan.kinds:
        counts[kind] = counts.get(kind, 0) + 1
    arguments = run.arguments(counts, 100)
    from podium.learning.kernel_choice import refresh

    shape = int(env._plan.pods.shape[env._next])
    if env._next:
        pytest.skip("the first pod had no choice")
    _, _, nodes, shapes, table, known, rule, hosts, scratch, memory = arguments
    refresh(shape, nodes, shapes, table, known, rule, hosts, scratch, memory)
    shown = observation["nodes"][:, :35].astype(float) @ weights[int(shapes.group[shape]), :35]
    fitting = observation["mask"].astype(bool)
    assert shown[fitting] == pytest.approx(memory.base[shape][fitting], abs=1e-3)
