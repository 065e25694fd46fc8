"""Declares kinds that need few rules, and those that are only stored.

ControllerRevisions are the templates that StatefulSets and DaemonSets have had. Leases say who holds what, and for how
long. LimitRanges and ResourceQuotas are stored and
shown; nothing here enforces them. Nothing in an embedded cluster acts on the inert kinds.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.kind import STATUS, Defaults, Subresource, built_in_kind, inert_kind
from podium_cluster.apiserver.kind_record import KindRecord, KindRules
from podium_cluster.apiserver.kinds.jobs import JOB_DEFAULTS
from podium_cluster.apiserver.kinds.pods.defaults import POD_DEFAULTS
from podium_cluster.apiserver.table_cells import AGE, NAME, NONE, Cells, KindTable, TableColumn, age, quantity_cell

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


_LEASE_COLUMNS: Final = (NAME, TableColumn("Holder", "Who holds the lease."), AGE)


def _lease_cells(obj: JsonObject, now: datetime) -> Cells:
    return [obj["metadata"]["name"], (obj.get("spec") or {}).get("holderIdentity") or "", age(obj, now)]


LEASE: Final = KindRecord(
    built_in_kind("coordination.k8s.io/v1", "Lease leases"),
    KindRules(update_creates=True, update_needs_version=True),
    KindTable(_LEASE_COLUMNS, _lease_cells),
)


_COLUMNS: Final = (
    NAME,
    TableColumn("Controller", "The object whose revision this is."),
    TableColumn("Revision", "The number of the revision."),
    AGE,
)


def _cells(obj: JsonObject, now: datetime) -> Cells:
    owners = obj["metadata"].get("ownerReferences") or ()
    owner = next((each for each in owners if each.get("controller")), None)
    name = NONE
    if owner is not None:
        group = owner["apiVersion"].rpartition("/")[0]
        kind = f"{owner['kind']}.{group}" if group else owner["kind"]
        name = f"{kind.lower()}/{owner['name']}"
    return [obj["metadata"]["name"], name, obj.get("revision", 0), age(obj, now)]


CONTROLLER_REVISION: Final = KindRecord(
    built_in_kind("apps/v1", "ControllerRevision controllerrevisions"), table=KindTable(_COLUMNS, _cells)
)


POD_TEMPLATE: Final = KindRecord(inert_kind("v1", "PodTemplate podtemplates", defaults=POD_DEFAULTS))
HORIZONTAL_POD_AUTOSCALER: Final = KindRecord(
    inert_kind(
        "autoscaling/v2", "HorizontalPodAutoscaler horizontalpodautoscalers", STATUS, short="hpa", categories="all"
    )
)
CRON_JOB: Final = KindRecord(
    inert_kind(
        "batch/v1",
        "CronJob cronjobs",
        STATUS,
        short="cj",
        categories="all",
        defaults=JOB_DEFAULTS
        | Defaults(
            {
                "batch.v1.CronJobSpec": {
                    "concurrencyPolicy": "Allow",
                    "suspend": False,
                    "successfulJobsHistoryLimit": 3,
                    "failedJobsHistoryLimit": 1,
                }
            }
        ),
    )
)
INGRESS_CLASS: Final = KindRecord(inert_kind("networking.k8s.io/v1", "IngressClass ingressclasses", cluster=True))
INGRESS: Final = KindRecord(inert_kind("networking.k8s.io/v1", "Ingress ingresses", STATUS, short="ing"))
NETWORK_POLICY: Final = KindRecord(inert_kind("networking.k8s.io/v1", "NetworkPolicy networkpolicies", short="netpol"))


def _admission(names: str, *parts: Subresource) -> KindRecord:
    where = "admissionregistration.k8s.io/v1"
    return KindRecord(inert_kind(where, names, *parts, categories="api-extensions", cluster=True))


ADMISSION: Final = (
    _admission("MutatingAdmissionPolicy mutatingadmissionpolicies"),
    _admission("MutatingAdmissionPolicyBinding mutatingadmissionpolicybindings"),
    _admission("MutatingWebhookConfiguration mutatingwebhookconfigurations"),
    _admission("ValidatingAdmissionPolicy validatingadmissionpolicies", STATUS),
    _admission("ValidatingAdmissionPolicyBinding validatingadmissionpolicybindings"),
    _admission("ValidatingWebhookConfiguration validatingwebhookconfigurations"),
)
