"""Prefers nodes whose load is low and steady (LoadVariationRiskBalancing).

For cpu and for memory, with measured mean and standard deviation in percent of what the node offers:

    μ = (mean + what the pod asks for)/offer, σ = deviation/offer, both within 0–1
    σ ← σ^(1/sensitivity)·margin, within 0–1;   score = 100·(1 − (μ + σ)/2)

The node's score is the lower of the two, or that of the resource which is measured; nodes where neither is score 0. A
sensitivity of 0 lets no deviation below 1 count. A mean that is not measured is 0 where a deviation is; a deviation
that is not measured is 0, so that with metrics-server, which has none, this plugin spreads by the mean alone. Requests
are Kubernetes' own sums, with sidecars. Exponents other than 1 and 1/2 may differ from Go's in the last bit.
"""

from __future__ import annotations

from collections.abc import Hashable

import msgspec
import numpy as np

from podium import Cycle, DependsOn, Handle, NodePart, Plugin, Scores, as_scores
from podium.cluster import Nodes
from podium.kube import Pod
from podium.load import Floats, GenerationCounter, Utilisation, UtilisationArgs, commitment_of

NAME = "LoadVariationRiskBalancing"
_MIB = float(1 << 20)


class LoadVariationRiskBalancingArgs(
    UtilisationArgs, rename="camel", kw_only=True, frozen=True, forbid_unknown_fields=True
):
    safe_variance_margin: float = 1.0
    safe_variance_sensitivity: float = 1.0

    def __post_init__(self) -> None:
        for name in ("safe_variance_margin", "safe_variance_sensitivity"):
            if not getattr(self, name) >= 0:
                msgspec.structs.force_setattr(self, name, 1.0)


class LoadVariationRiskBalancing(Plugin):
    name = NAME
    trusted = True
    Args = LoadVariationRiskBalancingArgs
    depends_on = DependsOn(node=NodePart.OBJECT, claims=False)
    args: LoadVariationRiskBalancingArgs

    def __init__(self, args: LoadVariationRiskBalancingArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        source = args.checked_source()
        self._generation = GenerationCounter()
        self._cpu, self._memory = (
            Utilisation(handle, source, resource, self._generation, ("AVG", "Latest", ""), deviation=True)
            for resource in ("CPU", "Memory")
        )

    def answer_key(self, _pod: Pod) -> Hashable:
        return self._generation.count

    def score(self, cycle: Cycle, nodes: Nodes) -> Scores:
        wanted = commitment_of(cycle.pod, cycle.facts)
        cpu = self._points(nodes, self._cpu, nodes.allocatable("cpu").astype(np.float64), float(wanted.cpu))
        memory = self._points(nodes, self._memory, nodes.allocatable("memory") / _MIB, wanted.memory / _MIB)
        return as_scores(np.fmin(cpu, memory))  # of two the lower, of one that one, of none nothing

    def _points(self, nodes: Nodes, measured: Utilisation, offer: Floats, request: float) -> Floats:
        """float64[nodes]: the score by one resource, NaN where it is not measured."""
        mean, deviation = nodes.pick(measured.mean(nodes.cluster)), nodes.pick(measured.deviation(nodes.cluster))
        known = ~(np.isnan(mean) & np.isnan(deviation))
        some = offer > 0
        whole = np.where(some, offer, 1.0)
        used, spread = (_within(np.where(np.isnan(each), 0.0, each) * whole / 100, whole) for each in (mean, deviation))
        mu = _within((used + request) / whole, 1.0)
        sigma = _within(self._sensed(_within(spread / whole, 1.0)) * self.args.safe_variance_margin, 1.0)
        points = np.where(some, (1 - (mu + sigma) / 2) * 100, 0.0)
        return np.where(known, points, np.nan)

    def _sensed(self, sigma: Floats) -> Floats:
        sensitivity = self.args.safe_variance_sensitivity
        if sensitivity == 1:
            return sigma
        if sensitivity == 2:
            return np.sqrt(sigma)
        if sensitivity == 0:
            return np.where(sigma < 1, 0.0, 1.0)
        raised: Floats = np.power(sigma, 1 / sensitivity)
        return raised


def _within(numbers: Floats, most: Floats | float) -> Floats:
    return np.minimum(np.maximum(numbers, 0.0), most)
