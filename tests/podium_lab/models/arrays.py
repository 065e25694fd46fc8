"""Random clusters and pods as arrays, for tests of features, heuristics and scorers."""

from __future__ import annotations

import numpy as np

from podium_lab.models.features import ClusterArrays, PodArrays
from podium_lab.models.schema import CLASSES


def random_cluster(
    rng: np.random.Generator, width: int, *, lead: tuple[int, ...] = (), missing: float = 0.3
) -> ClusterArrays:
    """`width` nodes, some of them full, empty, without GPUs, or unmeasured."""
    shape = (*lead, width)
    capacity = rng.choice([4000.0, 16000.0, 64000.0], size=(*shape, 4)) * np.array([1.0, 1e6, 0.125, 0.001])
    capacity[..., 2] *= rng.integers(0, 2, size=shape)
    requested = np.floor(capacity * rng.random((*shape, 4)) * rng.integers(0, 2, size=(*shape, 1)))

    def measured(highest: float) -> np.ndarray:
        values = rng.random(shape) * highest
        return np.where(rng.random(shape) < missing, np.nan, values)

    used = np.stack([measured(1.0) for _ in range(4)], axis=-1) * capacity
    mask = rng.random(shape) < 0.8
    mask[..., 0] = True
    return ClusterArrays(
        capacity=capacity,
        requested=requested,
        used=used,
        connections=np.floor(measured(500.0)),
        traffic=measured(1e8),
        link_speed=np.where(rng.random(shape) < 0.5, np.nan, 1.25e8),
        latency=measured(200.0),
        age=measured(120.0),
        same_class=np.floor(requested[..., 3] * rng.random(shape)),
        mask=mask,
        nodes=np.full(lead, float(width + 3)),
        queue=np.full(lead, 17.0),
    )


def random_pod(rng: np.random.Generator, *, lead: tuple[int, ...] = ()) -> PodArrays:
    request = rng.choice([0.0, 100.0, 1000.0], size=(*lead, 4)) * np.array([1.0, 1e6, 1.0, 0.0])
    request[..., 3] = 1.0
    soft = np.where(rng.random(lead) < 0.5, np.nan, rng.random(lead) * 100)
    return PodArrays(
        request=request,
        latency_soft=soft,
        latency_hard=soft + 50.0,
        priority=rng.integers(-10, 10, size=lead).astype(float),
        pod_class=rng.integers(0, CLASSES, size=lead),
    )


def permuted(cluster: ClusterArrays, order: np.ndarray) -> ClusterArrays:
    """The same nodes in another order."""
    return ClusterArrays(*(each[order] if np.ndim(each) else each for each in cluster))
