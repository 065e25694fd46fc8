"""Scores GPUs in use highest, then free GPUs of nodes in use, then free nodes: GpuPacking (GpuPacking).

    pod without GPU         0
    every GPU of it free    33 − number of its GPUs
    else                    the k devices with the least left that suffice, u of them entirely free:
      u > 0                 max(50 − u, 33)
      u = 0                 max(100 − ⌊left/100⌋, 50), left: thousandths on the device

A node where the pod does not fit scores 0.
"""

from __future__ import annotations

import numpy as np

from podium import Cycle, Scores
from podium.cluster import NodeInfo, Nodes
from podium_plugins.gpu.devices import fits
from podium_plugins.gpu.request import WHOLE
from podium_plugins.gpu_share.room import GpuScorePlugin, wanted_by

IN_USE, NODE_IN_USE, FREE_NODE = 100, 50, 33
"""The highest score of each kind of room."""


class GpuPacking(GpuScorePlugin):
    trusted = True

    def score(self, cycle: Cycle, nodes: Nodes) -> Scores:
        request = wanted_by(cycle).request
        if not request.gpus:
            return np.zeros(len(nodes), dtype=np.int64)
        free, number = self._devices.free(nodes), nodes.pick(self._devices.counts())
        enough = free >= request.milli
        least = np.where(enough, free, WHOLE).min(axis=0)
        opened = request.gpus if request.milli == WHOLE else 1
        scores = np.where(
            least < WHOLE,
            np.maximum(IN_USE - least // 100, NODE_IN_USE),
            max(NODE_IN_USE - opened, FREE_NODE),
        )
        scores = np.where((free == WHOLE).sum(axis=0) == number, np.maximum(FREE_NODE - number, 0), scores)
        return np.where(enough.sum(axis=0) >= request.gpus, scores, 0)

    def score_node(self, cycle: Cycle, node: NodeInfo) -> int:
        request = wanted_by(cycle).request
        free = self._devices.free_on(node.row)
        if not request.gpus or not fits(free, request):
            return 0
        if min(free) == WHOLE:
            return max(FREE_NODE - len(free), 0)
        least = min(left for left in free if left >= request.milli)
        if least == WHOLE:
            return max(NODE_IN_USE - request.gpus, FREE_NODE)
        return max(IN_USE - least // 100, NODE_IN_USE)
