"""Takes a control plane back to empty between tests, so that a session can share one.

A control plane without controllers finishes no deletions: finalizers that admission or the server sets stay
for ever, and so do the namespaces. Both are taken off here by hand.
"""

from collections.abc import Sequence

from tools.testbed.apiclient import MERGE_PATCH, ApiClient, ApiError, Object
from tools.testbed.resources import Resource

# In an order in which nothing is recreated or held back by what comes later.
WIPED_KINDS = (
    "apps/v1/Deployment",
    "apps/v1/ReplicaSet",
    "apps/v1/StatefulSet",
    "apps/v1/DaemonSet",
    "apps/v1/ControllerRevision",
    "batch/v1/Job",
    "v1/ReplicationController",
    "v1/Pod",
    "v1/Service",
    "policy/v1/PodDisruptionBudget",
    "v1/PersistentVolumeClaim",
    "v1/PersistentVolume",
    "ResourceClaim",
    "ResourceClaimTemplate",
    "ResourceSlice",
    "DeviceClass",
    "DeviceTaintRule",
    "PodGroup",
    "Workload",
    "v1/ResourceQuota",
    "v1/LimitRange",
    "storage.k8s.io/v1/CSIStorageCapacity",
    "storage.k8s.io/v1/VolumeAttachment",
    "storage.k8s.io/v1/CSINode",
    "storage.k8s.io/v1/CSIDriver",
    "storage.k8s.io/v1/StorageClass",
    "scheduling.k8s.io/v1/PriorityClass",
    "v1/Node",
    "v1/Event",
)
_KEPT_NAMES = {"kubernetes", "system-cluster-critical", "system-node-critical"}
_KEPT_NAMESPACES = {"default", "kube-system", "kube-public", "kube-node-lease"}


def wipe(client: ApiClient, kinds: Sequence[str] = WIPED_KINDS) -> None:
    """Delete all objects of `kinds` (those the server does not serve are passed over), then the tests' namespaces."""
    for kind in kinds:
        resource = client.find_resource(kind)
        if resource is not None:
            _wipe_kind(client, resource)
    for namespace in client.list("v1/Namespace"):
        if namespace["metadata"]["name"] not in _KEPT_NAMESPACES:
            _delete_namespace(client, namespace["metadata"]["name"])


def _wipe_kind(client: ApiClient, resource: Resource) -> None:
    kind = f"{resource.api_version}/{resource.kind}"
    doomed = _doomed(client, kind)
    if not doomed:
        return
    if "deletecollection" in resource.verbs and len(doomed) == len(client.list(kind)):
        client.delete_all(kind)
    else:
        for item in doomed:
            client.delete(kind, item["metadata"]["name"], item["metadata"].get("namespace", ""))
    for held in _doomed(client, kind):
        _strip_finalizers(client, kind, held)


def _doomed(client: ApiClient, kind: str) -> list[Object]:
    return [item for item in client.list(kind) if item["metadata"]["name"] not in _KEPT_NAMES]


def _strip_finalizers(client: ApiClient, kind: str, held: Object) -> None:
    metadata = held["metadata"]
    patch = {"metadata": {"finalizers": None}}
    try:
        client.patch(kind, metadata["name"], patch, metadata.get("namespace", ""), patch_type=MERGE_PATCH)
    except ApiError as error:
        if error.code != 404:  # gone meanwhile is what was wanted
            raise


def _delete_namespace(client: ApiClient, name: str) -> None:
    client.delete("v1/Namespace", name)
    namespace = client.get("v1/Namespace", name)
    namespace["spec"]["finalizers"] = []
    client.replace(namespace, subresource="finalize")
