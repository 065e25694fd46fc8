"""Types how Coscheduling is configured: how long members wait for each other, and what happens when they cannot go."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from podium.config.field import FieldError, FieldPath


class CoschedulingArgs(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    permit_waiting_time_seconds: int = 60
    """How long a member is held at Permit, where its group does not say."""
    pod_group_backoff_seconds: int = 0
    """How long a rejected group is not tried; 0: it may be tried at once."""
    pod_group_reject_percentage: int = 10
    """While no more than so many percent of minMember are missing, one member that fits nowhere does not bring the
    others down."""

    def validate(self, path: FieldPath) -> Iterator[FieldError]:
        for name, value in (
            ("permitWaitingTimeSeconds", self.permit_waiting_time_seconds),
            ("podGroupBackoffSeconds", self.pod_group_backoff_seconds),
        ):
            if value < 0:
                yield FieldError.invalid(path.child(name), value, "must be greater than 0")
        percentage = self.pod_group_reject_percentage
        if not 0 <= percentage <= 100:
            yield FieldError.invalid(path.child("podGroupRejectPercentage"), percentage, "must be between 0 and 100")
