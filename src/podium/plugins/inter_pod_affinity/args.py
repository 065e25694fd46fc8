"""Types the plugin's arguments: what a placed pod's required affinity scores, and whose preferences count."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from podium.config.field import FieldError, FieldPath
from podium.config.types import Int32


class InterPodAffinityArgs(msgspec.Struct, rename="camel", kw_only=True, frozen=True, forbid_unknown_fields=True):
    hard_pod_affinity_weight: Int32 = 1
    """Added for each required affinity term of a placed pod that the incoming pod matches."""
    ignore_preferred_terms_of_existing_pods: bool = False
    """Do not score at all unless the incoming pod has preferred terms of its own."""

    def validate(self, path: FieldPath) -> Iterable[FieldError]:
        weight = self.hard_pod_affinity_weight
        if not 0 <= weight <= 100:
            yield FieldError.invalid(path.child("hardPodAffinityWeight"), weight, "not in valid range [0, 100]")
