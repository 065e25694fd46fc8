"""Holds what is known of a workload as numbers that terms and prices are computed from.

    rho    thousandths of cpu per GPU over the typical pods that want GPUs
    U(r)   the largest sum of typical shares, each as often as wished, that is at most r
    V(r)   how far shares that arrive at random fill r:  V(r) = Σ_{d≤r} p_d·(d + V(r − d)) / Σ_{d≤r} p_d
    D(g)   the share of all requested GPU that comes from pods which accept nothing but model g; where they accept
           several, it is split by the GPUs there are of each

Typical pods are classes with their numbers (see `typical_pods`). Where none are known, rho is ten cores per GPU.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium_plugins.gpu.request import WHOLE, GpuRequest
from podium_plugins.gpu.typical_pods import PodType

USUAL_RHO = 10_000.0
MOST_PRICE = 4.0


class Knowledge(NamedTuple):
    """A workload as plain numbers and arrays; compiled code reads it too."""

    rho: float
    loss: NDArray[np.float64]
    """float64[1001]: (r − U(r))/1000 of a device with r left; 0 for none and for all."""
    expected_loss: NDArray[np.float64]
    """float64[1001]: (r − V(r))/1000, likewise."""


def knowledge_of(typical: Iterable[PodType]) -> Knowledge:
    """The numbers of some typical pods."""
    classes = [each for each in typical if each.request.gpus]
    gpu = sum(each.pods * each.request.total for each in classes)
    rho = sum(each.pods * each.cpu for each in classes) * WHOLE / gpu if gpu else 0.0
    shares: dict[int, int] = {}
    for each in classes:
        if each.request.sharing:
            shares[each.request.milli] = shares.get(each.request.milli, 0) + each.pods
    left = np.arange(WHOLE + 1)
    loss, expected = (left - largest_fill(shares)) / WHOLE, (left - expected_fill(shares)) / WHOLE
    for table in (loss, expected):
        table[[0, WHOLE]] = 0.0
    return Knowledge(rho or USUAL_RHO, loss, expected)


def largest_fill(shares: Iterable[int]) -> NDArray[np.int64]:
    """U(r) for r from 0 to 1000.

    >>> largest_fill([300, 450])[[299, 300, 800, 1000]].tolist()
    [0, 300, 750, 900]
    """
    sizes = sorted(shares)
    fill = np.zeros(WHOLE + 1, dtype=np.int64)
    for room in range(WHOLE + 1):
        fill[room] = max((size + int(fill[room - size]) for size in sizes if size <= room), default=0)
    return fill


def expected_fill(shares: Mapping[int, int]) -> NDArray[np.float64]:
    """V(r) for r from 0 to 1000; `shares` has the number of pods by size.

    >>> expected_fill({300: 1, 500: 1})[[299, 300, 500, 800]].tolist()
    [0.0, 300.0, 400.0, 750.0]
    """
    sizes = sorted(shares)
    fill = np.zeros(WHOLE + 1)
    for room in range(WHOLE + 1):
        fitting = [size for size in sizes if size <= room]
        if fitting:
            total = sum(shares[size] * (size + float(fill[room - size])) for size in fitting)
            fill[room] = total / sum(shares[size] for size in fitting)
    return fill


def constrained_demand(classes: Iterable[tuple[GpuRequest, int]], capacity: Mapping[str, int]) -> dict[str, float]:
    """D by model, of requests with their numbers of pods; `capacity` has the GPUs of the cluster by model."""
    demand = dict.fromkeys(sorted(capacity), 0.0)
    total = 0
    for request, pods in classes:
        gpu = pods * request.total
        total += gpu
        named = [model for model in request.models if capacity.get(model)]
        offered = sum(capacity[model] for model in named)
        for model in named:
            demand[model] += gpu * capacity[model] / offered
    return {model: gpu / total if total else 0.0 for model, gpu in demand.items()}


def price(demand: float, free: int, free_total: int) -> float:
    """The price of a model: above 1, the pods that accept nothing else would use it up before the cluster is full.

    >>> price(0.1, 500, 10_000), price(0.1, 0, 10_000), price(0.0, 0, 10_000)
    (2.0, 4.0, 0.0)
    """
    if demand <= 0.0:
        return 0.0
    return MOST_PRICE if free <= 0 else min(MOST_PRICE, demand * free_total / free)


PRICE_STEP = 0.05


class Prices:
    """The prices of a cluster's GPU models, kept until one of them has moved by `PRICE_STEP`; and how often they were
    renewed.

        price(g) = min(4, D(g) · idle GPU of the cluster / idle GPU of model g)

    Answers that depend on prices hold while `generation` is equal: renewed at every small step, they would hold for one
    pod only.
    """

    def __init__(self) -> None:
        self.generation = 0
        self.by_model: dict[str, float] = {}

    def renew(self, demand: Mapping[str, float], free: Mapping[str, int]) -> None:
        """Renew all where one has moved; `free` is the idle GPU by model, `demand` D by model."""
        total = sum(free.values())
        before = self.by_model
        for model, share in demand.items():
            if abs(price(share, free.get(model, 0), total) - before.get(model, 0.0)) >= PRICE_STEP:
                break
        else:
            return
        self.by_model = {model: price(share, free.get(model, 0), total) for model, share in demand.items()}
        self.generation += 1
