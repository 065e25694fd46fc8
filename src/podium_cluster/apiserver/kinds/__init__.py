"""Lists the built-in kinds, in the order in which kube-apiserver lists groups and resources.

Each kind has a file here that holds what the API knows of it: names, fields, defaults, admission, checks, table. To add
one, write its file and add its record to the list below.
"""

from __future__ import annotations

from typing import Final

from podium_cluster.apiserver.kind import Kind, Kinds
from podium_cluster.apiserver.kind_record import PLAIN, KindRecord, KindRules
from podium_cluster.apiserver.kinds.access_control import REVIEWS, ROLES, SERVICE_ACCOUNT
from podium_cluster.apiserver.kinds.config_maps_and_secrets import CONFIG_MAP, SECRET
from podium_cluster.apiserver.kinds.csi import CSI_DRIVER, CSI_NODE, CSI_STORAGE_CAPACITY, VOLUME_ATTACHMENT
from podium_cluster.apiserver.kinds.custom_resource_definitions import CUSTOM_RESOURCE_DEFINITION, rules_of_custom
from podium_cluster.apiserver.kinds.daemon_sets import DAEMON_SET
from podium_cluster.apiserver.kinds.deployments import DEPLOYMENT
from podium_cluster.apiserver.kinds.devices.classes_and_taint_rules import DEVICE_CLASS_RECORD, DEVICE_TAINT_RULE_RECORD
from podium_cluster.apiserver.kinds.devices.resource_claims import CLAIM_TEMPLATE_RECORD, RESOURCE_CLAIM_RECORD
from podium_cluster.apiserver.kinds.devices.resource_slices import RESOURCE_SLICE_RECORD
from podium_cluster.apiserver.kinds.events import EVENT, EVENT_RECORD, EVENTS_GROUP_RECORD
from podium_cluster.apiserver.kinds.jobs import JOB
from podium_cluster.apiserver.kinds.namespaces import NAMESPACE, NAMESPACE_RECORD
from podium_cluster.apiserver.kinds.nodes import NODE, NODE_RECORD
from podium_cluster.apiserver.kinds.persistent_volumes import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM
from podium_cluster.apiserver.kinds.pod_disruption_budgets import POD_DISRUPTION_BUDGET
from podium_cluster.apiserver.kinds.pod_groups import POD_GROUP_RECORD, WORKLOAD_RECORD
from podium_cluster.apiserver.kinds.pods.kind import POD
from podium_cluster.apiserver.kinds.pods.rules import BINDING_RECORD, POD_RECORD
from podium_cluster.apiserver.kinds.priority_classes import PRIORITY_CLASS_RECORD, RUNTIME_CLASS_RECORD
from podium_cluster.apiserver.kinds.replica_sets import REPLICA_SET, REPLICATION_CONTROLLER, SCALE_RECORD
from podium_cluster.apiserver.kinds.services import ENDPOINT_SLICE, ENDPOINTS, SERVICE_RECORD
from podium_cluster.apiserver.kinds.small_kinds import (
    ADMISSION,
    CONTROLLER_REVISION,
    CRON_JOB,
    HORIZONTAL_POD_AUTOSCALER,
    INGRESS,
    INGRESS_CLASS,
    LEASE,
    LIMIT_RANGE,
    NETWORK_POLICY,
    POD_TEMPLATE,
    RESOURCE_QUOTA,
)
from podium_cluster.apiserver.kinds.stateful_sets import STATEFUL_SET
from podium_cluster.apiserver.kinds.storage_classes import STORAGE_CLASS_RECORD, VOLUME_ATTRIBUTES_CLASS
from podium_cluster.apiserver.schema.custom import CustomKind
from podium_cluster.apiserver.table_cells import KindTable

__all__ = [
    "BUILT_IN",
    "EVENT",
    "NAMESPACE",
    "NODE",
    "POD",
    "RECORDS",
    "WORKLOAD_KINDS",
    "KindRules",
    "built_in",
    "rules_of",
    "table_of",
]

_ALWAYS_SERVED: Final[tuple[KindRecord, ...]] = (
    BINDING_RECORD,
    CONFIG_MAP,
    ENDPOINTS,
    EVENT_RECORD,
    LIMIT_RANGE,
    NAMESPACE_RECORD,
    NODE_RECORD,
    PERSISTENT_VOLUME_CLAIM,
    PERSISTENT_VOLUME,
    POD_TEMPLATE,
    POD_RECORD,
    REPLICATION_CONTROLLER,
    RESOURCE_QUOTA,
    SECRET,
    SERVICE_ACCOUNT,
    SERVICE_RECORD,
    CONTROLLER_REVISION,
    DAEMON_SET,
    DEPLOYMENT,
    REPLICA_SET,
    STATEFUL_SET,
    EVENTS_GROUP_RECORD,
    *REVIEWS,
    HORIZONTAL_POD_AUTOSCALER,
    CRON_JOB,
    JOB,
    INGRESS_CLASS,
    INGRESS,
    NETWORK_POLICY,
    POD_DISRUPTION_BUDGET,
    *ROLES,
    CSI_DRIVER,
    CSI_NODE,
    CSI_STORAGE_CAPACITY,
    STORAGE_CLASS_RECORD,
    VOLUME_ATTACHMENT,
    VOLUME_ATTRIBUTES_CLASS,
    *ADMISSION,
    CUSTOM_RESOURCE_DEFINITION,
    PRIORITY_CLASS_RECORD,
    LEASE,
    RUNTIME_CLASS_RECORD,
    ENDPOINT_SLICE,
    DEVICE_CLASS_RECORD,
    DEVICE_TAINT_RULE_RECORD,
    RESOURCE_CLAIM_RECORD,
    CLAIM_TEMPLATE_RECORD,
    RESOURCE_SLICE_RECORD,
)
_GATED: Final[tuple[KindRecord, ...]] = (POD_GROUP_RECORD, WORKLOAD_RECORD)

BUILT_IN: Final[tuple[Kind, ...]] = tuple(record.kind for record in _ALWAYS_SERVED)
WORKLOAD_KINDS: Final[tuple[Kind, ...]] = tuple(record.kind for record in _GATED)
"""Served while the gate GenericWorkload is on."""

RECORDS: Final = {(record.kind.group, record.kind.kind): record for record in (*_ALWAYS_SERVED, *_GATED, SCALE_RECORD)}
"""By group and kind; with Scale, which is a part of others."""

_INDEX: Final = Kinds((*BUILT_IN, *WORKLOAD_KINDS))


def built_in(api_version: str, kind: str) -> Kind:
    """The built-in kind of that name: `built_in("apps/v1", "Deployment")`."""
    found = _INDEX.by_kind(api_version, kind)
    if found is None:
        raise KeyError(f"{api_version} {kind} is not a built-in kind")
    return found


def rules_of(kind: Kind) -> KindRules:
    """What the API does to objects of a kind, a custom one too, beyond storing them."""
    if isinstance(kind, CustomKind):
        return rules_of_custom(kind)
    record = RECORDS.get((kind.group, kind.kind))
    return record.rules if record is not None else PLAIN


def table_of(group: str, kind: str) -> KindTable | None:
    """How objects of a built-in kind are shown; None where it has no columns of its own."""
    record = RECORDS.get((group, kind))
    return record.table if record is not None else None
