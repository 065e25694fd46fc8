"""Counts the volumes of each CSI driver that are attached to each node, as pods, claims and volumes change.

A volume is "driver/handle". A pod's claim leads to it through the bound persistent volume, or, while there is none,
through the provisioner of the storage class, with a handle made up from the claim's name. In-tree disks count as
volumes of the driver that took them over, inline ones too. Attached to a node are the volumes of the pods on it and
those that a VolumeAttachment names, each once.

What a claim leads to can change at any time, so claims in use remember who uses them, and volumes and classes remember
which claims lead through them. Only the rows concerned are counted again, and these rows go into the journal of pods.

Also counts the disks that pods mount directly, per node.

Disks that a pod names itself (GCE, EBS, iSCSI, RBD) cannot always be shared: two pods on one node conflict over a disk
unless both only read it; over an EBS volume they always conflict. An RBD image is the same image if any monitor is
shared, so it has one identity per monitor.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium.cluster.columns import Column, ColumnSet
from podium.cluster.objects import Objects
from podium.kube import PersistentVolume, PersistentVolumeClaim, Pod, StorageClass, Volume, VolumeAttachment
from podium.kube.claims import claim_name, foreign_claim, is_ephemeral, not_found
from podium.kube.csi_translation import DRIVERS, MIGRATED, TranslationError, csi_source, in_tree_plugin, inline_handle

TO_BE_MADE = "podium-to-be-made"
"""Begins the handle of a volume that does not exist yet; no driver gives such handles."""

Volumes = dict[str, str]
"""Volumes ("driver/handle") with their driver."""
Identity = tuple[str, ...]


class UnusableVolumeError(Exception):
    """A pod's volume that cannot be counted; `claim_missing`: because its claim does not exist."""

    def __init__(self, message: str, *, claim_missing: bool = False) -> None:
        super().__init__(message)
        self.claim_missing = claim_missing


class _Claim:
    """A claim in use: the pods that use it, and the names (kind, name) of what it leads through."""

    __slots__ = ("through", "users")

    def __init__(self) -> None:
        self.users: dict[tuple[int, str], Pod] = {}
        self.through: tuple[tuple[str, str], ...] = ()


