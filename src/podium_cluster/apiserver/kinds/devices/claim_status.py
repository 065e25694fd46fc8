"""Validates the status of a resource claim: what it was given, the pods that use it, what drivers report.

What a claim was given may be written and taken away, not changed. It has users only while it has devices, and gets no
new ones while it is being deleted. Zeros in front of a number of an address are read as the API server reads them, as
decimal, and are then not canonical.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any, Final

from kubecel.structured_values import same_json
from podium_cluster.apiserver.errors import (
    duplicate,
    field_forbidden,
    invalid_value,
    not_supported,
    required,
)
from podium_cluster.apiserver.kinds.devices.parts import (
    MOST,
    binding_conditions,
    configuration,
    distinct,
    driver,
    items,
    pool_name,
    raw,
    repeated,
    request_names,
    request_reference,
    request_references,
)
from podium_cluster.apiserver.validation.placement import node_selector
from podium_cluster.apiserver.validation.wording import Causes, Obj, dns_label, label_name, too_long, too_many

_MOST_USERS, _MOST_CONDITIONS = 256, 8
_WITHOUT_DEVICES: Final = "may not be specified when `allocated` is not set"
_GOING: Final = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
_UUID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_SOURCES: Final = ("FromClaim", "FromClass")
_INTERFACE_LENGTH, _HARDWARE_LENGTH, _MOST_ADDRESSES = 256, 128, 16
_STATUSES: Final = ("False", "True", "Unknown")
_REASON_LENGTH, _MESSAGE_LENGTH = 1 << 10, 32 << 10
_REASON: Final = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_NOT_REASON: Final = (
    "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric "
    "characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or "
    f"'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is '{_REASON}')"
)
_NOT_ADDRESS: Final = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)"
_LEADING_ZEROS: Final = re.compile(r"(?<![0-9A-Fa-f])0+(?=[0-9A-Fa-f])")


def resource_claim_status(new: Obj, old: Obj) -> Causes:
    status, before = new.get("status") or {}, old.get("status") or {}
    allocation, users = status.get("allocation"), status.get("reservedFor") or []
    yield from distinct("status.reservedFor", users, _MOST_USERS, _user, lambda user: user.get("uid", ""), dict)
    yield from _devices(status.get("devices") or [], allocation)
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


def _devices(devices: list[dict[str, Any]], allocation: Obj | None) -> Causes:
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
