"""Names what to list and watch: the path of a collection, the type of its objects, and a selector.

The path says the rest, for that is how the API is laid out: `/api/v1/pods`, `/apis/GROUP/VERSION/PLURAL`, and with
`/namespaces/NAME` before the plural for one namespace only.

Lists where the API server serves the kinds that scheduling reads, and which of them a scheduler watches.

`WATCHED` is what kube-scheduler watches with the default profile; its selector for pods leaves out those that have
ended, which hold nothing any more (a plugin may ask to see them: `Plugin.watches_ended_pods`). Workloads are only asked
for their selectors, by default topology spreading. Priority classes are not watched: admission has written the number
into the pod; nor are templates of claims, which a controller reads. PodGroups are watched while the gate
GenericWorkload is on, and DeviceTaintRules, which API servers have from 1.37 on, while DRADeviceTaintRules is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Generic, TypeVar

import msgspec

from podium.client.client import Client
from podium.kube import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    DeviceClass,
    DeviceTaintRule,
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
from podium.kube.custom_object import CORE_KINDS
from podium.kube.kinds_around_pods import RuntimeClass
from podium.kube.versions import Gate

T = TypeVar("T")
_CORE: Final = frozenset(CORE_KINDS.values())


@dataclass(frozen=True)
class ApiResource(Generic[T]):
    """A collection; `type` None leaves its objects plain dictionaries; `params` are selectors ("fieldSelector": …).

    >>> ApiResource("/apis/storage.k8s.io/v1/csinodes").name
    'csinodes.storage.k8s.io'
    """

    path: str
    type: type[T] | None = None
    params: Mapping[str, str] = field(default_factory=dict)
    optional: bool = False
    """Whether API servers may lack it: where one does, nothing is missing."""
    older: str = ""
    """The path where an API server that lacks this one may have it."""

    @property
    def elsewhere(self) -> ApiResource[T]:
        """The same collection in the other version of the API that has it."""
        return replace(self, path=self.older, older=self.path)

    @property
    def group(self) -> str:
        """The API group, which is empty for the core group."""
        parts = self.path.strip("/").split("/")
        return "" if parts[0] == "api" else parts[1]

    @property
    def group_version(self) -> str:
        parts = self.path.strip("/").split("/")
        return parts[1] if parts[0] == "api" else f"{parts[1]}/{parts[2]}"

    @property
    def plural(self) -> str:
        return self.path.rstrip("/").rpartition("/")[2]

    @property
    def name(self) -> str:
        """As kubectl writes it: "pods", "csinodes.storage.k8s.io"."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def rule(self) -> str:
        """The RBAC rule without which it can be neither listed nor watched."""
        return f'apiGroups: ["{self.group}"], resources: ["{self.plural}"], verbs: ["list", "watch"]'


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
    DeviceTaintRule: ApiResource("/apis/resource.k8s.io/v1/devicetaintrules", DeviceTaintRule, optional=True),
    ResourceClaimTemplate: ApiResource("/apis/resource.k8s.io/v1/resourceclaimtemplates", ResourceClaimTemplate),
    PriorityClass: ApiResource("/apis/scheduling.k8s.io/v1/priorityclasses", PriorityClass),
    RuntimeClass: ApiResource("/apis/node.k8s.io/v1/runtimeclasses", RuntimeClass, optional=True),
    PodGroup: ApiResource(
        "/apis/scheduling.k8s.io/v1beta1/podgroups", PodGroup, older="/apis/scheduling.k8s.io/v1alpha2/podgroups"
    ),
}

GATED: Final[dict[type[KubeObject], Gate]] = {
    PodGroup: Gate.GENERIC_WORKLOAD,
    DeviceTaintRule: Gate.DEVICE_TAINT_RULES,
}
"""Kinds that are read only while a gate is on."""
WATCHED: Final[tuple[ApiResource[Any], ...]] = tuple(
    resource
    for kind, resource in RESOURCES.items()
    if kind not in (PriorityClass, RuntimeClass, ResourceClaimTemplate, *GATED)
)


class NoSuchKindError(Exception):
    """The API server serves the group, and no such kind in it."""


async def find_resource(client: Client, name: str) -> ApiResource[Any]:
    """Where it is served, at the version that the server prefers; every server has the kinds of the core group.

    Raises NoSuchKindError, the client's own errors, and those of answers that make no sense: UNDECODABLE, LookupError
    and TypeError.
    """
    if name in _CORE:
        return ApiResource(f"/api/v1/{name}", None)
    plural, _, group = name.partition(".")
    version = msgspec.json.decode(await client.get(f"/apis/{group}"))["preferredVersion"]["groupVersion"]
    listed = msgspec.json.decode(await client.get(f"/apis/{version}"))
    if not any(each["name"] == plural for each in listed["resources"]):
        raise NoSuchKindError(f"the API server has no {plural} in {version}")
    return ApiResource(f"/apis/{version}/{plural}", None)
