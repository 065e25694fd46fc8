"""Files how much storage drivers report to have left, by class and by where it can be reached.

A driver publishes one CSIStorageCapacity per class and topology segment. What counts for a new volume is the largest
volume the driver can still make there: maximumVolumeSize where given, else the capacity as a whole.
"""

from __future__ import annotations

from kubecel.quantity import units
from podium.cluster.objects import Store
from podium.cluster.reach_index import ReachIndex, Where
from podium.kube import CSIStorageCapacity
from podium.kube.selector import SelectorError, compile_label_selector


def volume_limit(capacity: CSIStorageCapacity) -> int | None:
    """The size in bytes of the largest volume that fits; None when nothing is known."""
    limit = capacity.capacity if capacity.maximum_volume_size is None else capacity.maximum_volume_size
    return None if limit is None else units(limit)


class StoragePools:
    def __init__(self, capacities: Store[CSIStorageCapacity]) -> None:
        self._by_class: dict[str, ReachIndex[int]] = {}
        capacities.follow(self._follow)

    def of_class(self, name: str) -> ReachIndex[int]:
        """The volume limits (bytes) reported for a class, by place."""
        return self._by_class.get(name) or ReachIndex()

    def _follow(self, key: str, before: CSIStorageCapacity | None, after: CSIStorageCapacity | None) -> None:
        if before is not None and before.storage_class_name in self._by_class:
            self._by_class[before.storage_class_name].discard(key, _where(before))
        if after is not None:
            limit, where = volume_limit(after), _where(after)
            if limit is not None and where:
                self._by_class.setdefault(after.storage_class_name, ReachIndex()).add(key, where, limit)


def _where(capacity: CSIStorageCapacity) -> Where:
    """A pool without a topology, or with one that cannot be read, is reachable from nowhere."""
    try:
        selector = compile_label_selector(capacity.node_topology)
    except SelectorError:
        return ()
    return () if selector.nothing else (selector.requirements,)
