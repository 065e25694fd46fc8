"""Chooses the volumes a pod gets on its node, and holds them in memory until the API server has them.

A free volume is made to name the claim; a claim whose volume must be made names the node. Both are assumed, so that
the next pod sees them taken. An assumption is taken back only while the object is still the version it was made from:
once a newer one is known, that one counts.

Also finds whether the volumes that were written have become bound, are under way, or have gone wrong.

What counts is what the API server says, not what is assumed: an object that is still our own assumption has not come
back yet. Binding has gone wrong when the pod, the node or one of the objects is gone, when a volume turns out to be out
of the node's reach, or when the volume controller or the provisioner took a choice back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from podium.cluster import Cluster
from podium.cluster.csi_nodes import migrated_plugins
from podium.cluster.topology_index import matches, where_reachable
from podium.kube import Node, ObjectReference, PersistentVolume, PersistentVolumeClaim, Pod
from podium.kube.claims import BOUND_BY_CONTROLLER, SELECTED_NODE, fully_bound, not_found
from podium.kube.csi_translation import MIGRATED, TranslationError, csi_affinity, in_tree_plugin
from podium.kube.selector import compile_node_selector
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


class BindingFailedError(Exception):
    """The volumes will not become bound this way: the pod must be scheduled again."""


def all_bound(choice: Choice, cluster: Cluster, pod: Pod, node_name: str) -> bool:
    """Whether everything chosen is bound; raises BindingFailedError when waiting longer is of no use."""
    row = cluster.row_of.get(node_name)
    node = None if row is None else cluster.nodes[row]
    if node is None:
        raise BindingFailedError(f'failed to get node "{node_name}": {not_found("node", node_name)}')
    if pod.uid not in cluster.pods:
        raise BindingFailedError(f"pod does not exist any more: {not_found('pod', pod.name)}")
    return all(_is_bound(binding, cluster, node) for binding in choice.bindings) and all(
        _is_provisioned(claim, cluster, node) for claim in choice.provisions
    )


def _is_bound(binding: VolumeChoice, cluster: Cluster, node: Node) -> bool:
    volume = cluster.objects.volumes.get(binding.volume.key)
    if volume is None:
        raise BindingFailedError(f"failed to check binding: {not_found('persistentvolumes', binding.volume.key)}")
    claim = cluster.objects.claims.get(binding.claim.key)
    if claim is None:
        raise BindingFailedError(f"failed to check binding: {not_found('persistentvolumeclaims', binding.claim.key)}")
    if binding.changed and volume is binding.volume:
        return False
    try:
        _check_reach(volume, cluster, node)
    except TranslationError as error:
        raise BindingFailedError(f"failed to translate pv to csi: could not translate pv: {error}") from None
    if volume.spec.claim_ref is None or not volume.spec.claim_ref.uid:
        raise BindingFailedError(f'ClaimRef got reset for pv "{volume.name}"')
    return fully_bound(claim)


def _is_provisioned(chosen: PersistentVolumeClaim, cluster: Cluster, node: Node) -> bool:
    claim = cluster.objects.claims.get(chosen.key)
    if claim is None:
        raise BindingFailedError(f"failed to check provisioning pvc: {not_found('persistentvolumeclaims', chosen.key)}")
    if claim is chosen:
        return False
    if not claim.annotations:
        raise BindingFailedError(f'selectedNode annotation reset for PVC "{claim.name}"')
    if claim.annotations.get(SELECTED_NODE) != node.name:
        raise BindingFailedError(f'provisioning failed for PVC "{claim.name}"')
    if claim.spec.volume_name:
        volume = cluster.objects.volumes.get(claim.spec.volume_name)
        if volume is None:
            return False  # the claim was heard of before its volume
        try:
            _check_reach(volume, cluster, node)
        except TranslationError as error:
            raise BindingFailedError(f"could not translate pv: {error}") from None
    return fully_bound(claim)


def _check_reach(volume: PersistentVolume, cluster: Cluster, node: Node) -> None:
    affinity = volume.spec.node_affinity
    plugin = in_tree_plugin(volume.spec)
    if plugin is not None and plugin.name in MIGRATED & migrated_plugins(cluster.objects.csi_nodes.get(node.name)):
        affinity = csi_affinity(volume)
    if affinity is None or affinity.required is None or matches(where_reachable(affinity), node.labels):
        return
    problem = compile_node_selector(affinity.required).error or "no matching NodeSelectorTerms"
    raise BindingFailedError(f'pv "{volume.name}" node affinity doesn\'t match node "{node.name}": {problem}')
