"""Types the arguments of VolumeBinding.

`shape` belongs to scoring by storage capacity, which is off; it must be left out so that it does not start to act on
the day that is turned on.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from podium.config.field import FieldError, FieldPath
from podium.config.types import Int32, Int64


class ShapePoint(msgspec.Struct, rename="camel", kw_only=True, frozen=True, forbid_unknown_fields=True):
    utilization: Int32 = 0
    score: Int32 = 0


class VolumeBindingArgs(msgspec.Struct, rename="camel", kw_only=True, frozen=True, forbid_unknown_fields=True):
    bind_timeout_seconds: Int64 = 600
    shape: tuple[ShapePoint, ...] | None = None

    def validate(self, path: FieldPath) -> Iterable[FieldError]:
        if self.bind_timeout_seconds < 0:
            yield FieldError.invalid(
                path.child("bindTimeoutSeconds"),
                self.bind_timeout_seconds,
                "invalid BindTimeoutSeconds, should not be a negative value",
            )
        if self.shape is not None:
            yield FieldError.invalid(
                path.child("shape"),
                [{"Utilization": point.utilization, "Score": point.score} for point in self.shape],
                "unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring",
            )
