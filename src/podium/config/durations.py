"""Durations as Go writes them: `1m30s`, `1.5h`, `300ms`.

kube-scheduler's configuration has no other form: a bare number is an error, `0` alone is the only exception. They are
kept as whole nanoseconds, so what is compared is exactly what kube-scheduler compares, and printed back in Go's
canonical form (`90s` comes back as `1m30s`).
"""

from __future__ import annotations

import re
from typing import Any

_NANOSECONDS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,  # micro sign
    "μs": 10**3,  # Greek mu
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_LIMIT = 2**63
_NUMBER_AND_UNIT = re.compile(r"([0-9]*)(\.?)([0-9]*)([^.0-9]*)", re.DOTALL)


class Duration(int):
    """A length of time in nanoseconds; `Duration.parse("1m30s")`, `.seconds` for a float, `str()` for Go's form."""

    @classmethod
    def parse(cls, text: str) -> Duration:
        """Reads Go's form; a ValueError carries Go's own sentence about what is wrong."""
        return cls(_parse(text))

    @property
    def seconds(self) -> float:
        return self / 10**9

    def __str__(self) -> str:
        return _format(int(self))

    def __repr__(self) -> str:
        return f"Duration({int(self)})"


SECOND = Duration(10**9)


def _parse(text: str) -> int:
    def bad(what: str) -> ValueError:
        return ValueError(f'time: {what} duration "{text}"')

    negative = text.startswith("-")
    rest = text[1:] if text[:1] in ("-", "+") else text
    if rest == "0":
        return 0
    if not rest:
        raise bad("invalid")
    total = 0
    while rest:
        match = _NUMBER_AND_UNIT.match(rest)
        assert match is not None  # every part of the pattern may be empty
        whole, _, fraction, unit = match.groups()
        if not (whole or fraction) or int(whole or "0") > _LIMIT:
            raise bad("invalid")
        if not unit:
            raise bad("missing unit in")
        if unit not in _NANOSECONDS:
            raise bad(f'unknown unit "{unit}" in')
        total += int(whole or "0") * _NANOSECONDS[unit] + _fraction(fraction, _NANOSECONDS[unit])
        if total > _LIMIT:
            raise bad("invalid")
        rest = rest[match.end() :]
    if total == _LIMIT and not negative:
        raise bad("invalid")
    return -total if negative else total


def _fraction(digits: str, unit: int) -> int:
    # Go multiplies in floating point and drops digits past the 63-bit range; the same steps give the same nanosecond.
    value, scale = 0, 1.0
    for digit in digits:
        grown = value * 10 + int(digit)
        if value > (_LIMIT - 1) // 10 or grown > _LIMIT:
            break
        value, scale = grown, scale * 10
    return int(value * (unit / scale)) if value else 0


def _format(nanoseconds: int) -> str:
    if nanoseconds == 0:
        return "0s"
    sign, rest = ("-", -nanoseconds) if nanoseconds < 0 else ("", nanoseconds)
    if rest < 10**9:
        unit = next(u for u in ("ms", "µs", "ns") if rest >= _NANOSECONDS[u])
        return sign + _decimal(rest, _NANOSECONDS[unit]) + unit
    minutes, below_a_minute = divmod(rest, 60 * 10**9)
    hours, minutes = divmod(minutes, 60)
    clock = f"{hours}h{minutes}m" if hours else f"{minutes}m" if minutes else ""
    return f"{sign}{clock}{_decimal(below_a_minute, 10**9)}s"


def _decimal(amount: int, unit: int) -> str:
    whole, part = divmod(amount, unit)
    digits = f"{part:0{len(str(unit)) - 1}d}".rstrip("0") if part else ""
    return f"{whole}.{digits}" if digits else str(whole)


def decode_hook(kind: type, value: Any) -> Any:
    """Lets msgspec read `Duration` fields; give it as `dec_hook`."""
    if kind is Duration:
        if not isinstance(value, str):
            raise ValueError('expected a duration with a unit such as "15s"')
        return Duration.parse(value)
    raise NotImplementedError(kind)


def encode_hook(value: Any) -> Any:
    """Lets msgspec write `Duration` fields; give it as `enc_hook`."""
    if isinstance(value, Duration):
        return str(value)
    raise NotImplementedError(type(value))
