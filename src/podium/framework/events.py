"""Changes in the cluster that may make a waiting pod schedulable.

Each plugin says which events could undo its rejection, optionally with a hint that looks at the changed object. A pod
is woken only by an event that matters to a plugin that rejected it. Actions are bits; their values take part in
matching (an event must not carry more than was registered), so they are kube-scheduler's.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Hashable
from typing import Any, Final, NamedTuple, Protocol

from podium.kube import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    DeviceClass,
    DeviceTaintRule,
    Namespace,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodDisruptionBudget,
    PodGroup,
    PriorityClass,
    ReplicaSet,
    ReplicationController,
    ResourceClaim,
    ResourceSlice,
    Service,
    StatefulSet,
    StorageClass,
    VolumeAttachment,
)


class Action(enum.IntFlag):
    """What happened to an object; a registration may name several with `|`."""

    ADD = 1
    DELETE = 2
    UPDATE_NODE_ALLOCATABLE = 4
    UPDATE_NODE_LABEL = 8
    UPDATE_NODE_TAINT = 16
    UPDATE_NODE_CONDITION = 32
    UPDATE_NODE_ANNOTATION = 64
    UPDATE_NODE_DECLARED_FEATURE = 128
    UPDATE_POD_LABEL = 256
    UPDATE_POD_SCALE_DOWN = 512
    UPDATE_POD_TOLERATION = 1024
    UPDATE_POD_GATES_ELIMINATED = 2048
    UPDATE_POD_GENERATED_CLAIM = 4096
    UPDATE = 8188
    ALL = 8191


_ACTION_LABELS: dict[int, str] = {
    Action.ADD: "Add",
    Action.DELETE: "Delete",
    Action.UPDATE_NODE_ALLOCATABLE: "UpdateNodeAllocatable",
    Action.UPDATE_NODE_LABEL: "UpdateNodeLabel",
    Action.UPDATE_NODE_TAINT: "UpdateNodeTaint",
    Action.UPDATE_NODE_CONDITION: "UpdateNodeCondition",
    Action.UPDATE_NODE_ANNOTATION: "UpdateNodeAnnotation",
    Action.UPDATE_NODE_DECLARED_FEATURE: "UpdateNodeDeclaredFeature",
    Action.UPDATE_POD_LABEL: "UpdatePodLabel",
    Action.UPDATE_POD_SCALE_DOWN: "UpdatePodScaleDown",
    Action.UPDATE_POD_TOLERATION: "UpdatePodToleration",
    Action.UPDATE_POD_GATES_ELIMINATED: "UpdatePodSchedulingGatesEliminated",
    Action.UPDATE_POD_GENERATED_CLAIM: "UpdatePodGeneratedResourceClaim",
    Action.UPDATE: "Update",
    Action.ALL: "All",
}


def labels(action: Action) -> list[str]:
    """What actions are called, as few of them as there can be.

    >>> labels(Action.ADD | Action.UPDATE_NODE_TAINT), labels(Action.ALL), labels(Action.UPDATE | Action.DELETE)
    (['Add', 'UpdateNodeTaint'], ['All'], ['Delete', 'Update'])
    """
    found = []
    for whole in (Action.ALL, Action.UPDATE):
        if action & whole == whole:
            found.append(_ACTION_LABELS[whole])
            action &= ~whole
    return [*(_ACTION_LABELS[each] for each in Action if each in action), *found]


class Resource:
    """Names of the kinds events speak of; a custom resource goes by its "plural.group".

    A waiting pod's own changes are of TARGET_POD, other waiting pods' of UNSCHEDULED_POD; before Kubernetes 1.37, both
    were of UNSCHEDULABLE_POD.

    The last three are read like custom resources: as they were written, and only where a plugin names them.
    """

    ANY = "*"
    POD = "Pod"
    ASSIGNED_POD = "AssignedPod"
    UNSCHEDULED_POD = "UnscheduledPod"
    TARGET_POD = "TargetPod"
    UNSCHEDULABLE_POD = "UnschedulablePod"
    NODE = "Node"
    PV = "PersistentVolume"
    PVC = "PersistentVolumeClaim"
    STORAGE_CLASS = "storage.k8s.io/StorageClass"
    CSI_NODE = "storage.k8s.io/CSINode"
    CSI_DRIVER = "storage.k8s.io/CSIDriver"
    CSI_CAPACITY = "storage.k8s.io/CSIStorageCapacity"
    VOLUME_ATTACHMENT = "storage.k8s.io/VolumeAttachment"
    SERVICE = "Service"
    NAMESPACE = "Namespace"
    POD_GROUP = "scheduling.k8s.io/PodGroup"
    RESOURCE_CLAIM = "resource.k8s.io/ResourceClaim"
    DEVICE_CLASS = "resource.k8s.io/DeviceClass"
    RESOURCE_SLICE = "resource.k8s.io/ResourceSlice"
    PRIORITY_CLASS = "scheduling.k8s.io/PriorityClass"
    DISRUPTION_BUDGET = "policy/PodDisruptionBudget"
    REPLICA_SET = "apps/ReplicaSet"
    REPLICATION_CONTROLLER = "ReplicationController"
    STATEFUL_SET = "apps/StatefulSet"
    CONFIG_MAP = "configmaps"
    LIMIT_RANGE = "limitranges"
    RESOURCE_QUOTA = "resourcequotas"


RESOURCE_OF: Final[dict[type, str]] = {
    PersistentVolume: Resource.PV,
    PersistentVolumeClaim: Resource.PVC,
    StorageClass: Resource.STORAGE_CLASS,
    CSINode: Resource.CSI_NODE,
    CSIDriver: Resource.CSI_DRIVER,
    CSIStorageCapacity: Resource.CSI_CAPACITY,
    VolumeAttachment: Resource.VOLUME_ATTACHMENT,
    Service: Resource.SERVICE,
    Namespace: Resource.NAMESPACE,
    PodGroup: Resource.POD_GROUP,
    ResourceClaim: Resource.RESOURCE_CLAIM,
    ResourceSlice: Resource.RESOURCE_SLICE,
    DeviceClass: Resource.DEVICE_CLASS,
    DeviceTaintRule: Resource.RESOURCE_SLICE,
    PriorityClass: Resource.PRIORITY_CLASS,
    PodDisruptionBudget: Resource.DISRUPTION_BUDGET,
    ReplicaSet: Resource.REPLICA_SET,
    ReplicationController: Resource.REPLICATION_CONTROLLER,
    StatefulSet: Resource.STATEFUL_SET,
}
"""What events call each kind, beside nodes and pods."""

QUIET: Final = frozenset(
    {Namespace, PriorityClass, PodDisruptionBudget, ReplicaSet, ReplicationController, StatefulSet}
)
"""Kinds whose changes are no events for kube-scheduler: they are only where a plugin's `depends_on` names them."""

