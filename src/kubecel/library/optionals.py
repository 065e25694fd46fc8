"""Implements optional values; `or` and `orValue` are evaluated apart, since they may skip their argument."""

from typing import Final

from kubecel.values import NONE, CelError, Implementation, MapValue, Optional, TimestampValue, some

_ZERO_TIME: Final = -62_135_596_800 * 10**9


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


FUNCTIONS: Final[dict[str, Implementation]] = {
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
