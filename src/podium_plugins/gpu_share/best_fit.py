"""Scores nodes with the least room left after the pod highest: GpuBestFit (BestFit).

raw = 100·(1 − ½·(C − c)/128000 − ½·(R − k·d)/8000), toward zero
score = ⌊100·(raw − lowest)/(highest − lowest)⌋ over the feasible nodes, 0 for all where they are equal
"""

from __future__ import annotations

import numpy as np

from podium import MAX_SCORE, Cycle, Scores, truncated_divide
from podium.cluster import NodeInfo, Nodes
from podium_plugins.gpu_share.room import FULL_CPU, FULL_GPU, MOST_CPU, GpuScorePlugin, cpu_left, cpu_left_on, wanted_by

_CPU_WEIGHT = MAX_SCORE // 2
_GPU_WEIGHT = MAX_SCORE // 2 * FULL_CPU // FULL_GPU
"""raw = (100·FULL_CPU − _CPU_WEIGHT·(C − c) − _GPU_WEIGHT·(R − k·d)) / FULL_CPU"""


class GpuBestFit(GpuScorePlugin):
    trusted = True

    def score(self, cycle: Cycle, nodes: Nodes) -> Scores:
        cpu, request = wanted_by(cycle)
        left = _CPU_WEIGHT * np.clip(cpu_left(nodes) - cpu, -MOST_CPU, MOST_CPU)
        left += _GPU_WEIGHT * (self._devices.free(nodes).sum(axis=0) - request.total)
        return truncated_divide(MAX_SCORE * FULL_CPU - left, FULL_CPU)

    def score_node(self, cycle: Cycle, node: NodeInfo) -> int:
        cpu, request = wanted_by(cycle)
        left = _CPU_WEIGHT * min(max(cpu_left_on(cycle.cluster, node.row) - cpu, -MOST_CPU), MOST_CPU)
        left += _GPU_WEIGHT * (sum(self._devices.free_on(node.row)) - request.total)
        raw = MAX_SCORE * FULL_CPU - left
        return raw // FULL_CPU if raw >= 0 else -(-raw // FULL_CPU)

    def normalize(self, _cycle: Cycle, _nodes: Nodes, scores: Scores) -> Scores:
        lowest, highest = int(scores.min(initial=MOST_CPU)), int(scores.max(initial=-MOST_CPU))
        if highest <= lowest:
            return np.zeros_like(scores)
        return (scores - lowest) * MAX_SCORE // (highest - lowest)
