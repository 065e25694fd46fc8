"""Declares ConfigMaps and Secrets: those that are immutable stay as they are.

Text in `stringData` of a Secret is stored, encoded, in `data`, and never read back as text.
"""

from __future__ import annotations

import base64
from datetime import datetime
from typing import Any, Final

from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.errors import field_forbidden, immutable
from podium_cluster.apiserver.kind import Defaults, Fields, FieldValues, built_in_kind
from podium_cluster.apiserver.kind_record import KindRecord, KindRules
from podium_cluster.apiserver.table_cells import AGE, NAME, Cells, KindTable, TableColumn, age
from podium_cluster.apiserver.validation.wording import Causes, Obj
from podium_cluster.apiserver.write_context import WriteContext

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


_SECRET_COLUMNS: Final = (
    NAME,
    TableColumn("Type", "What the secret is for."),
    TableColumn("Data", "How many keys it holds."),
    AGE,
)


def _field_values(obj: dict[str, Any]) -> FieldValues:
    return (obj.get("type", ""),)


def _encode_texts(obj: JsonObject, context: WriteContext) -> None:
    texts = obj.pop("stringData", None)
    if texts:
        encoded = {key: base64.b64encode(text.encode()).decode() for key, text in texts.items()}
        obj["data"] = {**(obj.get("data") or {}), **encoded}


def _prepare_for_update(new: JsonObject, old: JsonObject, context: WriteContext) -> None:
    _encode_texts(new, context)


def _secret_check_update(new: Obj, old: Obj) -> Causes:
    if new.get("type", "") != old.get("type", ""):
        yield immutable("type", new.get("type", ""))
    yield from unchanged_when_immutable(new, old, ("data",))


def _secret_cells(obj: JsonObject, now: datetime) -> Cells:
    return [obj["metadata"]["name"], obj.get("type", ""), len(obj.get("data") or ()), age(obj, now)]


SECRET: Final = KindRecord(
    built_in_kind(
        "v1",
        "Secret secrets",
        fields=Fields(("type",), _field_values),
        defaults=Defaults({"core.v1.Secret": {"type": "Opaque"}}),
    ),
    KindRules(
        prepare_for_create=_encode_texts,
        prepare_for_update=_prepare_for_update,
        validate_update=_secret_check_update,
    ),
    KindTable(_SECRET_COLUMNS, _secret_cells),
)
