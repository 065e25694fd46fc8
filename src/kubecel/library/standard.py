"""Implements conversions, and the functions of strings that are CEL's own."""

from typing import Final

from kubecel import conversions
from kubecel.values import DurationValue, Implementation, no_overload


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
