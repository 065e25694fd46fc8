"""Weighs few nodes in use, well used nodes and short latency against each other.

    P0 = w1·(1 − |E|/W) + w2·mean of u over E + w3·L

W are the nodes that the pod fits, E those of them with pods, u the dominant share of a node, all as they would be after
the placement on the node that is scored. L is 1 up to the soft limit, 0 from the hard one on, and linear between;
NEUTRAL where the latency isn't known, or the pod has no limit. So P0 lies within 0 and 1 where the weights add up to 1.

Computes with NumPy or jax.numpy; arrays may have leading axes, and nodes are the last one.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

NEUTRAL: Final = 0.5


class ConsolidationWeights(NamedTuple):
    """w1, w2 and w3."""

    nodes: float = 1 / 3
    use: float = 1 / 3
    latency: float = 1 / 3


def latency_merit(xp: Any, latency: Any, soft: Any, hard: Any) -> Any:
    """L of each node; limits are `[…]`, NaN where there is none. With one limit, the other is taken to be equal."""
    soft, hard = xp.asarray(soft), xp.asarray(hard)
    low = xp.where(xp.isnan(soft), hard, soft)[..., None]
    high = xp.where(xp.isnan(hard), soft, hard)[..., None]
    width = high - low
    between = xp.clip((high - latency) / xp.where(width > 0, width, 1.0), 0.0, 1.0)
    merit = xp.where(latency <= low, 1.0, xp.where(width > 0, between, 0.0))
    return xp.where(xp.isnan(latency) | xp.isnan(high), NEUTRAL, merit)


def consolidation(
    xp: Any, before: Any, after: Any, has_pods: Any, mask: Any, merit: Any, weights: ConsolidationWeights
) -> Any:
    """P0 of each node; `before` and `after` are dominant shares, `mask` says where the pod fits."""
    filled = mask & has_pods
    used = xp.where(filled, before, 0.0)
    number = filled.sum(axis=-1)[..., None] + xp.where(filled, 0, 1)
    total = used.sum(axis=-1)[..., None] - used + after
    nodes = xp.maximum(mask.sum(axis=-1)[..., None], 1)
    return weights.nodes * (1.0 - number / nodes) + weights.use * total / number + weights.latency * merit
