"""Tabulates custom kinds: the columns are the definition's additionalPrinterColumns, by default the age.

A column's value is found by a JSON path and must be of the column's type: what is not there, or is of another type, is
an empty cell. A `date` is shown as an age; a `string` shows numbers and lists as well, lists and maps as JSON.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.presentation.json_path import JsonPath, JsonPathError
from podium_cluster.apiserver.table_cells import NAME, Cells, KindTable, TableColumn, since

_DEFAULT: Final = ({"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},)
_ABOUT: Final = "Custom resource definition column (in JSONPath format): "


def custom_table(columns: Sequence[Mapping[str, Any]] | None) -> KindTable:
    """The table of a custom kind, by the additionalPrinterColumns of its definition."""
    written = columns or _DEFAULT
    found = [(_column(each), _path(each["jsonPath"])) for each in written]

    def cells(obj: JsonObject, now: datetime) -> Cells:
        return [obj["metadata"]["name"], *(_cell(column.type, path, obj, now) for column, path in found)]

    return KindTable((NAME, *(column for column, _ in found)), cells)


def _column(written: Mapping[str, Any]) -> TableColumn:
    return TableColumn(
        written["name"],
        written.get("description") or _ABOUT + written["jsonPath"],
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
