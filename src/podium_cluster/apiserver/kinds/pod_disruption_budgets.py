"""PodDisruptionBudgets: how many pods of a selector may be evicted at a time."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from kubecel.names import path_segment_errors
from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.errors import invalid_value, not_supported
from podium_cluster.apiserver.kind import STATUS, built_in_kind
from podium_cluster.apiserver.kind_record import KindRecord, KindRules
from podium_cluster.apiserver.table_cells import AGE, NAME, Cells, KindTable, TableColumn, age, integer
from podium_cluster.apiserver.validation.wording import (
    Causes,
    Obj,
    at_most_all,
    int_or_percent,
    selector,
    shown_selector,
)

_COLUMNS: Final = (
    NAME,
    TableColumn("Min Available", "How many pods must stay available."),
    TableColumn("Max Unavailable", "How many pods may be unavailable."),
    integer("Allowed Disruptions", "How many pods may be evicted now."),
    AGE,
)


def _check(obj: Obj) -> Causes:
    spec = obj.get("spec") or {}
    least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
    if least is not None and most is not None:
        shown = {
            "MinAvailable": least,
            "Selector": shown_selector(spec.get("selector")),
            "MaxUnavailable": most,
            "UnhealthyPodEvictionPolicy": spec.get("unhealthyPodEvictionPolicy"),
        }
        yield invalid_value("spec", shown, "minAvailable and maxUnavailable cannot be both set")
    for name, value in (("minAvailable", least), ("maxUnavailable", most)):
        if value is not None:
            yield from int_or_percent(f"spec.{name}", value)
            yield from at_most_all(f"spec.{name}", value)
    yield from selector("spec.selector", spec.get("selector"))
    policy = spec.get("unhealthyPodEvictionPolicy")
    if policy is not None and policy not in ("AlwaysAllow", "IfHealthyBudget"):
        yield not_supported("spec.unhealthyPodEvictionPolicy", policy, ("AlwaysAllow", "IfHealthyBudget"))


def _check_update(new: Obj, _: Obj) -> Causes:
    yield from _check(new)


def _cells(obj: JsonObject, now: datetime) -> Cells:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    limits = ["N/A" if spec.get(field) is None else str(spec[field]) for field in ("minAvailable", "maxUnavailable")]
    return [obj["metadata"]["name"], *limits, status.get("disruptionsAllowed", 0), age(obj, now)]


POD_DISRUPTION_BUDGET: Final = KindRecord(
    built_in_kind("policy/v1", "PodDisruptionBudget poddisruptionbudgets", STATUS, short="pdb"),
    KindRules(
        validate=_check,
        validate_update=_check_update,
        name_errors=path_segment_errors,
        generation="spec",
        update_needs_version=True,
        empty_status={"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0},
    ),
    KindTable(_COLUMNS, _cells),
)
