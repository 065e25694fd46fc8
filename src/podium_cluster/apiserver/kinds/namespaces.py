"""Namespaces: active until deleted, then terminating until nothing is left in them and the finalizer is gone.

The finalizer is in the spec, not in the metadata, and is taken off through `/finalize`. Every namespace carries its own
name as a label, so that selectors of namespaces can name one.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from kubecel.names import dns_label_errors
from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.errors import forbidden
from podium_cluster.apiserver.kind import ALL_VERBS, STATUS, Defaults, Fields, FieldValues, Subresource, built_in_kind
from podium_cluster.apiserver.kind_record import KindRecord, KindRules
from podium_cluster.apiserver.store.collection import Stored
from podium_cluster.apiserver.table_cells import AGE, NAME, Cells, KindTable, TableColumn, age
from podium_cluster.apiserver.write_context import WriteContext

NAME_LABEL: Final = "kubernetes.io/metadata.name"
FINALIZER: Final = "kubernetes"
_LASTING: Final = ("default", "kube-system", "kube-public")
_COLUMNS: Final = (NAME, TableColumn("Status", "Whether the namespace is in use or going."), AGE)


def _field_values(obj: dict[str, Any]) -> FieldValues:
    return ((obj.get("status") or {}).get("phase", ""),)


def _label_with_name(namespace: dict[str, Any]) -> None:
    metadata = namespace.get("metadata", {})
    if metadata.get("name"):
        metadata.setdefault("labels", {})["kubernetes.io/metadata.name"] = metadata["name"]


NAMESPACE: Final = built_in_kind(
    "v1",
    "Namespace namespaces",
    Subresource("finalize", verbs=("update",)),
    STATUS,
    short="ns",
    cluster=True,
    verbs=tuple(verb for verb in ALL_VERBS if verb != "deletecollection"),
    fields=Fields(("status.phase",), _field_values),
    defaults=Defaults({"core.v1.NamespaceStatus": {"phase": "Active"}}, {"core.v1.Namespace": _label_with_name}),
)


def _prepare_for_create(obj: JsonObject, context: WriteContext) -> None:
    obj["status"] = {"phase": "Active"}
    finalizers = obj.setdefault("spec", {}).setdefault("finalizers", [])
    if FINALIZER not in finalizers:
        finalizers.append(FINALIZER)
    _label(obj)


def _prepare_for_update(new: JsonObject, old: JsonObject, context: WriteContext) -> None:
    new["spec"] = old.get("spec") or {}
    _label(new)


def _label(obj: JsonObject) -> None:
    metadata = obj["metadata"]
    if metadata.get("name"):
        metadata["labels"] = {**(metadata.get("labels") or {}), NAME_LABEL: metadata["name"]}


def _check_deletion(stored: Stored) -> None:
    if stored.name in _LASTING:
        raise forbidden(NAMESPACE, stored.name, "this namespace may not be deleted")


def _cells(obj: JsonObject, now: datetime) -> Cells:
    return [obj["metadata"]["name"], (obj.get("status") or {}).get("phase", ""), age(obj, now)]


NAMESPACE_RECORD: Final = KindRecord(
    NAMESPACE,
    KindRules(
        check_deletion=_check_deletion,
        prepare_for_create=_prepare_for_create,
        prepare_for_update=_prepare_for_update,
        name_errors=dns_label_errors,
        returns_deleted=True,
        empty_status={},
    ),
    KindTable(_COLUMNS, _cells),
)
