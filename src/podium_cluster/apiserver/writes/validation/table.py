"""Maps each kind to its checks: for a new object, and for a new state of one."""

from collections.abc import Callable, Iterable
from typing import Any, Final

from podium_cluster.apiserver.errors import Cause
from podium_cluster.apiserver.writes.validation import (
    claim_status,
    devices,
    nodes,
    pod_claim_status,
    pod_groups,
    pod_spec,
    pod_update,
    resource_slices,
    small_kinds,
    storage,
    workloads,
)

Check = Callable[[dict[str, Any]], Iterable[Cause]]
UpdateCheck = Callable[[dict[str, Any], dict[str, Any]], Iterable[Cause]]

STATUS_CHECKS: Final[dict[str, UpdateCheck]] = {
    "nodes": nodes.node_status_update,
    "pods": pod_claim_status.pod_claim_status,
    "resourceclaims.resource.k8s.io": claim_status.resource_claim_status,
}
CHECKS: Final[dict[str, tuple[Check, UpdateCheck]]] = {
    "pods": (pod_spec.pod, pod_update.pod_update),
    "nodes": (nodes.node, nodes.node_update),
    "configmaps": (small_kinds.config_map, small_kinds.config_map_update),
    "secrets": (small_kinds.secret, small_kinds.secret_update),
    "persistentvolumes": (storage.volume, storage.volume_update),
    "persistentvolumeclaims": (storage.claim, storage.claim_update),
    "storageclasses.storage.k8s.io": (storage.storage_class, storage.storage_class_update),
    "deployments.apps": (workloads.deployment, workloads.deployment_update),
    "replicasets.apps": (workloads.replica_set, workloads.replica_set_update),
    "statefulsets.apps": (workloads.stateful_set, workloads.stateful_set_update),
    "daemonsets.apps": (workloads.daemon_set, workloads.daemon_set_update),
    "jobs.batch": (workloads.job, workloads.job_update),
    "poddisruptionbudgets.policy": (small_kinds.disruption_budget, small_kinds.disruption_budget_update),
    "leases.coordination.k8s.io": (small_kinds.lease, small_kinds.lease_update),
    "priorityclasses.scheduling.k8s.io": (small_kinds.priority_class, small_kinds.priority_class_update),
    "podgroups.scheduling.k8s.io": (pod_groups.pod_group, pod_groups.pod_group_update),
    "workloads.scheduling.k8s.io": (pod_groups.workload, pod_groups.workload_update),
    "deviceclasses.resource.k8s.io": (devices.device_class, devices.device_class_update),
    "resourceclaims.resource.k8s.io": (devices.resource_claim, devices.resource_claim_update),
    "resourceclaimtemplates.resource.k8s.io": (devices.claim_template, devices.claim_template_update),
    "resourceslices.resource.k8s.io": (resource_slices.resource_slice, resource_slices.resource_slice_update),
    "events": (small_kinds.event, lambda new, old: ()),
}
