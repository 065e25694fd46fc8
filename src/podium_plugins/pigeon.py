"""Prefers the node after whose choice the whole cluster looks best, by one of three objectives (PigeonHoling).

`objective` (POLICY_OBJECTIVE) is A_BINPACK, LOAD_BALANCE or CONSOLIDATE; `numResources` (NUM_RESOURCES, 2) says how
many of cpu, memory, pods, GPUs and ephemeral storage count. Objectives and points are described below; a point
counts 10 in the score. A node that the pod does not fit on scores 0; keeping the pod away is for other plugins.

A_BINPACK learns how much pods differ from every pod that it scores, before it scores it, each attempt once. What it has
learnt is lost when the process ends. Scores depend on all nodes and on all pods before, so they are never kept.

What nodes have and use, and what a pod requests, is read in the units that pods are compared in:

    number  resource            unit        used, by annotation              asked for
    0       cpu                 thousandth  requested-cpu                    at least 10
    1       memory              MiB         requested-memory (bytes)         at least 16
    2       pods                            requested-pods                   1
    3       GPUs                            requested-gpu
    4       ephemeral storage   GiB         requested-ephemeral-storage (bytes)

Bytes are rounded down. A pod asks for the sum over its containers; init containers do not count, for what is packed is
what stays. An annotation that is missing, unreadable or negative tells of no usage. The pods on a node tell too, and
sooner: a pod that has just been placed is in no annotation yet. So the higher of both counts, unless set otherwise.

An objective gives one number per candidate node, what a placement there would make of the cluster: less is better.

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

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from podium import (
    Cycle,
    DependsOn,
    FieldError,
    FieldPath,
    Handle,
    Plugin,
    PluginError,
    RowNumbers,
    Scores,
    filled,
    read_decimal,
)
from podium.cluster import Cluster, Nodes
from podium.kube import Pod, milli_of, parse_quantity, units_of

NAME = "PigeonHoling"
POINTS = 10
"""Points go from 0 to 10; each counts 10 in a score."""

MOST_PODS = 100
NAMES = ("cpu", "memory", "pods", "gpu", "ephemeral-storage")
UNITS = (1, 1 << 20, 1, 1, 1 << 30)
LEAST_REQUEST = (10, 16, 1, 0, 0)
CPU, PODS, GPU = 0, 2, 3
LARGEST = 2.0**62
"""More than any node has, and small enough to be squared."""

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

Objective = Literal["A_BINPACK", "LOAD_BALANCE", "CONSOLIDATE"]
NUM_RESOURCES = 2
MOST_RESOURCES = 5
VARIABLES = {"objective": "POLICY_OBJECTIVE", "num_resources": "NUM_RESOURCES"}


class PigeonHolingArgs(msgspec.Struct, rename="camel", kw_only=True, frozen=True, forbid_unknown_fields=True):
    """What counts, and how; the variables above stand in for what is left open."""

    objective: Objective | None = None
    num_resources: int | None = None
    """How many of cpu, memory, pods, GPU and ephemeral storage count, from the left."""
    policy_resource_index: int = 0
    """Which of them LOAD_BALANCE and CONSOLIDATE are about, counted from 0."""
    gpu_resource: str = "nvidia.com/gpu"
    usage: Literal["highest", "annotations", "pods"] = "highest"
    """Where usage is taken from: annotations, the requests of the pods on the node, or the higher of both."""
    compared: Literal["cluster", "candidates"] = "cluster"
    """The nodes whose usage is compared: all that take pods, or those the pod may go to."""

    def validate(self, path: FieldPath) -> Iterable[FieldError]:
        count = MOST_RESOURCES if self.num_resources is None else self.num_resources
        if not 1 <= count <= MOST_RESOURCES:
            yield FieldError.invalid(path.child("numResources"), count, f"must be from 1 to {MOST_RESOURCES}")
        elif not 0 <= self.policy_resource_index < count:
            limit = f"must be from 0 to {count - 1}"
            yield FieldError.invalid(path.child("policyResourceIndex"), self.policy_resource_index, limit)
        if not self.gpu_resource:
            yield FieldError.required(path.child("gpuResource"), "such as nvidia.com/gpu")

    @property
    def resource_count(self) -> int:
        return NUM_RESOURCES if self.num_resources is None else self.num_resources


class PigeonHoling(Plugin):
    name = NAME
    trusted = True
    Args = PigeonHolingArgs
    depends_on = DependsOn(kinds=())

    def __init__(self, args: PigeonHolingArgs, handle: Handle) -> None:
        super().__init__(filled(args, VARIABLES), handle)
        settings: PigeonHolingArgs = self.args
        self._objective = settings.objective or "A_BINPACK"
        self._prime = settings.policy_resource_index
        count = settings.resource_count
        if self._prime >= count:
            raise PluginError(f"policyResourceIndex is {self._prime}, but only {count} resources count")
        self._whole_cluster = settings.compared == "cluster"
        self._capacity_and_usage = CapacityAndUsage(count, settings.gpu_resource, settings.usage)
        self.moments = DemandMoments(count)
        self._learnt_from: Cycle | None = None

    def pre_score(self, cycle: Cycle, nodes: Nodes) -> None:
        """A cycle that starts over, because kept answers did not do, is one attempt all the same."""
        if self._objective == "A_BINPACK" and cycle is not self._learnt_from:
            self.moments.learn(self._capacity_and_usage.demand(cycle.pod))
            self._learnt_from = cycle

    def score(self, cycle: Cycle, nodes: Nodes) -> Scores:
        placements = self.placements(cycle, nodes)
        return POINTS * points(self.values(placements), placements.feasible)

    def placements(self, cycle: Cycle, nodes: Nodes) -> Placements:
        """The nodes to compare, with those given as candidates."""
        cluster, candidates = cycle.cluster, nodes.rows
        compared = np.zeros(cluster.columns.rows, dtype=np.bool_)
        if self._whole_cluster:
            compared |= cluster.present & ~cluster.unschedulable
        compared[candidates] = True
        return Placements(
            self._capacity_and_usage.capacity(cluster)[:, compared],
            self._capacity_and_usage.usage(cluster)[:, compared],
            self._capacity_and_usage.demand(cycle.pod),
            (np.cumsum(compared) - 1)[candidates],
        )

    def values(self, placements: Placements) -> Floats:
        """float64[candidate]: the objective, less is better; of no meaning where the pod does not fit."""
        if self._objective == "LOAD_BALANCE":
            return load_balance(placements, self._prime)
        if self._objective == "CONSOLIDATE":
            return consolidate(placements, self._prime)
        return adaptive_bin_packing(placements, self.moments)


# What nodes have and use


class CapacityAndUsage:
    """Capacity and usage of all rows: float64[resource, row], whole numbers."""

    def __init__(self, resources: int, gpu_resource: str, usage: str) -> None:
        self._count = resources
        self._gpu = gpu_resource
        self._usage = usage
        self._units = np.array(UNITS[: self._count], dtype=np.float64)[:, None]
        self._annotated = RowNumbers(self._count, self._annotated_on, dtype=np.float64)

    def capacity(self, cluster: Cluster) -> Floats:
        resources = cluster.resources
        offered = [
            resources.allowed_pods if number == PODS else resources.allocatable_of(self._name(number))
            for number in range(self._count)
        ]
        return self._in_units(np.array(offered, dtype=np.float64))

    def usage(self, cluster: Cluster) -> Floats:
        annotated = self._annotated.over_rows(cluster)
        if self._usage == "annotations":
            return self._in_units(annotated)
        resources = cluster.resources
        requested = [
            resources.pod_count if number == PODS else resources.requested_of(self._name(number))
            for number in range(self._count)
        ]
        used = np.array(requested, dtype=np.float64)
        return self._in_units(np.maximum(used, annotated) if self._usage == "highest" else used)

    def demand(self, pod: Pod) -> Floats:
        """float64[resource]: what the pod asks for."""
        requested = [
            1 if number == PODS else self._requested(pod, number) // UNITS[number] for number in range(self._count)
        ]
        return np.array(
            [each or least for each, least in zip(requested, LEAST_REQUEST, strict=False)], dtype=np.float64
        )

    def _requested(self, pod: Pod, number: int) -> int:
        name = self._name(number)
        amounts = (container.resources.requests.get(name) for container in pod.spec.containers)
        exact = sum(parse_quantity(amount) for amount in amounts if amount is not None)
        return max(0, milli_of(exact) if number == CPU else units_of(exact))

    def _annotated_on(self, cluster: Cluster, row: int) -> Sequence[float]:
        node = cluster.nodes[row]
        if node is None:
            return [0.0] * self._count
        return [_amount(node.annotations.get(f"requested-{name}")) for name in NAMES[: self._count]]

    def _name(self, number: int) -> str:
        return self._gpu if number == GPU else NAMES[number]

    def _in_units(self, amounts: Floats) -> Floats:
        whole: Floats = np.floor(amounts / self._units)
        return whole


def _amount(text: str | None) -> float:
    number = read_decimal(text)
    return min(number, LARGEST) if number is not None and 0 < number < np.inf else 0.0


# Objectives


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
