"""Validates names and labels by the API's rules, and says which field breaks them as the API does.

A check returns the complaints, none when the value is fine, worded as the API server words them, because the same
text reaches the user through conditions and events. Lengths count bytes of UTF-8.
"""

import json
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final

_NAME = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE = f"({_NAME})?"
_DNS_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_DNS_SUBDOMAIN = rf"{_DNS_LABEL}(\.{_DNS_LABEL})*"

_NAME_RE: Final = re.compile(_NAME)
_LABEL_VALUE_RE: Final = re.compile(_LABEL_VALUE)
_DNS_LABEL_RE: Final = re.compile(_DNS_LABEL)
_DNS_SUBDOMAIN_RE: Final = re.compile(_DNS_SUBDOMAIN)
_INTEGER_RE: Final = re.compile("[+-]?[0-9]+")
_CANONICAL_INTEGER_RE: Final = re.compile("0|-?[1-9][0-9]*")

_NAME_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
)
_DNS_RULE = "must start and end with an alphanumeric character"


@lru_cache(maxsize=1 << 14)
def qualified_name_errors(name: str) -> tuple[str, ...]:
    """What is wrong with a label key or resource name, such as "example.com/gpu"."""
    prefix, slash, rest = name.partition("/")
    if not slash:
        return _name_part_errors(name)
    if "/" in rest:
        rule = _pattern_error(_NAME_RULE, _NAME, "MyName", "my.name", "123-abc")
        return (f"a valid label key {rule} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",)
    complaints = _subdomain_errors(prefix, "bytes") if prefix else ("must be non-empty",)
    return tuple(f"prefix part {complaint}" for complaint in complaints) + _name_part_errors(rest)


def _name_part_errors(name: str) -> tuple[str, ...]:
    errors = []
    if not name:
        errors.append("name part must be non-empty")
    elif _bytes(name) > 63:
        errors.append(f"name part {_too_long(63)}")
    if not _NAME_RE.fullmatch(name):
        errors.append(f"name part {_pattern_error(_NAME_RULE, _NAME, 'MyName', 'my.name', '123-abc')}")
    return tuple(errors)


@lru_cache(maxsize=1 << 14)
def label_value_errors(value: str) -> tuple[str, ...]:
    """What is wrong with a label value."""
    errors = []
    if _bytes(value) > 63:
        errors.append(_too_long(63))
    if not _LABEL_VALUE_RE.fullmatch(value):
        rule = f"a valid label must be an empty string or {_NAME_RULE.removeprefix('must ')}"
        errors.append(_pattern_error(rule, _LABEL_VALUE, "MyValue", "my_value", "12345"))
    return tuple(errors)


def dns_label_errors(value: str) -> tuple[str, ...]:
    """What is wrong with an RFC 1123 label, such as the name of a namespace."""
    errors = []
    if _bytes(value) > 63:
        errors.append(_too_long(63, "characters"))
    if not _DNS_LABEL_RE.fullmatch(value):
        if _DNS_SUBDOMAIN_RE.fullmatch(value):
            errors.append("must not contain dots")
        else:
            rule = (
                f"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and {_DNS_RULE}"
            )
            errors.append(_pattern_error(rule, _DNS_LABEL, "my-name", "123-abc"))
    return tuple(errors)


def dns_subdomain_errors(value: str) -> tuple[str, ...]:
    """What is wrong with an RFC 1123 subdomain, such as the name of a node or a pod."""
    return _subdomain_errors(value, "characters")


def _subdomain_errors(value: str, counted: str) -> tuple[str, ...]:
    errors = []
    if _bytes(value) > 253:
        errors.append(_too_long(253, counted))
    if not _DNS_SUBDOMAIN_RE.fullmatch(value):
        characters = "lower case alphanumeric characters, '-' or '.'"
        rule = f"a lowercase RFC 1123 subdomain must consist of {characters}, and {_DNS_RULE}"
        errors.append(_pattern_error(rule, _DNS_SUBDOMAIN, "example.com"))
    return tuple(errors)


def path_segment_errors(value: str) -> tuple[str, ...]:
    """What is wrong with a name that only has to fit into a URL, such as that of a disruption budget."""
    if value in (".", ".."):
        return (f"may not be '{value}'",)
    return tuple(f"may not contain '{character}'" for character in "/%" if character in value)


def parse_int64(text: str) -> int | None:
    """A decimal 64-bit integer with an optional sign, or None."""
    if _INTEGER_RE.fullmatch(text) and len(text) < 100 and -(2**63) <= (number := int(text)) < 2**63:
        return number
    return None


def parse_canonical_int64(text: str) -> int | None:
    """As parse_int64, but without plus sign, leading zeros or minus zero."""
    return parse_int64(text) if _CANONICAL_INTEGER_RE.fullmatch(text) else None


def child(path: str, name: str) -> str:
    """The path of a field inside a field."""
    return f"{path}.{name}" if path else name


def invalid(path: str, value: object, detail: str) -> str:
    """The API's sentence for a field with a bad value; an empty list reads null, as an absent field does."""
    shown = json.dumps(value if value != () else None, ensure_ascii=False, separators=(",", ":"))
    return f"{path}: Invalid value: {shown}: {detail}"


def not_supported(path: str, value: str, supported: Sequence[str]) -> str:
    """The API's sentence for a field that takes one of a few words."""
    words = ", ".join(f'"{word}"' for word in supported)
    return f"{path}: Unsupported value: {json.dumps(value, ensure_ascii=False)}: supported values: {words}"


def joined(errors: Iterable[str]) -> str:
    """Several complaints as one text, each once: the only one as it is, more of them in brackets."""
    distinct = list(dict.fromkeys(errors))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def _too_long(limit: int, counted: str = "bytes") -> str:
    return f"must be no more than {limit} {counted}"  # bytes all the same, but names are said to have characters


def _pattern_error(rule: str, pattern: str, *examples: str) -> str:
    # The comma before "or" and at the end is how the API server writes its examples.
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{rule} (e.g. {shown}regex used for validation is '{pattern}')"
