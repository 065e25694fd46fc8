"""Files the persistent volumes that a claim could still be given, so that finding one does not mean looking at all.

A volume is free while no claim holds it, it is Available and it is not being deleted. Free volumes of a class that
differ only in name and place are of one make; a claim looks at the makes, smallest first, and then at where volumes of
a suitable make are. Claimed volumes are filed under the claim they name, which may still be waiting to be bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kubecel.quantity import parse
from podium.cluster.objects import Store
from podium.cluster.reach_index import ReachIndex, where_reachable
from podium.kube import PersistentVolume

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
