"""ConfigMaps: the keys they may have, how large they may be, and what stays when they are immutable."""

from __future__ import annotations

from base64 import b64decode
from datetime import datetime
from typing import Any, Final

from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.errors import field_forbidden, invalid_value
from podium_cluster.apiserver.kind import built_in_kind
from podium_cluster.apiserver.kind_record import KindRecord, KindRules
from podium_cluster.apiserver.table_cells import AGE, NAME, Cells, KindTable, TableColumn, age
from podium_cluster.apiserver.validation.wording import Causes, Obj, config_key, too_long

MOST_BYTES: Final = 1024 * 1024
_IMMUTABLE: Final = "field is immutable when `immutable` is set"
_COLUMNS: Final = (NAME, TableColumn("Data", "How many keys it holds."), AGE)


def _check(obj: Obj) -> Causes:
    data, binary = obj.get("data") or {}, obj.get("binaryData") or {}
    for key in data:
        yield from config_key(f"data[{key}]", key)
        if key in binary:
            yield invalid_value(f"data[{key}]", key, "duplicate of key present in binaryData")
    for key in binary:
        yield from config_key(f"binaryData[{key}]", key)
    size = sum(len(value.encode()) for value in data.values()) + sum(map(decoded_size, binary.values()))
    if size > MOST_BYTES:
        yield too_long("[]", MOST_BYTES)


def _check_update(new: Obj, old: Obj) -> Causes:
    yield from unchanged_when_immutable(new, old, ("data", "binaryData"))
    yield from _check(new)


def unchanged_when_immutable(new: Obj, old: Obj, fields: tuple[str, ...]) -> Causes:
    if not old.get("immutable"):
        return
    if not new.get("immutable"):
        yield field_forbidden("immutable", _IMMUTABLE)
    for name in fields:
        if (new.get(name) or {}) != (old.get(name) or {}):
            yield field_forbidden(name, _IMMUTABLE)


def decoded_size(value: Any) -> int:
    try:
        return len(b64decode(value))
    except ValueError:
        return 0


def _cells(obj: JsonObject, now: datetime) -> Cells:
    return [obj["metadata"]["name"], len(obj.get("data") or ()) + len(obj.get("binaryData") or ()), age(obj, now)]


CONFIG_MAP: Final = KindRecord(
    built_in_kind("v1", "ConfigMap configmaps", short="cm"),
    KindRules(validate=_check, validate_update=_check_update),
    KindTable(_COLUMNS, _cells),
)
