"""Leases: who holds what, and for how long."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.kind import built_in_kind
from podium_cluster.apiserver.kind_record import KindRecord, KindRules
from podium_cluster.apiserver.table_cells import AGE, NAME, Cells, KindTable, TableColumn, age

_COLUMNS: Final = (NAME, TableColumn("Holder", "Who holds the lease."), AGE)


def _cells(obj: JsonObject, now: datetime) -> Cells:
    return [obj["metadata"]["name"], (obj.get("spec") or {}).get("holderIdentity") or "", age(obj, now)]


LEASE: Final = KindRecord(
    built_in_kind("coordination.k8s.io/v1", "Lease leases"),
    KindRules(update_creates=True, update_needs_version=True),
    KindTable(_COLUMNS, _cells),
)