class AttachedVolumes:
    def __init__(self, columns: ColumnSet, objects: Objects, moved: Callable[[int], None]) -> None:
        """`moved` is called with rows that change though no pod or node comes or goes."""
        self._columns = columns
        self._objects = objects
        self._moved = moved
        self._by_pods: dict[str, dict[int, int]] = {}
        self._by_attachments: dict[str, dict[int, int]] = {}
        self._counts: dict[str, Column] = {}
        self._held: dict[tuple[int, str], Volumes] = {}
        self._problems: dict[int, dict[str, str]] = {}
        self._claims: dict[str, _Claim] = {}
        self._claims_through: dict[tuple[str, str], dict[str, None]] = {}
        self._attachments_of: dict[str, dict[str, VolumeAttachment]] = {}
        self._attachments_on: dict[str, dict[str, tuple[str, str]]] = {}
        self._row_of: dict[str, int] = {}
        objects.claims.follow(self._follow_claim)
        objects.volumes.follow(self._follow_volume)
        objects.storage_classes.follow(self._follow_class)
        objects.attachments.follow(self._follow_attachment)

    # Questions

    def count(self, driver: str) -> NDArray[np.int64]:
        """int64[rows]: volumes of the driver attached to each node."""
        column = self._counts.get(driver)
        if column is None:
            column = self._counts[driver] = self._columns.new(np.int64)
        return column.view

    def rows_with(self, volume: str) -> Collection[int]:
        """The rows on which some pod uses the volume ("driver/handle")."""
        return self._by_pods.get(volume, ())

    @property
    def problems(self) -> Mapping[int, Mapping[str, str]]:
        """The rows where volumes cannot be counted, with the uids of the pods that are to blame and the reasons."""
        return self._problems

    def volumes_of(self, pod: Pod, *, placed: bool, migrated: bool = True) -> Volumes:
        """The attachable volumes of a pod; raises UnusableVolumeError for the first that makes no sense.

        The missing claim of a pod that is `placed` is passed over. Without `migrated`, in-tree disks are too.
        """
        volumes: Volumes = {}
        for volume in pod.spec.volumes:
            name = claim_name(pod, volume)
            found = self._inline(volume, migrated) if name is None else self._claimed(pod, volume, name, placed)
            if found is not None:
                driver, handle = found
                volumes[f"{driver}/{handle}"] = driver
        return volumes

    def _inline(self, volume: Volume, migrated: bool) -> tuple[str, str] | None:
        plugin = in_tree_plugin(volume)
        if plugin is None or plugin.name not in MIGRATED or not migrated:
            return None
        try:
            return plugin.driver, inline_handle(volume)
        except TranslationError as error:
            raise UnusableVolumeError(f"converting volume({volume.name}) from inline to csi: {error}") from None

    def _claimed(self, pod: Pod, volume: Volume, name: str, placed: bool) -> tuple[str, str] | None:
        if not name:
            raise UnusableVolumeError("PersistentVolumeClaim had no name")
        claim = self._objects.claims.get(f"{pod.namespace}/{name}")
        if claim is None:
            if placed:
                return None
            missing = not_found("persistentvolumeclaim", name)
            raise UnusableVolumeError(f"looking up PVC {pod.namespace}/{name}: {missing}", claim_missing=True)
        if is_ephemeral(volume) and (objection := foreign_claim(pod, claim)):
            raise UnusableVolumeError(objection)
        return self._volume_of(claim)

    def _volume_of(self, claim: PersistentVolumeClaim) -> tuple[str, str] | None:
        """Driver and handle of the volume a claim leads to; None when no driver counts it."""
        volume = self._objects.volumes.get(claim.spec.volume_name) if claim.spec.volume_name else None
        found = self._to_be_made(claim) if volume is None else _source(volume)
        return found if found is not None and all(found) else None

    def _to_be_made(self, claim: PersistentVolumeClaim) -> tuple[str, str] | None:
        name = claim.storage_class_name
        storage_class = self._objects.storage_classes.get(name) if name else None
        if storage_class is None:
            return None
        driver = storage_class.provisioner
        if driver in DRIVERS:
            if driver not in MIGRATED:
                return None
            driver = DRIVERS[driver]
        return driver, f"{TO_BE_MADE}-{claim.key}"

    # Pods come and go

    def add_pod(self, pod: Pod, row: int) -> None:
        for key in claim_keys(pod):
            claim = self._claims.get(key)
            if claim is None:
                claim = self._claims[key] = _Claim()
                self._trace(key, claim)
            claim.users[row, pod.uid] = pod
        self._count_in(pod, row)

    def remove_pod(self, pod: Pod, row: int) -> None:
        self._count_out(pod, row)
        for key in claim_keys(pod):
            claim = self._claims.get(key)
            if claim is not None:
                claim.users.pop((row, pod.uid), None)
                if not claim.users:
                    self._untrace(key, claim)
                    del self._claims[key]

    def _count_in(self, pod: Pod, row: int) -> None:
        try:
            held = self._held[row, pod.uid] = self.volumes_of(pod, placed=True)
        except UnusableVolumeError as error:
            self._problems.setdefault(row, {})[pod.uid] = str(error)
            return
        for volume, driver in held.items():
            self._change(self._by_pods, volume, driver, row, 1)

    def _count_out(self, pod: Pod, row: int) -> None:
        held = self._held.pop((row, pod.uid), None)
        if held is None:
            del self._problems[row][pod.uid]
            if not self._problems[row]:
                del self._problems[row]
            return
        for volume, driver in held.items():
            self._change(self._by_pods, volume, driver, row, -1)

    def _change(self, holders: dict[str, dict[int, int]], volume: str, driver: str, row: int, sign: int) -> None:
        """One holder more or less; the node's count moves only with the first and the last."""
        before = self._is_attached(volume, row)
        rows = holders.setdefault(volume, {})
        rows[row] = rows.get(row, 0) + sign
        if not rows[row]:
            del rows[row]
        if not rows:
            del holders[volume]
        if before != self._is_attached(volume, row):
            self.count(driver)[row] += sign

    def _is_attached(self, volume: str, row: int) -> bool:
        return row in self._by_pods.get(volume, ()) or row in self._by_attachments.get(volume, ())

    # Claims lead elsewhere

    def _trace(self, key: str, claim: _Claim) -> None:
        found = self._objects.claims.get(key)
        if found is not None:
            claim.through = (("volume", found.spec.volume_name), ("class", found.storage_class_name))
            for step in claim.through:
                self._claims_through.setdefault(step, {})[key] = None

    def _untrace(self, key: str, claim: _Claim) -> None:
        for step in claim.through:
            keys = self._claims_through[step]
            del keys[key]
            if not keys:
                del self._claims_through[step]
        claim.through = ()

    def _follow_claim(
        self, key: str, before: PersistentVolumeClaim | None, after: PersistentVolumeClaim | None
    ) -> None:
        claim = self._claims.get(key)
        if claim is not None:
            self._untrace(key, claim)
            self._trace(key, claim)
            self._recount((key,))

    def _follow_class(self, name: str, before: StorageClass | None, after: StorageClass | None) -> None:
        self._recount(tuple(self._claims_through.get(("class", name), ())))

    def _follow_volume(self, name: str, before: PersistentVolume | None, after: PersistentVolume | None) -> None:
        self._recount(tuple(self._claims_through.get(("volume", name), ())))
        for key, attachment in self._attachments_of.get(name, {}).items():
            self._detach(key, attachment)
            self._attach(key, attachment)

    def _recount(self, claim_keys: Iterable[str]) -> None:
        for key in claim_keys:
            for (row, _uid), pod in self._claims[key].users.items():
                self._count_out(pod, row)
                self._count_in(pod, row)
                self._moved(row)

    # Attachments, and the nodes they name

    def add_row(self, row: int, name: str) -> None:
        self._row_of[name] = row
        for volume, driver in self._attachments_on.get(name, {}).values():
            self._change(self._by_attachments, volume, driver, row, 1)

    def remove_row(self, row: int, name: str) -> None:
        del self._row_of[name]
        for volume, driver in self._attachments_on.get(name, {}).values():
            self._change(self._by_attachments, volume, driver, row, -1)

    def _follow_attachment(self, key: str, before: VolumeAttachment | None, after: VolumeAttachment | None) -> None:
        if before is not None and (name := before.spec.source.persistent_volume_name) is not None:
            self._detach(key, before)
            del self._attachments_of[name][key]
            if not self._attachments_of[name]:
                del self._attachments_of[name]
        if after is not None and (name := after.spec.source.persistent_volume_name) is not None:
            self._attachments_of.setdefault(name, {})[key] = after
            self._attach(key, after)

    def _attach(self, key: str, attachment: VolumeAttachment) -> None:
        spec = attachment.spec
        volume = self._objects.volumes.get(spec.source.persistent_volume_name or "")
        if not spec.attacher or volume is None or volume.spec.csi is None:
            return
        attached = f"{spec.attacher}/{volume.spec.csi.volume_handle}"
        self._attachments_on.setdefault(spec.node_name, {})[key] = (attached, spec.attacher)
        row = self._row_of.get(spec.node_name)
        if row is not None:
            self._change(self._by_attachments, attached, spec.attacher, row, 1)
            self._moved(row)

    def _detach(self, key: str, attachment: VolumeAttachment) -> None:
        node_name = attachment.spec.node_name
        on_node = self._attachments_on.get(node_name, {})
        found = on_node.pop(key, None)
        if found is None:
            return
        if not on_node:
            del self._attachments_on[node_name]
        row = self._row_of.get(node_name)
        if row is not None:
            self._change(self._by_attachments, found[0], found[1], row, -1)
            self._moved(row)


def may_attach(volume: Volume) -> bool:
    """Whether a pod's volume is of a kind that can end up attached to the node."""
    return (
        volume.persistent_volume_claim is not None or volume.ephemeral is not None or in_tree_plugin(volume) is not None
    )


def claim_keys(pod: Pod) -> list[str]:
    """The claims a pod uses ("namespace/name"), each once."""
    names = (claim_name(pod, volume) for volume in pod.spec.volumes)
    return [f"{pod.namespace}/{name}" for name in dict.fromkeys(names) if name]


def _source(volume: PersistentVolume) -> tuple[str, str] | None:
    """Driver and handle of a persistent volume; None when no driver serves it."""
    source = volume.spec.csi
    if source is not None:
        return source.driver, source.volume_handle
    plugin = in_tree_plugin(volume.spec)
    if plugin is None or plugin.name not in MIGRATED:
        return None
    try:
        return csi_source(volume)
    except TranslationError:
        return None


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
