"""Converts values between types: `int("3")`, `string(1.5)`, `duration("1h")`, `timestamp("2026-01-01T00:00:00Z")`."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta, timezone
from typing import Final

from kubecel import types
from kubecel.strconv import go_float, plain_float
from kubecel.types import CelType
from kubecel.values import (
    MAX_INT,
    MAX_UINT,
    MIN_INT,
    AddressValue,
    CelError,
    DurationValue,
    NetworkValue,
    TimestampValue,
    Uint,
    checked_int,
    checked_uint,
    type_name,
)

_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_DIGITS: Final = re.compile(r"[0-9]+")
_FLOAT: Final = re.compile(
    r"[+-]?(?:[0-9]+(?:_?[0-9]+)*\.?[0-9]*(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?|inf|infinity)|nan", re.I
)
_TRUE: Final = ("1", "t", "T", "true", "TRUE", "True")
_FALSE: Final = ("0", "f", "F", "false", "FALSE", "False")
_UNITS: Final = {"ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9}
_DURATION: Final = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ns|us|µs|μs|ms|s|m|h)")
_TIMESTAMP: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)T(\d{1,2}):(\d\d):(\d\d)(?:[.,](\d+))?(?:(Z)|([+-])(\d\d):(\d\d))", re.ASCII
)
_MIN_UNIX: Final = -62_135_596_800
_MAX_UNIX: Final = 253_402_300_799
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def _cannot(value: object, target: CelType) -> CelError:
    return CelError(f"type conversion error from '{type_name(value)}' to '{target.name}'")


def to_int(value: object) -> int:
    match value:
        case bool():
            raise _cannot(value, types.INT)
        case Uint():
            return checked_int(int(value))
        case int():
            return int(value)
        case float():
            if math.isnan(value) or math.isinf(value) or value <= MIN_INT or value >= MAX_INT:
                raise CelError("integer overflow")
            return int(value)
        case str() if _INTEGER.fullmatch(value) and MIN_INT <= _number(value) <= MAX_INT:
            return _number(value)
        case TimestampValue():
            return value.nanoseconds // 10**9
    raise _cannot(value, types.INT)


def _number(text: str) -> int:
    return int(text) if len(text.lstrip("+-0")) <= 20 else 2**70


def to_uint(value: object) -> Uint:
    match value:
        case bool():
            raise _cannot(value, types.UINT)
        case Uint():
            return value
        case int():
            return checked_uint(value)
        case float():
            if math.isnan(value) or math.isinf(value) or value < 0 or value >= MAX_UINT:
                raise CelError("unsigned integer overflow")
            return Uint(int(value))
        case str() if _DIGITS.fullmatch(value) and _number(value) <= MAX_UINT:
            return Uint(_number(value))
    raise _cannot(value, types.UINT)


def to_double(value: object) -> float:
    match value:
        case bool():
            raise _cannot(value, types.DOUBLE)
        case int() | float():
            return float(value)
        case str() if _FLOAT.fullmatch(value):
            number = float(value)
            if not math.isinf(number) or "inf" in value.lower():
                return number
    raise _cannot(value, types.DOUBLE)


def to_bool(value: object) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value in (*_TRUE, *_FALSE):
        return value in _TRUE
    raise _cannot(value, types.BOOL)


def to_bytes(value: object) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode(errors="surrogatepass")
    raise _cannot(value, types.BYTES)


def to_string(value: object) -> str:
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case DurationValue():
            return f"{plain_float(value / 10**9)}s"
        case int():
            return str(int(value))
        case float():
            return go_float(value)
        case bytes():
            try:
                return value.decode()
            except UnicodeDecodeError:
                raise CelError("invalid UTF-8 in bytes, cannot convert to string") from None
        case TimestampValue():
            return _timestamp_text(value)
        case CelType():
            return value.name
        case AddressValue():
            return address_text(value)
        case NetworkValue():
            return f"{address_text(value.address)}/{value.prefix}"
    raise _cannot(value, types.STRING)


def address_text(address: AddressValue) -> str:
    """An address in its shortest form."""
    if address.family == 4:
        return ".".join(str(address.bits >> shift & 255) for shift in (24, 16, 8, 0))
    groups = [f"{address.bits >> shift & 0xFFFF:x}" for shift in range(112, -1, -16)]
    start, length = _longest_zeros(groups)
    if length < 2:
        return ":".join(groups)
    return f"{':'.join(groups[:start])}::{':'.join(groups[start + length :])}"


def _longest_zeros(groups: list[str]) -> tuple[int, int]:
    best, at = (0, 0), 0
    while at < len(groups):
        end = at
        while end < len(groups) and groups[end] == "0":
            end += 1
        if end - at > best[1]:
            best = (at, end - at)
        at = max(end, at + 1)
    return best


def to_duration(value: object) -> DurationValue:
    if isinstance(value, DurationValue):
        return value
    if isinstance(value, int) and not isinstance(value, (bool, Uint)):
        return DurationValue(value)
    found = _parse_duration(value) if isinstance(value, str) else None
    if found is None:
        raise _cannot(value, types.DURATION)
    return DurationValue(found)


def _parse_duration(text: str) -> int | None:
    sign = -1 if text[:1] == "-" else 1
    rest = text[1:] if text[:1] in ("+", "-") else text
    if rest == "0":
        return 0
    total, at = 0, 0
    while at < len(rest):
        part = _DURATION.match(rest, at)
        if part is None or not (part[1] or part[2]):
            return None
        unit = _UNITS.get(part[3], 3600 * 10**9)
        fraction = (part[2] or "")[:18]
        total += (int(part[1] or "0") if len(part[1]) < 25 else 2**70) * unit
        total += int(fraction or "0") * unit // 10 ** len(fraction)
        at = part.end()
    if not rest or total > MAX_INT + (sign < 0):
        return None
    return sign * total


def to_timestamp(value: object) -> TimestampValue:
    if isinstance(value, TimestampValue):
        return value
    if isinstance(value, int) and not isinstance(value, (bool, Uint, DurationValue)):
        if not _MIN_UNIX <= value <= _MAX_UNIX:
            raise CelError("timestamp overflow")
        return TimestampValue(value * 10**9)
    found = _parse_timestamp(value) if isinstance(value, str) else None
    if found is None:
        raise _cannot(value, types.TIMESTAMP)
    return found


def _parse_timestamp(text: str) -> TimestampValue | None:
    parts = _TIMESTAMP.fullmatch(text)
    if parts is None:
        return None
    hours, minutes = int(parts[10] or "0"), int(parts[11] or "0")
    if hours > 23 or minutes > 59:
        return None
    offset = timedelta(hours=hours, minutes=minutes) * (-1 if parts[9] == "-" else 1)
    year = int(parts[1])
    try:
        month, day, hour, minute, second = (int(parts[number]) for number in range(2, 7))
        moment = datetime(max(year, 1), month, day, hour, minute, second, tzinfo=timezone(offset))
    except ValueError:
        return None
    since = moment - _EPOCH
    seconds = since.days * 86400 + since.seconds - (366 * 86400 if year == 0 else 0)
    if not _MIN_UNIX <= seconds <= _MAX_UNIX:
        raise CelError("timestamp overflow")
    return TimestampValue(seconds * 10**9 + int((parts[7] or "0")[:9].ljust(9, "0")), timezone(offset))


def _timestamp_text(value: TimestampValue) -> str:
    moment = value.at()
    fraction = f"{value.nanoseconds % 10**9:09d}".rstrip("0")
    offset = moment.utcoffset() or timedelta(0)
    minutes = int(offset.total_seconds()) // 60
    zone = "Z" if not minutes else f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02d}:{abs(minutes) % 60:02d}"
    date = f"{moment.year:04d}-{moment.month:02d}-{moment.day:02d}"
    time = f"{moment.hour:02d}:{moment.minute:02d}:{moment.second:02d}"
    return f"{date}T{time}{'.' + fraction if fraction else ''}{zone}"
