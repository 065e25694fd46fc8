"""Leases: who holds what, and for how long."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.errors import invalid_value
from podium_cluster.apiserver.kind import built_in_kind
from podium_cluster.apiserver.kind_record import KindRecord, KindRules
from podium_cluster.apiserver.table_cells import AGE, NAME, Cells, KindTable, TableColumn, age
from podium_cluster.apiserver.validation.wording import Causes, Obj

_COLUMNS: Final = (NAME, TableColumn("Holder", "Who holds the lease."), AGE)


def _check(obj: Obj) -> Causes:
    spec = obj.get("spec") or {}
    duration, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
    if duration is not None and duration <= 0:
        yield invalid_value("spec.leaseDurationSeconds", duration, "must be greater than 0")
    if transitions is not None and transitions < 0:
        yield invalid_value("spec.leaseTransitions", transitions, "must be greater than or equal to 0")


def _check_update(new: Obj, _: Obj) -> Causes:
    yield from _check(new)


def _cells(obj: JsonObject, now: datetime) -> Cells:
    return [obj["metadata"]["name"], (obj.get("spec") or {}).get("holderIdentity") or "", age(obj, now)]


LEASE: Final = KindRecord(
    built_in_kind("coordination.k8s.io/v1", "Lease leases"),
    KindRules(update_creates=True, update_needs_version=True, validate=_check, validate_update=_check_update),
    KindTable(_COLUMNS, _cells),
)
