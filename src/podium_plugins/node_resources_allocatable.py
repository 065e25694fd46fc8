"""Prefers small nodes (mode Least) or large ones (Most), whatever runs on them (NodeResourcesAllocatable).

    raw = ±Σ allocatable·weight ÷ Σ weight, toward zero; minus for Least
    score = (raw − lowest)·100 ÷ (highest − lowest), 0 for all where nodes are equal

Amounts are thousandths of cpu, bytes, or units; a node has 0 of what it does not list. The sums of Least are negative,
so division toward zero is not the same as rounding down. Sums that outgrow 64 bits are computed exactly instead of
wrapping around.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np

from podium import MAX_SCORE, Cycle, DependsOn, FieldError, FieldPath, Int64, NodePart, Plugin, Scores, truncated_divide
from podium.cluster import Nodes

NAME = "NodeResourcesAllocatable"
LEAST, MOST = "Least", "Most"
_ROOM = 2**63 - 1


class AllocatableResource(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    name: str = ""
    weight: Int64 = 0


DEFAULT_RESOURCES = (
    AllocatableResource(name="cpu", weight=1 << 20),
    AllocatableResource(name="memory", weight=1),
)


class NodeResourcesAllocatableArgs(
    msgspec.Struct, rename="camel", kw_only=True, frozen=True, forbid_unknown_fields=True
):
    mode: str = LEAST
    resources: tuple[AllocatableResource, ...] = DEFAULT_RESOURCES

    def __post_init__(self) -> None:
        if not self.resources:
            msgspec.structs.force_setattr(self, "resources", DEFAULT_RESOURCES)
        if not self.mode:
            msgspec.structs.force_setattr(self, "mode", LEAST)

    @property
    def weights(self) -> dict[str, int]:
        """By resource; of one that is listed twice the last weight counts."""
        return {each.name: each.weight for each in self.resources}

    def validate(self, path: FieldPath) -> Iterator[FieldError]:
        if self.mode not in (LEAST, MOST):
            detail = f"invalid support ModeType; write {LEAST} or {MOST}"
            yield FieldError.invalid(path.child("mode"), self.mode, detail)
        for i, resource in enumerate(self.resources):
            if resource.weight <= 0:
                at = path.child("resources").index(i).child("weight")
                detail = f"resource weight of {resource.name} should be a positive value, got :{resource.weight}"
                yield FieldError.invalid(at, resource.weight, detail)


class NodeResourcesAllocatable(Plugin):
    name = NAME
    trusted = True
    Args = NodeResourcesAllocatableArgs
    depends_on = DependsOn(node=NodePart.OBJECT, claims=False)
    args: NodeResourcesAllocatableArgs

    def score(self, _cycle: Cycle, nodes: Nodes) -> Scores:
        resources = self.args.weights
        sign = -1 if self.args.mode == LEAST else 1
        offers = [nodes.allocatable(name) for name in resources]
        weights = list(resources.values())
        whole = sum(weights)
        highest = sum(int(offer.max(initial=0)) * weight for offer, weight in zip(offers, weights, strict=True))
        if highest <= _ROOM and whole <= _ROOM:
            total = np.zeros(len(nodes), dtype=np.int64)
            for offer, weight in zip(offers, weights, strict=True):
                total += offer * weight
            return truncated_divide(sign * total, whole)
        sums = [sum(map(int.__mul__, row, weights)) for row in np.array(offers).T.tolist()]
        return np.array([sign * (total // whole) for total in sums], dtype=np.int64)

    def normalize(self, _cycle: Cycle, _nodes: Nodes, scores: Scores) -> Scores:
        lowest, highest = int(scores.min(initial=_ROOM)), int(scores.max(initial=-_ROOM))
        span = highest - lowest
        if span <= 0:
            return np.zeros_like(scores)
        if span * MAX_SCORE <= _ROOM:
            return (scores - lowest) * MAX_SCORE // span
        return np.array([(each - lowest) * MAX_SCORE // span for each in scores.tolist()], dtype=np.int64)
