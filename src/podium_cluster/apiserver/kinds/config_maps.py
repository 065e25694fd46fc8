"""ConfigMaps: those that are immutable stay as they are."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.errors import field_forbidden
from podium_cluster.apiserver.kind import built_in_kind
from podium_cluster.apiserver.kind_record import KindRecord, KindRules
from podium_cluster.apiserver.table_cells import AGE, NAME, Cells, KindTable, TableColumn, age
from podium_cluster.apiserver.validation.wording import Causes, Obj

_IMMUTABLE: Final = "field is immutable when `immutable` is set"
_COLUMNS: Final = (NAME, TableColumn("Data", "How many keys it holds."), AGE)


def _check_update(new: Obj, old: Obj) -> Causes:
    return unchanged_when_immutable(new, old, ("data", "binaryData"))


def unchanged_when_immutable(new: Obj, old: Obj, fields: tuple[str, ...]) -> Causes:
    if not old.get("immutable"):
        return
    if not new.get("immutable"):
        yield field_forbidden("immutable", _IMMUTABLE)
    for name in fields:
        if (new.get(name) or {}) != (old.get(name) or {}):
            yield field_forbidden(name, _IMMUTABLE)


def _cells(obj: JsonObject, now: datetime) -> Cells:
    return [obj["metadata"]["name"], len(obj.get("data") or ()) + len(obj.get("binaryData") or ()), age(obj, now)]


CONFIG_MAP: Final = KindRecord(
    built_in_kind("v1", "ConfigMap configmaps", short="cm"),
    KindRules(validate_update=_check_update),
    KindTable(_COLUMNS, _cells),
)
