"""Looks up fields, keys and indices: in maps, in lists, and in optionals of these."""

from __future__ import annotations

from kubecel.strconv import go_float
from kubecel.values import (
    MAX_INT,
    MISSING,
    NONE,
    CelError,
    DurationValue,
    MapValue,
    Optional,
    QuantityValue,
    SemverValue,
    Uint,
    some,
    type_name,
)


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
