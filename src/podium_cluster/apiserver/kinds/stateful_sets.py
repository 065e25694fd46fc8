"""StatefulSets: checks, with the volumes that their claim templates add, defaults, and how they are shown."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.errors import field_forbidden, immutable, not_supported
from podium_cluster.apiserver.kind import SCALE, STATUS, Defaults, built_in_kind
from podium_cluster.apiserver.kind_record import KindRecord, KindRules
from podium_cluster.apiserver.kinds.pod_templates import rolling_update, selector_and_template
from podium_cluster.apiserver.kinds.pods.defaults import POD_DEFAULTS
from podium_cluster.apiserver.table_cells import (
    AGE,
    CONTAINERS,
    IMAGES,
    NAME,
    Cells,
    KindTable,
    TableColumn,
    age,
    container_cells,
)
from podium_cluster.apiserver.validation.wording import Causes, Obj, dns_label, non_negative

_MAY_CHANGE: Final = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy',"
    " 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)
_CHANGEABLE: Final = (
    *("replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit"),
    *("persistentVolumeClaimRetentionPolicy", "minReadySeconds"),
)
_COLUMNS: Final = (NAME, TableColumn("Ready", "How many of the wanted pods are ready."), AGE, CONTAINERS, IMAGES)


def _strategy_defaults(strategy: dict[str, Any]) -> None:
    if "type" not in strategy:
        strategy["type"] = "RollingUpdate"
        strategy.setdefault("rollingUpdate", {})
    if strategy["type"] == "RollingUpdate" and "rollingUpdate" in strategy:
        strategy["rollingUpdate"].setdefault("partition", 0)
        strategy["rollingUpdate"].setdefault("maxUnavailable", 1)


def _check(obj: Obj) -> Causes:
    spec = obj.get("spec") or {}
    policy = spec.get("podManagementPolicy", "")
    if policy not in ("OrderedReady", "Parallel"):
        yield not_supported("spec.podManagementPolicy", policy, ("OrderedReady", "Parallel"))
    yield from rolling_update("spec.updateStrategy", spec.get("updateStrategy") or {}, "OnDelete")
    yield from non_negative("spec.replicas", spec.get("replicas", 1))
    yield from non_negative("spec.ordinals.start", (spec.get("ordinals") or {}).get("start", 0))
    if spec.get("serviceName"):
        yield from dns_label("spec.serviceName", spec["serviceName"])
    yield from selector_and_template(_with_claimed_volumes(spec), "StatefulSet")


def _check_update(new: Obj, old: Obj) -> Causes:
    yield from _check(new)
    after, before = (_fixed_part(obj.get("spec") or {}) for obj in (new, old))
    immutables = ("selector", "volumeClaimTemplates", "serviceName", "podManagementPolicy")
    for field in immutables:
        if after.get(field) != before.get(field):
            yield immutable(f"spec.{field}", after.get(field))
    if {**after, **dict.fromkeys(immutables)} != {**before, **dict.fromkeys(immutables)}:
        yield field_forbidden("spec", _MAY_CHANGE)


def _with_claimed_volumes(spec: Obj) -> dict[str, Any]:
    """The template as its pods will have it: with a volume for every claim template."""
    made = spec.get("template") or {}
    inner = dict(made.get("spec") or {})
    inner.pop("hostname", None)
    inner.pop("subdomain", None)
    claimed = [
        {"name": name, "persistentVolumeClaim": {"claimName": name}}
        for claim in spec.get("volumeClaimTemplates") or ()
        if (name := (claim.get("metadata") or {}).get("name"))
    ]
    if claimed:
        names = {volume["name"] for volume in claimed}
        inner["volumes"] = claimed + [each for each in inner.get("volumes") or () if each.get("name") not in names]
    return {**spec, "template": {**made, "spec": inner}}


def _fixed_part(spec: Obj) -> dict[str, Any]:
    return {key: value for key, value in spec.items() if key not in _CHANGEABLE}


def _cells(obj: JsonObject, now: datetime) -> Cells:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    ready = f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}"
    return [obj["metadata"]["name"], ready, age(obj, now), *container_cells(spec.get("template"))]


STATEFUL_SET: Final = KindRecord(
    built_in_kind(
        "apps/v1",
        "StatefulSet statefulsets",
        SCALE,
        STATUS,
        short="sts",
        categories="all",
        defaults=POD_DEFAULTS
        | Defaults(
            {
                "apps.v1.StatefulSetSpec": {
                    "podManagementPolicy": "OrderedReady",
                    "replicas": 1,
                    "revisionHistoryLimit": 10,
                    "persistentVolumeClaimRetentionPolicy": {},
                },
                "apps.v1.StatefulSetPersistentVolumeClaimRetentionPolicy": {
                    "whenDeleted": "Retain",
                    "whenScaled": "Retain",
                },
            },
            {"apps.v1.StatefulSetUpdateStrategy": _strategy_defaults},
        ),
    ),
    KindRules(
        generation="spec",
        validate=_check,
        validate_update=_check_update,
        empty_status={"replicas": 0, "availableReplicas": 0},
    ),
    KindTable(_COLUMNS, _cells),
)
