"""Scores nodes whose room points another way than the request highest: GpuDotProd (DotProd).

    x = (C/128000)·(c/128000) + (R/8000)·(k·d/8000)
    score = ⌊100·(1 − x/2)⌋, at least 0

A small product means that the pod takes little of what the node has much of. Computed in whole numbers.
"""

from __future__ import annotations

import numpy as np

from podium import MAX_SCORE, Cycle, Scores
from podium.cluster import NodeInfo, Nodes
from podium_plugins.gpu_share.room import FULL_CPU, FULL_GPU, MOST_CPU, GpuScorePlugin, cpu_left, cpu_left_on, wanted_by

_UNIT = FULL_CPU**2
_GPU_WEIGHT = _UNIT // FULL_GPU**2
"""x = (C·c + _GPU_WEIGHT·R·k·d) / _UNIT"""


class GpuDotProd(GpuScorePlugin):
    trusted = True

    def score(self, cycle: Cycle, nodes: Nodes) -> Scores:
        cpu, request = wanted_by(cycle)
        room = np.clip(cpu_left(nodes), 0, MOST_CPU) * min(cpu, MOST_CPU)
        room += self._devices.free(nodes).sum(axis=0) * (_GPU_WEIGHT * request.total)
        return np.maximum(MAX_SCORE * _UNIT - MAX_SCORE // 2 * room, 0) // _UNIT

    def score_node(self, cycle: Cycle, node: NodeInfo) -> int:
        cpu, request = wanted_by(cycle)
        room = min(max(cpu_left_on(cycle.cluster, node.row), 0), MOST_CPU) * min(cpu, MOST_CPU)
        room += sum(self._devices.free_on(node.row)) * _GPU_WEIGHT * request.total
        return max(MAX_SCORE * _UNIT - MAX_SCORE // 2 * room, 0) // _UNIT
