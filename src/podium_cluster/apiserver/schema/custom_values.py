"""Checks the values of custom objects against their structural schema, in the words of kube-apiserver.

The checks run in its order (type, enum, format, then those of the type) and name fields by their path "in body"; a
value of the wrong type is shown as the type it has. Alternatives (anyOf, oneOf, allOf, not) have no field of their own
there, only `<nil>`.

Entries of lists may not repeat in sets, and under the keys of lists with keys. As in kube-apiserver, an entry is
reported once, where it comes for the second time, and 1 and 1.0 differ.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date, datetime
from ipaddress import ip_network
from itertools import islice
from typing import Any, Final

from kubecel.limits import look_at_the_time
from kubecel.quantity import QuantityError, parse
from kubecel.re2 import CostError, compile_pattern
from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.errors import Cause, duplicate, invalid_value, required, shown
from podium_cluster.apiserver.schema.correlation import Correlated
from podium_cluster.apiserver.schema.custom_fields import known_field

Causes = Iterator[Cause]

_EMBEDDED: Final = "x-kubernetes-embedded-resource"
_DURATION: Final = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)((\d+(\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h))*|0")
_LABEL: Final = "[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_HOSTNAME: Final = re.compile(rf"{_LABEL}(\.{_LABEL})*\.?")
_UUID: Final = re.compile(r"[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}", re.IGNORECASE)
_BYTES: Final = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")


def problems_of(value: Any, schema: JsonObject, path: str, before: Correlated | None = None) -> Causes:
    """What is wrong with the value, and with what is in it. With what it was before, what is unchanged may stay."""
    found = list(_problems(value, schema, path, before))
    if found and not (before is not None and before.unchanged):
        yield from found


def _problems(value: Any, schema: JsonObject, path: str, before: Correlated | None) -> Causes:
    look_at_the_time()
    if value is None and schema.get("nullable"):
        yield from _enum(value, schema, path)
        return
    wanted = ["integer", "string"] if schema.get("x-kubernetes-int-or-string") else _listed(schema.get("type"))
    found = json_type(value)
    form = _format_of(schema)
    is_list_for_text = bool(form) and isinstance(value, list) and wanted == ["string"]  # kube-apiserver lets it pass
    if wanted and not _fits(value, found, wanted) and not is_list_for_text:
        expected = ",".join(wanted)
        if form and not isinstance(value, (str, list)):  # then formats are compared, and booleans and objects have none
            expected, found = form, {"integer": "int64", "number": "float64"}.get(found, "")
        message = f'{path} in body must be of type {expected}: "{found}"'
        yield Cause("FieldValueTypeInvalid", f'Invalid value: "{found}": {message}', path)
        yield from _enum(value, schema, path)
        yield from _range(value, schema, path)
        return
    yield from _alternatives(value, schema, path)
    yield from _enum(value, schema, path)
    if isinstance(value, str):
        yield from _string(value, schema, path)
    elif isinstance(value, dict):
        yield from _object(value, schema, path, before)
    elif isinstance(value, list):
        yield from _array(value, schema, path, before)
    elif found in ("integer", "number"):
        yield from _number(value, schema, path)


def json_type(value: Any) -> str:
    """What a schema calls the type of a value."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    names = ((str, "string"), (int, "integer"), (float, "number"), (dict, "object"), (list, "array"))
    return next(name for type_, name in names if isinstance(value, type_))


def _format_of(schema: JsonObject) -> str:
    """The format, unless it is one that kube-apiserver does not know for strings."""
    form: str = schema.get("format", "")
    return form if schema.get("type") not in (None, "string") or form in FORMATS else ""


def _fits(value: Any, found: str, wanted: list[str]) -> bool:
    if found in wanted or (found == "integer" and "number" in wanted):
        return True
    return found == "number" and wanted == ["integer"] and value.is_integer()


def _enum(value: Any, schema: JsonObject, path: str) -> Causes:
    choices = schema.get("enum")
    if choices and value not in choices:
        words = ", ".join(shown(choice) for choice in choices)
        yield Cause("FieldValueNotSupported", f"Unsupported value: {shown(value)}: supported values: {words}", path)


