"""Orders the queue by priority, then by quality-of-service class (QOSSort).

Higher priority first; among equals Guaranteed before Burstable before BestEffort; then the pod that has waited longer.
The class is the one in the pod's status, or follows from its resources.
"""

from __future__ import annotations

from typing import Final

from podium import Plugin, QueuedPod
from podium.kube import BEST_EFFORT, BURSTABLE, GUARANTEED, qos_class_of

NAME: Final = "QOSSort"
RANKS: Final = {GUARANTEED: -3, BURSTABLE: -2, BEST_EFFORT: -1}
"""The first has the lowest; a class that Kubernetes does not know goes last."""


class QOSSort(Plugin):
    name = NAME
    trusted = True

    def less(self, a: QueuedPod, b: QueuedPod) -> bool:
        return (*self.sort_key(a), a.sequence) < (*self.sort_key(b), b.sequence)

    def sort_key(self, queued: QueuedPod) -> tuple[int, int, float]:
        pod = queued.pod
        return -pod.priority, RANKS.get(qos_class_of(pod), 0), queued.timestamp
