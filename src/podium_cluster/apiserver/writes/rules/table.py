"""Maps each kind to its rules."""

from typing import Final

import msgspec

from kubecel.names import path_segment_errors
from podium_cluster.apiserver.kinds import Kind
from podium_cluster.apiserver.schema.custom import CustomKind
from podium_cluster.apiserver.writes.rules.custom_resources import DEFINITION_RULES, rules_of_custom
from podium_cluster.apiserver.writes.rules.daemon_sets import DAEMON_SET_RULES
from podium_cluster.apiserver.writes.rules.jobs import JOB_RULES
from podium_cluster.apiserver.writes.rules.namespaces import NAMESPACE_RULES
from podium_cluster.apiserver.writes.rules.nodes import NODE_RULES
from podium_cluster.apiserver.writes.rules.pod_groups import POD_GROUP_RULES
from podium_cluster.apiserver.writes.rules.pods import POD_RULES
from podium_cluster.apiserver.writes.rules.priority_classes import PRIORITY_CLASS_RULES
from podium_cluster.apiserver.writes.rules.resource_claims import CLAIM_TEMPLATE_RULES, RESOURCE_CLAIM_RULES
from podium_cluster.apiserver.writes.rules.resource_slices import RESOURCE_SLICE_RULES
from podium_cluster.apiserver.writes.rules.rule import PLAIN, KindRules
from podium_cluster.apiserver.writes.rules.secrets import SECRET_RULES
from podium_cluster.apiserver.writes.rules.services import SERVICE_RULES
from podium_cluster.apiserver.writes.rules.volumes import CLAIM_RULES, VOLUME_RULES
from podium_cluster.apiserver.writes.validation.table import CHECKS, STATUS_CHECKS

_UPSERT: Final = KindRules(update_creates=True)
_GUARDED: Final = KindRules(update_needs_version=True)
_RETURNED: Final = KindRules(returns_deleted=True)
_RETURNED_AND_GUARDED: Final = KindRules(returns_deleted=True, update_needs_version=True)

_RULES: Final[dict[str, KindRules]] = {
    "pods": POD_RULES,
    "nodes": NODE_RULES,
    "namespaces": NAMESPACE_RULES,
    "endpoints": _UPSERT,
    "events": _UPSERT,
    "limitranges": _UPSERT,
    "resourcequotas": KindRules(returns_deleted=True, empty_status={}),
    "serviceaccounts": _RETURNED,
    "services": SERVICE_RULES,
    "secrets": SECRET_RULES,
    "persistentvolumes": VOLUME_RULES,
    "persistentvolumeclaims": CLAIM_RULES,
    "replicationcontrollers": KindRules(generation=True, empty_status={"replicas": 0}),
    "deployments.apps": KindRules(generation=True, empty_status={}),
    "replicasets.apps": KindRules(generation=True, empty_status={"replicas": 0}),
    "statefulsets.apps": KindRules(generation=True, empty_status={"replicas": 0, "availableReplicas": 0}),
    "daemonsets.apps": DAEMON_SET_RULES,
    "jobs.batch": JOB_RULES,
    "poddisruptionbudgets.policy": KindRules(
        name_errors=path_segment_errors,
        generation=True,
        update_needs_version=True,
        empty_status={"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0},
    ),
    "leases.coordination.k8s.io": KindRules(update_creates=True, update_needs_version=True),
    "runtimeclasses.node.k8s.io": KindRules(update_creates=True, update_needs_version=True),
    "clusterroles.rbac.authorization.k8s.io": _UPSERT,
    "clusterrolebindings.rbac.authorization.k8s.io": _UPSERT,
    "roles.rbac.authorization.k8s.io": _UPSERT,
    "rolebindings.rbac.authorization.k8s.io": _UPSERT,
    "csidrivers.storage.k8s.io": _RETURNED_AND_GUARDED,
    "csinodes.storage.k8s.io": _RETURNED_AND_GUARDED,
    "csistoragecapacities.storage.k8s.io": _GUARDED,
    "storageclasses.storage.k8s.io": _RETURNED,
    "volumeattachments.storage.k8s.io": KindRules(
        returns_deleted=True, update_needs_version=True, empty_status={"attached": False}
    ),
    "volumeattributesclasses.storage.k8s.io": _RETURNED,
    "deviceclasses.resource.k8s.io": KindRules(returns_deleted=True, generation=True),
    "resourceclaims.resource.k8s.io": RESOURCE_CLAIM_RULES,
    "resourceclaimtemplates.resource.k8s.io": CLAIM_TEMPLATE_RULES,
    "resourceslices.resource.k8s.io": RESOURCE_SLICE_RULES,
    "customresourcedefinitions.apiextensions.k8s.io": DEFINITION_RULES,
    "priorityclasses.scheduling.k8s.io": PRIORITY_CLASS_RULES,
    "podgroups.scheduling.k8s.io": POD_GROUP_RULES,
    "endpointslices.discovery.k8s.io": KindRules(generation=True),
}

for _collection, (_check, _check_update) in CHECKS.items():
    _RULES[_collection] = msgspec.structs.replace(
        _RULES.get(_collection, PLAIN), validate=_check, validate_update=_check_update
    )
for _collection, _check_update in STATUS_CHECKS.items():
    _RULES[_collection] = msgspec.structs.replace(_RULES[_collection], validate_status=_check_update)


def rules_of(kind: Kind) -> KindRules:
    if isinstance(kind, CustomKind):
        return rules_of_custom(kind)
    return _RULES.get(kind.stored_in, PLAIN)
