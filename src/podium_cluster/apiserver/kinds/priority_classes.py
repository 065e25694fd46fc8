"""PriorityClasses: at most one is the default, and those of the system stay.

A pod that names no class gets the default class, of several the lowest; without any its priority is 0, and it may
preempt. RuntimeClasses stand here too; what pods of one get is in kinds/pods/admission.py.
"""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache
from typing import Any, Final, NamedTuple

import msgspec

from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.errors import field_forbidden, forbidden, immutable, not_supported
from podium_cluster.apiserver.kind import Defaults, built_in_kind
from podium_cluster.apiserver.kind_record import KindRecord, KindRules
from podium_cluster.apiserver.store.collection import Stored
from podium_cluster.apiserver.table_cells import AGE, NAME, Cells, KindTable, TableColumn, age, boolean, integer
from podium_cluster.apiserver.validation.wording import Causes, Obj
from podium_cluster.apiserver.write_context import WriteContext

HIGHEST_USER_PRIORITY: Final = 1_000_000_000
SYSTEM_CLASSES: Final = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
_COLUMNS: Final = (
    NAME,
    integer("Value", "The priority that pods of the class get."),
    boolean("Global-Default", "Whether pods without a class get this one."),
    AGE,
    TableColumn("PreemptionPolicy", "Whether pods of the class may preempt others."),
)
PRIORITY_CLASS: Final = built_in_kind(
    "scheduling.k8s.io/v1",
    "PriorityClass priorityclasses",
    short="pc",
    cluster=True,
    defaults=Defaults({"scheduling.v1.PriorityClass": {"preemptionPolicy": "PreemptLowerPriority"}}),
)


class GivenPriority(NamedTuple):
    """What a priority class gives; without a name, what there is without one."""

    name: str
    value: int
    policy: str
    is_default: bool


_NO_CLASS: Final = GivenPriority("", 0, "PreemptLowerPriority", True)


def class_named(name: str, context: WriteContext) -> GivenPriority | None:
    stored = context.store.get(PRIORITY_CLASS, "", name)
    return None if stored is None else _read(stored.raw)


def default_class(context: WriteContext) -> GivenPriority:
    """What counts for pods that name no class."""
    defaults = [found for stored in context.store.items(PRIORITY_CLASS) if (found := _read(stored.raw)).is_default]
    return min(defaults, key=lambda found: found.value) if defaults else _NO_CLASS


@lru_cache(maxsize=256)
def _read(raw: bytes) -> GivenPriority:
    found: dict[str, Any] = msgspec.json.decode(raw)
    return GivenPriority(
        found["metadata"]["name"],
        found.get("value", 0),
        found.get("preemptionPolicy", "PreemptLowerPriority"),
        bool(found.get("globalDefault")),
    )


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


def _check(obj: Obj) -> Causes:
    name, value = obj["metadata"].get("name", ""), obj.get("value", 0)
    if name.startswith("system-"):
        yield from _system_class(name, value, default=bool(obj.get("globalDefault")))
    elif value > HIGHEST_USER_PRIORITY:
        detail = f"maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}"
        yield field_forbidden("value", detail)
    policy = obj.get("preemptionPolicy")
    if policy is not None and policy not in ("PreemptLowerPriority", "Never"):
        yield not_supported("preemptionPolicy", policy, ("PreemptLowerPriority", "Never"))


def _system_class(name: str, value: int, *, default: bool) -> Causes:
    expected = SYSTEM_CLASSES.get(name)
    if expected is None:
        why = f"{name} is not a known system priority class"
    elif value != expected:
        why = f"value of {name} PriorityClass must be {expected}"
    elif default:
        why = f"globalDefault of {name} PriorityClass must be false"
    else:
        return
    detail = f"priority class names with 'system-' prefix are reserved for system use only. error: {why}"
    yield field_forbidden("metadata.name", detail)


def _check_update(new: Obj, old: Obj) -> Causes:
    if new.get("value", 0) != old.get("value", 0):
        yield field_forbidden("value", "may not be changed in an update.")
    if new.get("preemptionPolicy") != old.get("preemptionPolicy"):
        yield immutable("preemptionPolicy", new.get("preemptionPolicy"))


def _cells(obj: JsonObject, now: datetime) -> Cells:
    value, default = obj.get("value", 0), obj.get("globalDefault", False)
    return [obj["metadata"]["name"], value, default, age(obj, now), obj.get("preemptionPolicy", "")]


PRIORITY_CLASS_RECORD: Final = KindRecord(
    PRIORITY_CLASS,
    KindRules(
        admit=_one_default,
        prepare_for_update=_prepare_for_update,
        validate=_check,
        validate_update=_check_update,
        check_deletion=_check_deletion,
        generation="spec",
    ),
    KindTable(_COLUMNS, _cells),
)


_RUNTIME_COLUMNS: Final = (NAME, TableColumn("Handler", "What runs the containers of the class."), AGE)
RUNTIME_CLASS: Final = built_in_kind("node.k8s.io/v1", "RuntimeClass runtimeclasses", cluster=True)


def _runtime_cells(obj: JsonObject, now: datetime) -> Cells:
    return [obj["metadata"]["name"], obj.get("handler", ""), age(obj, now)]


RUNTIME_CLASS_RECORD: Final = KindRecord(
    RUNTIME_CLASS,
    KindRules(update_creates=True, update_needs_version=True),
    KindTable(_RUNTIME_COLUMNS, _runtime_cells),
)
