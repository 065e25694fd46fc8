"""Lists where the API server serves the kinds that scheduling reads, and which of them a scheduler watches.

`WATCHED` is what kube-scheduler watches with the default profile; its selector for pods leaves out those that have
ended, which hold nothing any more (a plugin may ask to see them: `Plugin.watches_ended_pods`). Workloads are only asked
for their selectors, by default topology spreading. Priority classes are not watched: admission has written the number
into the pod; nor are templates of claims, which a controller reads. PodGroups are watched while the gate
GenericWorkload is on.
"""

from typing import Any, Final

from podium.client.resource import ApiResource
from podium.kube import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    DeviceClass,
    KubeObject,
    Namespace,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodDisruptionBudget,
    PodGroup,
    PriorityClass,
    ReplicaSet,
    ReplicationController,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
    Service,
    StatefulSet,
    StorageClass,
    VolumeAttachment,
)

NOT_ENDED: Final = {"fieldSelector": "status.phase!=Succeeded,status.phase!=Failed"}

RESOURCES: Final[dict[type[KubeObject], ApiResource[Any]]] = {
    Pod: ApiResource("/api/v1/pods", Pod, NOT_ENDED),
    Node: ApiResource("/api/v1/nodes", Node),
    Namespace: ApiResource("/api/v1/namespaces", Namespace),
    Service: ApiResource("/api/v1/services", Service),
    ReplicationController: ApiResource("/api/v1/replicationcontrollers", ReplicationController),
    ReplicaSet: ApiResource("/apis/apps/v1/replicasets", ReplicaSet),
    StatefulSet: ApiResource("/apis/apps/v1/statefulsets", StatefulSet),
    PersistentVolume: ApiResource("/api/v1/persistentvolumes", PersistentVolume),
    PersistentVolumeClaim: ApiResource("/api/v1/persistentvolumeclaims", PersistentVolumeClaim),
    StorageClass: ApiResource("/apis/storage.k8s.io/v1/storageclasses", StorageClass),
    CSINode: ApiResource("/apis/storage.k8s.io/v1/csinodes", CSINode),
    CSIDriver: ApiResource("/apis/storage.k8s.io/v1/csidrivers", CSIDriver),
    CSIStorageCapacity: ApiResource("/apis/storage.k8s.io/v1/csistoragecapacities", CSIStorageCapacity),
    VolumeAttachment: ApiResource("/apis/storage.k8s.io/v1/volumeattachments", VolumeAttachment),
    PodDisruptionBudget: ApiResource("/apis/policy/v1/poddisruptionbudgets", PodDisruptionBudget),
    ResourceClaim: ApiResource("/apis/resource.k8s.io/v1/resourceclaims", ResourceClaim),
    ResourceSlice: ApiResource("/apis/resource.k8s.io/v1/resourceslices", ResourceSlice),
    DeviceClass: ApiResource("/apis/resource.k8s.io/v1/deviceclasses", DeviceClass),
    ResourceClaimTemplate: ApiResource("/apis/resource.k8s.io/v1/resourceclaimtemplates", ResourceClaimTemplate),
    PriorityClass: ApiResource("/apis/scheduling.k8s.io/v1/priorityclasses", PriorityClass),
    PodGroup: ApiResource("/apis/scheduling.k8s.io/v1alpha2/podgroups", PodGroup),
}

WATCHED: Final[tuple[ApiResource[Any], ...]] = tuple(
    resource for kind, resource in RESOURCES.items() if kind not in (PriorityClass, PodGroup, ResourceClaimTemplate)
)
