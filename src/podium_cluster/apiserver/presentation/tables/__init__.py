"""Tables as the server makes them (meta.k8s.io/v1 Table), so that `kubectl get` looks as it does on any cluster.

A client asks for a table with `Accept: application/json;as=Table;v=v1;g=meta.k8s.io`. Each object becomes a row of
cells, one for each column of its kind, and is sent along as far as `includeObject` asks: its metadata (the default),
all of it (which sorting needs) or nothing. Custom kinds bring their columns with them; a kind without any has its name
and the time of its creation.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Protocol

from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.presentation.tables import (
    clusters,
    configuration,
    devices,
    events,
    networks,
    pod_groups,
    pods,
    storage,
    workloads,
)
from podium_cluster.apiserver.presentation.tables.columns import CREATED_AT, NAME, Cells, KindTable, Tables
from podium_cluster.apiserver.presentation.tables.custom import custom_table

API_VERSION: Final = "meta.k8s.io/v1"

TABLES: Final[Tables] = {
    **pods.TABLES,
    **pod_groups.TABLES,
    **workloads.TABLES,
    **clusters.TABLES,
    **configuration.TABLES,
    **networks.TABLES,
    **storage.TABLES,
    **devices.TABLES,
    **events.TABLES,
}


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
    shown = custom_table(printer_columns) if kind.custom else TABLES.get((kind.group, kind.kind), _DEFAULT)
    conditions = pods.row_conditions if (kind.group, kind.kind) == ("", "Pod") else _no_conditions
    return {
        "kind": "Table",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": dict(list_metadata or {}),
        "columnDefinitions": [column.definition() for column in shown.columns] if headers else None,
        "rows": [_row(obj, shown.cells(obj, now), conditions, include, version) for obj in objects],
    }


def _row(
    obj: JsonObject, cells: Cells, conditions: Callable[[JsonObject], list[Any]], include: str, version: str
) -> JsonObject:
    row: JsonObject = {"cells": cells}
    row_conditions = conditions(obj)
    if row_conditions:
        row["conditions"] = row_conditions
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


def _no_conditions(_: JsonObject) -> list[Any]:
    return []


def _name_and_creation(obj: JsonObject, _: datetime) -> Cells:
    return [obj["metadata"]["name"], obj["metadata"].get("creationTimestamp")]


_DEFAULT: Final = KindTable((NAME, CREATED_AT), _name_and_creation)
