"""Deployments: checks, defaults, and how they are shown."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.kind import SCALE, STATUS, Defaults, built_in_kind
from podium_cluster.apiserver.kind_record import KindRecord, KindRules
from podium_cluster.apiserver.kinds.pod_templates import (
    TEMPLATE_COLUMNS,
    default_rolling_update,
    rolling_update,
    same_selector,
    selector_and_template,
)
from podium_cluster.apiserver.kinds.pods.defaults import POD_DEFAULTS
from podium_cluster.apiserver.table_cells import (
    AGE,
    NAME,
    Cells,
    KindTable,
    TableColumn,
    age,
    bare_selector_cell,
    container_cells,
)
from podium_cluster.apiserver.validation.wording import Causes, Obj, non_negative

_COLUMNS: Final = (
    NAME,
    TableColumn("Ready", "How many of the wanted pods are ready."),
    TableColumn("Up-to-date", "How many pods have the newest template."),
    TableColumn("Available", "How many pods have been ready for long enough."),
    AGE,
    *TEMPLATE_COLUMNS,
)


def _strategy_defaults(strategy: dict[str, Any]) -> None:
    default_rolling_update(strategy, maxUnavailable="25%", maxSurge="25%")


def _check(obj: Obj) -> Causes:
    spec = obj.get("spec") or {}
    yield from non_negative("spec.replicas", spec.get("replicas", 1))
    yield from selector_and_template(spec, "ReplicaSet")
    yield from rolling_update("spec.strategy", spec.get("strategy") or {}, "Recreate")


def _check_update(new: Obj, old: Obj) -> Causes:
    yield from _check(new)
    yield from same_selector(new, old)


def _cells(obj: JsonObject, now: datetime) -> Cells:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    return [
        obj["metadata"]["name"],
        f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}",
        status.get("updatedReplicas", 0),
        status.get("availableReplicas", 0),
        age(obj, now),
        *container_cells(spec.get("template")),
        bare_selector_cell(spec.get("selector")),
    ]


DEPLOYMENT: Final = KindRecord(
    built_in_kind(
        "apps/v1",
        "Deployment deployments",
        SCALE,
        STATUS,
        short="deploy",
        categories="all",
        defaults=POD_DEFAULTS
        | Defaults(
            {"apps.v1.DeploymentSpec": {"replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600}},
            {"apps.v1.DeploymentStrategy": _strategy_defaults},
        ),
    ),
    KindRules(
        generation="spec",
        metadata_with_status="all but labels",
        validate=_check,
        validate_update=_check_update,
        empty_status={},
    ),
    KindTable(_COLUMNS, _cells),
)
