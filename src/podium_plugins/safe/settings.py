"""Types the arguments of both plugins, in percent, and the environment variables that stand in for them."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from podium import Duration, FieldError, FieldPath

UTILIZATION, PERCENTILE, FORECAST_WEIGHT = 90, 30, 20


class SafeOverloadArgs(msgspec.Struct, rename="camel", kw_only=True, frozen=True, forbid_unknown_fields=True):
    utilization: int | None = None
    """A node that uses more than this is overloaded."""
    percentile: int | None = None
    """How high the risk of overload may be."""
    forecast_weight: int | None = None
    """How much a forecast counts against the mean."""
    max_age: Duration | None = None
    """Annotations that say that they were measured longer ago are not believed."""
    print_table: bool | None = None
    """Log the distribution behind every risk: for a look at few nodes."""

    def validate(self, path: FieldPath) -> Iterable[FieldError]:
        yield from _within(path.child("utilization"), self.utilization)
        yield from _within(path.child("percentile"), self.percentile)
        yield from _within(path.child("forecastWeight"), self.forecast_weight)
        yield from _positive(path.child("maxAge"), self.max_age)


class SafeBalanceArgs(msgspec.Struct, rename="camel", kw_only=True, frozen=True, forbid_unknown_fields=True):
    forecast_weight: int | None = None
    max_age: Duration | None = None

    def validate(self, path: FieldPath) -> Iterable[FieldError]:
        yield from _within(path.child("forecastWeight"), self.forecast_weight)
        yield from _positive(path.child("maxAge"), self.max_age)


BALANCE_VARIABLES = {"forecast_weight": "SAFEFORECASTWEIGHT"}
OVERLOAD_VARIABLES = {
    "utilization": "SAFEUTILIZATION",
    "percentile": "SAFEPERCENTILE",
    "print_table": "SAFEPRINTTABLE",
    **BALANCE_VARIABLES,
}


def share(percent: int | None, default: int) -> float:
    return (default if percent is None else percent) / 100


def seconds(length: Duration | None) -> float | None:
    return None if length is None else length.seconds


def _positive(path: FieldPath, length: Duration | None) -> Iterable[FieldError]:
    if length is not None and length <= 0:
        yield FieldError.invalid(path, length, "must be greater than zero")


def _within(path: FieldPath, percent: int | None) -> Iterable[FieldError]:
    if percent is not None and not 0 <= percent <= 100:
        yield FieldError.invalid(path, percent, "must be a percentage from 0 to 100")