USUAL: Final = (
    Resource.POD,
    Resource.NODE,
    Resource.PV,
    Resource.PVC,
    Resource.CSI_NODE,
    Resource.CSI_DRIVER,
    Resource.CSI_CAPACITY,
    Resource.STORAGE_CLASS,
    Resource.RESOURCE_CLAIM,
    Resource.DEVICE_CLASS,
    Resource.POD_GROUP,
)
"""What wakes the pods of a plugin that does not say what it waits for: as in kube-scheduler, not quite everything."""


_WAITING: Final = (Resource.UNSCHEDULED_POD, Resource.TARGET_POD, Resource.UNSCHEDULABLE_POD)
_PARTS: Final = {Resource.POD: (Resource.ASSIGNED_POD, *_WAITING), Resource.UNSCHEDULED_POD: _WAITING}
"""Whose events a registration for these covers, too."""


class Event(NamedTuple):
    """One kind of change, as registered by a plugin or as it happened."""

    resource: str
    action: Action
    special: str = ""

    @property
    def label(self) -> str:
        return self.special or f"{self.resource}{_ACTION_LABELS.get(self.action, 'Update')}"

    @property
    def wildcard(self) -> bool:
        return self.resource == Resource.ANY and self.action == Action.ALL

    def covers(self, happened: Event) -> bool:
        """Whether this registration includes what happened."""
        if self.wildcard:
            return True
        same = self.resource in (happened.resource, Resource.ANY) or happened.resource in _PARTS.get(self.resource, ())
        return same and bool(self.action & happened.action) and happened.action <= self.action


Hint = Callable[[Pod, Any, Any], bool]
"""(waiting pod, object before, object after) → may the pod fit now? None stands for "did not exist"."""


class Concerns(Protocol):
    """Finds the pods an event may matter to without asking the hint about each: those that wait for what it is about.

    Where a pod waits for nothing that an event is about, the hint must say no.
    """

    def of_pod(self, pod: Pod) -> Collection[Hashable] | None:
        """What a pod waits for, the same for pods that differ in name only; None: it may be anything."""

    def of_event(self, before: Any, after: Any) -> Collection[Hashable] | None:
        """What an event is about; None: it may be anything."""


class Interest(NamedTuple):
    """An event that may undo a plugin's rejection; without a hint it always wakes the pod."""

    resource: str
    """A name of `Resource`, or the "plural.group" of a custom resource."""
    action: Action
    """What has to happen to it; several with `|`."""
    hint: Hint | None = None
    """(waiting pod, object before, object after) → whether the pod may fit now."""
    by_signature: bool = False
    """The hint gives one answer for pods with one signature (they differ in name, times and conditions only), so it is
    asked once for all of them; but a change of a waiting pod itself is shown to that pod alone."""
    concerns: Concerns | None = None
    """Files waiting pods by what they wait for, so that not every one is asked about."""

    @property
    def event(self) -> Event:
        return Event(self.resource, self.action)


def wildcard(label: str) -> Event:
    """An event that concerns every pod whatever rejected it (a timer, a forced activation)."""
    return Event(Resource.ANY, Action.ALL, label)


UNSCHEDULABLE_TIMEOUT = wildcard("UnschedulableTimeout")
FORCE_ACTIVATE = wildcard("ForceActivate")
PLUGIN_TIMER = wildcard("PluginTimer")
EVERYTHING = Event(Resource.ANY, Action.ALL)
