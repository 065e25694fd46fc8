"""Computes the features of nodes, pod and cluster that models are given.

    used/cap, requested/cap, (requested + request)/cap, free/highest cap      of cpu, memory, gpu and pods
    residual      what is left of the resources that the pod asks for, as a share of the node, after placing it
    connections   log(1 + c) / log(1 + highest)       traffic   bytes a second / link speed, else / highest
    latency       ms / the pod's hard limit; 1 without one          age   of the newest sample, 60 s count 1
    …-known       1 where the metric is known of the node, else 0, and then the value is 0

"Highest" and the means are over the feasible nodes (`mask`), so a node that isn't feasible changes nothing about the
others but `feasible`, the share of nodes that are.

Every array may have leading axes (a batch); `xp` is NumPy or jax.numpy. Unknown numbers are NaN.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from podium_lab.models.schema import CLASSES, LIMIT, PODS

Array = Any
"""An array of the module that is computed with."""

TYPE_LABELS: Final = ("app.kubernetes.io/name", "app", "name")
FULL_AGE: Final = 60.0
FULL_PRIORITY: Final = 1_000_000_000.0
FULL_QUEUE: Final = 10_000.0


class ClusterArrays(NamedTuple):
    """What is known of the nodes; `[…, W]`, or `[…, W, 4]` for amounts in the order of `schema.RESOURCES`."""

    capacity: Array
    """What nodes offer."""
    requested: Array
    """What the pods on them ask for."""
    used: Array
    """What is used, as measured; NaN where it's not known. That of pods is not read: it's what is requested."""
    connections: Array
    """Established TCP connections; NaN where not known, as in the next four."""
    traffic: Array
    """Bytes a second, received and sent."""
    link_speed: Array
    """Bytes a second that the link can carry."""
    latency: Array
    """Milliseconds from the node to the users."""
    age: Array
    """Seconds since the newest sample."""
    same_class: Array
    """Pods of the pod's class on the node."""
    mask: Array
    """bool: whether the pod fits."""
    nodes: Array
    """[…]: how many nodes the cluster has; at least as many as fit."""
    queue: Array
    """[…]: pods that wait."""


class PodArrays(NamedTuple):
    """What is known of the pod: `[…, 4]` for its request, else `[…]`."""

    request: Array
    latency_soft: Array
    """Milliseconds; NaN without a limit."""
    latency_hard: Array
    priority: Array
    pod_class: Array
    """0 to CLASSES − 1."""


class Features(NamedTuple):
    """What a model is given, float32: `[…, W, F]`, `[…, P]`, `[…, G]`, and bool `[…, W]`."""

    nodes: Array
    pod: Array
    globals: Array
    mask: Array


def pod_class(labels: Mapping[str, str], name: str = "") -> int:
    """The class of a pod: a hash of the first of TYPE_LABELS that it has, else 0.

    >>> pod_class({"app": "web"}) == pod_class({"app": "web", "tier": "x"}), pod_class({})
    (True, 0)
    """
    found = next((labels[label] for label in TYPE_LABELS if label in labels), name)
    return zlib.crc32(found.encode()) % CLASSES if found else 0


def share(xp: Any, part: Array, whole: Array) -> Array:
    """part/whole, 0 where there is no whole."""
    return xp.where(whole > 0, part / xp.where(whole > 0, whole, 1.0), 0.0)


def known(xp: Any, numbers: Array, otherwise: Array | float = 0.0) -> Array:
    """The numbers, with something else where they aren't known."""
    return xp.where(xp.isnan(numbers), otherwise, numbers)


def dominant_share(xp: Any, amounts: Array, capacity: Array) -> Array:
    """The largest share of a resource: [W] of amounts[W, 4]."""
    return share(xp, amounts, capacity).max(axis=-1)


