"""Implements what is asked of timestamps and durations: years, hours, seconds, in UTC or in a time zone."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from kubecel.values import CelError, DurationValue, Implementation, TimestampValue

_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,6}")
_FIELDS: Final[dict[str, Callable[[datetime], int]]] = {
    "year": lambda moment: moment.year,
    "month": lambda moment: moment.month - 1,
    "day_of_year": lambda moment: moment.timetuple().tm_yday - 1,
    "day_of_month": lambda moment: moment.day - 1,
    "day_of_month_1_based": lambda moment: moment.day,
    "day_of_week": lambda moment: moment.isoweekday() % 7,
    "hours": lambda moment: moment.hour,
    "minutes": lambda moment: moment.minute,
    "seconds": lambda moment: moment.second,
    "milliseconds": lambda moment: moment.microsecond // 1000,
}
_UNITS: Final = {"hours": 3600 * 10**9, "minutes": 60 * 10**9, "seconds": 10**9, "milliseconds": 10**6}


def _zone(name: str) -> tzinfo:
    hours, colon, minutes = name.partition(":")
    if not colon:
        try:
            return ZoneInfo(name or "UTC") if name != "Local" else UTC
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise CelError(f"unknown time zone {name}") from None
    for part in (hours, minutes):
        if not _NUMBER.fullmatch(part):
            raise CelError(f'strconv.Atoi: parsing "{part}": invalid syntax')
    offset = int(hours) * 60 + (-int(minutes) if name.startswith("-") else int(minutes))
    if abs(offset) >= 24 * 60:
        raise CelError(f"unknown time zone {name}")
    return timezone(timedelta(minutes=offset))


def _in_utc(field: Callable[[datetime], int]) -> Implementation:
    return lambda value: field(value.at().astimezone(UTC))


def _in_zone(field: Callable[[datetime], int]) -> Implementation:
    def answer(value: TimestampValue, zone: str) -> int:
        return field(value.at().astimezone(_zone(zone)))

    return answer


def _in_units(unit: int) -> Implementation:
    def answer(value: DurationValue) -> int:
        whole = abs(int(value)) // unit
        return whole if value >= 0 else -whole

    return answer


FUNCTIONS: Final[dict[str, Implementation]] = {
    **{f"timestamp_to_{name}": _in_utc(field) for name, field in _FIELDS.items()},
    **{f"timestamp_to_{name}_with_tz": _in_zone(field) for name, field in _FIELDS.items()},
    "timestamp_to_seconds_tz": _in_zone(_FIELDS["seconds"]),
    **{f"duration_to_{name}": _in_units(unit) for name, unit in _UNITS.items()},
}
