"""ReplicaSets and ReplicationControllers, and the Scale through which kinds with replicas are scaled."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.kind import SCALE, STATUS, Defaults, Fields, FieldValues, built_in_kind
from podium_cluster.apiserver.kind_record import KindRecord, KindRules
from podium_cluster.apiserver.kinds.pod_templates import TEMPLATE_COLUMNS, same_selector, selector_and_template
from podium_cluster.apiserver.kinds.pods.defaults import POD_DEFAULTS
from podium_cluster.apiserver.table_cells import (
    AGE,
    NAME,
    Cells,
    KindTable,
    TableColumn,
    age,
    container_cells,
    integer,
    label_cell,
    selector_cell,
)
from podium_cluster.apiserver.validation.wording import Causes, Obj, non_negative

_REPLICAS: Final = (
    NAME,
    integer("Desired", "How many pods there should be."),
    integer("Current", "How many pods there are."),
    integer("Ready", "How many pods are ready."),
    AGE,
    *TEMPLATE_COLUMNS,
)
_SCALE_COLUMNS: Final = (
    TableColumn("Name", "The name of the object that is scaled."),
    integer("Desired", "How many pods there should be."),
    integer("Available", "How many pods there are."),
    AGE,
)


def _field_values(obj: dict[str, Any]) -> FieldValues:
    return (str((obj.get("status") or {}).get("replicas", 0)),)


def _replication_controller(controller: dict[str, Any]) -> None:
    spec = controller.get("spec", {})
    labels = spec.get("template", {}).get("metadata", {}).get("labels")
    if labels:
        spec.setdefault("selector", dict(labels))
        controller["metadata"].setdefault("labels", dict(labels))


def _check(obj: Obj) -> Causes:
    spec = obj.get("spec") or {}
    yield from non_negative("spec.replicas", spec.get("replicas", 1))
    yield from selector_and_template(spec, "ReplicaSet")


def _check_update(new: Obj, old: Obj) -> Causes:
    yield from _check(new)
    yield from same_selector(new, old)


def _replicas(select: Callable[[JsonObject], str]) -> Callable[[JsonObject, datetime], Cells]:
    def cells(obj: JsonObject, now: datetime) -> Cells:
        spec, status = obj.get("spec") or {}, obj.get("status") or {}
        counts = [spec.get("replicas") or 0, status.get("replicas", 0), status.get("readyReplicas", 0)]
        return [obj["metadata"]["name"], *counts, age(obj, now), *container_cells(spec.get("template")), select(spec)]

    return cells


def _scale_cells(obj: JsonObject, now: datetime) -> Cells:
    replicas = (obj.get("spec") or {}).get("replicas", 0)
    return [obj["metadata"]["name"], replicas, (obj.get("status") or {}).get("replicas", 0), age(obj, now)]


REPLICATION_CONTROLLER: Final = KindRecord(
    built_in_kind(
        "v1",
        "ReplicationController replicationcontrollers",
        SCALE,
        STATUS,
        short="rc",
        categories="all",
        fields=Fields(("status.replicas",), _field_values),
        defaults=POD_DEFAULTS | Defaults(rules={"core.v1.ReplicationController": _replication_controller}),
    ),
    KindRules(generation="spec", empty_status={"replicas": 0}),
    KindTable(_REPLICAS, _replicas(lambda spec: label_cell(spec.get("selector")))),
)
REPLICA_SET: Final = KindRecord(
    built_in_kind(
        "apps/v1",
        "ReplicaSet replicasets",
        SCALE,
        STATUS,
        short="rs",
        categories="all",
        defaults=POD_DEFAULTS | Defaults({"apps.v1.ReplicaSetSpec": {"replicas": 1}}),
    ),
    KindRules(generation="spec", validate=_check, validate_update=_check_update, empty_status={"replicas": 0}),
    KindTable(_REPLICAS, _replicas(lambda spec: selector_cell(spec.get("selector")))),
)
SCALE_RECORD: Final = KindRecord(
    built_in_kind("autoscaling/v1", "Scale scales"), table=KindTable(_SCALE_COLUMNS, _scale_cells)
)
