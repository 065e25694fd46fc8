"""Computes CEL's operators: equality, order, arithmetic, what is contained in what, fields, keys and indices.

Numbers compare across types and do not compute across them; nothing overflows in silence. Equality never fails, except
that a quantity, a version or an address finds no overload for anything of another type. Fields, keys and indices are
looked up in maps, in lists, and in optionals of these.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from kubecel.limits import is_nearly_used, on_fresh_stack
from kubecel.strconv import go_float
from kubecel.structured_values import Structured, StructuredList, structured_equal
from kubecel.types import CelType
from kubecel.values import (
    MAX_INT,
    MIN_INT,
    MISSING,
    NONE,
    AddressValue,
    CelError,
    DurationValue,
    FormatValue,
    MapValue,
    NetworkValue,
    Optional,
    QuantityValue,
    SemverValue,
    TimestampValue,
    Uint,
    UrlValue,
    checked_duration,
    checked_int,
    checked_uint,
    no_overload,
    some,
    type_name,
)

_NUMBERS: Final = (int, Uint, float)
_STRICT: Final = (QuantityValue, SemverValue, AddressValue, NetworkValue, UrlValue, FormatValue)
_RECEIVERS: Final = (str, DurationValue, TimestampValue)
"""Types that answer `no such overload` by themselves; for others the function is named."""
_ZERO_TIME: Final = -62_135_596_800 * 10**9
_LAST_TIME: Final = 253_402_300_799 * 10**9 + 10**9 - 1


def equal(one: object, other: object) -> bool:
    """Whether two values are equal."""
    if type(one) is str:  # what is compared most
        return type(other) is str and one == other
    if one is None or other is None:
        return one is other
    if type(one) in _NUMBERS:
        return type(other) in _NUMBERS and one == other
    if isinstance(one, _STRICT):
        return _equal_strictly(one, other)
    if isinstance(one, Structured):
        return structured_equal(one, other, equal)
    match one:
        case list():
            if not isinstance(other, list) or len(one) != len(other):
                return False
            return all(_no_difference(a, b) for a, b in zip(one, other, strict=True))
        case MapValue():
            return _equal_maps(one, other)
        case Optional():
            if not isinstance(other, Optional) or not (one.present and other.present):
                return isinstance(other, Optional) and one.present == other.present
            return equal(one.value, other.value)
        case CelType():
            return isinstance(other, CelType) and one.name == other.name
    return type(one) is type(other) and one == other


def _equal_strictly(one: object, other: object) -> bool:
    if type(one) is not type(other) or (isinstance(other, QuantityValue) and other.computed):
        raise no_overload()
    if isinstance(one, QuantityValue) and isinstance(other, QuantityValue):
        return one.nano == other.nano
    if isinstance(one, SemverValue) and isinstance(other, SemverValue):
        return compare_versions(one, other) == 0
    if isinstance(one, UrlValue) and isinstance(other, UrlValue):
        return one.text == other.text
    if isinstance(one, FormatValue) and isinstance(other, FormatValue):
        return one.name == other.name
    return one == other


def _no_difference(one: object, other: object) -> bool:
    """Whether elements are not known to differ: an error counts as no difference, as in cel-go."""
    try:
        if isinstance(one, (list, MapValue)) and is_nearly_used():
            return on_fresh_stack(equal, one, other)
        return equal(one, other)
    except CelError:
        return True


def _equal_maps(one: MapValue, other: object) -> bool:
    if not isinstance(other, MapValue) or len(one) != len(other):
        return False
    for key, value in one.items():
        found, present = other.find(key)
        if not present or not _no_difference(value, found):
            return False
    return True


def compare(one: object, other: object) -> int:
    """-1, 0 or 1; an error where there is no order."""
    if type(one) in _NUMBERS:
        if type(other) not in _NUMBERS:
            if isinstance(one, float) and math.isnan(one):
                raise CelError("NaN values cannot be ordered")
            raise no_overload()
        return _compare_numbers(one, other)  # type: ignore[arg-type]
    if type(one) is not type(other) or not isinstance(one, (bool, str, bytes, DurationValue, TimestampValue)):
        raise no_overload()
    if isinstance(one, TimestampValue) and isinstance(other, TimestampValue):
        return _sign(one.nanoseconds, other.nanoseconds)
    if isinstance(one, str) and isinstance(other, str):
        return _sign(one.encode(errors="surrogatepass"), other.encode(errors="surrogatepass"))
    return _sign(one, other)


def _compare_numbers(one: float, other: float) -> int:
    if math.isnan(one) or math.isnan(other):
        raise CelError("NaN values cannot be ordered")
    return _sign(one, other)


def _sign(one: Any, other: Any) -> int:
    return int(one > other) - int(one < other)


def compare_versions(one: SemverValue, other: SemverValue) -> int:
    if one.core != other.core:
        return _sign(one.core, other.core)
    if not one.prerelease or not other.prerelease:
        return (not one.prerelease) - (not other.prerelease)
    for a, b in zip(one.prerelease, other.prerelease, strict=False):
        if isinstance(a, int) != isinstance(b, int):
            return -1 if isinstance(a, int) else 1
        if a != b:
            return _sign(a, b)
    return _sign(len(one.prerelease), len(other.prerelease))


def _checked_time(nanoseconds: int, like: TimestampValue) -> TimestampValue:
    if not _ZERO_TIME <= nanoseconds <= _LAST_TIME:
        raise CelError("timestamp overflow")
    return TimestampValue(nanoseconds, like.zone)


def _unsupported(function: str, one: object) -> CelError:
    return no_overload() if isinstance(one, _RECEIVERS) else CelError(f"no such overload: {function}")


def add(one: object, other: object) -> object:
    match one, other:
        case (bool(), _):
            raise CelError("no such overload: _+_")
        case (DurationValue(), DurationValue()):
            return checked_duration(int(one) + int(other))
        case (DurationValue(), TimestampValue()):
            return _checked_time(other.nanoseconds + one, other)
        case (TimestampValue(), DurationValue()):
            return _checked_time(one.nanoseconds + other, one)
        case (DurationValue() | TimestampValue(), _):
            raise no_overload()
        case (StructuredList(), list()):
            return one.plus(other)
        case (list(), list()):
            return one + other
        case (str(), str()):
            return one + other
        case (bytes(), bytes()):
            return one + other
    return _arithmetic("_+_", one, other, lambda a, b: a + b, (list, str, bytes))


def subtract(one: object, other: object) -> object:
    match one, other:
        case (DurationValue(), DurationValue()):
            return checked_duration(int(one) - int(other))
        case (TimestampValue(), DurationValue()):
            return _checked_time(one.nanoseconds - other, one)
        case (TimestampValue(), TimestampValue()):
            return checked_duration(one.nanoseconds - other.nanoseconds)
    return _arithmetic("_-_", one, other, lambda a, b: a - b, (DurationValue, TimestampValue))


def multiply(one: object, other: object) -> object:
    return _arithmetic("_*_", one, other, lambda a, b: a * b, ())


def _arithmetic(
    function: str, one: object, other: object, compute: Callable[..., object], also: tuple[type, ...]
) -> object:
    """Compute with two numbers of one type; `also` are other types that have the operator."""
    kind = type(one)
    if kind not in _NUMBERS:
        raise no_overload() if isinstance(one, also) else _unsupported(function, one)
    if type(other) is not kind:
        raise no_overload()
    if isinstance(one, float):
        return compute(one, other)
    result = compute(int(one), int(other))  # type: ignore[call-overload]
    assert isinstance(result, int)
    return checked_uint(result) if kind is Uint else checked_int(result)


def divide(one: object, other: object) -> object:
    if type(one) is float and type(other) is float:
        return _divided(one, other)
    return _whole_division("_/_", one, other, "division by zero", _toward_zero)


def modulo(one: object, other: object) -> object:
    if type(one) is float:
        raise CelError("no such overload: _%_")
    return _whole_division("_%_", one, other, "modulus by zero", lambda a, b: a - b * _toward_zero(a, b))


def _divided(one: float, other: float) -> float:
    if other != 0:
        return one / other
    if one == 0 or math.isnan(one):
        return math.nan
    return math.copysign(math.inf, one) * math.copysign(1.0, other)


def _toward_zero(one: int, other: int) -> int:
    quotient = abs(one) // abs(other)
    return quotient if (one < 0) == (other < 0) else -quotient


def _whole_division(
    function: str, one: object, other: object, by_zero: str, compute: Callable[[int, int], int]
) -> object:
    kind = type(one)
    if kind not in _NUMBERS:
        raise _unsupported(function, one)
    if type(other) is not kind or isinstance(one, float) or not isinstance(other, int):
        raise no_overload()
    assert isinstance(one, int)
    if other == 0:
        raise CelError(by_zero)
    if one == MIN_INT and other == -1 and kind is int:
        raise CelError("integer overflow")
    result = compute(int(one), int(other))
    return Uint(result) if kind is Uint else checked_int(result)


def negate(value: object) -> object:
    match value:
        case bool():
            return not value
        case Uint():
            raise CelError("no such overload: -_")
        case DurationValue():
            return checked_duration(-int(value))
        case int():
            return checked_int(-value)
        case float():
            return -value
    raise _unsupported("-_", value)


def contains(container: object, element: object) -> bool:
    """Whether a list has an element, or a map a key."""
    match container:
        case StructuredList():
            return container.holds(element, equal)
        case list():
            return any(_certainly_equal(element, each) for each in container)
        case MapValue():
            return element in container
    raise no_overload()


def _certainly_equal(one: object, other: object) -> bool:
    try:
        return equal(one, other)
    except CelError:
        return False


def less(one: object, other: object) -> bool:
    return _ordered("_<_", one, other) < 0


def less_or_equal(one: object, other: object) -> bool:
    return _ordered("_<=_", one, other) <= 0


def greater(one: object, other: object) -> bool:
    return _ordered("_>_", one, other) > 0


def greater_or_equal(one: object, other: object) -> bool:
    return _ordered("_>=_", one, other) >= 0


def _ordered(function: str, one: object, other: object) -> int:
    if not isinstance(one, (bool, int, float, str, bytes, TimestampValue)):
        raise _unsupported(function, one)
    return compare(one, other)


def at_key(value: object, key: object) -> object:
    """What a map has under a key, or a list at an index; of an optional, an optional."""
    if type(value) is MapValue or isinstance(value, MapValue):
        found = value.get(key)
        if found is not MISSING:
            return found
        _check_key(key)
        raise CelError(f"no such key: {_shown(key)}")
    if isinstance(value, Optional):
        return optional_at_key(value, key)
    _check_key(key)
    if isinstance(value, list):
        index = _index(key)
        if not 0 <= index < len(value):
            raise CelError(f"index out of bounds: {_shown(key)}")
        return value[index]
    raise CelError(f"no such key: {_shown(key)}")


def optional_at_key(value: object, key: object) -> Optional:
    """What is there under a key, or nothing."""
    if isinstance(value, Optional):
        if not value.present:
            return NONE
        value = value.value
    _check_key(key)
    match value:
        case MapValue():
            found, present = value.find(key)
            return some(found) if present else NONE
        case list():
            index = _index(key)
            return some(value[index]) if 0 <= index < len(value) else NONE
    return NONE


def _check_key(key: object) -> None:
    if isinstance(key, (SemverValue, QuantityValue)):
        raise CelError(f"invalid qualifier type: cel.{type_name(key).removeprefix('kubernetes.')}")


def present_at_key(value: object, key: str) -> bool:
    return optional_at_key(value, key).present


def _index(key: object) -> int:
    match key:
        case bool() | DurationValue():
            pass
        case Uint() if key > MAX_INT:
            raise CelError(f"unsupported index value {_shown(key)} in list")
        case int():
            return int(key)
        case float():
            if not key.is_integer():
                raise CelError(f"unsupported index value {_shown(key)} in list")
            return int(key)
    raise CelError(f"unsupported index type '{type_name(key)}' in list")


def _shown(key: object) -> str:
    match key:
        case bool():
            return "true" if key else "false"
        case float():
            return go_float(key)
    return str(key)
