"""Filters nodes by how many volumes a driver may attach there (NodeVolumeLimits), in columns and for one node.

The limits stand in the node's CSINode object. For each driver that the pod brings new volumes of:

    attached + new > limit  →  refused

`attached` are the distinct volumes of the pods on the node and of its VolumeAttachments (see `cluster.attached`);
`new` are the pod's volumes that no pod on the node uses yet. In-tree disks count as those of the driver that took them
over, wherever the node has a CSINode object at all.

Surprise: a volume that is attached to the node but used by no pod there counts twice.

Pods that bring as many new volumes of each driver get the same answers, whichever volumes they are, except where other
pods share them.

From 1.37 on, `preventPodSchedulingIfMissing` of a CSIDriver keeps pods with its volumes from nodes without the driver.

Also decides which events may let a pod through that brought too many volumes: higher limits, volumes that go, claims.

Volumes of pods that wait for a node they are nominated to count, too (`PromisedVolumes`): filters are tried on that
node as if these pods stood there, so a volume of theirs is in use there already. Worked out per node, and again when
its nominations change, or a claim or volume that was looked at on the way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Hashable, Iterable
from contextlib import suppress
from typing import Any

import numpy as np

from podium.cluster import Cluster, NodeInfo, Nodes
from podium.cluster.attached import UnusableVolumeError, Volumes, claim_keys, may_attach
from podium.cluster.facts import CLAIM_CONCERNS
from podium.cluster.objects import Latest
from podium.framework import (
    SKIP,
    Action,
    Code,
    Cycle,
    DependsOn,
    Handle,
    Interest,
    NodePart,
    Plugin,
    Resource,
    Status,
    Verdict,
)
from podium.framework.diagnosis import Codes
from podium.kube import CSINode, PersistentVolumeClaim, Pod, VolumeAttachment
from podium.kube.claims import claim_name
from podium.kube.csi_translation import MIGRATED, TranslationError, in_tree_plugin, inline_handle
from podium.kube.versions import Gate

NAME = "NodeVolumeLimits"
UNLIMITED = "no node has a limit"
NOT_INSTALLED = "CSI driver is not installed on the node"
TOO_MANY = Status.unschedulable("node(s) exceed max volume count")
Key = tuple[str, str]
"""A claim or a volume: which of the two, and its key."""


class NodeVolumeLimits(Plugin):
    name = NAME
    trusted = True
    depends_on = DependsOn(node=NodePart.PODS, claims=False)

    def __init__(self, args: None, handle: Handle) -> None:
        super().__init__(args, handle)
        cluster, objects = handle.cluster, handle.cluster.objects
        self._volumes = Latest(
            lambda pod: _volumes(cluster, pod), objects.claims, objects.volumes, objects.storage_classes
        )
        self._promised = PromisedVolumes(handle)
        self._drivers = objects.csi_drivers
        self._asks_for_drivers = Gate.VOLUME_LIMIT_SCALING in handle.gates

    def interests(self) -> Iterable[Interest]:
        return [
            Interest(Resource.CSI_NODE, Action.ADD),
            Interest(Resource.CSI_NODE, Action.UPDATE, raises_a_limit, by_signature=True),
            Interest(Resource.POD, Action.DELETE, frees_a_volume, by_signature=True),
            Interest(Resource.PVC, Action.ADD, is_the_pods_claim, concerns=CLAIM_CONCERNS),
            Interest(Resource.VOLUME_ATTACHMENT, Action.DELETE, frees_an_attachment, by_signature=True),
        ]

    def answer_key(self, pod: Pod) -> Hashable:
        """How many volumes of which driver, and those among them that other pods may share."""
        if not any(map(may_attach, pod.spec.volumes)):
            return ()
        volumes = self._volumes.of(pod)
        if isinstance(volumes, Status):
            return None
        drivers = self._drivers.version if self._asks_for_drivers else 0
        if not self.handle.cluster.csi_nodes.has_limits:
            return (UNLIMITED, tuple(dict.fromkeys(volumes.values())), drivers) if drivers else UNLIMITED
        attached, promised = self.handle.cluster.attached, self._promised.refreshed()
        shared = [volume for volume in volumes if attached.rows_with(volume) or volume in promised]
        return tuple(volumes.values()), tuple(shared), drivers

    def pre_filter(self, cycle: Cycle) -> Status | None:
        """Where no node has a limit, only a volume that makes no sense or a driver that is missing can refuse a pod."""
        if not cycle.facts.may_attach:
            return SKIP
        volumes = self._volumes.of(cycle.pod)
        unlimited = not cycle.cluster.csi_nodes.has_limits and not isinstance(volumes, Status)
        return SKIP if unlimited and not self._required(volumes) else None

    def _required(self, volumes: Volumes | Status) -> list[str]:
        """The drivers of these volumes that a node must have installed."""
        if not self._asks_for_drivers or isinstance(volumes, Status):
            return []
        named = [(name, self._drivers.get(name)) for name in dict.fromkeys(volumes.values())]
        return [name for name, driver in named if driver and driver.spec.prevent_pod_scheduling_if_missing]

    def filter(self, cycle: Cycle, nodes: Nodes) -> Verdict | None:
        cluster, pod = cycle.cluster, cycle.pod
        codes: Codes = np.zeros(len(nodes), dtype=np.int64)
        statuses = [TOO_MANY]
        volumes = self._volumes.of(pod)
        if isinstance(volumes, Status):
            with_csi = nodes.pick(cluster.csi_nodes.present)
            statuses.append(volumes)
            codes[with_csi] = len(statuses)
            without_in_tree = _volumes(cluster, pod, migrated=False)
            if isinstance(without_in_tree, Status):
                statuses.append(without_in_tree)
                codes[~with_csi] = len(statuses)
        elif volumes:
            _judge(volumes, nodes, codes, statuses)
            for driver in self._required(volumes):
                missing = ~cluster.csi_nodes.installed(driver, nodes.chosen)
                if driver not in self._required(_volumes(cluster, pod, migrated=False)):
                    missing &= nodes.pick(cluster.csi_nodes.present)
                if missing.any():
                    statuses.append(Status.unschedulable(f"{driver} {NOT_INSTALLED}"))
                    codes[missing] = len(statuses)
        fails = any(status.code == Code.ERROR for status in statuses)
        return Verdict(codes, lambda code: statuses[code - 1], fails=fails) if codes.any() else None

    def filter_node(self, cycle: Cycle, node: NodeInfo) -> Status | None:
        """The same in plain integers, where all volumes can be counted."""
        cluster, row = cycle.cluster, node.row
        attached, volumes = cluster.attached, self._volumes.of(cycle.pod)
        if isinstance(volumes, Status) or row in attached.problems or self._required(volumes):
            verdict = self.filter(cycle, Nodes(cluster, np.array([row])))
            code = 0 if verdict is None else int(verdict.codes[0])
            return None if verdict is None or not code else verdict.status_of(code)
        new = Counter(driver for volume, driver in volumes.items() if row not in attached.rows_with(volume))
        for driver, number in new.items():
            limits = cluster.csi_nodes.limits(driver)
            if limits is not None and attached.count(driver)[row] + number > limits[row]:
                return TOO_MANY
        return None


def _volumes(cluster: Cluster, pod: Pod, *, migrated: bool = True) -> Volumes | Status:
    """The pod's volumes, or what is wrong with them; on nodes without a CSINode in-tree disks do not count."""
    try:
        return cluster.attached.volumes_of(pod, placed=False, migrated=migrated)
    except UnusableVolumeError as error:
        return Status.unresolvable(str(error)) if error.claim_missing else Status.error(str(error))


