"""Computes what pods and nodes use. Each pod has a level, drawn when it starts, around which its use swings:

    use(t) = level × (1 + swing × sin(2π (t / period + phase)))

so any moment can be computed without keeping anything up to date. Cpu in cores swings by up to 30 %, memory in bytes by
up to 5 %, over 2 to 15 minutes. A node also uses a little for itself.
"""

from __future__ import annotations

import math
import random

import msgspec

from podium_cluster.kubelets.random_values import Drawn

CPU_WITHOUT_REQUEST = 0.1
MEMORY_WITHOUT_REQUEST = 200 * 2**20
NODE_CPU, NODE_MEMORY = 0.05, 300 * 2**20


class Swing(msgspec.Struct, frozen=True, gc=False):
    level: float
    swing: float
    period: float
    phase: float

    def at(self, moment: float) -> float:
        return self.level * (1 + self.swing * math.sin(2 * math.pi * (moment / self.period + self.phase)))


class PodUsage(msgspec.Struct, frozen=True, gc=False):
    cpu: Swing
    memory: Swing


def drawn_usage(cpu: Drawn, memory: Drawn, cpu_request: float, memory_request: float, rng: random.Random) -> PodUsage:
    """The use of a pod that requests so many cores and bytes."""
    cpu_level = cpu.draw(rng) * ((cpu_request or CPU_WITHOUT_REQUEST) if cpu.share else 1.0)
    memory_level = memory.draw(rng) * ((memory_request or MEMORY_WITHOUT_REQUEST) if memory.share else 1.0)
    return PodUsage(_swing(cpu_level, 0.3, rng), _swing(memory_level, 0.05, rng))


def _swing(level: float, most: float, rng: random.Random) -> Swing:
    return Swing(level, most * rng.random(), 120 + 780 * rng.random(), rng.random())
