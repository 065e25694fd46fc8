"""Defines the arguments of DynamicResources."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from podium.config.durations import SECOND, Duration
from podium.config.field import FieldError, FieldPath


class DynamicResourcesArgs(msgspec.Struct, rename="camel", kw_only=True, frozen=True, forbid_unknown_fields=True):
    filter_timeout: Duration | None = Duration(10 * SECOND)
    """How long finding devices may take on one node; 0 is without limit."""
    binding_timeout: Duration | None = Duration(600 * SECOND)
    """How long to wait for devices to be attached."""

    def validate(self, path: FieldPath) -> Iterator[FieldError]:
        if self.filter_timeout is not None and self.filter_timeout < 0:
            yield FieldError.invalid(path.child("filterTimeout"), self.filter_timeout, "must be zero or positive")
        if self.binding_timeout is not None and self.binding_timeout < SECOND:
            yield FieldError.invalid(path.child("bindingTimeout"), self.binding_timeout, "must be at least 1 second")

    @property
    def filter_seconds(self) -> float:
        return _seconds(self.filter_timeout, 10)

    @property
    def binding_seconds(self) -> float:
        return _seconds(self.binding_timeout, 600)


def _seconds(given: Duration | None, default: float) -> float:
    return default if given is None else given / SECOND
