"""Rewards the placement of a pod, by objective.

u⁺ is a node's dominant share after the placement, a the chosen node, E the nodes with pods; highest and lowest are over
the nodes that the pod fits. A pod that fits nowhere costs its dominant share of the largest node, and 0.1 at least.

    least-allocated     (highest u⁺ − u⁺ of a) / (highest u⁺ − lowest u⁺)
    most-allocated      u⁺ of a/2 − 1 where a was empty though a node with pods fitted − |E|/W for each unit of time
    least-connections   1 − (c of a − lowest c) / (highest c − lowest c)
    latency-aware       ((1 − |E|/W) + mean u over E + L) / 3, after the placement; L as in LatencyAware
    fragmentation       −ΔF/1000, the GPU fragmentation that the placement adds

Rewards go by what is true at the moment of the decision, not by what was measured. A unit of time is the scenario's
mean time between pods, at most MOST_UNITS count; E is taken right after the placement. `xp` is NumPy or jax.numpy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from podium_lab.models.features import Array, ClusterArrays, PodArrays, dominant_share
from podium_lab.models.heuristics import GpuArrays, fragmentation
from podium_lab.models.schema import PODS
from podium_plugins.latency_aware import latency_merit

MOST_UNITS: Final = 4.0
LEAST_COST: Final = 0.1
TINY: Final = 1e-9


class RewardedPlacement(NamedTuple):
    """A placement, as a reward sees it: the cluster just before it, with what is true where others see measurements."""

    cluster: ClusterArrays
    pod: PodArrays
    node: Array
    """[…]: the position of the chosen node."""
    units: Array
    """[…]: the time until the next pod comes."""
    gpus: GpuArrays | None


def least_allocated(xp: Any, placed: RewardedPlacement) -> Array:
    return _from_worst(xp, _after(xp, placed), placed)


def most_allocated(xp: Any, placed: RewardedPlacement) -> Array:
    cluster = placed.cluster
    filled = _filled(xp, cluster)
    opened = ~_at(xp, filled, placed.node) & (cluster.mask & filled).any(axis=-1)
    number = filled.sum(axis=-1) + xp.where(_at(xp, filled, placed.node), 0, 1)
    waited = xp.clip(placed.units, 0.0, MOST_UNITS) * number / xp.maximum(cluster.nodes, 1)
    return 0.5 * _at(xp, _after(xp, placed), placed.node) - xp.where(opened, 1.0, 0.0) - waited


def least_connections(xp: Any, placed: RewardedPlacement) -> Array:
    connections = placed.cluster.connections
    connections = xp.where(xp.isnan(connections), 0.0, connections)
    mask = placed.cluster.mask
    lowest = xp.where(mask, connections, xp.inf).min(axis=-1)
    highest = xp.where(mask, connections, -xp.inf).max(axis=-1)
    return 1.0 - (_at(xp, connections, placed.node) - lowest) / (highest - lowest + TINY)


def latency_aware(xp: Any, placed: RewardedPlacement) -> Array:
    cluster = placed.cluster
    chosen = xp.arange(cluster.mask.shape[-1]) == placed.node[..., None]
    filled = _filled(xp, cluster) | chosen
    shares = xp.where(chosen, _after(xp, placed), dominant_share(xp, cluster.requested, cluster.capacity))
    number = filled.sum(axis=-1)
    mean = xp.where(filled, shares, 0.0).sum(axis=-1) / number
    merit = _at(xp, latency_merit(xp, cluster.latency, placed.pod.latency_soft, placed.pod.latency_hard), placed.node)
    return (1.0 - number / xp.maximum(cluster.nodes, 1) + mean + merit) / 3.0


def less_fragmentation(xp: Any, placed: RewardedPlacement) -> Array:
    return _at(xp, fragmentation(xp, placed.cluster, placed.pod, placed.gpus), placed.node)


Reward = Callable[[Any, RewardedPlacement], Array]
REWARDS: Final[Mapping[str, Reward]] = {
    "least-allocated": least_allocated,
    "most-allocated": most_allocated,
    "least-connections": least_connections,
    "latency-aware": latency_aware,
    "fragmentation": less_fragmentation,
}
"""By objective."""


def cost_of_none(xp: Any, request: Array, capacity: Array) -> Array:
    """What a pod costs that fits nowhere: a negative reward."""
    largest = capacity.max(axis=-2)
    return -xp.maximum(dominant_share(xp, request, largest), LEAST_COST)


def _after(xp: Any, placed: RewardedPlacement) -> Array:
    return dominant_share(xp, placed.cluster.requested + placed.pod.request[..., None, :], placed.cluster.capacity)


def _from_worst(xp: Any, numbers: Array, placed: RewardedPlacement) -> Array:
    """How far the chosen number is below the highest, as a share of the range."""
    mask = placed.cluster.mask
    lowest = xp.where(mask, numbers, xp.inf).min(axis=-1)
    highest = xp.where(mask, numbers, -xp.inf).max(axis=-1)
    return (highest - _at(xp, numbers, placed.node)) / (highest - lowest + TINY)


def _filled(xp: Any, cluster: ClusterArrays) -> Array:
    return cluster.requested[..., PODS] > 0


def _at(xp: Any, numbers: Array, node: Array) -> Array:
    """The number of the chosen node: [W] → one."""
    return xp.take_along_axis(numbers, xp.asarray(node)[..., None], axis=-1)[..., 0]
