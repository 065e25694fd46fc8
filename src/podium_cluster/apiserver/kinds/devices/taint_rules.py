"""DeviceTaintRules: a taint that an administrator puts on devices of any driver, without touching their slices."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.kind_record import KindRecord, KindRules
from podium_cluster.apiserver.kinds.devices.kinds import DEVICE_TAINT_RULE
from podium_cluster.apiserver.kinds.devices.parts import device_taint, driver, pool_name
from podium_cluster.apiserver.table_cells import AGE, NAME, Cells, KindTable, TableColumn, age, since
from podium_cluster.apiserver.validation.wording import Causes, Obj, dns_label
from podium_cluster.apiserver.write_context import WriteContext

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
