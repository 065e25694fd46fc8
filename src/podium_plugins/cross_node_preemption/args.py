"""Defines how far CrossNodePreemption searches."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from podium.config.field import FieldError, FieldPath


class CrossNodePreemptionArgs(msgspec.Struct, rename="camel", kw_only=True, frozen=True, forbid_unknown_fields=True):
    """The bounds of one search; each is at least 1."""

    max_nodes: int = 100
    """Nodes on which the pod is tried."""
    max_pods: int = 1000
    """Pods that may be evicted of all that are of lower priority: those that concern the preemptor's affinity or
    spreading first, then the least important."""
    max_victims: int = 10
    """Pods that are evicted on all nodes together."""

    def validate(self, path: FieldPath) -> Iterable[FieldError]:
        bounds = {"maxNodes": self.max_nodes, "maxPods": self.max_pods, "maxVictims": self.max_victims}
        for name, number in bounds.items():
            if number < 1:
                yield FieldError.invalid(path.child(name), number, "must be greater than 0")
