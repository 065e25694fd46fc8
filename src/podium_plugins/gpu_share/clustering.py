"""Scores nodes by whether their pods ask for as many GPUs as this one: GpuClustering (GpuClustering).

    pod without GPU   0
    else              ⌊25·(8000 − R)/8000⌋, at least 0, and
                        + 75  where all pods with GPUs on the node are of this pod's size
                        + 50  where some are
                        + 25  where there are none
                        +  0  where all are of other sizes

The size of a pod is its number of whole GPUs; pods that share a GPU are of one size.
"""

from __future__ import annotations

import numpy as np

from podium import Cycle, Scores
from podium.cluster import NodeInfo, Nodes
from podium_plugins.gpu_share.room import FULL_GPU, GpuScorePlugin, wanted_by

ONLY_THIS_SIZE, THIS_AND_OTHERS, NONE, FULL = 75, 50, 25, 25


class GpuClustering(GpuScorePlugin):
    trusted = True

    def score(self, cycle: Cycle, nodes: Nodes) -> Scores:
        request = wanted_by(cycle).request
        if not request.gpus:
            return np.zeros(len(nodes), dtype=np.int64)
        equal, pods = self._devices.pods_by_size(nodes, request.size)
        group = np.select([pods == 0, equal == pods, equal > 0], [NONE, ONLY_THIS_SIZE, THIS_AND_OTHERS], 0)
        idle = self._devices.free(nodes).sum(axis=0)
        scores: Scores = group + np.maximum(FULL_GPU - idle, 0) * FULL // FULL_GPU
        return scores

    def score_node(self, cycle: Cycle, node: NodeInfo) -> int:
        request = wanted_by(cycle).request
        if not request.gpus:
            return 0
        by_size = self._devices.pods_by_size_on(node.row)
        if not by_size:
            group = NONE
        elif request.size not in by_size:
            group = 0
        else:
            group = ONLY_THIS_SIZE if len(by_size) == 1 else THIS_AND_OTHERS
        return group + max(FULL_GPU - sum(self._devices.free_on(node.row)), 0) * FULL // FULL_GPU
