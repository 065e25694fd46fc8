"""Files the volumes that a claim could still be given, and the storage that is left to make new ones.

A volume is free while no claim holds it, it is Available and it is not being deleted. Free volumes of a class that
differ only in name and place are of one make; a claim looks at the makes, smallest first, and then at where volumes of
a suitable make are. Claimed volumes are filed under the claim they name, which may still be waiting to be bound.

A storage driver publishes one CSIStorageCapacity per class and topology segment. What counts for a new volume is the
largest volume that the driver can still make there: maximumVolumeSize where given, else the capacity as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kubecel.quantity import parse, units
from podium.cluster.objects import Store
from podium.cluster.topology_index import ReachIndex, Where, where_reachable
from podium.kube import CSIStorageCapacity, PersistentVolume
from podium.kube.selector import SelectorError, compile_label_selector

AVAILABLE = "Available"
FILESYSTEM = "Filesystem"


class Make(NamedTuple):
    """What a claim asks of a volume, labels and place aside; `size` in nano bytes."""

    size: int
    mode: str
    attributes_class: str
    access_modes: frozenset[str]


def make_of(volume: PersistentVolume) -> Make:
    spec = volume.spec
    return Make(
        parse(spec.capacity.get("storage", 0)),
        spec.volume_mode or FILESYSTEM,
        spec.volume_attributes_class_name or "",
        frozenset(spec.access_modes),
    )


class FreeVolumes:
    def __init__(self, volumes: Store[PersistentVolume]) -> None:
        self._free: dict[str, dict[Make, ReachIndex[PersistentVolume]]] = {}
        self._claimed: dict[str, dict[str, PersistentVolume]] = {}
        volumes.follow(self._follow)

    def of_class(self, name: str) -> Mapping[Make, ReachIndex[PersistentVolume]]:
        """The free volumes of a storage class, by make."""
        return self._free.get(name, {})

    def claimed_for(self, claim_key: str) -> Iterable[PersistentVolume]:
        """The volumes that name a claim ("namespace/name") as theirs, whatever their state."""
        return self._claimed.get(claim_key, {}).values()

    def _follow(self, key: str, before: PersistentVolume | None, after: PersistentVolume | None) -> None:
        if before is not None:
            self._take_out(key, before)
        if after is not None:
            self._file(key, after)

    def _file(self, key: str, volume: PersistentVolume) -> None:
        claim = _claim_key(volume)
        if claim is not None:
            self._claimed.setdefault(claim, {})[key] = volume
        elif _is_free(volume):
            same_make = self._free.setdefault(volume.storage_class_name, {}).setdefault(make_of(volume), ReachIndex())
            same_make.add(key, where_reachable(volume.spec.node_affinity), volume)

    def _take_out(self, key: str, volume: PersistentVolume) -> None:
        claim = _claim_key(volume)
        if claim is not None:
            held = self._claimed[claim]
            del held[key]
            if not held:
                del self._claimed[claim]
        elif _is_free(volume):
            makes, make = self._free[volume.storage_class_name], make_of(volume)
            makes[make].discard(key, where_reachable(volume.spec.node_affinity))
            if not makes[make]:
                del makes[make]
            if not makes:
                del self._free[volume.storage_class_name]


def _claim_key(volume: PersistentVolume) -> str | None:
    reference = volume.spec.claim_ref
    return None if reference is None else f"{reference.namespace}/{reference.name}"


def _is_free(volume: PersistentVolume) -> bool:
    return volume.spec.claim_ref is None and volume.status.phase == AVAILABLE and not volume.terminating


def volume_limit(capacity: CSIStorageCapacity) -> int | None:
    """The size in bytes of the largest volume that fits; None when nothing is known."""
    limit = capacity.capacity if capacity.maximum_volume_size is None else capacity.maximum_volume_size
    return None if limit is None else units(limit)


class StoragePool(NamedTuple):
    """What one CSIStorageCapacity says, in bytes."""

    limit: int
    """The size of the largest volume that fits."""
    capacity: int


class StoragePools:
    """How much storage drivers report to have left, by class and by where it can be reached."""

    def __init__(self, capacities: Store[CSIStorageCapacity]) -> None:
        self._by_class: dict[str, ReachIndex[StoragePool]] = {}
        capacities.follow(self._follow)

    def of_class(self, name: str) -> ReachIndex[StoragePool]:
        """The pools reported for a class, by place."""
        return self._by_class.get(name) or ReachIndex()

    def _follow(self, key: str, before: CSIStorageCapacity | None, after: CSIStorageCapacity | None) -> None:
        if before is not None and before.storage_class_name in self._by_class:
            self._by_class[before.storage_class_name].discard(key, _where(before))
        if after is not None:
            limit, where = volume_limit(after), _where(after)
            if limit is not None and where:
                pool = StoragePool(limit, 0 if after.capacity is None else units(after.capacity))
                self._by_class.setdefault(after.storage_class_name, ReachIndex()).add(key, where, pool)


def _where(capacity: CSIStorageCapacity) -> Where:
    """A pool without a topology, or with one that cannot be read, is reachable from nowhere."""
    try:
        selector = compile_label_selector(capacity.node_topology)
    except SelectorError:
        return ()
    return () if selector.nothing else (selector.requirements,)
