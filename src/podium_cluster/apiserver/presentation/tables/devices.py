"""Tabulates devices that pods claim (resource.k8s.io): classes, claims, and what each node offers."""

from datetime import datetime
from typing import Final

from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.presentation.tables.clusters import name_and_age
from podium_cluster.apiserver.presentation.tables.columns import AGE, NAME, Cells, KindTable, TableColumn, Tables
from podium_cluster.apiserver.presentation.tables.formats import age

_CLAIM: Final = (NAME, TableColumn("State", "Whether the claim is pending, allocated, reserved or going."), AGE)
_SLICE: Final = (
    NAME,
    TableColumn("Node", "The node whose devices these are."),
    TableColumn("Driver", "The driver that offers them."),
    TableColumn("Pool", "The pool they belong to."),
    AGE,
)


def _claim(obj: JsonObject, now: datetime) -> Cells:
    status, going = obj.get("status") or {}, bool(obj["metadata"].get("deletionTimestamp"))
    allocated = status.get("allocation") is not None
    states = {
        "deleted": going,
        "pending": not allocated and not going,
        "allocated": allocated,
        "reserved": allocated and bool(status.get("reservedFor")),
    }
    return [obj["metadata"]["name"], ",".join(state for state, holds in states.items() if holds), age(obj, now)]


def _slice(obj: JsonObject, now: datetime) -> Cells:
    spec = obj.get("spec") or {}
    pool = (spec.get("pool") or {}).get("name", "")
    return [obj["metadata"]["name"], spec.get("nodeName") or "", spec.get("driver", ""), pool, age(obj, now)]


TABLES: Final[Tables] = {
    ("resource.k8s.io", "DeviceClass"): KindTable((NAME, AGE), name_and_age),
    ("resource.k8s.io", "ResourceClaim"): KindTable(_CLAIM, _claim),
    ("resource.k8s.io", "ResourceClaimTemplate"): KindTable((NAME, AGE), name_and_age),
    ("resource.k8s.io", "ResourceSlice"): KindTable(_SLICE, _slice),
}
