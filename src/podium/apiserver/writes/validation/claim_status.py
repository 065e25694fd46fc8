"""Validates the status of a resource claim: what it was given, the pods that use it, what drivers report.

What a claim was given may be written and taken away, not changed. It has users only while it has devices, and gets no
new ones while it is being deleted.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any, Final

from podium.apiserver.errors import field_forbidden, immutable, invalid_value, not_supported, required
from podium.apiserver.writes.validation.device_parts import (
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
from podium.apiserver.writes.validation.placement import node_selector
from podium.apiserver.writes.validation.wording import Causes, Obj, dns_label, label_name, too_many

_MOST_USERS, _MOST_CONDITIONS = 256, 8
_WITHOUT_DEVICES: Final = "may not be specified when `allocated` is not set"
_GOING: Final = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
_UUID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_NOT_NORMAL: Final = (
    "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase hexadecimal "
    "characters"
)
_SOURCES: Final = ("FromClaim", "FromClass")


def resource_claim_status(new: Obj, old: Obj) -> Causes:
    status, before = new.get("status") or {}, old.get("status") or {}
    allocation, users = status.get("allocation"), status.get("reservedFor") or []
    yield from distinct("status.reservedFor", users, _MOST_USERS, _user, lambda user: user.get("uid", ""))
    yield from _devices(status.get("devices") or [], allocation)
    if users and allocation is None:
        yield field_forbidden("status.reservedFor", _WITHOUT_DEVICES)
    elif "deletionTimestamp" in new["metadata"]:
        known = before.get("reservedFor") or []
        if any(user not in known for user in users):
            yield field_forbidden("status.reservedFor", _GOING)
    if allocation is not None and before.get("allocation") is not None:
        if allocation != before["allocation"]:
            yield immutable("status.allocation", None)
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
        if device_key(device) not in given:
            yield invalid_value(path, device_key(device), "must be an allocated device in the claim")
        conditions = device.get("conditions") or []
        if len(conditions) > _MOST_CONDITIONS:
            yield too_many(f"{path}.conditions", len(conditions), _MOST_CONDITIONS)
        for number, condition in enumerate(conditions):
            yield from _condition(f"{path}.conditions[{number}]", condition)
        if device.get("data") is not None:
            yield from raw(f"{path}.data", device["data"])
    yield from repeated("status.devices", [device_key(device) for device in devices])


def _condition(path: str, condition: Obj) -> Causes:
    yield from label_name(f"{path}.type", condition.get("type", ""))
    if condition.get("status") not in ("True", "False", "Unknown"):
        yield not_supported(f"{path}.status", condition.get("status", ""), ("False", "True", "Unknown"))
    if not condition.get("lastTransitionTime"):
        yield required(f"{path}.lastTransitionTime")
    if not condition.get("reason"):
        yield required(f"{path}.reason")


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
    yield from pool_name(f"{path}.pool", result.get("pool", ""))
    yield from dns_label(f"{path}.device", result.get("device", ""))
    yield from binding_conditions(path, result)
    share = result.get("shareID")
    if share is None or _UUID.fullmatch(share):
        return
    if _UUID.fullmatch(share.lower()):
        yield invalid_value(f"{path}.shareID", share, _NOT_NORMAL)
    else:
        yield invalid_value(f"{path}.shareID", share, f"error validating uid: invalid UUID length: {len(share)}")


def _config(path: str, config: Obj, names: Collection[str]) -> Causes:
    source = config.get("source")
    if not source:
        yield required(f"{path}.source")
    elif source not in _SOURCES:
        yield not_supported(f"{path}.source", source, _SOURCES)
    yield from request_references(f"{path}.requests", config.get("requests"), names)
    yield from configuration(path, config)
