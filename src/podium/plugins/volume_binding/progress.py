"""Finds whether the volumes that were written have become bound, are under way, or have gone wrong.

What counts is what the API server says, not what is assumed: an object that is still our own assumption has not come
back yet. Binding has gone wrong when the pod, the node or one of the objects is gone, when a volume turns out to be out
of the node's reach, or when the volume controller or the provisioner took a choice back.
"""

from __future__ import annotations

from podium.cluster import Cluster
from podium.cluster.csi_nodes import migrated_plugins
from podium.cluster.topology_index import matches, where_reachable
from podium.kube import Node, PersistentVolume, PersistentVolumeClaim, Pod
from podium.kube.claims import SELECTED_NODE, fully_bound, not_found
from podium.kube.csi_translation import MIGRATED, TranslationError, csi_affinity, in_tree_plugin
from podium.kube.selector import compile_node_selector
from podium.plugins.volume_binding.choice import Choice, VolumeChoice


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
