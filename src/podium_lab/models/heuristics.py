"""Scores nodes by the greedy heuristic of each objective: baseline, fallback, and teacher of a model.

u is a node's dominant share, u⁺ that after the placement; of the W nodes that the pod fits, E have pods. Larger is
better.

    least-allocated     −u⁺
    most-allocated      u⁺/2 − 1 where the node is empty and some node with pods fits
    least-connections   −connections; a node of which nothing is known counts as the median node
    latency-aware       ((1 − |E|/W) + mean u over E + L) / 3, as `podium_plugins.latency_aware` has it;
                        a node beyond the hard limit is taken last
    fragmentation       what GPU fragmentation the placement takes away; see `fragmentation`

Where nothing is measured, least-connections scores as least-allocated does, and latency-aware without L. `Heuristic`
is the same signature for all, for NumPy and jax.numpy; arrays may have leading axes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, NamedTuple, get_args

from podium_lab.models.features import Array, ClusterArrays, PodArrays, dominant_share, known
from podium_lab.models.schema import CPU, GPU, PODS
from podium_plugins.latency_aware import ConsolidationWeights, consolidation, latency_merit

Objective = Literal["least-allocated", "most-allocated", "least-connections", "latency-aware", "fragmentation"]
OBJECTIVES: Final = get_args(Objective)
LAST: Final = 10.0
"""More than any two scores of latency-aware differ by otherwise."""
WHOLE: Final = 1000.0


class GpuArrays(NamedTuple):
    """Devices and typical pods, for fragmentation; `[…, W, D]` and `[M]`."""

    free: Array
    """What each device has left, in thousandths; 0 where a node has fewer devices."""
    typical_cpu: Array
    typical_gpus: Array
    """How many devices a typical pod asks for."""
    typical_milli: Array
    """Thousandths of each device."""
    typical_share: Array
    """The share of such pods; they add up to 1."""


Heuristic = Callable[[Any, ClusterArrays, PodArrays, GpuArrays | None], Array]


def least_allocated(xp: Any, cluster: ClusterArrays, pod: PodArrays, _gpus: GpuArrays | None = None) -> Array:
    return -_after(xp, cluster, pod)


def most_allocated(xp: Any, cluster: ClusterArrays, pod: PodArrays, _gpus: GpuArrays | None = None) -> Array:
    empty = cluster.requested[..., PODS] <= 0
    others = (cluster.mask & ~empty).any(axis=-1)[..., None]
    return 0.5 * _after(xp, cluster, pod) - xp.where(empty & others, 1.0, 0.0)


def least_connections(xp: Any, cluster: ClusterArrays, pod: PodArrays, _gpus: GpuArrays | None = None) -> Array:
    unknown = ~cluster.mask | xp.isnan(cluster.connections)
    middle = _median(xp, cluster.connections, unknown)[..., None]
    measured = ~unknown.all(axis=-1)[..., None]
    return xp.where(measured, -known(xp, cluster.connections, middle), least_allocated(xp, cluster, pod))


def latency_aware(xp: Any, cluster: ClusterArrays, pod: PodArrays, _gpus: GpuArrays | None = None) -> Array:
    capacity = cluster.capacity
    merit = latency_merit(xp, cluster.latency, pod.latency_soft, pod.latency_hard)
    before, has_pods = dominant_share(xp, cluster.requested, capacity), cluster.requested[..., PODS] > 0
    late = cluster.latency > xp.asarray(pod.latency_hard)[..., None]
    weighed = consolidation(xp, before, _after(xp, cluster, pod), has_pods, cluster.mask, merit, ConsolidationWeights())
    return weighed - xp.where(late, LAST, 0.0)


def fragmentation(xp: Any, cluster: ClusterArrays, pod: PodArrays, gpus: GpuArrays | None = None) -> Array:
    """−ΔF/1000, F as in `podium_plugins.gpu.fragmentation`, without models of GPUs; a share takes the device on which
    that is best. Without `gpus` it scores as most-allocated does."""
    if gpus is None:
        return most_allocated(xp, cluster, pod)
    cpu = cluster.capacity[..., CPU] - cluster.requested[..., CPU]
    cpu_after = cpu - pod.request[..., None, CPU]
    before = _fragmented(xp, cpu, gpus.free, gpus)
    wanted = pod.request[..., None, GPU]
    sharing = (wanted > 0) & (wanted < WHOLE)
    whole = gpus.free >= WHOLE
    taken = whole & (xp.cumsum(whole, axis=-1) * WHOLE <= wanted[..., None])
    best = _fragmented(xp, cpu_after, xp.where(taken & ~sharing[..., None], 0.0, gpus.free), gpus)
    shared = xp.full(best.shape, xp.inf)
    for device in range(gpus.free.shape[-1]):
        here = xp.arange(gpus.free.shape[-1]) == device
        left = gpus.free - xp.where(here, wanted[..., None], 0.0)
        fits = left[..., device] >= 0
        shared = xp.minimum(shared, xp.where(fits, _fragmented(xp, cpu_after, left, gpus), xp.inf))
    after = xp.where(sharing, xp.where(xp.isinf(shared), before, shared), best)
    return (before - after) / 1000.0


def _fragmented(xp: Any, cpu: Array, free: Array, gpus: GpuArrays) -> Array:
    """F of each node: the GPU that typical pods can't use, in thousandths."""
    total = free.sum(axis=-1)
    found = xp.zeros(total.shape)
    for m in range(len(gpus.typical_share)):
        milli, number = gpus.typical_milli[m], gpus.typical_gpus[m]
        usable = free >= milli
        fits = (cpu >= gpus.typical_cpu[m]) & (usable.sum(axis=-1) >= number) & (number > 0)
        lost = xp.where(usable, 0.0, free).sum(axis=-1)
        found = found + gpus.typical_share[m] * xp.where(fits, lost, total)
    return found


def _after(xp: Any, cluster: ClusterArrays, pod: PodArrays) -> Array:
    """u⁺: the dominant share of each node with the pod."""
    return dominant_share(xp, cluster.requested + pod.request[..., None, :], cluster.capacity)


def _median(xp: Any, numbers: Array, unknown: Array) -> Array:
    """The lower median of the known numbers, 0 where there is none."""
    ordered = xp.sort(xp.where(unknown, xp.inf, numbers), axis=-1)
    count = (~unknown).sum(axis=-1)
    middle = xp.maximum(count - 1, 0) // 2
    found = xp.take_along_axis(ordered, middle[..., None], axis=-1)[..., 0]
    return xp.where(count > 0, found, 0.0)


HEURISTICS: Final[Mapping[str, Heuristic]] = {
    "least-allocated": least_allocated,
    "most-allocated": most_allocated,
    "least-connections": least_connections,
    "latency-aware": latency_aware,
    "fragmentation": fragmentation,
}
"""By the name of the objective."""
