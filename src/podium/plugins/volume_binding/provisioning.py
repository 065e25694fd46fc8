"""Decides whether a new volume could be made for a claim.

The claim's class must have a provisioner, and allow the node's topology. If the provisioner is a CSI driver that
reports its storage capacity, some pool of the class within the node's reach must be large enough for the claim; claims
are looked at one by one, so several of them may count on the same space.
"""

from __future__ import annotations

import numpy as np

from kubecel.quantity import units
from podium.cluster import Cluster, Mask, Nodes
from podium.cluster.reach_index import ANYWHERE, Where, matching_rows, where_selected
from podium.kube import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, PersistentVolumeClaim, StorageClass

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
    if request is None or not _reports_capacity(storage_class.provisioner, cluster):
        return np.ones(len(nodes), dtype=np.bool_)
    size = units(request)
    pools = cluster.storage_pools.of_class(storage_class.name)
    enough: Mask = pools.count(cluster.labels, nodes.chosen, lambda limit: limit >= size) > 0
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


def _reports_capacity(provisioner: str, cluster: Cluster) -> bool:
    driver = cluster.objects.csi_drivers.get(provisioner)
    return driver is not None and bool(driver.spec.storage_capacity)
