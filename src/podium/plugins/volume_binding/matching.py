"""Finds free volumes that satisfy a claim.

The volume must have the claim's class, at least its size, its volume mode and attributes class, all its access modes,
and labels that its selector matches. A volume that names the claim as its own goes before all others, and needs none
of class-mates' state, labels and access modes; if the node cannot reach it, no other volume will do there. Otherwise
the smallest suitable volume wins; which of several equal ones is not defined.

All of a pod's claims are matched together, smallest first, and no volume is given twice. Volumes of one group are
interchangeable for these claims, so for all nodes at once it is enough to count how many of a group are left.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kubecel.quantity import parse
from podium.cluster import Cluster, Mask, Nodes
from podium.cluster.free_volumes import Make, make_of
from podium.cluster.topology_index import ReachIndex, matches, matching_rows, where_reachable
from podium.framework import PluginError
from podium.kube import PersistentVolume, PersistentVolumeClaim
from podium.kube.selector import Selector, SelectorError, compile_label_selector

FILESYSTEM = "Filesystem"


class MatchableClaim(NamedTuple):
    """One claim to be matched: what it asks for, and the volumes that are reserved for it."""

    claim: PersistentVolumeClaim
    size: int
    selector: Selector | None
    reserved: list[PersistentVolume]

    def suits(self, group: VolumeGroup) -> bool:
        modes = self.claim.spec.access_modes
        return (
            _fits(self.claim, self.size, group.make)
            and group.make.access_modes.issuperset(modes)
            and (self.selector is None or self.selector in group.selected_by)
        )


class VolumeGroup(NamedTuple):
    """Free volumes that no claim can tell apart: of one make, matched by the same selectors."""

    make: Make
    selected_by: frozenset[Selector]
    volumes: ReachIndex[PersistentVolume]


def matchable_claims(claims: Sequence[PersistentVolumeClaim], cluster: Cluster) -> list[MatchableClaim]:
    """The claims in the order in which they are served; raises PluginError for a selector that cannot be read."""
    found: list[MatchableClaim] = []
    for claim in sorted(claims, key=requested_size):
        size = requested_size(claim)
        found.append(MatchableClaim(claim, size, _selector(claim), _reserved(claim, size, cluster)))
    return found


def requested_size(claim: PersistentVolumeClaim) -> int:
    """The requested size in nano bytes."""
    return parse(claim.spec.resources.requests.get("storage", 0))


def unsatisfied(claims: list[MatchableClaim], nodes: Nodes) -> list[Mask]:
    """For each claim the nodes on which no volume is left for it."""
    shelf = _Shelf(claims, nodes.cluster)
    stock = _Stock(nodes)
    return [_unsatisfied(wanted, shelf, stock, nodes) for wanted in claims]


def pick(claims: list[MatchableClaim], cluster: Cluster, row: int) -> list[PersistentVolume | None]:
    """For each claim the volume it gets on one node, None where it gets none."""
    node = cluster.nodes[row]
    assert node is not None, "volumes are picked for nodes that exist"
    return VolumePicker(claims, cluster).at(node.labels)


class VolumePicker:
    """Picks volumes for some claims, on one node after another."""

    def __init__(self, claims: list[MatchableClaim], cluster: Cluster) -> None:
        self._claims = claims
        self._shelf = _Shelf(claims, cluster)

    @property
    def finds_some(self) -> bool:
        """Whether there is a volume for any of the claims on any node."""
        return any(wanted.reserved or self._shelf.groups(wanted) for wanted in self._claims)

    def at(self, labels: dict[str, str]) -> list[PersistentVolume | None]:
        """For each claim the volume it gets on a node with these labels, None where it gets none."""
        picked: dict[str, PersistentVolume] = {}
        answer: list[PersistentVolume | None] = []
        for wanted in self._claims:
            found = _candidates(wanted, self._shelf, labels)
            volume = next((each for each in found if each is None or each.name not in picked), None)
            if volume is not None:
                picked[volume.name] = volume
            answer.append(volume)
        return answer


def bound_to(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether the volume names the claim, and not a former one of the same name."""
    reference = volume.spec.claim_ref
    return (
        reference is not None
        and (reference.namespace, reference.name) == (claim.namespace, claim.name)
        and reference.uid in ("", claim.uid)
    )


def _candidates(wanted: MatchableClaim, shelf: _Shelf, labels: dict[str, str]) -> Iterator[PersistentVolume | None]:
    """The volumes for a claim on a node, best first; None ends the search."""
    for volume in wanted.reserved:
        yield volume if matches(where_reachable(volume.spec.node_affinity), labels) else None
    for group in shelf.groups(wanted):
        yield from group.volumes.at(labels)


