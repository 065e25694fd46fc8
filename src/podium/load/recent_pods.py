"""Adds to what was measured what recent pods will use: those that the measurement cannot have shown, or not for long.

A pod counts on its node if it came there after the end of the measurement, or less than 60 seconds before it. Pods that
are placed but not confirmed by the API server always count. When a pod came is read from the pod itself, so that a
scheduler that was just started knows as much as one that has been running: the time of its PodScheduled condition,
else its start time, else its creation. Nothing is stamped with the time of a restart, which would count every running
pod twice.

The sums move with the pods that come and go. A pod that was placed here counts at least until the next measurement,
which is when its own word is asked for. A measurement is compared with the pods that counted so far; all pods of a node
are looked at only where one ended before the last one did.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from podium.cluster import Cluster, PlacedPod, PodFacts
from podium.framework.clock import Clock
from podium.kube import Pod, parse_time
from podium.load.readings import GenerationCounter

UNSEEN_SECONDS = 60
"""So long a pod must have run before the end of a measurement to be counted as part of it."""


class RecentPods:
    """`amount_of` says what a pod adds; `measured_until` when the measurement of a node, by name, ended, 0 for nodes
    that are not measured; `generation` counts what is measured."""

    def __init__(
        self,
        cluster: Cluster,
        clock: Clock,
        generation: GenerationCounter,
        amount_of: Callable[[Pod, PodFacts], int],
        measured_until: Callable[[str], float],
    ) -> None:
        self._cluster = cluster
        self._clock = clock
        self._generation = generation
        self._amount_of = amount_of
        self._measured_until = measured_until
        self._cursor = cluster.node_changes.cursor()
        self._seen = -1
        self._counted: dict[str, PlacedPod] = {}
        """The pods that count, by uid, but for the newest."""
        self._newest: list[PlacedPod] = []
        """Pods placed here that count, and were not looked at since: filing each at once would cost every placement."""
        self._arrivals: dict[str, tuple[Pod, float]] = {}
        """When those came that were asked, and the version that said so."""
        self._until: list[float] = []
        """When the last measurement of each row ended; never, while there was none: then there is nothing to add to."""
        self.totals = array("q")
        """The sum over the recent pods of each row, as of the last time that measurements were caught up with."""
        cluster.follow_pods(self)

    def over_rows(self) -> NDArray[np.int64]:
        """int64[rows]: the same of all rows, caught up with; to be read only, and now."""
        self.catch_up()
        return np.frombuffer(self.totals, dtype=np.int64) if self.totals else np.zeros(0, dtype=np.int64)

    def catch_up(self) -> None:
        """Take account of what is measured and of nodes that changed."""
        cluster, changed = self._cluster, self._cursor.read()
        if self._generation.count != self._seen:
            self._seen, changed = self._generation.count, None
        self._grow()
        later = False
        for row in range(cluster.columns.rows) if changed is None else changed:
            until, before = self._measured_until(cluster.names[row]), self._until_of(row)
            if until > 0:
                self._until[row] = until
                later = later or until > before
                if until < before:
                    self._look_back(row)
        if changed is None or later:
            self._look_at_counted()

    # Pods

    def pod_added(self, placed: PlacedPod) -> None:
        row, pod = placed.row, placed.pod
        if row >= len(self.totals):
            self._grow()
        if placed.assumed:
            self._newest.append(placed)
        else:
            created = _seconds(_own_time(pod) or pod.metadata.creation_timestamp)
            if self._until_of(row) - created >= UNSEEN_SECONDS:
                return
            self._counted[pod.metadata.uid] = placed
            self._arrivals[pod.metadata.uid] = pod, created
        self.totals[row] += self._amount_of(pod, placed.facts)

    def pod_removed(self, placed: PlacedPod) -> None:
        self._file_newest()
        uid = placed.pod.metadata.uid
        if self._counted.pop(uid, None) is not None:
            self._arrivals.pop(uid, None)
            self.totals[placed.row] -= self._amount_of(placed.pod, placed.facts)

    def _file_newest(self) -> None:
        for placed in self._newest:
            self._counted[placed.pod.metadata.uid] = placed
        self._newest.clear()

    # Measurements

    def _look_at_counted(self) -> None:
        """Let go of the pods that measurements have shown."""
        self._file_newest()
        now = math.floor(self._clock.now())
        for uid, placed in list(self._counted.items()):
            if placed.assumed:
                continue
            pod, arrival = placed.pod, self._arrivals.get(uid)
            if arrival is None or arrival[0] is not pod:
                own = _own_time(pod)
                created = _seconds(own) if own is not None else now if arrival is None else arrival[1]
                arrival = self._arrivals[uid] = pod, created
            if self._until_of(placed.row) - arrival[1] >= UNSEEN_SECONDS:
                self.pod_removed(placed)

    def _look_back(self, row: int) -> None:
        """A measurement of the row ended before the last one did: pods may count again."""
        self._file_newest()
        for uid, placed in self._cluster.pods_on[row].items():
            if uid not in self._counted:
                self.pod_added(placed)

    def _grow(self) -> None:
        """Have a total for each row. The old array may still be in use, so it must not change its size."""
        missing = self._cluster.columns.rows - len(self.totals)
        if missing:
            self.totals = array("q", [*self.totals, *[0] * missing])

    def _until_of(self, row: int) -> float:
        while row >= len(self._until):
            self._until.append(math.inf)
        return self._until[row]


def _own_time(pod: Pod) -> str | None:
    """When the pod was bound, as it says itself."""
    for condition in pod.status.conditions:
        if condition.type == "PodScheduled" and condition.status == "True" and condition.last_transition_time:
            return condition.last_transition_time
    return pod.status.start_time


@lru_cache(maxsize=64)
def _seconds(text: str | None) -> float:
    """A pod's time in whole seconds since the epoch; many pods have the same. What cannot be read is as if the pod had
    always been."""
    try:
        return 0.0 if text is None else math.floor(parse_time(text))
    except ValueError:
        return 0.0
