"""Guards priority classes: at most one is the default, and those of the system stay."""

from typing import Final

from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.errors import forbidden
from podium_cluster.apiserver.kinds import built_in
from podium_cluster.apiserver.store.collection import Stored
from podium_cluster.apiserver.writes.context import WriteContext
from podium_cluster.apiserver.writes.rules.rule import KindRules

PRIORITY_CLASS: Final = built_in("scheduling.k8s.io/v1", "PriorityClass")


def _one_default(obj: JsonObject, context: WriteContext) -> None:
    if not obj.get("globalDefault"):
        return
    for stored in context.store.items(PRIORITY_CLASS):
        if stored.name != obj["metadata"].get("name") and stored.decode().get("globalDefault"):
            why = f"PriorityClass {stored.name} is already marked as default. Only one default can exist"
            raise forbidden(PRIORITY_CLASS, obj["metadata"].get("name", ""), why)


def _prepare_for_update(new: JsonObject, old: JsonObject, context: WriteContext) -> None:
    _one_default(new, context)


def _check_deletion(stored: Stored) -> None:
    if stored.name.startswith("system-"):
        why = "this is a system priority class and cannot be deleted"
        raise forbidden(PRIORITY_CLASS, stored.name, why)


PRIORITY_CLASS_RULES: Final = KindRules(
    admit=_one_default, prepare_for_update=_prepare_for_update, check_deletion=_check_deletion, generation=True
)
