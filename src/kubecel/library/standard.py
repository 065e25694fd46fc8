"""Implements conversions, and the functions of strings that are CEL's own.

Also implements optional values; `or` and `orValue` are evaluated apart, since they may skip their argument.

Also implements what is asked of timestamps and durations: years, hours, seconds, in UTC or in a time zone.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from kubecel import conversions
from kubecel.values import (
    NONE,
    CelError,
    DurationValue,
    Implementation,
    MapValue,
    Optional,
    TimestampValue,
    no_overload,
    some,
)

_ZERO_TIME: Final = -62_135_596_800 * 10**9
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


def _same(value: object) -> object:
    return value


def _contains(text: object, part: object) -> bool:
    return _string(part) in _checked(text, part)


def _starts_with(text: object, part: object) -> bool:
    return _checked(text, part).startswith(_string(part))


def _ends_with(text: object, part: object) -> bool:
    return _checked(text, part).endswith(_string(part))


def _checked(text: object, part: object) -> str:
    return _string(text)


def _string(value: object) -> str:
    if not isinstance(value, str):
        raise no_overload()
    return value


def _duration_to_int(value: DurationValue) -> int:
    return int(value)


FUNCTIONS: Final[dict[str, Implementation]] = {
    **dict.fromkeys(
        (
            "bool_to_bool",
            "bytes_to_bytes",
            "double_to_double",
            "duration_to_duration",
            "int64_to_int64",
            "string_to_string",
            "timestamp_to_timestamp",
            "uint64_to_uint64",
        ),
        _same,
    ),
    "string_to_bool": conversions.to_bool,
    "string_to_bytes": conversions.to_bytes,
    **dict.fromkeys(("int64_to_double", "string_to_double", "uint64_to_double"), conversions.to_double),
    **dict.fromkeys(("int64_to_duration", "string_to_duration"), conversions.to_duration),
    **dict.fromkeys(
        ("double_to_int64", "string_to_int64", "timestamp_to_int64", "uint64_to_int64"), conversions.to_int
    ),
    "duration_to_int64": _duration_to_int,
    **dict.fromkeys(
        (
            "bool_to_string",
            "bytes_to_string",
            "double_to_string",
            "duration_to_string",
            "int64_to_string",
            "timestamp_to_string",
            "uint64_to_string",
            "ip_to_string",
            "cidr_to_string",
        ),
        conversions.to_string,
    ),
    **dict.fromkeys(("int64_to_timestamp", "string_to_timestamp"), conversions.to_timestamp),
    **dict.fromkeys(("double_to_uint64", "int64_to_uint64", "string_to_uint64"), conversions.to_uint),
    "contains_string": _contains,
    "starts_with_string": _starts_with,
    "ends_with_string": _ends_with,
}


def _non_zero(value: object) -> Optional:
    match value:
        case None:
            return NONE
        case bool() | int() | float() | str() | bytes() | list() | MapValue():
            empty = not len(value) if isinstance(value, (str, bytes, list, MapValue)) else not value
            return NONE if empty else some(value)
        case TimestampValue(nanoseconds=nanoseconds) if nanoseconds == _ZERO_TIME:
            return NONE
    return some(value)


def _unwrap(elements: list[object]) -> list[object]:
    found = []
    for element in elements:
        if not isinstance(element, Optional):
            raise CelError(f"value {element} is not optional")
        if element.present:
            found.append(element.value)
    return found


OPTIONAL_FUNCTIONS: Final[dict[str, Implementation]] = {
    "optional_of": some,
    "optional_none": lambda: NONE,
    "optional_ofNonZeroValue": _non_zero,
    "optional_value": lambda value: value.get(),
    "optional_hasValue": lambda value: value.present,
    "optional_unwrap": _unwrap,
    "optional_unwrapOpt": _unwrap,
    "list_first": lambda elements: some(elements[0]) if elements else NONE,
    "list_last": lambda elements: some(elements[-1]) if elements else NONE,
}


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


TIME_FUNCTIONS: Final[dict[str, Implementation]] = {
    **{f"timestamp_to_{name}": _in_utc(field) for name, field in _FIELDS.items()},
    **{f"timestamp_to_{name}_with_tz": _in_zone(field) for name, field in _FIELDS.items()},
    "timestamp_to_seconds_tz": _in_zone(_FIELDS["seconds"]),
    **{f"duration_to_{name}": _in_units(unit) for name, unit in _UNITS.items()},
}
