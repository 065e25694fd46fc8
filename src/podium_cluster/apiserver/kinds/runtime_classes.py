"""RuntimeClasses: what pods of one get is in kinds/pods/admission.py."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.kind import built_in_kind
from podium_cluster.apiserver.kind_record import KindRecord, KindRules
from podium_cluster.apiserver.table_cells import AGE, NAME, Cells, KindTable, TableColumn, age

_COLUMNS: Final = (NAME, TableColumn("Handler", "What runs the containers of the class."), AGE)
RUNTIME_CLASS: Final = built_in_kind("node.k8s.io/v1", "RuntimeClass runtimeclasses", cluster=True)


def _cells(obj: JsonObject, now: datetime) -> Cells:
    return [obj["metadata"]["name"], obj.get("handler", ""), age(obj, now)]


RUNTIME_CLASS_RECORD: Final = KindRecord(
    RUNTIME_CLASS, KindRules(update_creates=True, update_needs_version=True), KindTable(_COLUMNS, _cells)
)
