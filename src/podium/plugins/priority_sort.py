"""Orders the queue (PrioritySort): higher priority first; among equals, the pod that has waited longer.

A pod without a priority counts as 0. Each failed attempt renews a pod's waiting time, so a pod that does not fit lets
others of its priority pass.
"""

from __future__ import annotations

from podium.framework import Plugin, QueuedPod

NAME = "PrioritySort"


class PrioritySort(Plugin):
    name = NAME
    trusted = True

    def less(self, a: QueuedPod, b: QueuedPod) -> bool:
        return (*self.sort_key(a), a.sequence) < (*self.sort_key(b), b.sequence)

    def sort_key(self, queued: QueuedPod) -> tuple[int, float]:
        """The same order as a key, which is what the queue prefers."""
        return -queued.priority, queued.timestamp