def _judge(volumes: Volumes, nodes: Nodes, codes: Codes, statuses: list[Status]) -> None:
    """Refuse the nodes with a limit where a driver would have to attach too many, or where they cannot be counted."""
    cluster = nodes.cluster
    for driver, number in Counter(volumes.values()).items():
        limits = cluster.csi_nodes.limits(driver)
        if limits is None:
            continue
        limit, attached = nodes.pick(limits), nodes.pick(cluster.attached.count(driver))
        new = np.full(cluster.columns.rows, number)
        for volume, owner in volumes.items():
            if owner == driver:
                new[list(cluster.attached.rows_with(volume))] -= 1
        added = nodes.pick(new)
        codes[(added > 0) & (attached + added > limit)] = 1
    for row, problems in cluster.attached.problems.items():
        here = nodes.rows == row
        if cluster.csi_nodes.limited[row] and here.any():
            first = next(uid for uid in cluster.pods_on[row] if uid in problems)
            statuses.append(Status.error(problems[first]))
            codes[here] = len(statuses)


def raises_a_limit(_pod: Pod, before: CSINode, after: CSINode) -> bool:
    old = _limits_of(before)
    return any(limit > old.get(driver, 0) for driver, limit in _limits_of(after).items())


def _limits_of(node: CSINode) -> dict[str, int]:
    return {
        driver.name: 0 if driver.allocatable is None else driver.allocatable.count or 0 for driver in node.spec.drivers
    }


