"""Pods that a measurement cannot have shown yet, or not for long: what they will use is added to what was measured.

A pod counts on its node if it came there after the end of the measurement, or less than 60 seconds before it. Pods that
are placed but not confirmed by the API server always count. When a pod came is read from the pod itself, so that a
scheduler that was just started knows as much as one that has been running: the time of its PodScheduled condition,
else its start time, else when it was heard that it has a node, else its creation. A pod of which none is known counts
as there for long. Nothing is stamped with the time of a restart, which would count every running pod twice.

The sums stand while no pod comes or goes and nothing new is measured; `revision` moves in the rare case that a pod's
own time changes what was counted and the cluster's journal does not tell.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from podium.cluster import Cluster, PlacedPod
from podium.framework.clock import Clock
from podium.framework.row_numbers import RowNumbers
from podium.kube import Pod, parse_time

UNSEEN_SECONDS = 60
"""So long a pod must have run before the end of a measurement to be counted as part of it."""


class RecentPods:
    """`amount_of` says what a pod adds; `measured_until` when the measurement of a node, by name, ended."""

    def __init__(
        self, clock: Clock, amount_of: Callable[[PlacedPod], int], measured_until: Callable[[str], float]
    ) -> None:
        self._clock = clock
        self._amount_of = amount_of
        self._measured_until = measured_until
        self._sums = RowNumbers(1, self._of_row, pods=True)
        self._mark: Hashable = None
        self._known: dict[int, _Row] = {}
        self._heard: dict[str, float] = {}
        """When pods came that were seen coming, until a measurement shows them."""
        self.revision = 0

    def over_rows(self, cluster: Cluster, mark: Hashable) -> NDArray[np.int64]:
        """int64[rows]: the sum over the recent pods of each node. `mark` moves when there are new measurements."""
        if mark != self._mark:
            self._catch_up(cluster, mark)
        sums: NDArray[np.int64] = self._sums.over_rows(cluster)[0]
        return sums

    def on(self, cluster: Cluster, row: int, mark: Hashable) -> int:
        if mark != self._mark:
            self._catch_up(cluster, mark)
        sum_there: int = self._sums.on(cluster, row)[0]
        return sum_there

    def observe(self, cluster: Cluster, before: Pod | None, after: Pod | None) -> None:
        """A pod came, changed or went; to be told before the cluster is."""
        if after is None:
            if before is not None:
                self._heard.pop(before.uid, None)
            return
        if before is None or not after.node_name:
            return
        own = _own_time(after)
        if before.node_name:
            moved = _own_time(before) != own
            if moved:
                self._heard.pop(after.uid, None)
        else:
            came = self._heard[after.uid] = self._clock.now() if own is None else _seconds(own)
            moved = self._measured_until(after.node_name) - int(came) >= UNSEEN_SECONDS
        row = cluster.row_of.get(after.node_name)
        if moved and row is not None:
            if row in self._known:
                self._known[row].forget(after.uid)
            self._sums.ask_again([row])
            self.revision += 1

    def _catch_up(self, cluster: Cluster, mark: Hashable) -> None:
        self._mark = mark
        names, until_of = cluster.names, self._measured_until
        for row, known in self._known.items():
            if known.counted or not known.measured or until_of(names[row]) < known.until:
                self._sums.ask_again([row])

    def _of_row(self, cluster: Cluster, row: int) -> list[int]:
        known = self._known.get(row)
        if known is None:
            known = self._known[row] = _Row()
        until, pods = self._measured_until(cluster.names[row]), cluster.pods_on[row]
        known.measured = until > 0
        if not known.measured:  # nothing that could be added to
            return [0]
        if until != known.until:
            known.turn_to(until)
        total, settled, counted = 0, known.settled, known.counted
        if len(settled) + len(counted) > 2 * len(pods) + 16:
            known.keep(pods)
        for uid, placed in pods.items():
            if uid in settled:
                continue
            before = counted.get(uid)
            if before is not None and before[0] is placed:
                total += before[1]
            elif placed.assumed or until - int(self._came(placed.pod)) < UNSEEN_SECONDS:
                amount = self._amount_of(placed)
                counted[uid] = placed, amount
                total += amount
            else:
                settled.add(uid)
                self._heard.pop(uid, None)
        return [total]

    def _came(self, pod: Pod) -> float:
        """When the pod came to its node, in seconds since the epoch."""
        heard = self._heard.get(pod.metadata.uid)
        return _seconds(_own_time(pod) or pod.metadata.creation_timestamp) if heard is None else heard


class _Row:
    """What was found of the pods of a row, by the last measurement there was of it."""

    __slots__ = ("counted", "measured", "settled", "until")

    def __init__(self) -> None:
        self.measured = False
        self.until = 0.0
        self.settled: set[str] = set()
        """Pods that this measurement has shown, and so has any that ended later."""
        self.counted: dict[str, tuple[PlacedPod, int]] = {}
        """Pods that it has not, with what they add."""

    def turn_to(self, until: float) -> None:
        """Another measurement."""
        if until < self.until:
            self.settled.clear()
        self.counted.clear()
        self.until = until

    def forget(self, uid: str) -> None:
        self.settled.discard(uid)
        self.counted.pop(uid, None)

    def keep(self, pods: Container[str]) -> None:
        """Forget pods that went."""
        for uid in [uid for uid in (*self.settled, *self.counted) if uid not in pods]:
            self.forget(uid)


def _own_time(pod: Pod) -> str | None:
    """When the pod was bound, as it says itself."""
    for condition in pod.status.conditions:
        if condition.type == "PodScheduled" and condition.status == "True" and condition.last_transition_time:
            return condition.last_transition_time
    return pod.status.start_time


@lru_cache(maxsize=64)
def _seconds(text: str | None) -> float:
    """A pod's time since the epoch; many pods have the same. What cannot be read is as if the pod had always been."""
    try:
        return 0.0 if text is None else parse_time(text)
    except ValueError:
        return 0.0