def feature_arrays(xp: Any, cluster: ClusterArrays, pod: PodArrays) -> Features:
    """The features of all nodes; those of nodes that don't fit are computed, too."""
    mask = cluster.mask
    capacity, requested = cluster.capacity, cluster.requested
    request = pod.request[..., None, :]
    with_pod = requested + request
    measured_used = xp.concatenate([cluster.used[..., :PODS], requested[..., PODS:]], axis=-1)
    highest_capacity = _highest(xp, capacity, mask[..., None], axis=-2)[..., None, :]
    free = share(xp, xp.maximum(capacity - requested, 0.0), highest_capacity)
    left = share(xp, capacity - with_pod, capacity)
    wanted = xp.broadcast_to(request > 0, left.shape)
    residual = (xp.where(wanted, left, 0.0)).sum(axis=-1) / xp.maximum(wanted.sum(axis=-1), 1)

    log_connections = xp.log1p(xp.maximum(known(xp, cluster.connections), 0.0))
    connections = share(xp, log_connections, _highest(xp, log_connections, mask)[..., None])
    flow = xp.maximum(known(xp, cluster.traffic), 0.0)
    link = known(xp, cluster.link_speed)
    traffic = xp.where(link > 0, share(xp, flow, link), share(xp, flow, _highest(xp, flow, mask)[..., None]))
    hard = xp.asarray(pod.latency_hard)[..., None]
    latency = xp.where(hard > 0, known(xp, cluster.latency) / xp.where(hard > 0, hard, 1.0), 1.0)
    latency = xp.where(xp.isnan(cluster.latency), 0.0, latency)
    age = xp.clip(known(xp, cluster.age, FULL_AGE) / FULL_AGE, 0.0, 1.0)
    pods = requested[..., PODS]
    alone = [residual, connections, traffic, latency, age, 1.0 * (pods <= 0), share(xp, cluster.same_class, pods)]
    metrics = [*(cluster.used[..., i] for i in range(PODS)), cluster.connections, cluster.traffic, cluster.latency]
    alone += [1.0 - xp.isnan(metric) for metric in metrics]
    nodes = xp.concatenate(
        [
            share(xp, known(xp, measured_used), capacity),
            share(xp, requested, capacity),
            share(xp, with_pod, capacity),
            free,
            xp.stack(alone, axis=-1),
        ],
        axis=-1,
    )
    of_pod = xp.concatenate([share(xp, request, highest_capacity)[..., 0, :], _pod_alone(xp, pod)], axis=-1)
    return Features(
        _bounded(xp, nodes), _bounded(xp, of_pod), _bounded(xp, _global(xp, cluster, requested, capacity)), mask
    )


def _pod_alone(xp: Any, pod: PodArrays) -> Array:
    priority = xp.clip(pod.priority / FULL_PRIORITY, -1.0, 1.0)
    bits = [1.0 - xp.isnan(pod.latency_soft), 1.0 - xp.isnan(pod.latency_hard), priority]
    classes = 1.0 * (xp.arange(CLASSES) == xp.asarray(pod.pod_class)[..., None])
    return xp.concatenate([xp.stack(bits, axis=-1), classes], axis=-1)


def _global(xp: Any, cluster: ClusterArrays, requested: Array, capacity: Array) -> Array:
    mask = cluster.mask
    shares = dominant_share(xp, requested, capacity)
    fitting = mask.sum(axis=-1)
    mean = xp.where(mask, shares, 0.0).sum(axis=-1) / xp.maximum(fitting, 1)
    queue = xp.log1p(cluster.queue) / xp.log1p(xp.asarray(FULL_QUEUE))
    return xp.stack([share(xp, 1.0 * fitting, cluster.nodes), mean, _highest(xp, shares, mask), queue], axis=-1)


def _highest(xp: Any, numbers: Array, mask: Array, axis: int = -1) -> Array:
    """The highest of the feasible nodes, 0 where there is none; numbers are not negative."""
    return xp.where(mask, numbers, 0.0).max(axis=axis)


def _bounded(xp: Any, numbers: Array) -> Array:
    return xp.clip(xp.nan_to_num(numbers), -LIMIT, LIMIT).astype(xp.float32)