def _string(value: str, schema: JsonObject, path: str) -> Causes:
    checker = FORMATS.get(schema.get("format", ""))
    if checker is not None and not checker(value):
        message = f"must be of type {schema['format']}: {shown(value)}"
        yield Cause("FieldValueTypeInvalid", f"Invalid value: {shown(value)}: {path} in body {message}", path)
    length = len(value)
    if length > schema.get("maxLength", length):
        yield Cause("FieldValueTooLong", f"Too long: may not be more than {schema['maxLength']} bytes", path)
    elif length < schema.get("minLength", 0):
        yield invalid_value(path, value, f"{path} in body should be at least {schema['minLength']} chars long")
    elif "pattern" in schema:
        yield from _pattern(value, schema["pattern"], path)


def _pattern(value: str, pattern: str, path: str) -> Causes:
    try:
        if not compile_pattern(pattern).search(value):
            yield invalid_value(path, value, f"{path} in body should match '{pattern}'")
    except CostError as error:
        yield invalid_value(path, f"{value[:100]}…", f"{path} in body is too long for its pattern: {error}")


def _range(value: Any, schema: JsonObject, path: str) -> Causes:
    """A number that is not one of the integers that the schema means."""
    if schema.get("type") != "integer" or json_type(value) not in ("integer", "number"):
        return
    bits = {"int32": 31, "int64": 63}.get(schema.get("format", ""), 63)
    if not -(1 << bits) <= value < 1 << bits or not float(value).is_integer():
        kind = f"with format {schema['format']}" if schema.get("format") else "(default format)"
        yield _without_field(f"Checked value must be of type integer {kind} in {path}")


def _number(value: float, schema: JsonObject, path: str) -> Causes:
    yield from _range(value, schema, path)
    factor = schema.get("multipleOf")
    if factor and not float(value / factor).is_integer():
        yield invalid_value(path, value, f"{path} in body should be a multiple of {factor:g}")
    most, least = schema.get("maximum"), schema.get("minimum")
    if most is not None and (value > most or (value == most and schema.get("exclusiveMaximum"))):
        words = "less than" if schema.get("exclusiveMaximum") else "less than or equal to"
        yield invalid_value(path, value, f"{path} in body should be {words} {most:g}")
    if least is not None and (value < least or (value == least and schema.get("exclusiveMinimum"))):
        words = "greater than" if schema.get("exclusiveMinimum") else "greater than or equal to"
        yield invalid_value(path, value, f"{path} in body should be {words} {least:g}")


def _array(value: list[Any], schema: JsonObject, path: str, before: Correlated | None) -> Causes:
    items = schema.get("items")
    if isinstance(items, dict):
        for index, inner in enumerate(value):
            yield from problems_of(inner, items, f"{path}[{index}]", before.index(index) if before else None)
    if len(value) < schema.get("minItems", 0):
        yield invalid_value(path, len(value), f"{path} in body should have at least {schema['minItems']} items")
    if len(value) > schema.get("maxItems", len(value)):
        yield _too_many(path, len(value), schema["maxItems"])


def _object(value: dict[str, Any], schema: JsonObject, path: str, before: Correlated | None) -> Causes:
    if len(value) < schema.get("minProperties", 0):
        message = f"{path} in body should have at least {schema['minProperties']} properties"
        yield invalid_value(path, len(value), message)
    if len(value) > schema.get("maxProperties", len(value)):
        yield _too_many(path, len(value), schema["maxProperties"])
    embedded = schema.get(_EMBEDDED) and path
    for name in (*(("apiVersion", "kind") if embedded else ()), *schema.get("required", ())):
        if name not in value or (embedded and name in ("apiVersion", "kind") and not value[name]):
            yield required(f"{path}.{name}" if path else name)
    for name, inner in value.items():
        field = known_field(schema, name)
        if field and not (embedded and name == "metadata"):
            old = before.key(name) if before and (path or name not in ("apiVersion", "kind")) else None
            yield from problems_of(inner, field, f"{path}.{name}" if path else name, old)


