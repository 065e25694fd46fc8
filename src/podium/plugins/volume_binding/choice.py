"""Chooses the volumes a pod gets on its node, and holds them in memory until the API server has them.

A free volume is made to name the claim; a claim whose volume must be made names the node. Both are assumed, so that
the next pod sees them taken. An assumption is taken back only while the object is still the version it was made from:
once a newer one is known, that one counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from podium.cluster import Cluster
from podium.kube import ObjectReference, PersistentVolume, PersistentVolumeClaim
from podium.kube.claims import BOUND_BY_CONTROLLER, SELECTED_NODE
from podium.plugins.volume_binding.matching import bound_to, matchable_claims, pick


class VolumeChoice(NamedTuple):
    """A volume that names a claim; `changed`: it did not, or not fully, before."""

    volume: PersistentVolume
    claim: PersistentVolumeClaim
    changed: bool


class Choice(NamedTuple):
    """Volumes made to name their claims, and claims that wait for a volume on the node."""

    bindings: list[VolumeChoice]
    provisions: list[PersistentVolumeClaim]


def choose(delayed: Sequence[PersistentVolumeClaim], cluster: Cluster, node_name: str) -> Choice:
    """What the filter found possible on the node, in detail; nothing is changed yet."""
    placed = [claim for claim in delayed if SELECTED_NODE in claim.annotations]
    claims = matchable_claims([claim for claim in delayed if SELECTED_NODE not in claim.annotations], cluster)
    volumes = pick(claims, cluster, cluster.row_of[node_name])
    bindings: list[VolumeChoice] = []
    provisions = [_with_node(claim, node_name) for claim in placed]
    for each, volume in zip(claims, volumes, strict=True):
        if volume is None:
            provisions.append(_with_node(each.claim, node_name))
        else:
            given = _given(volume, each.claim)
            bindings.append(VolumeChoice(given, each.claim, given is not volume))
    return Choice(bindings, provisions)


def assume(choice: Choice, cluster: Cluster) -> None:
    for binding in choice.bindings:
        if binding.changed:
            cluster.objects.volumes.assume(binding.volume.key, binding.volume)
    for claim in choice.provisions:
        cluster.objects.claims.assume(claim.key, claim)


def take_back(choice: Choice, cluster: Cluster) -> None:
    """Undo `assume`; doing it twice does no harm."""
    objects = cluster.objects
    for binding in choice.bindings:
        key = binding.volume.key
        current_volume = objects.volumes.get(key)
        if current_volume is not None and _same_version(current_volume, binding.volume):
            objects.volumes.restore(key)
    for claim in choice.provisions:
        current_claim = objects.claims.get(claim.key)
        if current_claim is not None and _same_version(current_claim, claim):
            objects.claims.restore(claim.key)


def _given(volume: PersistentVolume, claim: PersistentVolumeClaim) -> PersistentVolume:
    """The volume with a reference to the claim, marked as bound by us unless it named the claim before."""
    given = volume
    reference = volume.spec.claim_ref
    if reference is None or reference.uid != claim.uid or not bound_to(volume, claim):
        named = ObjectReference(
            kind="PersistentVolumeClaim",
            api_version="v1",
            namespace=claim.namespace,
            name=claim.name,
            uid=claim.uid,
            resource_version=claim.metadata.resource_version,
        )
        given = replace(volume, spec=replace(volume.spec, claim_ref=named))
    if not bound_to(volume, claim) and BOUND_BY_CONTROLLER not in volume.annotations:
        annotations = {**volume.annotations, BOUND_BY_CONTROLLER: "yes"}
        given = replace(given, metadata=replace(given.metadata, annotations=annotations))
    return given


def _with_node(claim: PersistentVolumeClaim, node_name: str) -> PersistentVolumeClaim:
    annotations = {**claim.annotations, SELECTED_NODE: node_name}
    return replace(claim, metadata=replace(claim.metadata, annotations=annotations))


def _same_version(
    one: PersistentVolume | PersistentVolumeClaim, other: PersistentVolume | PersistentVolumeClaim
) -> bool:
    return one.metadata.resource_version == other.metadata.resource_version
