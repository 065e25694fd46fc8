"""Words complaints that many kinds share, and paths into maps and lists."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from ipaddress import ip_address
from typing import Any, Final

from kubecel.names import dns_label_errors, dns_subdomain_errors, label_value_errors, qualified_name_errors
from kubecel.strconv import parse_int64
from podium_cluster.apiserver.errors import Cause, immutable, invalid_value, invalid_word, required, shown

NEGATIVE: Final = "must be greater than or equal to 0"
NOT_POSITIVE: Final = "must be greater than zero"
MAX_INT32: Final = 2**31 - 1
_CONFIG_KEY: Final = re.compile(r"[-._a-zA-Z0-9]+")
_PERCENT: Final = re.compile(r"[0-9]+%")

Obj = Mapping[str, Any]
Causes = Iterator[Cause]


def non_negative(field: str, value: int) -> Causes:
    if value < 0:
        yield invalid_value(field, value, NEGATIVE)


def unchanged(field: str, after: Any, before: Any) -> Causes:
    if after != before:
        yield immutable(field, after)


def not_found(field: str, value: object, detail: str = "") -> Cause:
    return Cause("FieldValueNotFound", f"Not found: {shown(value)}" + (f": {detail}" if detail else ""), field)


def too_long(field: str, limit: int) -> Cause:
    return Cause("FieldValueTooLong", f"Too long: may not be more than {limit} bytes", field)


def too_many(field: str, count: int, most: int) -> Cause:
    return Cause("FieldValueTooMany", f"Too many: {count}: must have at most {most} items", field)


def between(low: int, high: int) -> str:
    return f"must be between {low} and {high}, inclusive"


def each(field: str, value: object, complaints: Iterable[str]) -> Causes:
    for complaint in complaints:
        yield invalid_value(field, value, complaint)


def dns_label(field: str, value: str) -> Causes:
    return each(field, value, dns_label_errors(value))


def dns_subdomain(field: str, value: str) -> Causes:
    return each(field, value, dns_subdomain_errors(value))


def address(field: str, value: str) -> Causes:
    try:
        ip_address(value)
    except ValueError:
        yield invalid_value(field, value, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")


def label_name(field: str, value: str) -> Causes:
    return each(field, value, qualified_name_errors(value))


def labels(field: str, values: Mapping[str, str] | None) -> Causes:
    for key, value in (values or {}).items():
        yield from label_name(field, key)
        yield from each(field, value, label_value_errors(value))


def selector(field: str, value: Obj | None) -> Causes:
    """A label selector; absent is fine."""
    if value is None:
        return
    yield from labels(f"{field}.matchLabels", value.get("matchLabels"))
    for at, expression in enumerate(value.get("matchExpressions") or ()):
        path = f"{field}.matchExpressions[{at}]"
        yield from expression_operator(path, expression, ("In", "NotIn", "Exists", "DoesNotExist"))
        yield from label_name(f"{path}.key", expression.get("key", ""))
        yield from label_values(path, expression)


def expression_operator(path: str, expression: Obj, operators: Sequence[str]) -> Causes:
    operator, values = expression.get("operator", ""), expression.get("values") or ()
    if operator not in operators:
        yield invalid_word(f"{path}.operator", operator, "not a valid selector operator")
    elif operator in ("In", "NotIn"):
        if not values:
            yield required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            yield Cause("FieldValueForbidden", f"Forbidden: {detail}", f"{path}.values")
    elif len(values) != 1:
        yield required(f"{path}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'")


def label_values(path: str, expression: Obj) -> Causes:
    for at, value in enumerate(expression.get("values") or ()):
        yield from each(f"{path}.values[{at}]", value, label_value_errors(value))


def config_key(field: str, key: str) -> Causes:
    if len(key.encode()) > 253:
        yield invalid_value(field, key, "must be no more than 253 characters")
    if not _CONFIG_KEY.fullmatch(key):
        rule = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
        examples = "(e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
        yield invalid_value(field, key, f"{rule} {examples}")
    if key in (".", ".."):
        yield invalid_value(field, key, f"must not be '{key}'")
    elif key.startswith(".."):
        yield invalid_value(field, key, "must not start with '..'")


def int_or_percent(field: str, value: int | str) -> Causes:
    if isinstance(value, int):
        yield from non_negative(field, value)
    elif not _PERCENT.fullmatch(value):
        rule = "a valid percent string must be a numeric string followed by an ending '%'"
        detail = f"{rule} (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
        yield invalid_value(field, value, detail)


def at_most_all(field: str, value: int | str) -> Causes:
    if isinstance(value, str) and _PERCENT.fullmatch(value) and amount(value) > 100:
        yield invalid_value(field, value, "must not be greater than 100%")


def amount(value: int | str | None) -> int:
    """An integer or the number of a percentage; 0 for what is neither."""
    if isinstance(value, str):
        return (parse_int64(value[:-1]) or 0) if _PERCENT.fullmatch(value) else 0
    return value or 0


def sorted_map(value: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """As the API shows a map: in the order of its keys, nothing as null."""
    return {key: value[key] for key in sorted(value)} if value else None


def shown_selector(value: Obj | None) -> dict[str, Any] | None:
    if value is None:
        return None
    found: dict[str, Any] = {}
    if value.get("matchLabels"):
        found["matchLabels"] = sorted_map(value["matchLabels"])
    if value.get("matchExpressions"):
        found["matchExpressions"] = value["matchExpressions"]
    return found