def _alternatives(value: Any, schema: JsonObject, path: str) -> Causes:
    for each in schema.get("allOf", ()):
        wrong = list(problems_of(value, each, path))
        if wrong:
            yield from wrong
            yield _without_field(f'"{path}" must validate all the schemas (allOf)')
    if "anyOf" in schema:
        tried = [list(problems_of(value, each, path)) for each in schema["anyOf"]]
        if all(tried):
            yield _without_field(f'"{path}" must validate at least one schema (anyOf)')
            yield from tried[0]
    if "oneOf" in schema:
        tried = [list(problems_of(value, each, path)) for each in schema["oneOf"]]
        fitting = sum(not wrong for wrong in tried)
        if fitting != 1:
            message = "Found none valid" if not fitting else f"Found {fitting} valid alternatives"
            yield _without_field(f'"{path}" must validate one and only one schema (oneOf). {message}')
            yield from tried[0] if not fitting else ()
    if "not" in schema and not list(islice(problems_of(value, schema["not"], path), 1)):
        yield _without_field(f'"{path}" must not validate the schema (not)')


def _date_time(text: str) -> bool:
    return _parses(lambda: datetime.fromisoformat(text.upper())) and "T" in text.upper() and len(text) >= 20


def _parses(read: Callable[[], object]) -> bool:
    try:
        read()
    except (ValueError, QuantityError):
        return False
    return True


FORMATS: Final[dict[str, Callable[[str], bool]]] = {
    "date-time": _date_time,
    "datetime": _date_time,
    "date": lambda text: _parses(lambda: date.fromisoformat(text)),
    "duration": lambda text: bool(_DURATION.fullmatch(text)),
    "ipv4": lambda text: _is_address(text, 4),
    "ipv6": lambda text: _is_address(text, 6),
    "cidr": lambda text: "/" in text and _parses(lambda: ip_network(text, strict=False)),
    "uuid": lambda text: bool(_UUID.fullmatch(text)),
    "byte": lambda text: (
        bool(re.fullmatch(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?", text)) and bool(text)
    ),
    "email": lambda text: bool(re.fullmatch(r"[^@\s]+@[^@\s]+", text)),
    "uri": lambda text: bool(re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", text) or text.startswith("/")),
    "hostname": lambda text: bool(_HOSTNAME.fullmatch(text)),
    "k8s-short-name": lambda text: bool(re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", text)),
    "quantity": lambda text: _parses(lambda: parse(text)),
}


def _is_address(text: str, version: int) -> bool:
    return "/" not in text and _parses(lambda: ip_network(text)) and ip_network(text).version == version


def _listed(type_: str | None) -> list[str]:
    return [type_] if type_ else []


def _too_many(path: str, count: int, most: int) -> Cause:
    return Cause("FieldValueTooMany", f"Too many: {count}: must have at most {most} items", path)


def _without_field(message: str) -> Cause:
    return Cause("FieldValueInvalid", f'Invalid value: "": {message}', "<nil>")


def repeated_entries(value: Any, schema: JsonObject, path: str = "") -> Iterator[Cause]:
    """What is wrong with the entries of all lists in a value."""
    if isinstance(value, list):
        yield from _in_list(value, schema, path)
        items = schema.get("items")
        if isinstance(items, dict):
            for index, entry in enumerate(value):
                yield from repeated_entries(entry, items, f"{path}[{index}]")
    elif isinstance(value, dict):
        rest, known = schema.get("additionalProperties"), schema.get("properties") or {}
        for name, inner in value.items():
            if isinstance(rest, dict):
                yield from repeated_entries(inner, rest, f"{path}[{name}]")
            elif name in known:
                yield from repeated_entries(inner, known[name], f"{path}.{name}" if path else name)


def _in_list(value: list[Any], schema: JsonObject, path: str) -> Iterator[Cause]:
    kind = schema.get("x-kubernetes-list-type")
    if kind not in ("set", "map"):
        return
    keys = schema.get("x-kubernetes-list-map-keys") or ()
    times: Counter[object] = Counter()
    repeated = []
    for index, entry in enumerate(value):
        if kind == "map" and entry is not None and not isinstance(entry, dict):
            yield invalid_value(f"{path}[{index}]", entry, "must be an object for an array of list-type map")
            return
        identified = {key: entry[key] for key in sorted(keys) if key in (entry or ())} if kind == "map" else entry
        identity = _identity(identified)
        times[identity] += 1
        if times[identity] == 2:
            repeated.append((index, identified))
    for index, entry in repeated:
        yield duplicate(f"{path}[{index}]", entry)


def _identity(value: Any) -> object:
    """What is equal for equal values, types included."""
    if isinstance(value, dict):
        return tuple((name, _identity(value[name])) for name in sorted(value))
    return tuple(map(_identity, value)) if isinstance(value, list) else (type(value), value)
