"""DaemonSets: an annotation counts the versions of their template, as older clients expect."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from kubecel.strconv import parse_int64
from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.kind import STATUS, Defaults, built_in_kind
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
    container_cells,
    integer,
    label_cell,
    selector_cell,
)
from podium_cluster.apiserver.validation.wording import (
    Causes,
    Obj,
)
from podium_cluster.apiserver.write_context import WriteContext

GENERATION: Final = "deprecated.daemonset.template.generation"
_COLUMNS: Final = (
    NAME,
    integer("Desired", "How many nodes should run the pod."),
    integer("Current", "How many of them run it."),
    integer("Ready", "How many of them run it and it is ready."),
    integer("Up-to-date", "How many of them run the newest template."),
    integer("Available", "How many of them run it, ready for long enough."),
    TableColumn("Node Selector", "The labels a node must have."),
    AGE,
    *TEMPLATE_COLUMNS,
)


def _strategy_defaults(strategy: dict[str, Any]) -> None:
    default_rolling_update(strategy, maxUnavailable=1, maxSurge=0)


def _prepare_for_create(obj: JsonObject, context: WriteContext) -> None:
    given = (obj["metadata"].get("annotations") or {}).get(GENERATION, "")
    _set(obj, max(parse_int64(given) or 1, 1))


def _prepare_for_update(new: JsonObject, old: JsonObject, context: WriteContext) -> None:
    before = parse_int64((old["metadata"].get("annotations") or {}).get(GENERATION, "")) or 1
    changed = (new.get("spec") or {}).get("template") != (old.get("spec") or {}).get("template")
    _set(new, before + changed)


def _set(obj: JsonObject, generation: int) -> None:
    metadata = obj["metadata"]
    metadata["annotations"] = {**(metadata.get("annotations") or {}), GENERATION: str(generation)}


def _check(obj: Obj) -> Causes:
    spec = obj.get("spec") or {}
    yield from selector_and_template(spec, "DaemonSet")
    yield from rolling_update("spec.updateStrategy", spec.get("updateStrategy") or {}, "OnDelete")


def _check_update(new: Obj, old: Obj) -> Causes:
    yield from same_selector(new, old)
    yield from _check(new)


def _cells(obj: JsonObject, now: datetime) -> Cells:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    template = spec.get("template") or {}
    return [
        obj["metadata"]["name"],
        status.get("desiredNumberScheduled", 0),
        status.get("currentNumberScheduled", 0),
        status.get("numberReady", 0),
        status.get("updatedNumberScheduled", 0),
        status.get("numberAvailable", 0),
        label_cell((template.get("spec") or {}).get("nodeSelector")),
        age(obj, now),
        *container_cells(template),
        selector_cell(spec.get("selector")),
    ]


DAEMON_SET: Final = KindRecord(
    built_in_kind(
        "apps/v1",
        "DaemonSet daemonsets",
        STATUS,
        short="ds",
        categories="all",
        defaults=POD_DEFAULTS
        | Defaults(
            {"apps.v1.DaemonSetSpec": {"revisionHistoryLimit": 10}},
            {"apps.v1.DaemonSetUpdateStrategy": _strategy_defaults},
        ),
    ),
    KindRules(
        prepare_for_create=_prepare_for_create,
        prepare_for_update=_prepare_for_update,
        validate=_check,
        validate_update=_check_update,
        generation="spec",
        empty_status={
            "currentNumberScheduled": 0,
            "numberMisscheduled": 0,
            "desiredNumberScheduled": 0,
            "numberReady": 0,
        },
    ),
    KindTable(_COLUMNS, _cells),
)
