"""Decides which nodes a pod's volumes leave open, and why the others are closed; all nodes at once.

First the bound claims, in order: the first whose volume is missing or out of the node's reach gives the reason. Then,
independently, the delayed claims. A claim that was already given a node waits for that node. The others get free
volumes where there are some; what remains must be made, where the first claim that cannot gives the reason. So a node
may be closed for several reasons, which are listed in a fixed order.

Also finds from where a bound volume can be used.

The volume's node affinity says so. On nodes where its in-tree plugin has moved to a CSI driver, the volume is judged as
that driver's: its zones then stand under the driver's own label. Volumes of equal reach are the same to every node.

Also decides whether a new volume could be made for a claim.

The claim's class must have a provisioner, and allow the node's topology. If the provisioner is a CSI driver that
reports its storage capacity, some pool of the class within the node's reach must be large enough for the claim; claims
are looked at one by one, so several of them may count on the same space.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kubecel.quantity import units
from podium.cluster import Cluster, Mask, Nodes
from podium.cluster.topology_index import ANYWHERE, Where, matching_rows, where_reachable, where_selected
from podium.framework import PluginError, Status, Verdict
from podium.framework.diagnosis import Codes
from podium.kube import (
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from podium.kube.claims import SELECTED_NODE
from podium.kube.csi_translation import MIGRATED, TranslationError, csi_affinity, in_tree_plugin
from podium.plugins.volume_binding.matching import matchable_claims, unsatisfied

OUT_OF_REACH, NO_VOLUME, NO_SPACE, VOLUME_MISSING = 1, 2, 4, 8
REASONS = {
    OUT_OF_REACH: "node(s) didn't match PersistentVolume's node affinity",
    NO_VOLUME: "node(s) didn't find available persistent volumes to bind",
    NO_SPACE: "node(s) did not have enough free storage",
    VOLUME_MISSING: "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
}
FIRST_FAILURE = 16


def leaves_all_open(bound: Sequence[Reach | None], delayed: Sequence[PersistentVolumeClaim]) -> bool:
    """Whether no node can be closed, whatever it is."""
    return not delayed and all(reach is not None and reach.everywhere for reach in bound)


def judge(bound: Sequence[Reach | None], delayed: Sequence[PersistentVolumeClaim], nodes: Nodes) -> Verdict | None:
    """What stands against each node; None when nothing does anywhere. `bound`: None for a volume that is missing."""
    if leaves_all_open(bound, delayed):
        return None
    search = _Search(nodes)
    search.bound(bound)
    if delayed:
        search.delayed(delayed)
    return Verdict(search.codes, search.status, fails=search.fails) if search.codes.any() else None


class _Search:
    """`codes`: a sum of reasons per node, or the number of a failure."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._failures: list[str] = []
        self.codes: Codes = np.zeros(len(nodes), dtype=np.int64)

    @property
    def fails(self) -> bool:
        return bool(self._failures)

    def status(self, code: int) -> Status:
        if code >= FIRST_FAILURE:
            return Status.error(self._failures[code - FIRST_FAILURE])
        return Status.unresolvable(*(reason for bit, reason in REASONS.items() if code & bit))

    def bound(self, reaches: Sequence[Reach | None]) -> None:
        fine: Mask = np.ones(len(self._nodes), dtype=np.bool_)
        for reach in reaches:
            if reach is None:
                self.codes[fine] |= VOLUME_MISSING
                return
            reached = self._reached(reach, fine)
            if reached is not None:
                self.codes[fine & ~reached & (self.codes < FIRST_FAILURE)] |= OUT_OF_REACH
                fine &= reached

    def _reached(self, reach: Reach, wanted: Mask) -> Mask | None:
        """The nodes that can use a bound volume, None for all; one that cannot be translated fails those that ask."""
        plain = self._within(reach.plain)
        if not reach.plugin:
            return plain
        moved: Mask = self._nodes.cluster.csi_nodes.migrated.ask(
            lambda plugins: reach.plugin in plugins, np.bool_, self._nodes.chosen
        )
        if not moved.any():
            return plain
        if reach.problem:
            self._fail(wanted & moved, f"could not translate pv: {reach.problem}")
            return ~moved if plain is None else plain & ~moved
        translated = self._within(reach.moved)
        if plain is None and translated is None:
            return None
        everywhere = np.ones(len(self._nodes), dtype=np.bool_)
        there = everywhere if translated is None else translated
        return np.where(moved, there, everywhere if plain is None else plain)

    def _within(self, where: Where) -> Mask | None:
        if where == ANYWHERE:
            return None
        return matching_rows(where, self._nodes.cluster.labels, self._nodes.chosen)

    def delayed(self, claims: Sequence[PersistentVolumeClaim]) -> None:
        searching: Mask = self.codes < FIRST_FAILURE
        placed = [claim for claim in claims if SELECTED_NODE in claim.annotations]
        for claim in placed:
            away = searching & ~self._is_node(claim.annotations[SELECTED_NODE])
            self.codes[away] |= NO_VOLUME
            searching &= ~away
        try:
            wanted = matchable_claims(
                [claim for claim in claims if SELECTED_NODE not in claim.annotations], self._nodes.cluster
            )
        except PluginError as error:
            self._fail(searching, str(error))
            return
        if not searching.any():
            return
        for claim in placed:
            searching = self._make(claim, searching, searching)
        for each, lacking in zip(wanted, unsatisfied(wanted, self._nodes), strict=True):
            searching = self._make(each.claim, searching, searching & lacking)

    def _make(self, claim: PersistentVolumeClaim, searching: Mask, wanted: Mask) -> Mask:
        """Close the nodes where a volume is wanted for the claim but none can be made; returns which stay open."""
        if not wanted.any():
            return searching
        name = claim.storage_class_name
        storage_class = self._nodes.cluster.objects.storage_classes.get(name)
        if storage_class is None:
            self._fail(wanted, f'failed to find storage class "{name}"')
            return searching & ~wanted
        impossible = wanted & ~can_be_made(storage_class, self._nodes)
        self.codes[impossible] |= NO_VOLUME
        cramped = wanted & ~impossible
        cramped &= ~has_room(claim, storage_class, self._nodes)
        self.codes[cramped] |= NO_SPACE
        return searching & ~impossible & ~cramped

    def _is_node(self, name: str) -> Mask:
        here: Mask = self._nodes.rows == self._nodes.cluster.row_of.get(name, -1)
        return here

    def _fail(self, where: Mask, message: str) -> None:
        self.codes[where] = FIRST_FAILURE + len(self._failures)
        self._failures.append(message)


