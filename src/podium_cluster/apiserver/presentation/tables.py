"""Tables as the server makes them (meta.k8s.io/v1 Table), so that `kubectl get` looks as it does on any cluster.

A client asks for a table with `Accept: application/json;as=Table;v=v1;g=meta.k8s.io`. Each object becomes a row of
cells, one for each column of its kind, and is sent along as far as `includeObject` asks: its metadata (the default),
all of it (which sorting needs) or nothing. Custom kinds bring their columns with them; a kind without any has its name
and the time of its creation.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Protocol

from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.kinds import table_of
from podium_cluster.apiserver.presentation.custom_tables import custom_table
from podium_cluster.apiserver.table_cells import CREATED_AT, NAME, Cells, KindTable

API_VERSION: Final = "meta.k8s.io/v1"


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
