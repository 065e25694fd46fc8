"""Stores the other objects that placement depends on: claims, volumes, services, namespaces, budgets and so on.

Each kind is a store of objects by key with a version that moves on every change, so that answers which depend on it can
be cached exactly as long as they hold. An object may be assumed: changed in memory ahead of the API server (a claim
that was just given a volume), until the API server's own newer version arrives or the assumption is taken back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

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

T = TypeVar("T")

Follower = Callable[[str, T | None, T | None], None]
"""(key, object before, object after): called for every change, assumptions included; None stands for "not there"."""


class Store(Generic[T]):
    """Objects of one kind by "name" or "namespace/name"."""

    def __init__(self) -> None:
        self._objects: dict[str, T] = {}
        self._assumed: dict[str, T] = {}
        self._followers: list[Follower[T]] = []
        self.version = 0

    def follow(self, follower: Follower[T]) -> None:
        """Tell `follower` of every change from now on, and of what is there already."""
        self._followers.append(follower)
        for key in self._objects:
            follower(key, None, self.get(key))

    def __iter__(self) -> Iterator[T]:
        if not self._assumed:
            return iter(self._objects.values())
        return iter({**self._objects, **self._assumed}.values())

    def __len__(self) -> int:
        return len(self._objects)

    def get(self, key: str) -> T | None:
        if self._assumed:
            assumed = self._assumed.get(key)
            if assumed is not None:
                return assumed
        return self._objects.get(key)

    def set(self, key: str, value: T) -> None:
        """Take over what the API server says; it ends an assumption about the object."""
        before = self.get(key)
        self._objects[key] = value
        self._assumed.pop(key, None)
        self._moved(key, before)

    def discard(self, key: str) -> T | None:
        before = self.get(key)
        self._assumed.pop(key, None)
        found = self._objects.pop(key, None)
        self._moved(key, before)
        return found

    def assume(self, key: str, value: T) -> None:
        before = self.get(key)
        self._assumed[key] = value
        self._moved(key, before)

    @property
    def assumed(self) -> list[str]:
        """The keys of objects about which something is assumed."""
        return list(self._assumed)

    def restore(self, key: str) -> None:
        """Take an assumption back."""
        before = self._assumed.pop(key, None)
        if before is not None:
            self._moved(key, before)

    def _moved(self, key: str, before: T | None) -> None:
        self.version += 1
        if self._followers:
            after = self.get(key)
            for follower in self._followers:
                follower(key, before, after)


class Objects:
    """One store per kind; kinds that only a third-party plugin knows stand in `custom`."""

    def __init__(self) -> None:
        self.claims: Store[PersistentVolumeClaim] = Store()
        self.volumes: Store[PersistentVolume] = Store()
        self.storage_classes: Store[StorageClass] = Store()
        self.csi_nodes: Store[CSINode] = Store()
        self.csi_drivers: Store[CSIDriver] = Store()
        self.csi_capacities: Store[CSIStorageCapacity] = Store()
        self.attachments: Store[VolumeAttachment] = Store()
        self.services: Store[Service] = Store()
        self.replica_sets: Store[ReplicaSet] = Store()
        self.replication_controllers: Store[ReplicationController] = Store()
        self.stateful_sets: Store[StatefulSet] = Store()
        self.namespaces: Store[Namespace] = Store()
        self.priority_classes: Store[PriorityClass] = Store()
        self.budgets: Store[PodDisruptionBudget] = Store()
        self.pod_groups: Store[PodGroup] = Store()
        self.resource_claims: Store[ResourceClaim] = Store()
        self.resource_slices: Store[ResourceSlice] = Store()
        self.device_classes: Store[DeviceClass] = Store()
        self.device_taint_rules: Store[DeviceTaintRule] = Store()
        self.pending_pods: Store[Pod] = Store()
        self.custom: dict[str, Store[Any]] = {}
        self._by_type: dict[type, Store[Any]] = {
            PersistentVolumeClaim: self.claims,
            PersistentVolume: self.volumes,
            StorageClass: self.storage_classes,
            CSINode: self.csi_nodes,
            CSIDriver: self.csi_drivers,
            CSIStorageCapacity: self.csi_capacities,
            VolumeAttachment: self.attachments,
            Service: self.services,
            ReplicaSet: self.replica_sets,
            ReplicationController: self.replication_controllers,
            StatefulSet: self.stateful_sets,
            Namespace: self.namespaces,
            PriorityClass: self.priority_classes,
            PodDisruptionBudget: self.budgets,
            PodGroup: self.pod_groups,
            ResourceClaim: self.resource_claims,
            ResourceSlice: self.resource_slices,
            DeviceClass: self.device_classes,
            DeviceTaintRule: self.device_taint_rules,
        }

    def stores(self) -> list[Store[Any]]:
        """The stores of all built-in kinds."""
        return list(self._by_type.values())

    def store_of(self, kind: type) -> Store[Any] | None:
        return self._by_type.get(kind)

    def custom_store(self, resource: str) -> Store[Any]:
        """The store of a custom resource, named "plural.group" (e.g. "podgroups.scheduling.x-k8s.io")."""
        return self.custom.setdefault(resource, Store())

    def namespace_labels(self, name: str) -> dict[str, str]:
        namespace = self.namespaces.get(name)
        return {} if namespace is None else namespace.labels


class Latest(Generic[T]):
    """What `find` says of a pod, found once for as long as the same pod is asked about and no store changes.

    One decision asks the same question many times over.
    """

    def __init__(self, find: Callable[[Pod], T], *stores: Store[Any]) -> None:
        self._find = find
        self._stores = stores
        self._pod: Pod | None = None
        self._versions: list[int] = []
        self._found: T

    def of(self, pod: Pod) -> T:
        versions = [store.version for store in self._stores]
        if pod is not self._pod or versions != self._versions:
            self._found = self._find(pod)
            self._pod, self._versions = pod, versions
        return self._found
