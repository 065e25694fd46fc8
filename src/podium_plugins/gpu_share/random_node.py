"""Draws one of the feasible nodes, and one of its devices that suffice, at random: GpuRandom (Random).

The node drawn scores 100, all others 0. What a clever score gains is what it gains over this one.
"""

from __future__ import annotations

import numpy as np

from podium import MAX_SCORE, Cycle, DependsOn, Scores
from podium.cluster import Nodes
from podium_plugins.gpu.devices import sufficient
from podium_plugins.gpu_share.room import GpuScorePlugin, wanted_by


class GpuRandom(GpuScorePlugin):
    trusted = True
    depends_on = DependsOn(claims=False)

    def score(self, _cycle: Cycle, nodes: Nodes) -> Scores:
        scores: Scores = np.zeros(len(nodes), dtype=np.int64)
        if len(nodes):
            scores[self.handle.rng.randrange(len(nodes))] = MAX_SCORE
        return scores

    def choose_device(self, cycle: Cycle, row: int) -> int | None:
        devices = sufficient(self._devices.free_on(row), wanted_by(cycle).request)
        return self.handle.rng.choice(devices) if devices else None
