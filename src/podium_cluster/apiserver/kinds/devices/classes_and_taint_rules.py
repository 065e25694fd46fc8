"""Declares DeviceClasses and DeviceTaintRules.

A rule is a taint that an administrator puts on devices of any driver, without touching their slices. A class says which
devices claims may ask for, by selectors.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from kubecel.names import dns_subdomain_errors
from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.errors import invalid_value
from podium_cluster.apiserver.kind_record import KindRecord, KindRules
from podium_cluster.apiserver.kinds.devices.parts import (
    DEVICE_CLASS,
    DEVICE_TAINT_RULE,
    MOST,
    configuration,
    device_taint,
    driver,
    items,
    pool_name,
    selector,
)
from podium_cluster.apiserver.table_cells import AGE, NAME, Cells, KindTable, TableColumn, age, name_and_age, since
from podium_cluster.apiserver.validation.metadata import metadata_causes
from podium_cluster.apiserver.validation.resources import is_extended
from podium_cluster.apiserver.validation.wording import Causes, Obj, dns_label
from podium_cluster.apiserver.write_context import WriteContext


def _class_check(obj: Obj) -> Causes:
    spec = obj.get("spec") or {}
    yield from items("spec.selectors", spec.get("selectors"), MOST, selector)
    yield from items("spec.config", spec.get("config"), MOST, configuration)
    name = spec.get("extendedResourceName")
    if name is not None and "/" not in name:
        detail = "a name must be a domain-prefixed path, such as 'example.com/my-prop'"
        yield invalid_value("spec.extendedResourceName", name, detail)
    elif name is not None and not is_extended(name):
        yield invalid_value("spec.extendedResourceName", name, "must be a valid extended resource name")


def _class_check_update(new: Obj, _old: Obj) -> Causes:
    yield from metadata_causes(new["metadata"], DEVICE_CLASS, dns_subdomain_errors)
    yield from _class_check(new)


DEVICE_CLASS_RECORD: Final = KindRecord(
    DEVICE_CLASS,
    KindRules(validate=_class_check, validate_update=_class_check_update, returns_deleted=True, generation="spec"),
    KindTable((NAME, AGE), name_and_age),
)


_COLUMNS: Final = (
    NAME,
    TableColumn("Key", "The key of the taint."),
    TableColumn("Value", "The value of the taint."),
    TableColumn("Effect", "What the taint does to pods that do not tolerate it."),
    TableColumn("TimeAdded", "When the taint was added."),
    AGE,
)


def _prepare(rule: JsonObject, context: WriteContext) -> None:
    taint = _taint(rule)
    if taint and taint.get("timeAdded") is None:
        taint["timeAdded"] = context.now()


def _prepare_update(new: JsonObject, old: JsonObject, context: WriteContext) -> None:
    """The time is that of the effect: another effect starts it again, unless the writer says when."""
    taint, before = _taint(new), _taint(old)
    if taint.get("effect") != before.get("effect") and taint.get("timeAdded") == before.get("timeAdded"):
        taint["timeAdded"] = context.now()
    _prepare(new, context)


def _taint(rule: JsonObject) -> JsonObject:
    found: JsonObject = (rule.get("spec") or {}).get("taint") or {}
    return found


def _check(rule: Obj) -> Causes:
    spec = rule.get("spec") or {}
    selector = spec.get("deviceSelector") or {}
    if selector.get("driver") is not None:
        yield from driver("spec.deviceSelector.driver", selector["driver"])
    if selector.get("pool") is not None:
        yield from pool_name("spec.deviceSelector.pool", selector["pool"])
    if selector.get("device") is not None:
        yield from dns_label("spec.deviceSelector.device", selector["device"])
    yield from device_taint("spec.taint", spec.get("taint") or {})


def _check_update(new: Obj, _old: Obj) -> Causes:
    yield from _check(new)


def _cells(rule: JsonObject, now: datetime) -> Cells:
    taint = _taint(rule)
    added = since(taint["timeAdded"], now) if taint.get("timeAdded") else ""
    shown = [taint.get(field) or "" for field in ("key", "value", "effect")]
    return [rule["metadata"]["name"], *shown, added, age(rule, now)]


DEVICE_TAINT_RULE_RECORD: Final = KindRecord(
    DEVICE_TAINT_RULE,
    KindRules(
        prepare_for_create=_prepare,
        prepare_for_update=_prepare_update,
        validate=_check,
        validate_update=_check_update,
        update_needs_version=True,
        returns_deleted=True,
        generation="spec",
        empty_status={},
    ),
    KindTable(_COLUMNS, _cells),
)
