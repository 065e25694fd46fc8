"""Scores nodes by how much of the pod's images they already hold (ImageLocality): there it starts sooner.

    image's worth = size · (nodes that have it / all nodes), toward zero
    sum over the images the node has, kept within 23 MiB … 1000 MiB · number of the pod's images
    score = 100·(sum − 23 MiB) / (1000 MiB · number − 23 MiB), toward zero

The share of nodes keeps pods from heaping onto the first node that pulled an image. Images of init containers, app
containers and image volumes count, an image used twice counts twice. In 1.36 image volumes do not raise the upper
limit, and in 1.35 they do not count at all.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator

import numpy as np

from podium.cluster import Cluster, NodeInfo, Nodes
from podium.cluster.images import ImageState
from podium.framework import MAX_SCORE, Cycle, DependsOn, NodePart, Plugin, Scores
from podium.kube import Pod
from podium.kube.versions import ImageVolumes

NAME = "ImageLocality"
MEBIBYTE = 1024 * 1024
LEAST = 23 * MEBIBYTE
MOST_PER_IMAGE = 1000 * MEBIBYTE


class ImageLocality(Plugin):
    name = NAME
    trusted = True
    reads_images = True
    depends_on = DependsOn(node=NodePart.OBJECT, claims=False)

    def answer_key(self, pod: Pod) -> Hashable:
        """What a node's images are worth depends on how far each has spread, and on the number of nodes."""
        cluster = self.handle.cluster
        if not cluster.images:
            return (0,)
        states = [cluster.images.get(name) for name in self._images(pod)]
        if not any(states):
            return (0,)
        return len(cluster.order.rows), *(state and (state.size, len(state.rows)) for state in states)

    def score(self, cycle: Cycle, nodes: Nodes) -> Scores | int:
        cluster = cycle.cluster
        known = list(self._known_images(cluster, cycle.pod)) if cluster.images else ()
        if not known:
            return 0
        sums = np.zeros(cluster.columns.rows, dtype=np.int64)
        for state in known:
            sums[state.row_array] += _worth(state, cluster)
        most = self._most(cycle.pod)
        scores: Scores = MAX_SCORE * (np.clip(nodes.pick(sums), LEAST, most) - LEAST) // (most - LEAST)
        return scores

    def score_node(self, cycle: Cycle, node: NodeInfo) -> int:
        cluster = cycle.cluster
        total = sum(
            _worth(state, cluster) for state in self._known_images(cluster, cycle.pod) if node.row in state.rows
        )
        most = self._most(cycle.pod)
        return MAX_SCORE * (min(max(total, LEAST), most) - LEAST) // (most - LEAST)

    def _known_images(self, cluster: Cluster, pod: Pod) -> Iterator[ImageState]:
        """The state of each of the pod's images that some node has."""
        for name in self._images(pod):
            state = cluster.images.get(name)
            if state is not None:
                yield state

    def _images(self, pod: Pod) -> Iterator[str]:
        """The pod's images, by the names nodes know them under."""
        spec = pod.spec
        for container in (*spec.init_containers, *spec.containers):
            yield with_tag(container.image)
        if self.handle.rules.image_volumes is not ImageVolumes.IGNORED:
            for volume in spec.volumes:
                if volume.image is not None:
                    yield with_tag(volume.image.reference)

    def _most(self, pod: Pod) -> int:
        spec = pod.spec
        number = len(spec.init_containers) + len(spec.containers)
        if self.handle.rules.image_volumes is ImageVolumes.IN_SUM_AND_LIMIT:
            number += sum(volume.image is not None for volume in spec.volumes)
        return MOST_PER_IMAGE * number


def with_tag(image: str) -> str:
    """The name under which nodes report an image: without a tag it is the latest."""
    return image if image.rfind(":") > image.rfind("/") else f"{image}:latest"


def _worth(state: ImageState, cluster: Cluster) -> int:
    return int(float(state.size) * (float(len(state.rows)) / float(len(cluster.order.rows))))
