"""Validates resource claims, their templates and device classes: requests, constraints, selectors, configurations."""

from __future__ import annotations

from collections.abc import Collection
from copy import deepcopy
from typing import Final

from kubecel.names import dns_subdomain_errors
from kubecel.structured_values import same_json
from podium.kube.devices import ALL, EXACT_COUNT
from podium_cluster.apiserver.errors import field_forbidden, immutable, invalid_value, not_supported, required
from podium_cluster.apiserver.kinds import Kind, built_in
from podium_cluster.apiserver.schema import schema_of
from podium_cluster.apiserver.writes.validation import internal_form
from podium_cluster.apiserver.writes.validation.device_parts import (
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
from podium_cluster.apiserver.writes.validation.metadata import annotation_causes, metadata_causes
from podium_cluster.apiserver.writes.validation.resources import is_extended
from podium_cluster.apiserver.writes.validation.wording import (
    NOT_POSITIVE,
    Causes,
    Obj,
    dns_label,
    dns_subdomain,
    labels,
)

_MOST_ALTERNATIVES: Final = 8
_CLAIM: Final = built_in("resource.k8s.io/v1", "ResourceClaim")
_TEMPLATE: Final = built_in("resource.k8s.io/v1", "ResourceClaimTemplate")
_CLASS: Final = built_in("resource.k8s.io/v1", "DeviceClass")
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
    yield from metadata_causes(new["metadata"], _CLASS, dns_subdomain_errors)
    yield from device_class(new)


def resource_claim(obj: Obj) -> Causes:
    yield from _devices("spec.devices", (obj.get("spec") or {}).get("devices") or {})


def resource_claim_update(new: Obj, old: Obj) -> Causes:
    yield from metadata_causes(new["metadata"], _CLAIM, dns_subdomain_errors)
    if _changed(_CLAIM, new, old):
        yield immutable("spec", internal_form.claim_spec(new.get("spec")))


def claim_template(obj: Obj) -> Causes:
    spec = obj.get("spec") or {}
    metadata = spec.get("metadata") or {}
    yield from labels("spec.metadata.labels", metadata.get("labels"))
    yield from annotation_causes(metadata.get("annotations") or {}, "spec.metadata.annotations")
    for field in metadata:
        if field not in ("labels", "annotations") and metadata[field] is not None:
            shown = "uID" if field == "uid" else field
            yield field_forbidden(f"spec.metadata.{shown}", "cannot be set")
    yield from _devices("spec.spec.devices", (spec.get("spec") or {}).get("devices") or {})


def claim_template_update(new: Obj, old: Obj) -> Causes:
    yield from metadata_causes(new["metadata"], _TEMPLATE, dns_subdomain_errors)
    yield from claim_template(new)
    if _changed(_TEMPLATE, new, old):
        yield immutable("spec", internal_form.template_spec(new.get("spec") or {}))


def _changed(kind: Kind, new: Obj, old: Obj) -> bool:
    if same_json(new.get("spec"), old.get("spec")):
        return False
    stored = {"spec": deepcopy(new.get("spec"))}
    schema_of(kind).drop_empty(stored)
    return not same_json(stored["spec"], old.get("spec"))


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
    for at, each in enumerate(ask.get("tolerations") or ()):
        yield from toleration(f"{path}.tolerations[{at}]", each)
