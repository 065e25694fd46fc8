"""Keeps account of what each GPU of each node has left, as pods come and go.

A pod on a node holds the devices that its index annotation names. Where that is missing or cannot be true (as many
devices as the pod asks for, all of them on the node), it holds the devices that `best_devices` gives beside the pods
whose annotations can be read, in the order they came; where it fits on none, it holds nothing. A pod whose request
cannot be read holds nothing. Devices that pods claim twice have nothing left. So a scheduler that was just started
counts as one that has been running.

What a pod holds while it is being placed is decided by `hold` (GpuShare does so in Reserve). A dry run takes pods off
and puts them back: they get back what they held. So does a pod whose newer version does not name its devices.

Numbers of one row are plain lists; the matrix over all rows is brought up to date when it is asked for.

`best_devices` chooses devices of one node for a pod. Whole GPUs are the lowest-numbered free ones. A share goes to the
device that has the least left and still enough, the lowest-numbered of equals.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium.cluster import Cluster, Column, NodeInfo, Nodes, PlacedPod, PodFacts
from podium.kube import Pod
from podium_plugins.gpu.request import (
    COUNT,
    MODEL,
    MOST_DEVICES,
    NO_GPU,
    WHOLE,
    GpuRequest,
    GpuRequestError,
    read_devices,
    read_request,
)

Matrix = NDArray[np.int64]
"""int64[devices, nodes]"""

_NOTE = "placement.gpu"


class Holding(NamedTuple):
    """What a pod holds on a row; `known` when that is known rather than supposed."""

    row: int
    devices: tuple[int, ...]
    request: GpuRequest
    known: bool


def request_of(pod: Pod, facts: PodFacts) -> GpuRequest | GpuRequestError:
    """What a pod asks for, or what is wrong with its annotations: read once per specification."""
    known: GpuRequest | GpuRequestError | None = facts.notes.get(_NOTE)
    if known is None:
        try:
            known = read_request(pod.annotations)
        except GpuRequestError as error:
            known = error
        facts.notes[_NOTE] = known
    return known


class GpuDevices:
    """The account of one cluster, shared by all plugins that look at GPUs: `GpuDevices.of(cluster)`."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._models = cluster.labels.column(MODEL)
        self._cursor = cluster.node_changes.cursor()
        self._free: list[list[int]] = []
        self._sorted: list[tuple[int, ...] | None] = []
        self._used: list[list[int]] = []
        self._by_size: list[dict[int, int]] = []
        """Per row the number of pods by the whole GPUs they hold, 0 for those that share one."""
        self._held: dict[str, Holding] = {}
        self._set_aside: dict[str, Holding] = {}
        """What pods held that a dry run took off."""
        self._left: tuple[str, Holding] | None = None
        """What the pod held that was removed last: a newer version of it may follow."""
        self._supposed: set[int] = set()
        """Rows where some pod's devices are supposed."""
        self._numbers: Column = cluster.columns.new(np.int64)
        self._matrix: Column = cluster.columns.new(np.int64, (1,))
        self._unwritten: dict[int, None] = {}
        cluster.follow_pods(self)

    @staticmethod
    def of(cluster: Cluster) -> GpuDevices:
        return cluster.account(GpuDevices) or GpuDevices(cluster)

    # What can be asked

    def free_on(self, row: int) -> Sequence[int]:
        """What each device of a row has left; to be read only."""
        self._catch_up()
        return self._free[row]

    def sorted_on(self, row: int) -> tuple[int, ...]:
        """The same in rising order."""
        self._catch_up()
        ordered = self._sorted[row]
        if ordered is None:
            ordered = self._sorted[row] = tuple(sorted(self._free[row]))
        return ordered

    def free(self, nodes: Nodes) -> Matrix:
        """int64[devices, nodes]: what each device has left, 0 where a node has fewer devices; to be read only."""
        matrix = self._over_rows()
        if nodes.bare:
            numbers = np.arange(len(matrix))[:, np.newaxis]
            return WHOLE * (numbers < nodes.pick(self.counts())).astype(np.int64)
        return nodes.pick(matrix)

    def counts(self) -> NDArray[np.int64]:
        """int64[rows]: how many devices each node has; to be read only."""
        self._catch_up()
        return self._numbers.view

    def pods_by_size_on(self, row: int) -> dict[int, int]:
        """The number of pods on a row by the whole GPUs they hold, 0 for those that share one; to be read only."""
        self._catch_up()
        return self._by_size[row]

    def pods_by_size(self, nodes: Nodes, size: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """int64[nodes]: pods that hold so many whole GPUs, and all pods that hold some GPU."""
        if nodes.bare:
            return np.zeros(len(nodes), dtype=np.int64), np.zeros(len(nodes), dtype=np.int64)
        self._catch_up()
        by_size = self._by_size if nodes.chosen is None else [self._by_size[row] for row in nodes.rows.tolist()]
        equal = np.array([pods.get(size, 0) for pods in by_size], dtype=np.int64)
        return equal, np.array([sum(pods.values()) for pods in by_size], dtype=np.int64)

    def model_of(self, row: int) -> str:
        return self._models.values[int(self._models.ids[row])]

    def has_model(self, nodes: Nodes, models: Sequence[str]) -> NDArray[np.bool_]:
        """bool[nodes]: the node's GPUs are of one of the models."""
        table = np.zeros(len(self._models.values), dtype=np.bool_)
        table[[self._models.id_of[model] for model in models if model in self._models.id_of]] = True
        allowed: NDArray[np.bool_] = table[nodes.pick(self._models.ids)]
        return allowed

    def held_by(self, uid: str) -> tuple[int, ...]:
        """The devices that a placed pod holds."""
        holding = self._held.get(uid)
        return () if holding is None else holding.devices

    # What a placement changes

    def lift(self, uid: str) -> None:
        """Have a placed pod hold nothing."""
        holding = self._held.pop(uid, None)
        if holding is not None:
            self._count(holding, -1)

    def hold(self, uid: str, row: int, devices: tuple[int, ...], request: GpuRequest) -> None:
        """Have a placed pod hold these devices, whatever it held before."""
        self.lift(uid)
        self._take(uid, Holding(row, devices, request, known=True))

    def pod_added(self, placed: PlacedPod) -> None:
        request = request_of(placed.pod, placed.facts)
        if not isinstance(request, GpuRequest) or request is NO_GPU:
            return
        self._catch_up()
        uid, row = placed.pod.uid, placed.row
        if uid in self._held:  # counted with its row just now
            return
        aside = self._set_aside.pop(uid, None)
        if aside is not None and aside.row == row:
            self._take(uid, aside)
            return
        holding = self._holding(placed, request)
        self._take(uid, holding)
        if holding.known and row in self._supposed:
            self._recount(row)  # what others are supposed to hold gives way

    def pod_removed(self, placed: PlacedPod) -> None:
        uid = placed.pod.uid
        holding = self._held.get(uid)
        if holding is None:
            return
        self.lift(uid)
        if uid in self._cluster.pods:
            self._set_aside[uid] = holding
        else:
            self._left = uid, holding

    # How it is kept

    def _holding(self, placed: PlacedPod, request: GpuRequest) -> Holding:
        """What a pod that comes holds. What a pod says that has no node yet is of an earlier attempt."""
        pod, row = placed.pod, placed.row
        free = self._free[row]
        devices = None if placed.assumed else read_devices(pod.annotations, request)
        if devices is not None and devices[-1] < len(free):
            return Holding(row, devices, request, known=True)
        if self._left is not None and self._left[0] == pod.uid:
            left = self._left[1]
            if left.row == row and left.request == request and max(left.devices, default=0) < len(free):
                return left
        return Holding(row, best_devices(free, request) or (), request, known=False)

    def _take(self, uid: str, holding: Holding) -> None:
        self._held[uid] = holding
        if not holding.known:
            self._supposed.add(holding.row)
        self._count(holding, 1)

    def _count(self, holding: Holding, sign: int) -> None:
        row, request = holding.row, holding.request
        self._unwritten[row] = self._sorted[row] = None
        used, free, milli = self._used[row], self._free[row], sign * request.milli
        for device in holding.devices:
            if device < len(free):
                used[device] += milli
                free[device] = max(WHOLE - used[device], 0)
        by_size, size = self._by_size[row], request.size
        by_size[size] = by_size.get(size, 0) + sign
        if not by_size[size]:
            del by_size[size]

    def _recount(self, row: int) -> None:
        """Count a row from its pods: first those whose devices are known."""
        number = self._number_of(row)
        self._free[row], self._used[row], self._by_size[row] = [WHOLE] * number, [0] * number, {}
        self._numbers.view[row] = number
        self._unwritten[row] = self._sorted[row] = None
        self._supposed.discard(row)
        waiting: list[tuple[PlacedPod, GpuRequest]] = []
        for uid, placed in self._cluster.pods_on[row].items():
            request, before = request_of(placed.pod, placed.facts), self._held.pop(uid, None)
            if not isinstance(request, GpuRequest) or request is NO_GPU:
                continue
            known = None if placed.assumed else read_devices(placed.pod.annotations, request)
            if known is None and before is not None and before.known:
                known = before.devices
            if known is not None and known[-1] < number:
                self._take(uid, Holding(row, known, request, known=True))
            else:
                waiting.append((placed, request))
        for placed, request in waiting:
            devices = best_devices(self._free[row], request) or ()
            self._take(placed.pod.uid, Holding(row, devices, request, known=False))

    def _number_of(self, row: int) -> int:
        """How many devices a node says it has; one that says it has more than any has none."""
        number = NodeInfo(self._cluster, row).allocatable(COUNT)
        return number if 0 < number <= MOST_DEVICES else 0

    def _catch_up(self) -> None:
        """Take account of nodes that came, went or changed."""
        cluster = self._cluster
        rows = cluster.columns.rows
        if self._cursor.at_end and len(self._free) == rows:
            return
        while len(self._free) < rows:
            self._free.append([])
            self._used.append([])
            self._sorted.append(None)
            self._by_size.append({})
        changed = self._cursor.read()
        for row in range(rows) if changed is None else dict.fromkeys(changed):
            if self._number_of(row) != len(self._free[row]):
                self._recount(row)

    def _over_rows(self) -> Matrix:
        self._catch_up()
        unwritten = self._unwritten
        if unwritten:
            widest = max(len(self._free[row]) for row in unwritten)
            if widest > len(self._matrix.view):
                self._matrix = self._cluster.columns.new(np.int64, (widest,))
                unwritten.update(dict.fromkeys(range(len(self._free))))
            view = self._matrix.view
            width = len(view)
            for row in unwritten:
                free = self._free[row]
                view[:, row] = free if len(free) == width else [*free, *[0] * (width - len(free))]
            unwritten.clear()
        return self._matrix.view


# Choosing devices


def sufficient(free: Sequence[int], request: GpuRequest) -> list[int]:
    """The devices that have enough left for one part of the request.

    >>> sufficient([1000, 400, 600], GpuRequest(1, 500))
    [0, 2]
    """
    milli = request.milli
    return [device for device, left in enumerate(free) if left >= milli]


def fits(free: Sequence[int], request: GpuRequest) -> bool:
    milli, missing = request.milli, request.gpus
    for left in free:
        if left >= milli:
            missing -= 1
    return missing <= 0


def best_devices(free: Sequence[int], request: GpuRequest) -> tuple[int, ...] | None:
    """The devices to take; None where the request does not fit.

    >>> best_devices([1000, 400, 600], GpuRequest(1, 500)), best_devices([1000, 400, 1000], GpuRequest(2, 1000))
    ((2,), (0, 2))
    """
    devices = sufficient(free, request)
    if len(devices) < request.gpus:
        return None
    if request.milli < WHOLE:
        return (min(devices, key=free.__getitem__),)
    return tuple(devices[: request.gpus])
