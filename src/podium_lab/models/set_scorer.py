"""Scores any number of nodes with one small network that doesn't care about their order.

    x, p, g   the features, scaled: clip((feature − mean)/deviation, −5, 5)
    h = φ([x, p, g])                          per node, two layers with tanh
    c = [mean of h, highest h]                over the feasible nodes
    score = ρ([h, c])                         per node: one layer with tanh, then one number
    value = v([c, p, g])                      of the state, for training: one layer with tanh, then one number

Weights don't depend on the number of nodes; permuted nodes get permuted scores; a node that isn't feasible changes no
other score. `forward` is the one definition: a scheduler runs it with NumPy, a training with jax.numpy, and an ONNX
graph holds the same steps. Matrices are [in, out], so that a layer is x @ w + b.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from podium_lab.models.features import Array, Features
from podium_lab.models.schema import LIMIT, F, G, P

UNITS: Final = 64
NOT_FEASIBLE: Final = -1e8
"""The score of a node that isn't feasible: finite, so that ONNX graphs and softmax can carry it."""

SCALING: Final = ("node_mean", "node_deviation", "pod_mean", "pod_deviation", "global_mean", "global_deviation")
LAYERS: Final = ("phi1", "phi2", "rho1", "rho2", "value1", "value2")
"""Each has a matrix `NAME_w` and a bias `NAME_b`."""

Weights = Mapping[str, Array]
"""Arrays by the names in SCALING and LAYERS."""


def layer_sizes(units: int = UNITS) -> dict[str, tuple[int, int]]:
    """(in, out) of each layer."""
    wide = F + P + G
    return {
        "phi1": (wide, units),
        "phi2": (units, units),
        "rho1": (3 * units, units),
        "rho2": (units, 1),
        "value1": (2 * units + P + G, units),
        "value2": (units, 1),
    }


def initial_weights(rng: np.random.Generator, units: int = UNITS) -> dict[str, Array]:
    """Weights to start a training with, float32; scaling changes nothing."""
    weights: dict[str, Array] = {}
    for name, width in (("node", F), ("pod", P), ("global", G)):
        weights[f"{name}_mean"] = np.zeros(width, dtype=np.float32)
        weights[f"{name}_deviation"] = np.ones(width, dtype=np.float32)
    for name, (wide, out) in layer_sizes(units).items():
        gain = 0.01 if name in ("rho2", "value2") else 1.0
        weights[f"{name}_w"] = (gain * rng.standard_normal((wide, out)) / np.sqrt(wide)).astype(np.float32)
        weights[f"{name}_b"] = np.zeros(out, dtype=np.float32)
    return weights


def scaled_features(xp: Any, weights: Weights, features: Features) -> tuple[Array, Array, Array]:
    """Nodes, pod and globals as the network sees them."""

    def scaled(name: str, numbers: Array) -> Array:
        return xp.clip((numbers - weights[f"{name}_mean"]) / weights[f"{name}_deviation"], -LIMIT, LIMIT)

    return scaled("node", features.nodes), scaled("pod", features.pod), scaled("global", features.globals)


def forward(xp: Any, weights: Weights, features: Features) -> tuple[Array, Array]:
    """The scores `[…, W]`, NOT_FEASIBLE where the pod doesn't fit, and the value of the state `[…]`."""
    x, p, g = scaled_features(xp, weights, features)
    mask = features.mask
    pg = xp.concatenate([p, g], axis=-1)
    units = weights["phi2_w"].shape[1]
    wide = x.shape[-1]
    # φ and ρ take nodes and context apart: the context's part is computed once, not once for each node.
    of_context = pg @ weights["phi1_w"][wide:] + weights["phi1_b"]
    hidden = xp.tanh(x @ weights["phi1_w"][:wide] + of_context[..., None, :])
    hidden = xp.tanh(hidden @ weights["phi2_w"] + weights["phi2_b"])
    fitting = mask[..., None]
    number = xp.maximum(mask.sum(axis=-1), 1)[..., None]
    mean = xp.where(fitting, hidden, 0.0).sum(axis=-2) / number
    highest = xp.where(fitting, hidden, -1.0).max(axis=-2)  # tanh is above −1
    context = xp.concatenate([mean, highest], axis=-1)
    of_context = context @ weights["rho1_w"][units:] + weights["rho1_b"]
    judged = xp.tanh(hidden @ weights["rho1_w"][:units] + of_context[..., None, :])
    scores = (judged @ weights["rho2_w"] + weights["rho2_b"])[..., 0]
    state = xp.concatenate([context, pg], axis=-1)
    value = xp.tanh(state @ weights["value1_w"] + weights["value1_b"]) @ weights["value2_w"] + weights["value2_b"]
    return xp.where(mask, scores, NOT_FEASIBLE), value[..., 0]
