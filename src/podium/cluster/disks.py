"""Counts the disks that pods mount directly, per node.

Disks that a pod names itself (GCE, EBS, iSCSI, RBD) cannot always be shared: two pods on one node conflict over a disk
unless both only read it; over an EBS volume they always conflict. An RBD image is the same image if any monitor is
shared, so it has one identity per monitor.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from podium.kube import Pod

Identity = tuple[str, ...]


class Disk(NamedTuple):
    identity: Identity
    read_only: bool

    def conflicts_with(self, other: Disk) -> bool:
        return self.identity == other.identity and not (self.read_only and other.read_only)


def inline_disks(pod: Pod) -> tuple[Disk, ...]:
    """The disks a pod mounts without a claim, as far as they can conflict."""
    disks: list[Disk] = []
    for volume in pod.spec.volumes:
        if volume.gce_persistent_disk is not None:
            gce = volume.gce_persistent_disk
            disks.append(Disk(("gce", gce.pd_name), gce.read_only))
        if volume.aws_elastic_block_store is not None:
            disks.append(Disk(("ebs", volume.aws_elastic_block_store.volume_id), False))
        if volume.iscsi is not None:
            disks.append(Disk(("iscsi", volume.iscsi.iqn), volume.iscsi.read_only))
        if volume.rbd is not None:
            rbd = volume.rbd
            disks += [
                Disk(("rbd", monitor, rbd.pool, rbd.image), rbd.read_only) for monitor in dict.fromkeys(rbd.monitors)
            ]
    return tuple(disks)


class MountedDisks:
    """Rows by disk, those that only read it apart from those that write."""

    def __init__(self) -> None:
        self._rows: dict[Disk, dict[int, int]] = {}

    def add(self, disks: Iterable[Disk], row: int, sign: int) -> None:
        for disk in disks:
            counts = self._rows.setdefault(disk, {})
            counts[row] = counts.get(row, 0) + sign
            if not counts[row]:
                del counts[row]
            if not counts:
                del self._rows[disk]

    def conflicting_rows(self, disks: Iterable[Disk]) -> set[int]:
        """The rows on which a pod stands that conflicts over one of the disks."""
        rows: set[int] = set()
        for disk in disks:
            rows.update(self._rows.get(Disk(disk.identity, False), ()))
            if not disk.read_only:
                rows.update(self._rows.get(Disk(disk.identity, True), ()))
        return rows
