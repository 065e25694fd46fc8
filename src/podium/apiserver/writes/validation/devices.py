"""Validates resource claims, their templates and device classes: requests, constraints, selectors, configurations."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from podium.apiserver.errors import field_forbidden, immutable, invalid_value, not_supported, required
from podium.apiserver.writes.validation.device_parts import (
    MOST,
    configuration,
    distinct,
    fully_qualified,
    items,
    request_names,
    request_references,
    selector,
    toleration,
)
from podium.apiserver.writes.validation.resources import is_extended
from podium.apiserver.writes.validation.wording import (
    NOT_POSITIVE,
    Causes,
    Obj,
    dns_label,
    dns_subdomain,
    labels,
    too_many,
)
from podium.kube.devices import ALL, EXACT_COUNT

_MOST_ALTERNATIVES, _MOST_TOLERATIONS = 8, 16
_FORMS: Final = "exactly one of `exactly` or `firstAvailable` is required"
_ATTRIBUTES: Final = 'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set'


def device_class(obj: Obj) -> Causes:
    spec = obj.get("spec") or {}
    yield from items("spec.selectors", spec.get("selectors"), MOST, selector)
    yield from items("spec.config", spec.get("config"), MOST, configuration)
    name = spec.get("extendedResourceName")
    if name is not None and not is_extended(name):
        yield invalid_value("spec.extendedResourceName", name, "must be a valid extended resource name")


def device_class_update(new: Obj, _old: Obj) -> Causes:
    yield from device_class(new)


def resource_claim(obj: Obj) -> Causes:
    yield from _devices("spec.devices", (obj.get("spec") or {}).get("devices") or {})


def resource_claim_update(new: Obj, old: Obj) -> Causes:
    yield from _unchanged(new, old)


def claim_template(obj: Obj) -> Causes:
    spec = obj.get("spec") or {}
    metadata = spec.get("metadata") or {}
    yield from labels("spec.metadata.labels", metadata.get("labels"))
    for field in metadata:
        if field not in ("labels", "annotations") and metadata[field]:
            yield field_forbidden(f"spec.metadata.{field}", "cannot be set")
    yield from _devices("spec.spec.devices", (spec.get("spec") or {}).get("devices") or {})


def claim_template_update(new: Obj, old: Obj) -> Causes:
    yield from _unchanged(new, old)


def _unchanged(new: Obj, old: Obj) -> Causes:
    if (new.get("spec") or {}) != (old.get("spec") or {}):
        yield immutable("spec", None)


def _devices(path: str, devices: Obj) -> Causes:
    names = request_names(devices)
    requests = devices.get("requests")
    yield from distinct(f"{path}.requests", requests, MOST, _request, lambda request: request.get("name", ""))
    yield from items(
        f"{path}.constraints", devices.get("constraints"), MOST, lambda where, each: _constraint(where, each, names)
    )
    yield from items(
        f"{path}.config", devices.get("config"), MOST, lambda where, each: _configuration(where, each, names)
    )


def _constraint(path: str, constraint: Obj, names: Collection[str]) -> Causes:
    yield from request_references(f"{path}.requests", constraint.get("requests"), names)
    for field in ("matchAttribute", "distinctAttribute"):
        if constraint.get(field) is not None:
            yield from fully_qualified(f"{path}.{field}", constraint[field])
            return
    yield required(path, _ATTRIBUTES)


def _configuration(path: str, config: Obj, names: Collection[str]) -> Causes:
    yield from request_references(f"{path}.requests", config.get("requests"), names)
    yield from configuration(path, config)


def _request(path: str, request: Obj) -> Causes:
    yield from dns_label(f"{path}.name", request.get("name", ""))
    exactly, alternatives = request.get("exactly"), request.get("firstAvailable")
    if exactly is None and not alternatives:
        yield required(path, _FORMS)
    elif exactly is not None and alternatives:
        yield invalid_value(path, None, f"{_FORMS}, but multiple fields are set")
    elif exactly is not None:
        yield from _ask(f"{path}.exactly", exactly)
    else:
        key = "firstAvailable"
        yield from distinct(
            f"{path}.{key}", alternatives, _MOST_ALTERNATIVES, _alternative, lambda each: each.get("name", "")
        )


def _alternative(path: str, ask: Obj) -> Causes:
    yield from dns_label(f"{path}.name", ask.get("name", ""))
    yield from _ask(path, ask)


def _ask(path: str, ask: Obj) -> Causes:
    name = ask.get("deviceClassName")
    if name:
        yield from dns_subdomain(f"{path}.deviceClassName", name)
    else:
        yield required(f"{path}.deviceClassName")
    yield from items(f"{path}.selectors", ask.get("selectors"), MOST, selector)
    mode, count = ask.get("allocationMode") or EXACT_COUNT, ask.get("count") or 0
    if mode not in (ALL, EXACT_COUNT):
        yield not_supported(f"{path}.allocationMode", mode, (ALL, EXACT_COUNT))
    elif mode == ALL and count:
        yield invalid_value(f"{path}.count", count, "must not be specified when allocationMode is 'All'")
    elif count < 0:
        yield invalid_value(f"{path}.count", count, NOT_POSITIVE)
    tolerations = ask.get("tolerations") or ()
    if len(tolerations) > _MOST_TOLERATIONS:
        yield too_many(f"{path}.tolerations", len(tolerations), _MOST_TOLERATIONS)
    for at, each in enumerate(tolerations):
        yield from toleration(f"{path}.tolerations[{at}]", each)
