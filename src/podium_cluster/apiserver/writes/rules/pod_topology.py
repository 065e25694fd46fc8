"""Finds the zone and region of a node, which pods get as labels when they are bound to it or created on it."""

from __future__ import annotations

from typing import Final

from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.kinds import NODE
from podium_cluster.apiserver.writes.context import WriteContext

_COPIED: Final = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")


def topology_labels(context: WriteContext, node: str) -> dict[str, str]:
    """The labels of zone and region that a node has; none where it does not exist."""
    found = context.store.get(NODE, "", node)
    return {} if found is None else {key: found.labels[key] for key in _COPIED if key in found.labels}


def label_with_topology(pod: JsonObject, context: WriteContext) -> None:
    """Label a pod that is created on a node with the node's zone and region."""
    node = (pod.get("spec") or {}).get("nodeName")
    labels = topology_labels(context, node) if node else {}
    if labels:
        metadata = pod["metadata"]
        metadata["labels"] = {**(metadata.get("labels") or {}), **labels}
