"""Keeps whole numbers within 64 bits: what does not fit is an error."""

from kubecel.values import MAX_INT, MAX_UINT, MIN_INT, CelError, DurationValue, Uint


def checked_int(value: int) -> int:
    if not MIN_INT <= value <= MAX_INT:
        raise CelError("integer overflow")
    return value


def checked_uint(value: int) -> Uint:
    if not 0 <= value <= MAX_UINT:
        raise CelError("unsigned integer overflow")
    return Uint(value)


def checked_duration(value: int) -> DurationValue:
    if not MIN_INT <= value <= MAX_INT:
        raise CelError("duration overflow")
    return DurationValue(value)
