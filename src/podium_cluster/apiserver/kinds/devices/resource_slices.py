"""ResourceSlices: which nodes they are for, and the devices or counters that they offer.
It validates how much of a shared device's capacity may be asked for: certain values, or a range in steps.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Final

from kubecel.quantity import canonical, format_nano, parse, units
from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.errors import field_forbidden, immutable, invalid_value, required
from podium_cluster.apiserver.kind_record import KindRecord, KindRules
from podium_cluster.apiserver.kinds.devices.parts import (
    MOST,
    RESOURCE_SLICE,
    binding_conditions,
    device_taint,
    distinct,
    driver,
    items,
    pool_name,
    qualified,
)
from podium_cluster.apiserver.table_cells import AGE, NAME, Cells, KindTable, TableColumn, age
from podium_cluster.apiserver.validation.placement import node_selector
from podium_cluster.apiserver.validation.wording import (
    NOT_POSITIVE,
    Causes,
    Obj,
    dns_label,
    dns_subdomain,
    too_long,
    too_many,
)
from podium_cluster.apiserver.write_context import WriteContext

_POLICY_MOST_VALUES: Final = 10
_BOTH: Final = 'exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time'


def request_policy(path: str, policy: Obj, capacity: Any) -> Causes:
    values, span, default = policy.get("validValues"), policy.get("validRange"), policy.get("default")
    if values and span is not None:
        yield field_forbidden(path, _BOTH)
    elif values:
        if default is None:
            yield required(f"{path}.default", "required when validValues is defined")
        else:
            yield from _values(f"{path}.validValues", values, default, capacity)
    elif span is not None:
        if default is None:
            yield required(f"{path}.default", "required when validRange is defined")
        else:
            yield from _range(f"{path}.validRange", span, default, capacity)


def _values(path: str, values: Sequence[Any], default: Any, capacity: Any) -> Causes:
    amounts = [parse(value) for value in values]
    for at, value in enumerate(values[1:], start=1):
        if amounts[at - 1] > amounts[at]:
            yield invalid_value(f"{path}[{at}]", canonical(value), "values must be sorted in ascending order")

    def check(where: str, value: Any) -> Causes:
        if parse(value) > parse(capacity):
            detail = f"option is larger than capacity value: {canonical(capacity)}"
            yield invalid_value(where, canonical(value), detail)

    yield from distinct(path, values, _POLICY_MOST_VALUES, check, lambda value: str(units(value)))
    if len(values) > _POLICY_MOST_VALUES or parse(default) not in amounts:
        yield invalid_value(path, canonical(default), "default value is not valid according to the requestPolicy")


def _range(path: str, span: Obj, default: Any, capacity: Any) -> Causes:
    least, most, step = span.get("min"), span.get("max"), span.get("step")
    if least is None:
        yield required(f"{path}.min", "required when validRange is defined")
        return
    value, least_amount, whole = parse(default), parse(least), parse(capacity)
    if least_amount > whole:
        detail = f"min is larger than capacity value: {canonical(capacity)}"
        yield invalid_value(f"{path}.min", canonical(least), detail)
    if value < least_amount:
        yield invalid_value(f"{path}.default", canonical(default), f"default is less than min: {canonical(least)}")
    if most is not None:
        if least_amount > parse(most):
            yield invalid_value(f"{path}.max", canonical(least), f"min is larger than max: {canonical(most)}")
        if parse(most) > whole:
            detail = f"max is larger than capacity value: {canonical(capacity)}"
            yield invalid_value(f"{path}.max", canonical(most), detail)
        if value > parse(most):
            yield invalid_value(f"{path}.max", canonical(default), f"default is more than max: {canonical(most)}")
    if step is not None:
        yield from _steps(f"{path}.step", least, step, capacity, [default, *([most] if most is not None else [])])


def _steps(path: str, least: Any, step: Any, capacity: Any, values: Sequence[Any]) -> Causes:
    if parse(least) + parse(step) > parse(capacity):
        reached = format_nano(parse(least) + parse(step), binary=canonical(least).endswith("i"))
        detail = f"one step {reached} is larger than capacity value: {canonical(capacity)}"
        yield invalid_value(path, canonical(step), detail)
    for value in values:
        if not units(step) or (units(value) - units(least)) % units(step):  # kube-apiserver fails with a step of 0
            detail = f"value is not a multiple of a given step ({canonical(step)}) from ({canonical(least)})"
            yield invalid_value(path, canonical(value), detail)


_CLOSED_LISTS: Final = ("ints", "bools", "strings", "versions")  # DRAListTypeAttributes
_CLOSED_RESOURCES: Final = "nodeAllocatableResources"  # DRANodeAllocatableResources
_CLOSED_GROUPS: Final = "compatibilityGroups"  # DRADeviceCompatibilityGroups
_CLOSED_SPEC: Final = ("partitionTypeAttribute", "skipNodeOperations")  # DRAPartitionableDevicesType, …OptionalNode…
_COLUMNS: Final = (
    NAME,
    TableColumn("Node", "The node whose devices these are."),
    TableColumn("Driver", "The driver that offers them."),
    TableColumn("Pool", "The pool they belong to."),
    AGE,
)


def _prepare(obj: JsonObject, context: WriteContext) -> None:
    for field in _CLOSED_SPEC:
        (obj.get("spec") or {}).pop(field, None)
    for device in _devices(obj):
        device.pop(_CLOSED_RESOURCES, None)
        for use in device.get("consumesCounters") or ():
            use.pop(_CLOSED_GROUPS, None)
        for attribute in (device.get("attributes") or {}).values():
            for field in _CLOSED_LISTS:
                attribute.pop(field, None)
        for taint in device.get("taints") or ():
            if taint.get("timeAdded") is None:
                taint["timeAdded"] = context.now()


def _prepare_update(new: JsonObject, _old: JsonObject, context: WriteContext) -> None:
    _prepare(new, context)


def _devices(obj: JsonObject) -> Iterator[JsonObject]:
    yield from (obj.get("spec") or {}).get("devices") or ()


_MOST_DEVICES, _MOST_MARKED_DEVICES, _MOST_TAINTS, _MOST_SETS, _MOST_USED_SETS = 128, 64, 16, 8, 2
_VALUE_LENGTH: Final = 64
_MOST_VALUES: Final = 48
_VALUES: Final = ("int", "bool", "string", "version", *_CLOSED_LISTS)
_SELECTIONS: Final = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
_ONE_SELECTION: Final = f"exactly one of {', '.join(f'`{name}`' for name in _SELECTIONS)} is required"
_DEVICE_SELECTION: Final = (
    "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true "
    "in the ResourceSlice spec"
)
_NOT_PER_DEVICE: Final = (
    "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in the "
    "ResourceSlice spec"
)
_UNSET_OR_TRUE: Final = "must be either unset or set to true"
_NUMBER, _BEFORE_RELEASE = r"(0|[1-9]\d*)", r"(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)"
_VERSION: Final = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(-{_BEFORE_RELEASE}(\.{_BEFORE_RELEASE})*)?(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?",
    re.ASCII,
)


def _check(obj: Obj) -> Causes:
    yield from _slice(obj.get("spec") or {}, None)


def _check_update(new: Obj, old: Obj) -> Causes:
    yield from _slice(new.get("spec") or {}, old.get("spec") or {})


def _slice(spec: Obj, before: Obj | None) -> Causes:
    pool = spec.get("pool") or {}
    yield from driver("spec.driver", spec.get("driver", ""))
    yield from pool_name("spec.pool.name", pool.get("name", ""))
    if pool.get("resourceSliceCount", 0) <= 0:
        yield invalid_value("spec.pool.resourceSliceCount", pool.get("resourceSliceCount", 0), NOT_POSITIVE)
    if pool.get("generation", 0) < 0:
        yield invalid_value("spec.pool.generation", pool["generation"], "must be greater than or equal to zero")
    if before is not None:
        yield from _unchanged(spec, before)
    yield from _selection("spec", spec, _SELECTIONS, "must be either unset or set to a non-empty string")
    if spec.get("sharedCounters") is not None and spec.get("devices") is not None:
        yield invalid_value("spec", "", "only one of `sharedCounters` or `devices` is allowed")
    devices = spec.get("devices") or []
    marked = any(device.get("taints") or device.get("consumesCounters") for device in devices)
    most = _MOST_MARKED_DEVICES if marked else _MOST_DEVICES
    per_device = bool(spec.get("perDeviceNodeSelection"))
    yield from distinct("spec.devices", devices, most, lambda where, one: _device(where, one, per_device), _name)
    yield from distinct("spec.sharedCounters", spec.get("sharedCounters"), _MOST_SETS, _counter_set, _name)


def _unchanged(spec: Obj, before: Obj) -> Causes:
    name, old_name = ((each.get("pool") or {}).get("name", "") for each in (spec, before))
    if name != old_name:
        yield immutable("spec.pool.name", name)
    for field in ("driver", "nodeName"):
        if spec.get(field) != before.get(field):
            yield immutable(f"spec.{field}", spec.get(field))


def _selection(path: str, given: Obj, fields: tuple[str, ...], empty: str) -> Causes:
    """The nodes that may use a slice or a device: said in one way."""
    name, chosen, everywhere = given.get("nodeName"), given.get("nodeSelector"), given.get("allNodes")
    if name:
        yield from dns_subdomain(f"{path}.nodeName", name)
    elif name is not None:
        yield invalid_value(f"{path}.nodeName", name, empty)
    if chosen is not None:
        yield from node_selector(f"{path}.nodeSelector", chosen)
        terms = chosen.get("nodeSelectorTerms") or []
        if path == "spec" and len(terms) != 1:
            yield invalid_value(f"{path}.nodeSelector.nodeSelectorTerms", terms, "must have exactly one term")
    if everywhere is False:
        yield invalid_value(f"{path}.allNodes", False, _UNSET_OR_TRUE)
    if "perDeviceNodeSelection" in fields and given.get("perDeviceNodeSelection") is False:
        yield invalid_value(f"{path}.perDeviceNodeSelection", False, _UNSET_OR_TRUE)
    detail = _ONE_SELECTION if path == "spec" else _DEVICE_SELECTION
    made = [f"`{field}`" for field in fields if given.get(field) or (field == "nodeSelector" and chosen is not None)]
    if not made:
        yield required(path, detail)
    elif len(made) > 1:
        more = ", but multiple fields are set" if path == "spec" else ""
        yield invalid_value(path, f"{{{', '.join(made)}}}", detail + more)


def _name(obj: Obj) -> str:
    return str(obj.get("name", ""))


def _device(path: str, device: Obj, per_device: bool) -> Causes:
    attributes, capacity = device.get("attributes") or {}, device.get("capacity") or {}
    yield from dns_label(f"{path}.name", device.get("name", ""))
    if len(attributes) + len(capacity) > MOST:
        detail = f"the total number of attributes and capacities must not exceed {MOST}"
        yield invalid_value(path, len(attributes) + len(capacity), detail)
    if len(attributes) > _MOST_VALUES:
        yield invalid_value(
            path, len(attributes), f"the total number of attribute values must not exceed {_MOST_VALUES}"
        )
    for name in attributes:
        yield from qualified(f"{path}.attributes", name)
        yield from _attribute(f"{path}.attributes[{shortened(name)}]", attributes[name] or {})
    for name in capacity:
        yield from qualified(f"{path}.capacity", name)
        yield from _capacity(f"{path}.capacity[{shortened(name)}]", capacity[name], device)
    yield from items(f"{path}.taints", device.get("taints"), _MOST_TAINTS, device_taint)
    yield from distinct(
        f"{path}.consumesCounters",
        device.get("consumesCounters"),
        _MOST_USED_SETS,
        _consumption,
        lambda use: use.get("counterSet", ""),
    )
    if per_device:
        yield from _selection(path, device, _SELECTIONS[:3], "must not be empty")
    elif any(device.get(field) is not None for field in _SELECTIONS[:3]):
        yield invalid_value(path, None, _NOT_PER_DEVICE)
    yield from binding_conditions(path, device)


def _attribute(path: str, attribute: Obj) -> Causes:
    text, version = attribute.get("string"), attribute.get("version")
    if text is not None and len(text.encode()) > _VALUE_LENGTH:
        yield too_long(f"{path}.string", _VALUE_LENGTH)
    if version is not None:
        if not _VERSION.fullmatch(version):
            yield invalid_value(f"{path}.version", version, "must be a string compatible with semver.org spec 2.0.0")
        if len(version.encode()) > _VALUE_LENGTH:
            yield too_long(f"{path}.version", _VALUE_LENGTH)
    given = [field for field in _VALUES if attribute.get(field) is not None]
    if len(given) != 1:
        options = ", ".join(f"`{field}`" for field in _VALUES)
        exactly = "exactly " if given else ""
        yield invalid_value(
            path, f"{{{', '.join(given)}}}" if given else "", f"must specify {exactly}one of: {options}"
        )


def _capacity(path: str, capacity: Obj, device: Obj) -> Causes:
    policy = capacity.get("requestPolicy")
    if policy is None:
        return
    if device.get("allowMultipleAllocations"):
        yield from request_policy(f"{path}.requestPolicy", policy, capacity.get("value", 0))
    else:
        yield field_forbidden(f"{path}.requestPolicy", "allowMultipleAllocations must be true")


def _counter_set(path: str, counters: Obj) -> Causes:
    yield from _counters(path, "name", counters)


def _consumption(path: str, counters: Obj) -> Causes:
    yield from _counters(path, "counterSet", counters)


def _counters(path: str, name: str, given: Obj) -> Causes:
    if given.get(name):
        yield from dns_label(f"{path}.{name}", given[name])
    else:
        yield required(f"{path}.{name}")
    counters = given.get("counters") or {}
    if not counters:
        yield required(f"{path}.counters")
    elif len(counters) > MOST:
        yield too_many(f"{path}.counters", len(counters), MOST)
    else:
        for counter in counters:
            yield from dns_label(f"{path}.counters", counter)


def shortened(key: str, most: int = 96) -> str:
    """A key as a path shows it: one that is too long loses its middle."""
    if len(key) <= most:
        return key
    remaining = most - 3
    return f"{key[: (remaining + 1) // 2]}...{key[-(remaining // 2) :]}"


def _cells(obj: JsonObject, now: datetime) -> Cells:
    spec = obj.get("spec") or {}
    pool = (spec.get("pool") or {}).get("name", "")
    return [obj["metadata"]["name"], spec.get("nodeName") or "", spec.get("driver", ""), pool, age(obj, now)]


RESOURCE_SLICE_RECORD: Final = KindRecord(
    RESOURCE_SLICE,
    KindRules(
        prepare_for_create=_prepare,
        prepare_for_update=_prepare_update,
        validate=_check,
        validate_update=_check_update,
        returns_deleted=True,
        generation="spec",
    ),
    KindTable(_COLUMNS, _cells),
)
