"""Types how QosAware is configured: its margins, and how much preemption may cost."""

from __future__ import annotations

import math
from collections.abc import Iterator

import msgspec

from podium.config.durations import Duration
from podium.config.field import FieldError, FieldPath


class QosAwareArgs(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    safety_margin: Duration = Duration(0)
    """A pod with less slack than this is urgent."""
    minimum_running_time: Duration = Duration(0)
    """No pod is evicted before it has run for so long."""
    acceptable_preemption_overhead: float = 1.0
    """The share of their time on nodes that pods may lose to preemption, where they do not say."""
    compat: bool = False
    """Decide as the original does, with its known faults."""

    def validate(self, path: FieldPath) -> Iterator[FieldError]:
        for name, value in (
            ("safetyMargin", self.safety_margin),
            ("minimumRunningTime", self.minimum_running_time),
        ):
            if value < 0:
                yield FieldError.invalid(path.child(name), str(value), "must not be negative")
        overhead = self.acceptable_preemption_overhead
        if not (math.isfinite(overhead) and 0 <= overhead <= 1):
            yield FieldError.invalid(path.child("acceptablePreemptionOverhead"), overhead, "must be between 0 and 1")