def frees_a_volume(_pod: Pod, before: Pod, _after: Any) -> bool:
    stood_somewhere = before.node_name or before.status.nominated_node_name
    return bool(stood_somewhere) and any(map(may_attach, before.spec.volumes))


def is_the_pods_claim(pod: Pod, _before: Any, after: PersistentVolumeClaim) -> bool:
    return after.namespace == pod.namespace and any(
        claim_name(pod, volume) == after.name for volume in pod.spec.volumes
    )


def frees_an_attachment(pod: Pod, before: VolumeAttachment, _after: Any) -> bool:
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            return True
        plugin = in_tree_plugin(volume)
        if plugin is None:
            continue
        if plugin.driver == before.spec.attacher:
            return True
        try:
            if plugin.name in MIGRATED:
                inline_handle(volume)
        except TranslationError:
            return True  # it is not known which driver would serve the disk
    return False


class PromisedVolumes:
    def __init__(self, handle: Handle) -> None:
        self._nominator = handle.nominator
        self._cluster = handle.cluster
        self._cursor = handle.nominator.changes.cursor()
        self._uses: Counter[str] = Counter()
        self._volumes_on: dict[str, list[str]] = {}
        self._seen_on: dict[str, list[Key]] = {}
        self._nodes_by: dict[Key, dict[str, None]] = {}
        self._stale: dict[str, None] = {}
        objects = handle.cluster.objects
        objects.claims.follow(lambda key, _before, _after: self._note(("claim", key)))
        objects.volumes.follow(lambda key, _before, _after: self._note(("volume", key)))
        objects.storage_classes.follow(lambda _key, _before, _after: self._stale.update(dict.fromkeys(self._seen_on)))

    def refreshed(self) -> Container[str]:
        moved = self._cursor.read()
        if moved is None:
            moved = [*self._seen_on, *self._nominator.nodes()]
        if moved or self._stale:
            for name in dict.fromkeys((*moved, *self._stale)):
                self._forget(name)
                self._look_at(name)
            self._stale.clear()
        return self._uses

    def _note(self, key: Key) -> None:
        nodes = self._nodes_by.get(key)
        if nodes is not None:
            self._stale.update(nodes)

    def _forget(self, name: str) -> None:
        for volume in self._volumes_on.pop(name, ()):
            self._uses[volume] -= 1
            if not self._uses[volume]:
                del self._uses[volume]
        for key in self._seen_on.pop(name, ()):
            del self._nodes_by[key][name]
            if not self._nodes_by[key]:
                del self._nodes_by[key]

    def _look_at(self, name: str) -> None:
        volumes: list[str] = []
        seen: dict[Key, None] = {}
        for pod in self._nominator.on(name):
            with suppress(UnusableVolumeError):
                volumes += self._cluster.attached.volumes_of(pod, placed=True)
            for claim_key in claim_keys(pod):
                seen["claim", claim_key] = None
                claim = self._cluster.objects.claims.get(claim_key)
                if claim is not None:
                    seen["volume", claim.spec.volume_name] = None
        if seen or volumes:
            self._volumes_on[name], self._seen_on[name] = volumes, list(seen)
            self._uses.update(volumes)
            for key in seen:
                self._nodes_by.setdefault(key, {})[name] = None
