"""Nodes as score plugins see them once an extender gave back whole nodes: with nothing on them.

kube-scheduler takes such nodes from the extender's reply and knows nothing else of them, so what looks at the node
itself (its pods, what they request, its images) finds it empty. What is counted over the whole cluster, such as pods
per zone, was counted before and stands.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from podium.cluster.images import NodeImages
from podium.cluster.state import Cluster
from podium.cluster.view import Nodes


class BareNodes(Nodes):
    bare = True


@contextmanager
def without_pods(cluster: Cluster) -> Iterator[None]:
    """Inside, no row has pods, requests or images; the cluster itself must not be changed meanwhile."""
    resources, images, pods_on = cluster.resources, cluster.images, cluster.pods_on
    cluster.resources, cluster.images = resources.unused(cluster.columns), NodeImages()
    cluster.pods_on = [{} for _ in pods_on]
    try:
        yield
    finally:
        cluster.resources, cluster.images, cluster.pods_on = resources, images, pods_on
