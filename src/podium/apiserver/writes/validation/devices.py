"""Validates resource claims, their templates and device classes: requests, constraints, and selectors in CEL."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from podium.apiserver.errors import Cause, duplicate, invalid_value, not_supported, required
from podium.apiserver.writes.validation.wording import NOT_POSITIVE, Causes, Obj, too_long
from podium.kube.cel import DeviceSelectorError, compile_selector
from podium.kube.cel.device_selector import MAX_LENGTH
from podium.kube.devices import ALL, EXACT_COUNT

_FORMS: Final = "exactly one of `exactly` or `firstAvailable` is required"
_ATTRIBUTES: Final = 'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set'
_UNKNOWN_REQUEST: Final = (
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
)


def device_class(obj: Obj) -> Causes:
    yield from _selectors("spec.selectors", (obj.get("spec") or {}).get("selectors"))


def device_class_update(new: Obj, _old: Obj) -> Causes:
    yield from device_class(new)


def resource_claim(obj: Obj) -> Causes:
    yield from _devices("spec.devices", (obj.get("spec") or {}).get("devices") or {})


def resource_claim_update(new: Obj, old: Obj) -> Causes:
    yield from _unchanged(new, old)


def claim_template(obj: Obj) -> Causes:
    spec = (obj.get("spec") or {}).get("spec") or {}
    yield from _devices("spec.spec.devices", spec.get("devices") or {})


def claim_template_update(new: Obj, old: Obj) -> Causes:
    yield from _unchanged(new, old)


def _unchanged(new: Obj, old: Obj) -> Causes:
    if (new.get("spec") or {}) != (old.get("spec") or {}):
        yield invalid_value("spec", None, "field is immutable")


def _devices(path: str, devices: Obj) -> Causes:
    names: set[str] = set()
    for number, request in enumerate(devices.get("requests") or ()):
        where = f"{path}.requests[{number}]"
        name = request.get("name", "")
        if name in names:
            yield duplicate(where, name)
        names |= {name, *(f"{name}/{each.get('name', '')}" for each in request.get("firstAvailable") or ())}
        yield from _request(where, request)
    for number, constraint in enumerate(devices.get("constraints") or ()):
        where = f"{path}.constraints[{number}]"
        for index, name in enumerate(constraint.get("requests") or ()):
            if name not in names:
                yield invalid_value(f"{where}.requests[{index}]", name, _UNKNOWN_REQUEST)
        if not constraint.get("matchAttribute") and not constraint.get("distinctAttribute"):
            yield required(where, _ATTRIBUTES)


def _request(path: str, request: Obj) -> Causes:
    exactly, alternatives = request.get("exactly"), request.get("firstAvailable")
    if exactly is None and not alternatives:
        yield required(path, _FORMS)
    elif exactly is not None and alternatives:
        yield invalid_value(path, None, f"{_FORMS}, but multiple fields are set")
    elif exactly is not None:
        yield from _ask(f"{path}.exactly", exactly)
    for number, each in enumerate(alternatives or ()):
        yield from _ask(f"{path}.firstAvailable[{number}]", each)


def _ask(path: str, ask: Obj) -> Causes:
    if not ask.get("deviceClassName"):
        yield required(f"{path}.deviceClassName")
    yield from _selectors(f"{path}.selectors", ask.get("selectors"))
    mode, count = ask.get("allocationMode") or EXACT_COUNT, ask.get("count") or 0
    if mode not in (ALL, EXACT_COUNT):
        yield not_supported(f"{path}.allocationMode", mode, (ALL, EXACT_COUNT))
    elif mode == ALL and count:
        yield invalid_value(f"{path}.count", count, "must not be specified when allocationMode is 'All'")
    elif count < 0:
        yield invalid_value(f"{path}.count", count, NOT_POSITIVE)


def _selectors(path: str, selectors: Iterable[Any] | None) -> Causes:
    for number, selector in enumerate(selectors or ()):
        cel = selector.get("cel")
        if cel is None:
            yield required(f"{path}[{number}].cel")
        else:
            yield from _expression(f"{path}[{number}].cel.expression", cel.get("expression", ""))


def _expression(path: str, expression: str) -> Causes:
    if len(expression.encode()) > MAX_LENGTH:
        yield too_long(path, MAX_LENGTH)
        return
    try:
        selector = compile_selector(expression)
    except DeviceSelectorError as error:
        if error.internal:
            yield Cause("InternalError", f"Internal error: {error}", path)
        else:
            yield invalid_value(path, expression, str(error))
        return
    if selector.is_too_complex:
        yield Cause("FieldValueForbidden", "Forbidden: too complex, exceeds cost limit", path)
