"""Namespaces: active until deleted, then terminating until nothing is left in them and the finalizer is gone.

The finalizer is in the spec, not in the metadata, and is taken off through `/finalize`. Every namespace carries its own
name as a label, so that selectors of namespaces can name one.
"""

from typing import Final

from kubecel.names import dns_label_errors
from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.errors import forbidden
from podium_cluster.apiserver.kinds import NAMESPACE
from podium_cluster.apiserver.store.collection import Stored
from podium_cluster.apiserver.writes.context import WriteContext
from podium_cluster.apiserver.writes.rules.rule import KindRules

NAME_LABEL: Final = "kubernetes.io/metadata.name"
FINALIZER: Final = "kubernetes"
_LASTING: Final = ("default", "kube-system", "kube-public")


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


NAMESPACE_RULES: Final = KindRules(
    check_deletion=_check_deletion,
    prepare_for_create=_prepare_for_create,
    prepare_for_update=_prepare_for_update,
    name_errors=dns_label_errors,
    returns_deleted=True,
    empty_status={},
)
