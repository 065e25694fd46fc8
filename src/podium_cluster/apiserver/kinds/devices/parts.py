"""Validates what claims, classes and slices of devices share: names, selectors in CEL, configurations, tolerations.
It names the kinds of resource.k8s.io, with what they leave out and the fields by which slices can be selected.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, Final

from kubecel import DeviceSelectorError, compile_selector
from kubecel.device_selector import MAX_LENGTH
from kubecel.names import dns_subdomain_errors, label_value_errors
from podium_cluster.apiserver.errors import Cause, duplicate, invalid_value, invalid_word, not_supported, required
from podium_cluster.apiserver.kind import STATUS, Defaults, Fields, FieldValues, built_in_kind
from podium_cluster.apiserver.validation.wording import Causes, Obj, dns_label, each, label_name, too_long, too_many

MOST: Final = 32
"""Requests, constraints, selectors and configurations of a claim."""
EFFECTS: Final = ("NoExecute", "NoSchedule", "None")
_DRIVER_LENGTH, _POOL_LENGTH, _ID_LENGTH, _PARAMETERS_LENGTH, _MOST_CONDITIONS = 63, 253, 32, 10 << 10, 4
_OMITTED: Final = "<value omitted>"
_IDENTIFIER: Final = "[A-Za-z_][A-Za-z0-9_]*"
_NOT_IDENTIFIER: Final = (
    "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters "
    f"or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is '{_IDENTIFIER}')"
)
_UNKNOWN_REQUEST: Final = (
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
)

Check = Callable[[str, Any], Causes]


def items(path: str, given: Sequence[Any] | None, most: int, check: Check) -> Causes:
    """Each entry of a list; one that is too long is not looked at."""
    if given and len(given) > most:
        yield too_many(path, len(given), most)
        return
    for at, item in enumerate(given or ()):
        yield from check(f"{path}[{at}]", item)


def distinct(
    path: str,
    given: Sequence[Any] | None,
    most: int,
    check: Check,
    key: Callable[[Any], Any],
    shown: Callable[[Any], Any] | None = None,
) -> Causes:
    """As `items`, and no two entries have one key; of an entry that repeats one, `shown` says what is printed."""
    yield from items(path, given, most, check)
    if len(given or ()) <= most:
        yield from repeated(path, list(map(key, given or ())), list(map(shown or key, given or ())))


def repeated(path: str, keys: Sequence[Any], shown: Sequence[Any] = ()) -> Causes:
    seen: list[Any] | set[Any] = set() if all(isinstance(key, str) for key in keys) else []
    for at, key in enumerate(keys):
        if key in seen:
            yield duplicate(f"{path}[{at}]", shown[at] if shown else key)
        elif isinstance(seen, set):
            seen.add(key)
        else:
            seen.append(key)


def driver(path: str, name: str, *, caseless: bool = False) -> Causes:
    if not name:
        yield required(path)
        return
    if len(name.encode()) > _DRIVER_LENGTH:
        yield too_long(path, _DRIVER_LENGTH)
    yield from each(
        path, name, (_caseless(error) if caseless else error for error in dns_subdomain_errors(name.lower()))
    )


def _caseless(error: str) -> str:
    """The complaint about a name that may have capital letters."""
    return (
        error.replace("a lowercase RFC 1123", "an RFC 1123")
        .replace("lower case alphanumeric", "alphanumeric")
        .replace("'example.com'", "'Example.com'")
    )


def pool_name(path: str, name: str, *, counted: bool = False) -> Causes:
    if not name:
        yield required(path)
        return
    if len(name.encode()) > _POOL_LENGTH:
        yield too_long(path, _POOL_LENGTH)
    for number, part in enumerate(name.split("/")):
        segment = f"segment {number}: " if counted else ""
        if counted and not part:
            yield invalid_value(path, name, f"{segment}must not be empty")
        else:
            yield from each(path, part, (f"{segment}{error}" for error in dns_subdomain_errors(part)))


def qualified(path: str, name: str) -> Causes:
    """The name of an attribute or a capacity: "id" or "domain/id"."""
    parts = name.split("/")
    if len(parts) == 1:
        yield from _identifier(path, name)
    elif len(parts) == 2:
        domain, inner = parts
        if domain:
            yield from driver(path, domain)
        else:
            yield invalid_value(path, "", "the domain must not be empty")
        if inner:
            yield from _identifier(path, inner)
        else:
            yield invalid_value(path, "", "the name must not be empty")


def fully_qualified(path: str, name: str) -> Causes:
    yield from qualified(path, name)
    if "/" not in name:
        yield invalid_word(path, name, "a fully qualified name must be a domain and a name separated by a slash")


def _identifier(path: str, name: str) -> Causes:
    if len(name.encode()) > _ID_LENGTH:
        yield too_long(path, _ID_LENGTH)
    if not re.fullmatch(_IDENTIFIER, name):
        yield invalid_value(path, name, _NOT_IDENTIFIER)


def request_names(devices: Obj) -> set[str]:
    """What may refer to a request: its name, and with each of its alternatives "request/alternative"."""
    requests = {request.get("name", ""): request for request in devices.get("requests") or ()}
    found = set()
    for name, request in requests.items():
        alternatives = (each.get("name", "") for each in request.get("firstAvailable") or ())
        found |= {name, *(f"{name}/{each}" for each in alternatives if "/" not in each)} if "/" not in name else set()
    return found


def request_reference(path: str, name: str, known: Collection[str]) -> Causes:
    parts = name.split("/")
    if len(parts) > 2:
        yield invalid_value(path, name, _UNKNOWN_REQUEST)
        return
    for part in parts:
        yield from dns_label(path, part)
    if name not in known:
        yield invalid_value(path, name, _UNKNOWN_REQUEST)


def request_references(path: str, names: Sequence[str] | None, known: Collection[str]) -> Causes:
    yield from distinct(path, names, MOST, lambda where, name: request_reference(where, name, known), str)


def selector(path: str, value: Obj) -> Causes:
    if value.get("cel") is None:
        yield required(f"{path}.cel")
    else:
        yield from _expression(f"{path}.cel.expression", value["cel"].get("expression", ""))


def _expression(path: str, expression: str) -> Causes:
    if len(expression.encode()) > MAX_LENGTH:
        yield too_long(path, MAX_LENGTH)
        return
    try:
        compiled = compile_selector(expression)
    except DeviceSelectorError as error:
        if error.internal:
            yield Cause("InternalError", f"Internal error: {error}", path)
        else:
            yield invalid_value(path, expression, str(error))
        return
    if compiled.is_too_complex:
        yield Cause("FieldValueForbidden", "Forbidden: too complex, exceeds cost limit", path)


def configuration(path: str, config: Obj) -> Causes:
    opaque = config.get("opaque")
    if opaque is None:
        yield required(f"{path}.opaque")
        return
    yield from driver(f"{path}.opaque.driver", opaque.get("driver", ""), caseless=True)
    yield from raw(f"{path}.opaque.parameters", opaque.get("parameters"))


def raw(path: str, value: Any) -> Causes:
    """Data that only a driver reads: an object, and not a large one."""
    if value is None:
        yield required(path)
    elif len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()) > _PARAMETERS_LENGTH:
        yield too_long(path, _PARAMETERS_LENGTH)
    elif not isinstance(value, dict):
        yield invalid_value(path, _OMITTED, "must be a valid JSON object")


def toleration(path: str, value: Obj) -> Causes:
    if value.get("key"):
        yield from label_name(f"{path}.key", value["key"])
    operator, text = value.get("operator", ""), value.get("value", "")
    if operator == "Exists":
        if text:
            yield invalid_value(f"{path}.value", text, "must be empty for operator `Exists`")
    elif operator == "Equal":
        yield from each(f"{path}.value", text, label_value_errors(text))
    elif not operator:
        yield required(f"{path}.operator")
    else:
        yield not_supported(f"{path}.operator", operator, ("Equal", "Exists"))
    if value.get("effect") and value["effect"] not in EFFECTS:
        yield not_supported(f"{path}.effect", value["effect"], EFFECTS)


def binding_conditions(path: str, value: Obj) -> Iterator[Cause]:
    """The conditions that a device must meet before a pod is bound, and those that say that it cannot."""
    wanted, failing = value.get("bindingConditions") or [], value.get("bindingFailureConditions") or []
    yield from items(f"{path}.bindingConditions", wanted, _MOST_CONDITIONS, label_name)
    yield from items(f"{path}.bindingFailureConditions", failing, _MOST_CONDITIONS, label_name)
    yield from repeated(f"{path}.bindingConditions", wanted)
    for at, condition in enumerate(failing):
        where = f"{path}.bindingFailureConditions[{at}]"
        if condition in failing[:at]:
            yield duplicate(where, condition)
        if condition in wanted:
            yield invalid_value(where, condition, "bindingFailureConditions must not overlap with bindingConditions")
    for one, other in (
        ("bindingConditions", "bindingFailureConditions"),
        ("bindingFailureConditions", "bindingConditions"),
    ):
        if not value.get(one) and value.get(other):
            yield invalid_value(f"{path}.{one}", value.get(one), f"{one} are required to use {other}")


def device_taint(path: str, taint: Obj) -> Causes:
    yield from label_name(f"{path}.key", taint.get("key", ""))
    if taint.get("value"):
        yield from each(f"{path}.value", taint["value"], label_value_errors(taint["value"]))
    if not taint.get("effect"):
        yield required(f"{path}.effect")
    elif taint["effect"] not in EFFECTS:
        yield not_supported(f"{path}.effect", taint["effect"], EFFECTS)


def _request_defaults(request: dict[str, Any]) -> None:
    if request.get("allocationMode") == "ExactCount":
        request.setdefault("count", 1)


def _slice_values(obj: dict[str, Any]) -> FieldValues:
    spec = obj.get("spec") or {}
    return (spec.get("driver", ""), spec.get("nodeName", ""), (spec.get("pool") or {}).get("name", ""))


_CLAIM_DEFAULTS: Final = Defaults(
    {
        "resource.v1.ExactDeviceRequest": {"allocationMode": "ExactCount"},
        "resource.v1.DeviceSubRequest": {"allocationMode": "ExactCount"},
    },
    {"resource.v1.ExactDeviceRequest": _request_defaults, "resource.v1.DeviceSubRequest": _request_defaults},
)
DEVICE_CLASS: Final = built_in_kind("resource.k8s.io/v1", "DeviceClass deviceclasses", cluster=True)
DEVICE_TAINT_RULE: Final = built_in_kind("resource.k8s.io/v1", "DeviceTaintRule devicetaintrules", STATUS, cluster=True)
RESOURCE_CLAIM: Final = built_in_kind(
    "resource.k8s.io/v1", "ResourceClaim resourceclaims", STATUS, defaults=_CLAIM_DEFAULTS
)
CLAIM_TEMPLATE: Final = built_in_kind(
    "resource.k8s.io/v1", "ResourceClaimTemplate resourceclaimtemplates", defaults=_CLAIM_DEFAULTS
)
RESOURCE_SLICE: Final = built_in_kind(
    "resource.k8s.io/v1",
    "ResourceSlice resourceslices",
    cluster=True,
    fields=Fields(("spec.driver", "spec.nodeName", "spec.pool.name"), _slice_values),
)
