"""ControllerRevisions: the templates that StatefulSets and DaemonSets have had."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.kind import built_in_kind
from podium_cluster.apiserver.kind_record import KindRecord
from podium_cluster.apiserver.table_cells import AGE, NAME, NONE, Cells, KindTable, TableColumn, age

_COLUMNS: Final = (
    NAME,
    TableColumn("Controller", "The object whose revision this is."),
    TableColumn("Revision", "The number of the revision."),
    AGE,
)


def _cells(obj: JsonObject, now: datetime) -> Cells:
    owners = obj["metadata"].get("ownerReferences") or ()
    owner = next((each for each in owners if each.get("controller")), None)
    name = NONE
    if owner is not None:
        group = owner["apiVersion"].rpartition("/")[0]
        kind = f"{owner['kind']}.{group}" if group else owner["kind"]
        name = f"{kind.lower()}/{owner['name']}"
    return [obj["metadata"]["name"], name, obj.get("revision", 0), age(obj, now)]


CONTROLLER_REVISION: Final = KindRecord(
    built_in_kind("apps/v1", "ControllerRevision controllerrevisions"), table=KindTable(_COLUMNS, _cells)
)
