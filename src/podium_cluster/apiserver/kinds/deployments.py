"""Deployments: checks, defaults, and how they are shown."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.errors import field_forbidden, invalid_value, not_supported, required
from podium_cluster.apiserver.kind import SCALE, STATUS, Defaults, built_in_kind
from podium_cluster.apiserver.kind_record import KindRecord, KindRules
from podium_cluster.apiserver.kinds.pod_templates import (
    TEMPLATE_COLUMNS,
    default_rolling_update,
    go_rolling,
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
from podium_cluster.apiserver.validation.wording import Causes, Obj, amount, at_most_all, int_or_percent, non_negative

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
    yield from selector_and_template(spec, "deployment", "ReplicaSet")
    yield from _strategy("spec.strategy", spec.get("strategy") or {})
    ready = spec.get("minReadySeconds", 0)
    yield from non_negative("spec.minReadySeconds", ready)
    yield from non_negative("spec.revisionHistoryLimit", spec.get("revisionHistoryLimit", 0))
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None:
        yield from non_negative("spec.progressDeadlineSeconds", deadline)
        if deadline <= ready:
            yield invalid_value("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds")


def _check_update(new: Obj, old: Obj) -> Causes:
    yield from _check(new)
    yield from same_selector(new, old)


def _strategy(path: str, strategy: Obj) -> Causes:
    kind, rolling = strategy.get("type", ""), strategy.get("rollingUpdate")
    if kind == "Recreate":
        if rolling is not None:
            detail = "may not be specified when strategy `type` is 'Recreate'"
            yield field_forbidden(f"{path}.rollingUpdate", detail)
    elif kind == "RollingUpdate":
        if rolling is None:
            yield required(f"{path}.rollingUpdate", "this should be defaulted and never be nil")
        else:
            yield from _rolling(f"{path}.rollingUpdate", rolling)
    else:
        shown = {"Type": kind, "RollingUpdate": rolling and go_rolling(rolling)}
        yield not_supported(path, shown, ("Recreate", "RollingUpdate"))


def _rolling(path: str, rolling: Obj) -> Causes:
    unavailable, surge = rolling.get("maxUnavailable", 0), rolling.get("maxSurge", 0)
    yield from int_or_percent(f"{path}.maxUnavailable", unavailable)
    yield from int_or_percent(f"{path}.maxSurge", surge)
    if amount(unavailable) == 0 and amount(surge) == 0:
        yield invalid_value(f"{path}.maxUnavailable", unavailable, "may not be 0 when `maxSurge` is 0")
    yield from at_most_all(f"{path}.maxUnavailable", unavailable)


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
