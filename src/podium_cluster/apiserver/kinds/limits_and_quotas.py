"""LimitRanges and ResourceQuotas: stored and shown; nothing here enforces them."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.kind import STATUS, Defaults, built_in_kind
from podium_cluster.apiserver.kind_record import KindRecord, KindRules
from podium_cluster.apiserver.table_cells import AGE, NAME, Cells, KindTable, TableColumn, age, quantity_cell

_QUOTA: Final = (
    NAME,
    TableColumn("Request", "What is used and what may be used, of requests and counts."),
    TableColumn("Limit", "What is used and what may be used, of limits."),
    AGE,
)


def _limit_range_item(item: dict[str, Any]) -> None:
    if item.get("type") != "Container":
        return
    default = item.get("max", {}) | item.get("default", {})
    request = item.get("min", {}) | default | item.get("defaultRequest", {})
    item |= {name: amounts for name, amounts in (("default", default), ("defaultRequest", request)) if amounts}


def _quota(obj: JsonObject, now: datetime) -> Cells:
    status = obj.get("status") or {}
    used, columns = status.get("used") or {}, {False: [], True: []}  # type: dict[str, str], dict[bool, list[str]]
    for resource, hard in sorted((status.get("hard") or {}).items()):
        text = f"{resource}: {quantity_cell(used.get(resource))}/{quantity_cell(hard)}"
        columns[resource.startswith("limits.")].append(text)
    return [obj["metadata"]["name"], ", ".join(columns[False]), ", ".join(columns[True]), age(obj, now)]


LIMIT_RANGE: Final = KindRecord(
    built_in_kind(
        "v1",
        "LimitRange limitranges",
        short="limits",
        defaults=Defaults(rules={"core.v1.LimitRangeItem": _limit_range_item}),
    ),
    KindRules(update_creates=True),
)
RESOURCE_QUOTA: Final = KindRecord(
    built_in_kind("v1", "ResourceQuota resourcequotas", STATUS, short="quota"),
    KindRules(returns_deleted=True, empty_status={}),
    KindTable(_QUOTA, _quota),
)
