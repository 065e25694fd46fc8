"""ResourceClaims and their templates: requests, constraints, configurations, and who may ask for devices in use.

Access to devices that other claims have (adminAccess) is for namespaces with a label that says so. What drivers said of
devices goes when the devices are given back.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Final

from kubecel.names import dns_subdomain_errors
from kubecel.structured_values import same_json
from podium.kube.devices import ALL, EXACT_COUNT
from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.errors import (
    Cause,
    field_forbidden,
    immutable,
    invalid,
    invalid_value,
    not_supported,
    required,
)
from podium_cluster.apiserver.kind_record import KindRecord, KindRules
from podium_cluster.apiserver.kinds.devices.claim_status import device_key, resource_claim_status
from podium_cluster.apiserver.kinds.devices.kinds import CLAIM_TEMPLATE, RESOURCE_CLAIM
from podium_cluster.apiserver.kinds.devices.parts import (
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
from podium_cluster.apiserver.kinds.namespaces import NAMESPACE
from podium_cluster.apiserver.table_cells import AGE, NAME, Cells, KindTable, TableColumn, age, name_and_age
from podium_cluster.apiserver.validation.metadata import annotation_causes, metadata_causes
from podium_cluster.apiserver.validation.wording import NOT_POSITIVE, Causes, Obj, dns_label, dns_subdomain, labels
from podium_cluster.apiserver.write_context import WriteContext

ADMIN_LABEL: Final = "resource.kubernetes.io/admin-access"
_NO_ADMIN: Final = f"admin access to devices requires the `{ADMIN_LABEL}: true` label on the containing namespace"
_MOST_ALTERNATIVES: Final = 8
_FORMS: Final = "exactly one of `exactly` or `firstAvailable` is required"
_ATTRIBUTES: Final = 'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set'
_COLUMNS: Final = (NAME, TableColumn("State", "Whether the claim is pending, allocated, reserved or going."), AGE)


def _prepare_claim(obj: JsonObject, context: WriteContext) -> None:
    at = _admin_request((obj.get("spec") or {}).get("devices") or {})
    if at is not None and not _has_admins(obj, context):
        raise invalid(RESOURCE_CLAIM, obj["metadata"]["name"], [_refusal(at), *_check_claim(obj)])


def _prepare_template(obj: JsonObject, context: WriteContext) -> None:
    at = _admin_request(((obj.get("spec") or {}).get("spec") or {}).get("devices") or {})
    if at is not None and not _has_admins(obj, context):
        raise invalid(CLAIM_TEMPLATE, obj["metadata"]["name"], [_refusal(at), *_check_template(obj)])


def _prepare_status(new: JsonObject, old: JsonObject, context: WriteContext) -> None:
    _forget_devices(new, old)
    if _admin_result(old) is None:
        at = _admin_result(new)
        if at is not None and not _has_admins(new, context):
            cause = field_forbidden(f"status.allocation.devices.results[{at}].adminAccess", _NO_ADMIN)
            raise invalid(RESOURCE_CLAIM, new["metadata"]["name"], [cause, *resource_claim_status(new, old)])


def _forget_devices(new: JsonObject, old: JsonObject) -> None:
    """What drivers reported of devices that the claim has no longer goes with them."""
    status = new.get("status") or {}
    reported = status.get("devices")
    if not reported:
        return
    remaining = [device_key(result) for result in _results(new)]
    gone = [key for key in map(device_key, _results(old)) if key not in remaining]
    left = [device for device in reported if device_key(device) not in gone]
    if left:
        status["devices"] = left
    else:
        del status["devices"]


def _results(claim: JsonObject) -> list[JsonObject]:
    allocation = (claim.get("status") or {}).get("allocation") or {}
    return (allocation.get("devices") or {}).get("results") or []


def _admin_request(devices: JsonObject) -> int | None:
    asks = ((request.get("exactly") or {}).get("adminAccess") for request in devices.get("requests") or ())
    return next((at for at, wanted in enumerate(asks) if wanted), None)


def _admin_result(claim: JsonObject) -> int | None:
    return next((at for at, result in enumerate(_results(claim)) if result.get("adminAccess")), None)


def _refusal(at: int) -> Cause:
    return field_forbidden(f"spec.devices.requests[{at}].adminAccess", _NO_ADMIN)


def _has_admins(obj: JsonObject, context: WriteContext) -> bool:
    stored = context.store.get(NAMESPACE, "", obj["metadata"].get("namespace", ""))
    labels = stored.decode()["metadata"].get("labels") or {} if stored is not None else {}
    return bool(labels.get(ADMIN_LABEL) == "true")


def _check_claim(obj: Obj) -> Causes:
    yield from _devices("spec.devices", (obj.get("spec") or {}).get("devices") or {})


def _check_claim_update(new: Obj, old: Obj) -> Causes:
    yield from metadata_causes(new["metadata"], RESOURCE_CLAIM, dns_subdomain_errors)
    if not same_json(new.get("spec"), old.get("spec")):
        yield immutable("spec", None)


def _check_template(obj: Obj) -> Causes:
    spec = obj.get("spec") or {}
    metadata = spec.get("metadata") or {}
    yield from labels("spec.metadata.labels", metadata.get("labels"))
    yield from annotation_causes(metadata.get("annotations") or {}, "spec.metadata.annotations")
    for field in metadata:
        if field not in ("labels", "annotations") and metadata[field] is not None:
            yield field_forbidden(f"spec.metadata.{'uID' if field == 'uid' else field}", "cannot be set")
    yield from _devices("spec.spec.devices", (spec.get("spec") or {}).get("devices") or {})


def _check_template_update(new: Obj, old: Obj) -> Causes:
    yield from metadata_causes(new["metadata"], CLAIM_TEMPLATE, dns_subdomain_errors)
    yield from _check_template(new)
    if not same_json(new.get("spec"), old.get("spec")):
        yield immutable("spec", None)


def _devices(path: str, devices: Obj) -> Causes:
    names = request_names(devices)
    yield from distinct(
        f"{path}.requests", devices.get("requests"), MOST, _request, lambda one: one.get("name", ""), dict
    )
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


def _cells(obj: JsonObject, now: datetime) -> Cells:
    status, going = obj.get("status") or {}, bool(obj["metadata"].get("deletionTimestamp"))
    allocated = status.get("allocation") is not None
    states = {
        "deleted": going,
        "pending": not allocated and not going,
        "allocated": allocated,
        "reserved": allocated and bool(status.get("reservedFor")),
    }
    return [obj["metadata"]["name"], ",".join(state for state, holds in states.items() if holds), age(obj, now)]


RESOURCE_CLAIM_RECORD: Final = KindRecord(
    RESOURCE_CLAIM,
    KindRules(
        prepare_for_create=_prepare_claim,
        prepare_for_status=_prepare_status,
        validate=_check_claim,
        validate_update=_check_claim_update,
        validate_status=resource_claim_status,
        metadata_with_status="none",
        returns_deleted=True,
        empty_status={},
    ),
    KindTable(_COLUMNS, _cells),
)
CLAIM_TEMPLATE_RECORD: Final = KindRecord(
    CLAIM_TEMPLATE,
    KindRules(
        prepare_for_create=_prepare_template,
        validate=_check_template,
        validate_update=_check_template_update,
        returns_deleted=True,
    ),
    KindTable((NAME, AGE), name_and_age),
)