def _unsatisfied(wanted: MatchableClaim, shelf: _Shelf, stock: _Stock, nodes: Nodes) -> Mask:
    searching: Mask = np.ones(len(nodes), dtype=np.bool_)
    empty_handed: Mask = np.zeros(len(nodes), dtype=np.bool_)
    for volume in wanted.reserved:
        reachable = matching_rows(where_reachable(volume.spec.node_affinity), nodes.cluster.labels, nodes.chosen)
        here = searching & stock.untouched(volume)
        stock.take(volume, here & reachable)
        empty_handed |= here & ~reachable
        searching &= ~here
    for group in shelf.groups(wanted):
        if not searching.any():
            break
        here = searching & (stock.left(group) > 0)
        stock.left(group)[here] -= 1
        searching &= ~here
    return empty_handed | searching


class _Shelf:
    """The groups of free volumes, split as finely as the claims' selectors demand."""

    def __init__(self, claims: list[MatchableClaim], cluster: Cluster) -> None:
        self._claims = claims
        self._cluster = cluster
        self._by_class: dict[str, list[VolumeGroup]] = {}

    def groups(self, wanted: MatchableClaim) -> list[VolumeGroup]:
        """The groups that suit a claim, smallest volumes first."""
        name = wanted.claim.storage_class_name
        groups = self._by_class.get(name)
        if groups is None:
            groups = self._by_class[name] = sorted(self._all_groups(name), key=lambda group: group.make.size)
        return [group for group in groups if wanted.suits(group)]

    def _all_groups(self, storage_class: str) -> list[VolumeGroup]:
        makes = self._cluster.free_volumes.of_class(storage_class)
        selectors = {
            wanted.selector
            for wanted in self._claims
            if wanted.selector is not None and wanted.claim.storage_class_name == storage_class
        }
        if not selectors:
            return [VolumeGroup(make, frozenset(), volumes) for make, volumes in makes.items()]
        split: dict[tuple[Make, frozenset[Selector]], ReachIndex[PersistentVolume]] = {}
        for make, volumes in makes.items():
            for volume in volumes:
                selected_by = frozenset(each for each in selectors if each.matches(volume.labels))
                part = split.setdefault((make, selected_by), ReachIndex())
                part.add(volume.name, where_reachable(volume.spec.node_affinity), volume)
        return [VolumeGroup(make, selected_by, volumes) for (make, selected_by), volumes in split.items()]


class _Stock:
    """What earlier claims have left, per node."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._left: dict[int, NDArray[np.int64]] = {}
        self._taken: dict[str, Mask] = {}

    def left(self, group: VolumeGroup) -> NDArray[np.int64]:
        """int64[nodes]: how many volumes of the group each node can still have."""
        counts = self._left.get(id(group.volumes))
        if counts is None:
            counts = group.volumes.count(self._nodes.cluster.labels, self._nodes.chosen)
            self._left[id(group.volumes)] = counts
        return counts

    def untouched(self, volume: PersistentVolume) -> Mask:
        taken = self._taken.get(volume.name)
        return np.ones(len(self._nodes), dtype=np.bool_) if taken is None else ~taken

    def take(self, volume: PersistentVolume, where: Mask) -> None:
        taken = self._taken.get(volume.name)
        self._taken[volume.name] = where if taken is None else taken | where


def _selector(claim: PersistentVolumeClaim) -> Selector | None:
    if claim.spec.selector is None:
        return None
    try:
        return compile_label_selector(claim.spec.selector)
    except SelectorError as error:
        raise PluginError(f"error creating internal label selector for claim: {claim.key}: {error}") from None


def _reserved(claim: PersistentVolumeClaim, size: int, cluster: Cluster) -> list[PersistentVolume]:
    """The volumes of the claim's class that name the claim and could serve it."""
    return [
        volume
        for volume in cluster.free_volumes.claimed_for(claim.key)
        if volume.storage_class_name == claim.storage_class_name
        and bound_to(volume, claim)
        and _fits(claim, size, make_of(volume))
        and not volume.terminating
    ]


def _fits(claim: PersistentVolumeClaim, size: int, make: Make) -> bool:
    spec = claim.spec
    return (
        make.size >= size
        and make.mode == (spec.volume_mode or FILESYSTEM)
        and make.attributes_class == (spec.volume_attributes_class_name or "")
    )