class Reach(NamedTuple):
    plain: Where
    plugin: str = ""
    """The in-tree plugin of a volume that can be translated."""
    moved: Where = ANYWHERE
    """What counts instead of `plain` where the plugin has moved."""
    problem: str = ""
    """Why the volume cannot be translated after all."""

    @property
    def everywhere(self) -> bool:
        """Whether the volume can be used from any node."""
        return self.plain == ANYWHERE and self.moved == ANYWHERE and not self.problem


def reach_of(volume: PersistentVolume) -> Reach:
    plain = where_reachable(volume.spec.node_affinity)
    plugin = in_tree_plugin(volume.spec)
    if plugin is None or plugin.name not in MIGRATED:
        return Reach(plain)
    try:
        return Reach(plain, plugin.name, where_reachable(csi_affinity(volume)))
    except TranslationError as error:
        return Reach(plain, plugin.name, problem=str(error))


NO_PROVISIONER = "kubernetes.io/no-provisioner"


def can_be_made(storage_class: StorageClass, nodes: Nodes) -> Mask:
    """The nodes for which the class makes volumes."""
    if storage_class.provisioner in ("", NO_PROVISIONER):
        return np.zeros(len(nodes), dtype=np.bool_)
    return matching_rows(_allowed(storage_class), nodes.cluster.labels, nodes.chosen)


def has_room(claim: PersistentVolumeClaim, storage_class: StorageClass, nodes: Nodes) -> Mask:
    """The nodes within reach of enough storage for the claim."""
    cluster = nodes.cluster
    request = claim.spec.resources.requests.get("storage")
    if request is None or not reports_capacity(storage_class.provisioner, cluster):
        return np.ones(len(nodes), dtype=np.bool_)
    size = units(request)
    pools = cluster.storage_pools.of_class(storage_class.name)
    enough: Mask = pools.count(cluster.labels, nodes.chosen, lambda pool: pool.limit >= size) > 0
    return enough


def _allowed(storage_class: StorageClass) -> Where:
    """Where the class may make volumes: in one of its topologies, or anywhere when it names none."""
    topologies = storage_class.allowed_topologies
    if not topologies:
        return ANYWHERE
    terms = tuple(
        NodeSelectorTerm(
            match_expressions=tuple(
                NodeSelectorRequirement(key=each.key, operator="In", values=each.values)
                for each in topology.match_label_expressions
            )
        )
        for topology in topologies
    )
    return where_selected(NodeSelector(node_selector_terms=terms))


def reports_capacity(provisioner: str, cluster: Cluster) -> bool:
    driver = cluster.objects.csi_drivers.get(provisioner)
    return driver is not None and bool(driver.spec.storage_capacity)
