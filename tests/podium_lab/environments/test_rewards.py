"""Rewards by hand: three nodes, one pod."""

from __future__ import annotations

import numpy as np
import pytest

from podium_lab.environments.rewards import REWARDS, RewardedPlacement, cost_of_none
from podium_lab.models.features import ClusterArrays, PodArrays
from podium_lab.models.heuristics import HEURISTICS, GpuArrays

NAN = np.nan


def placed(
    node: int, requested: list[float], *, connections: list[float] | None = None, units: float = 0.0
) -> RewardedPlacement:
    """A pod of two cores on one of the nodes with ten; the third is empty unless it says otherwise."""
    amounts = np.array([[1000 * cpu, 0.0, 0.0, 1.0 if cpu else 0.0] for cpu in requested])
    width = len(requested)
    cluster = ClusterArrays(
        capacity=np.tile([10_000.0, 1000.0, 0.0, 100.0], (width, 1)),
        requested=amounts,
        used=np.full((width, 4), NAN),
        connections=np.array(connections or [0.0] * width),
        traffic=np.full(width, NAN),
        link_speed=np.full(width, NAN),
        latency=np.array([20.0, 60.0, 120.0][:width]),
        age=np.zeros(width),
        same_class=np.zeros(width),
        mask=np.ones(width, dtype=np.bool_),
        nodes=np.int64(width),
        queue=np.float64(0),
    )
    pod = PodArrays(np.array([2000.0, 0.0, 0.0, 1.0]), np.float64(40), np.float64(80), np.float64(0), np.int64(0))
    gpus = GpuArrays(np.zeros((width, 1)), np.array([1000]), np.array([1]), np.array([1000.0]), np.array([1.0]))
    return RewardedPlacement(cluster, pod, np.int64(node), np.float64(units), gpus)


def reward(objective: str, found: RewardedPlacement) -> float:
    return float(REWARDS[objective](np, found))


def test_least_allocated_gives_the_emptiest_node_one_and_the_fullest_nothing() -> None:
    rewards = [reward("least-allocated", placed(node, [4, 2, 0])) for node in range(3)]
    assert rewards == pytest.approx([0.0, 0.5, 1.0])


def test_most_allocated_punishes_an_opened_node_and_time_with_nodes_in_use() -> None:
    assert reward("most-allocated", placed(0, [4, 2, 0])) == pytest.approx(0.5 * 0.6)
    assert reward("most-allocated", placed(2, [4, 2, 0])) == pytest.approx(0.5 * 0.2 - 1)
    assert reward("most-allocated", placed(0, [4, 2, 0], units=1.5)) == pytest.approx(0.3 - 1.5 * 2 / 3)
    assert reward("most-allocated", placed(2, [4, 2, 0], units=99)) == pytest.approx(0.1 - 1 - 4)


def test_the_first_pod_may_open_a_node() -> None:
    assert reward("most-allocated", placed(1, [0, 0, 0])) == pytest.approx(0.1)


def test_least_connections_rewards_the_node_with_the_fewest() -> None:
    rewards = [reward("least-connections", placed(node, [1, 1, 1], connections=[30, 10, 20])) for node in range(3)]
    assert rewards == pytest.approx([0.0, 1.0, 0.5], abs=1e-6)


def test_latency_aware_weighs_nodes_in_use_their_fill_and_the_latency() -> None:
    near = reward("latency-aware", placed(0, [4, 2, 0]))
    assert near == pytest.approx((1 - 2 / 3 + (0.6 + 0.2) / 2 + 1) / 3)
    middle = reward("latency-aware", placed(1, [4, 2, 0]))
    assert middle == pytest.approx((1 - 2 / 3 + (0.4 + 0.4) / 2 + 0.5) / 3)
    far = reward("latency-aware", placed(2, [4, 2, 0]))
    assert far == pytest.approx((0 + (0.4 + 0.2 + 0.2) / 3 + 0) / 3)


def test_a_pod_that_fits_nowhere_costs_its_share_of_the_largest_node() -> None:
    capacity = np.array([[4000.0, 100.0, 0.0, 10.0], [8000.0, 100.0, 0.0, 10.0]])
    assert cost_of_none(np, np.array([6000.0, 1.0, 0.0, 1.0]), capacity) == pytest.approx(-0.75)
    assert cost_of_none(np, np.array([80.0, 1.0, 0.0, 0.0]), capacity) == pytest.approx(-0.1)


@pytest.mark.parametrize("objective", ["least-allocated", "least-connections"])
def test_the_heuristic_takes_what_the_dense_reward_is_highest_for(objective: str) -> None:
    rng = np.random.default_rng(3)
    for _ in range(50):
        requested, connections = rng.uniform(0.1, 7, 3).tolist(), rng.uniform(0, 99, 3).tolist()
        found = [placed(node, requested, connections=connections) for node in range(3)]
        scores = HEURISTICS[objective](np, found[0].cluster, found[0].pod, None)
        assert int(scores.argmax()) == int(np.argmax([reward(objective, each) for each in found]))
