"""Tables as the server makes them (meta.k8s.io/v1 Table), so that `kubectl get` looks as it does on any cluster.

A client asks for a table with `Accept: application/json;as=Table;v=v1;g=meta.k8s.io`. Each object becomes a row of
cells, one for each column of its kind, and is sent along as far as `includeObject` asks: its metadata (the default),
all of it (which sorting needs) or nothing. Custom kinds bring their columns with them; a kind without any has its name
and the time of its creation.

The columns of a custom kind are its definition's additionalPrinterColumns, by default the age. A column's value is
found by a JSON path and must be of the column's type: what is not there, or is of another type, is an empty cell. A
`date` is shown as an age; a `string` shows numbers and lists as well, lists and maps as JSON.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Protocol

import msgspec

from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.kinds import table_of
from podium_cluster.apiserver.presentation.json_path import JsonPath, JsonPathError
from podium_cluster.apiserver.table_cells import CREATED_AT, NAME, Cells, KindTable, TableColumn, since

API_VERSION: Final = "meta.k8s.io/v1"
_CUSTOM_DEFAULT: Final = ({"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},)
_ABOUT_CUSTOM: Final = "Custom resource definition column (in JSONPath format): "


class NamedKind(Protocol):
    """As much of a kind as a table needs."""

    @property
    def group(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def custom(self) -> bool: ...


def table(
    kind: NamedKind,
    objects: Sequence[JsonObject],
    now: datetime,
    *,
    printer_columns: Sequence[Mapping[str, Any]] | None = None,
    headers: bool = True,
    include: str = "Metadata",
    list_metadata: Mapping[str, Any] | None = None,
    version: str = "v1",
) -> JsonObject:
    """The objects as a Table. `headers` is False for every event of a watch but the first."""
    shown = custom_table(printer_columns) if kind.custom else table_of(kind.group, kind.kind) or _DEFAULT
    return {
        "kind": "Table",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": dict(list_metadata or {}),
        "columnDefinitions": [column.definition() for column in shown.columns] if headers else None,
        "rows": [_row(obj, shown, now, include, version) for obj in objects],
    }


def _row(obj: JsonObject, shown: KindTable, now: datetime, include: str, version: str) -> JsonObject:
    row: JsonObject = {"cells": shown.cells(obj, now)}
    if conditions := shown.conditions(obj):
        row["conditions"] = conditions
    row["object"] = _included(obj, include, version)
    return row


def _included(obj: JsonObject, include: str, version: str) -> JsonObject | None:
    if include == "None":
        return None
    if include == "Object":
        return obj
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": obj["metadata"],
    }


def _name_and_creation(obj: JsonObject, _: datetime) -> Cells:
    return [obj["metadata"]["name"], obj["metadata"].get("creationTimestamp")]


_DEFAULT: Final = KindTable((NAME, CREATED_AT), _name_and_creation)


def custom_table(columns: Sequence[Mapping[str, Any]] | None) -> KindTable:
    """The table of a custom kind, by the additionalPrinterColumns of its definition."""
    written = columns or _CUSTOM_DEFAULT
    found = [(_column(each), _path(each["jsonPath"])) for each in written]

    def cells(obj: JsonObject, now: datetime) -> Cells:
        return [obj["metadata"]["name"], *(_cell(column.type, path, obj, now) for column, path in found)]

    return KindTable((NAME, *(column for column, _ in found)), cells)


def _column(written: Mapping[str, Any]) -> TableColumn:
    return TableColumn(
        written["name"],
        written.get("description") or _ABOUT_CUSTOM + written["jsonPath"],
        type=written["type"],
        priority=written.get("priority", 0),
        format=written.get("format", ""),
    )


def _path(text: str) -> JsonPath | None:
    try:
        return JsonPath(text)
    except JsonPathError:
        return None


def _cell(kind: str, path: JsonPath | None, obj: JsonObject, now: datetime) -> Any:
    found = path.find(obj) if path is not None else []
    if not found:
        return None
    value = found[0]
    if kind == "string":
        return _text(value)
    if kind == "date":
        return _date(value, now) if isinstance(value, str) else None
    if kind == "boolean":
        return value if isinstance(value, bool) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if kind == "integer" else float(value)


def _text(value: Any) -> str:
    if isinstance(value, dict | list):
        return msgspec.json.encode(value, order="deterministic").decode()
    if value is None:
        return "<nil>"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _date(value: str, now: datetime) -> str:
    try:
        return since(value, now)
    except (ValueError, TypeError):
        return "<invalid>"
