"""ResourceClaims and their templates: requests, constraints, configurations, and who may ask for devices in use.

Access to devices that other claims have (adminAccess) is for namespaces with a label that says so. What drivers said of
devices goes when the devices are given back.

The status says what a claim was given, the pods that use it, and what drivers report. What a claim was given may be
written and taken away, not changed. It has users only while it has devices, and gets no new ones while it is being
deleted.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, Final

from kubecel.names import dns_subdomain_errors
from kubecel.structured_values import same_json
from podium.kube.devices import ALL, EXACT_COUNT
from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.errors import (
    Cause,
    duplicate,
    field_forbidden,
    immutable,
    invalid,
    invalid_value,
    not_supported,
    required,
)
from podium_cluster.apiserver.kind_record import KindRecord, KindRules
from podium_cluster.apiserver.kinds.devices.parts import (
    CLAIM_TEMPLATE,
    MOST,
    RESOURCE_CLAIM,
    binding_conditions,
    configuration,
    distinct,
    driver,
    fully_qualified,
    items,
    pool_name,
    raw,
    repeated,
    request_names,
    request_reference,
    request_references,
    selector,
    toleration,
)
from podium_cluster.apiserver.kinds.namespaces import NAMESPACE
from podium_cluster.apiserver.table_cells import AGE, NAME, Cells, KindTable, TableColumn, age, name_and_age
from podium_cluster.apiserver.validation.metadata import annotation_causes, metadata_causes
from podium_cluster.apiserver.validation.placement import node_selector
from podium_cluster.apiserver.validation.wording import (
    NOT_POSITIVE,
    Causes,
    Obj,
    dns_label,
    dns_subdomain,
    label_name,
    labels,
    too_long,
    too_many,
)
from podium_cluster.apiserver.write_context import WriteContext

_MOST_USERS, _MOST_CONDITIONS = 256, 8
_WITHOUT_DEVICES: Final = "may not be specified when `allocated` is not set"
_GOING: Final = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
_UUID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_SOURCES: Final = ("FromClaim", "FromClass")
_STATUSES: Final = ("False", "True", "Unknown")
_REASON_LENGTH, _MESSAGE_LENGTH = 1 << 10, 32 << 10
_REASON: Final = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_NOT_REASON: Final = (
    "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric "
    "characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or "
    f"'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is '{_REASON}')"
)


def resource_claim_status(new: Obj, old: Obj) -> Causes:
    status, before = new.get("status") or {}, old.get("status") or {}
    allocation, users = status.get("allocation"), status.get("reservedFor") or []
    yield from distinct("status.reservedFor", users, _MOST_USERS, _user, lambda user: user.get("uid", ""), dict)
    yield from _status_devices(status.get("devices") or [], allocation)
    if users and allocation is None:
        yield field_forbidden("status.reservedFor", _WITHOUT_DEVICES)
    elif "deletionTimestamp" in new["metadata"]:
        known = before.get("reservedFor") or []
        if any(user not in known for user in users):
            yield field_forbidden("status.reservedFor", _GOING)
    if allocation is not None and before.get("allocation") is not None:
        if not same_json(allocation, before["allocation"]):
            yield invalid_value("status.allocation", None, "field cannot be modified once set")
    elif allocation is not None:
        names = request_names((new.get("spec") or {}).get("devices") or {})
        yield from _allocation("status.allocation", allocation, names)


def device_key(device: Obj) -> dict[str, str]:
    """What identifies a device that was given: a share of one has an id of its own."""
    names = {"Driver": "driver", "Pool": "pool", "Device": "device", "ShareID": "shareID"}
    return {shown: device.get(field) or "" for shown, field in names.items()}


def _user(path: str, user: Obj) -> Causes:
    for field in ("resource", "name", "uid"):
        if not user.get(field):
            yield required(f"{path}.{field}")


def _status_devices(devices: list[dict[str, Any]], allocation: Obj | None) -> Causes:
    """What drivers report: of devices that the claim has, each once."""
    results = ((allocation or {}).get("devices") or {}).get("results") or ()
    given = [device_key(result) for result in results]
    for at, device in enumerate(devices):
        path = f"status.devices[{at}]"
        yield from driver(f"{path}.driver", device.get("driver", ""))
        yield from pool_name(f"{path}.pool", device.get("pool", ""))
        yield from dns_label(f"{path}.device", device.get("device", ""))
        yield from _share(f"{path}.shareID", device.get("shareID"))
        if device_key(device) not in given:
            yield invalid_value(path, device_key(device), "must be an allocated device in the claim")
        met = device.get("conditions") or []
        if len(met) > _MOST_CONDITIONS:
            yield too_many(f"{path}.conditions", len(met), _MOST_CONDITIONS)
        yield from _conditions(f"{path}.conditions", met)
        if device.get("data") is not None:
            yield from raw(f"{path}.data", device["data"])
    yield from repeated("status.devices", [device_key(device) for device in devices])


def _allocation(path: str, allocation: Obj, names: Collection[str]) -> Causes:
    devices = allocation.get("devices") or {}
    yield from items(
        f"{path}.devices.results", devices.get("results"), MOST, lambda where, each: _result(where, each, names)
    )
    yield from items(
        f"{path}.devices.config", devices.get("config"), 2 * MOST, lambda where, each: _config(where, each, names)
    )
    if allocation.get("nodeSelector") is not None:
        yield from node_selector(f"{path}.nodeSelector", allocation["nodeSelector"])


def _result(path: str, result: Obj, names: Collection[str]) -> Causes:
    yield from request_reference(f"{path}.request", result.get("request", ""), names)
    yield from driver(f"{path}.driver", result.get("driver", ""))
    yield from pool_name(f"{path}.pool", result.get("pool", ""), counted=True)
    yield from dns_label(f"{path}.device", result.get("device", ""))
    yield from binding_conditions(path, result)
    yield from _share(f"{path}.shareID", result.get("shareID"))


def _share(path: str, share: str | None) -> Causes:
    if share is None:
        return
    if not _UUID.fullmatch(share):
        yield invalid_value(path, share, "must be a lowercase UUID in 8-4-4-4-12 format")


def _config(path: str, config: Obj, names: Collection[str]) -> Causes:
    source = config.get("source")
    if not source:
        yield required(f"{path}.source")
    elif source not in _SOURCES:
        yield not_supported(f"{path}.source", source, _SOURCES)
    yield from request_references(f"{path}.requests", config.get("requests"), names)
    yield from configuration(path, config)


def _conditions(path: str, given: Sequence[dict[str, Any]]) -> Causes:
    """Each condition in the form that newer kinds share, and each type once."""
    seen: set[str] = set()
    for at, condition in enumerate(given):
        kind = condition.get("type", "")
        if kind in seen:
            yield duplicate(f"{path}[{at}]", kind)
        seen.add(kind)
        yield from _condition(f"{path}[{at}]", condition)


def _condition(path: str, condition: Obj) -> Causes:
    yield from label_name(f"{path}.type", condition.get("type", ""))
    if condition.get("status") not in _STATUSES:
        yield not_supported(f"{path}.status", condition.get("status", ""), _STATUSES)
    generation = condition.get("observedGeneration") or 0
    if generation < 0:
        yield invalid_value(f"{path}.observedGeneration", generation, "must be greater than or equal to zero")
    if not condition.get("lastTransitionTime"):
        yield required(f"{path}.lastTransitionTime")
    reason = condition.get("reason", "")
    if not reason:
        yield required(f"{path}.reason")
    elif not re.fullmatch(_REASON, reason):
        yield invalid_value(f"{path}.reason", reason, _NOT_REASON)
    if len(reason.encode()) > _REASON_LENGTH:
        yield too_long(f"{path}.reason", _REASON_LENGTH)
    if len(condition.get("message", "").encode()) > _MESSAGE_LENGTH:
        yield too_long(f"{path}.message", _MESSAGE_LENGTH)


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
