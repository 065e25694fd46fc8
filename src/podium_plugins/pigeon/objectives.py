"""Values what a placement would make of the cluster, as one number per candidate node: less is better.

    LOAD_BALANCE  the standard deviation of x, the share in use of one resource, over all nodes
    CONSOLIDATE   1 − √(mean of t²), where t is how far x is from its mean x̄, as a share of how far it could be:
                  (x̄ − x)/x̄ below and (x − x̄)/(1 − x̄) above; 0 where x̄ is not between 0 and 1
    A_BINPACK     |γ(nodes) − γ(pods)|, γ = √(μᵀΣμ)/(μᵀμ), the coefficient of variation in many dimensions
                  (Albert and Zhang) of the nodes' utilisation and of what pods ask for, relative to the mean node.
                  Equal pods are spread; the more they differ, the more nodes are left to differ too.

Each candidate changes one node, so what depends on all nodes is summed up once and corrected for the one: the cost
grows with the nodes, not with their square. Utilisation is cut at 1 for A_BINPACK, x is not. Values are rounded to
single precision at the end, which makes equal nodes equal in spite of the order of summation.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

MOST_PODS = 100

Floats = NDArray[np.float64]


class DemandMoments:
    """How large pods are, and how much they differ: moments of their requests, learnt from the pods that come.

        c ← min(c + 1, 100), f = 1/c
        mean ← (1 − f)·mean + f·d        second ← (1 − f)·second + f·d·dᵀ

    The first hundred pods count equally; from then on each new one counts a hundredth, so that the mix of the last few
    hundred decides. Amounts are as requested; they are compared with the size of nodes only when that matters.
    """

    def __init__(self, resources: int) -> None:
        self.mean: Floats = np.zeros(resources)
        self.second: Floats = np.zeros((resources, resources))
        """The mean of the products of any two amounts."""
        self.pods = 0

    def learn(self, demand: Floats) -> None:
        self.pods = min(self.pods + 1, MOST_PODS)
        share = 1 / self.pods
        self.mean = (1 - share) * self.mean + share * demand
        self.second = (1 - share) * self.second + share * np.outer(demand, demand)

    @property
    def covariance(self) -> Floats:
        return self.second - np.outer(self.mean, self.mean)


Mask = NDArray[np.bool_]


class Placements(NamedTuple):
    """The nodes to be compared, and the candidates among them, each of which may get the pod."""

    capacity: Floats
    """float64[resource, node]"""
    usage: Floats
    """float64[resource, node]: without the pod."""
    demand: Floats
    """float64[resource]: what the pod asks for."""
    candidates: NDArray[np.intp]
    """Which nodes may get the pod."""

    @property
    def feasible(self) -> Mask:
        """bool[candidate]: the pod fits."""
        free = (self.capacity - self.usage)[:, self.candidates]
        fits: Mask = np.logical_and.reduce(self.demand[:, None] <= free)
        return fits


def load_balance(placements: Placements, resource: int) -> Floats:
    before, after, count = *_prime_shares(placements, resource), placements.capacity.shape[1]
    was = before[placements.candidates]
    mean = (before.sum() - was + after) / count
    square = ((before * before).sum() - was * was + after * after) / count
    deviation: Floats = np.sqrt(np.maximum(square - mean * mean, 0.0))
    return deviation


def consolidate(placements: Placements, resource: int) -> Floats:
    before, after, count = *_prime_shares(placements, resource), placements.capacity.shape[1]
    was = before[placements.candidates]
    mean = (before.sum() - was + after) / count
    inside = (mean > 0) & (mean < 1)
    mean = np.where(inside, mean, 0.5)
    # Σ(x̄ − x)² over the nodes below the mean, and over the others, from sums over the nodes in order of x.
    ordered = np.sort(before)
    sums = np.concatenate(([0.0], np.cumsum(ordered)))
    squares = np.concatenate(([0.0], np.cumsum(ordered * ordered)))
    below = np.searchsorted(ordered, mean)
    under = below * mean * mean - 2 * mean * sums[below] + squares[below]
    over = (count - below) * mean * mean - 2 * mean * (sums[-1] - sums[below]) + squares[-1] - squares[below]
    apart = under / (mean * mean) + over / ((1 - mean) * (1 - mean))
    apart += _apart(after, mean) - _apart(was, mean)
    return np.where(inside, 1 - np.sqrt(np.maximum(apart / count, 0.0)), 0.0)


def adaptive_bin_packing(placements: Placements, moments: DemandMoments) -> Floats:
    """Resources that no node has are left out: they tell nothing of nodes, and pods cannot be compared with them."""
    had = (placements.capacity > 0).any(axis=1)
    capacity, usage, demand = placements.capacity[had], placements.usage[had], placements.demand[had]
    chosen, count = placements.candidates, capacity.shape[1]
    before = _utilization(usage, capacity)
    was, after = before[:, chosen], _utilization(usage[:, chosen] + demand[:, None], capacity[:, chosen])
    mean = (before.sum(axis=1)[:, None] - was + after) / count
    second = ((before @ before.T)[:, :, None] - _products(was) + _products(after)) / count
    nodes_differ = _variation(mean, second - _products(mean))
    typical = (capacity.sum(axis=1) / np.maximum((capacity > 0).sum(axis=1), 1))[:, None]
    covariance = moments.covariance[np.ix_(had, had)] / (typical @ typical.T)
    pods_differ = _variation(moments.mean[had][:, None] / typical, covariance[:, :, None])
    apart: Floats = np.abs(nodes_differ - pods_differ)
    return apart


def points(values: Floats, feasible: Mask) -> NDArray[np.int64]:
    """From 10 for the best value to 1 for the worst, 0 where the pod does not fit; 10 for all where they are equal."""
    rounded = values.astype(np.float32).astype(np.float64)
    answer = np.zeros(len(values), dtype=np.int64)
    if not feasible.any():
        return answer
    low, high = rounded[feasible].min(), rounded[feasible].max()
    if high == low:
        answer[feasible] = 10
    else:
        shares = (high - rounded[feasible]) / (high - low)
        answer[feasible] = np.clip(np.floor(1 + 9 * shares + 0.5), 0, 10).astype(np.int64)
    return answer


def _prime_shares(placements: Placements, resource: int) -> tuple[Floats, Floats]:
    """The share in use of one resource: of each node as it is, and of each candidate with the pod."""
    capacity, usage = placements.capacity[resource], placements.usage[resource]
    chosen = placements.candidates
    return _share(usage, capacity), _share(usage[chosen] + placements.demand[resource], capacity[chosen])


def _share(usage: Floats, capacity: Floats) -> Floats:
    some = capacity > 0
    return np.where(some, usage / np.where(some, capacity, 1.0), 1.0)


def _utilization(usage: Floats, capacity: Floats) -> Floats:
    """A node that has nothing of a resource is full if it uses some, and otherwise empty."""
    some = capacity > 0
    return np.where(some, np.minimum(usage / np.where(some, capacity, 1.0), 1.0), np.where(usage > 0, 1.0, 0.0))


def _apart(share: Floats, mean: Floats) -> Floats:
    distance = np.where(share < mean, (mean - share) / mean, (share - mean) / (1 - mean))
    return distance * distance


def _products(amounts: Floats) -> Floats:
    """float64[resource, resource, n] of float64[resource, n]: any two amounts of each multiplied."""
    products: Floats = amounts[:, None, :] * amounts[None, :, :]
    return products


def _variation(mean: Floats, covariance: Floats) -> Floats:
    """γ of each of n: mean is float64[resource, n], covariance float64[resource, resource, n]."""
    spread = np.einsum("rn,rsn,sn->n", mean, covariance, mean)
    size = (mean * mean).sum(axis=0)
    some = (spread > 0) & (size > 0)
    return np.where(some, np.sqrt(np.where(some, spread, 0.0)) / np.where(some, size, 1.0), 0.0)
