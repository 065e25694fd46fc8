"""Reads what a scheduler knows of nodes and pod as the arrays that features and heuristics are computed from.

GPUs are counted in thousandths, as `podium_plugins.gpu` shares them out; where nodes have whole ones as
`nvidia.com/gpu`, each counts 1000.

What is measured of nodes has a PromQL query for each metric, the same for schedulers and trainings. `metric_series`
gives the series that a plugin follows; a simulation that measures writes to the same ones.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium.cluster import Cluster, Nodes
from podium.cluster.resources import CPU, MEMORY
from podium.config.durations import SECOND, Duration
from podium.framework import Cycle, Handle
from podium.kube import Pod
from podium.load.promql import rate, selector
from podium.load.readings import Readings, follow
from podium.load.series import Series
from podium.load.settings import SourceSettings
from podium_lab.learned.seen_pods import SeenPods
from podium_lab.models.features import ClusterArrays, PodArrays, pod_class
from podium_lab.models.heuristics import GpuArrays
from podium_lab.models.schema import CLASSES
from podium_plugins.gpu.devices import GpuDevices, request_of
from podium_plugins.gpu.request import NO_GPU, WHOLE, GpuRequest
from podium_plugins.latency_aware import DEFAULT_QUERY, LatencyLimits, limits_of

WHOLE_GPU: Final = "nvidia.com/gpu"
MOST_TYPICAL: Final = 30
"""Classes of typical pods that fragmentation is computed with; the most frequent ones."""
_NOTE: Final = "podium_lab.models"

Floats = NDArray[np.float64]


class PodNote(NamedTuple):
    """What is derived from a pod's labels and annotations, once for each signature."""

    number: int
    """Its class."""
    limits: LatencyLimits


class Situation(NamedTuple):
    """What a decision is made from."""

    cluster: ClusterArrays
    pod: PodArrays
    gpus: GpuArrays | None
    stale: bool
    """Whether nothing fresh is known of the nodes, although metrics are followed."""


class NodeArrays:
    """The arrays of one scheduler. `with_gpus` has devices and typical pods in them, which fragmentation needs."""

    def __init__(self, handle: Handle, series: Mapping[str, Series], *, with_gpus: bool) -> None:
        cluster = handle.cluster
        self._cluster = cluster
        self._clock = handle.clock
        self._readings: dict[str, Readings] = {name: follow(handle, each) for name, each in series.items()}
        self._devices = GpuDevices.of(cluster)
        self._classes = _ClassCounts(cluster)
        self._seen = SeenPods(None) if with_gpus else None

    def observe(self, pod: Pod) -> None:
        """A pod is new: it counts among the typical ones."""
        if self._seen is not None:
            facts = self._cluster.facts.of(pod)
            found = request_of(pod, facts)
            self._seen.add((int(facts.counted[CPU]), found if isinstance(found, GpuRequest) else NO_GPU))

    def of(self, cycle: Cycle, nodes: Nodes) -> Situation:
        """What is known of a pod, and of the nodes that it fits."""
        facts, width = cycle.facts, len(nodes)
        note = pod_note(cycle)
        found = request_of(cycle.pod, facts)
        request = found if isinstance(found, GpuRequest) else NO_GPU
        whole = sum(amount for name, amount in facts.scalar if name == WHOLE_GPU)
        pod = PodArrays(
            request=np.array(
                [facts.counted[CPU], facts.counted[MEMORY], request.total + WHOLE * whole, 1.0], dtype=np.float64
            ),
            latency_soft=np.float64(note.limits.soft),
            latency_hard=np.float64(note.limits.hard),
            priority=np.float64(cycle.pod.priority),
            pod_class=note.number,
        )
        capacity, requested, free = self._amounts(nodes)
        measured = {name: nodes.pick(readings.column(nodes.cluster)) for name, readings in self._readings.items()}
        unknown = np.full(width, np.nan)
        used = np.stack([measured.get(name, unknown) for name in ("cpu", "memory", "gpu", "")], axis=-1)
        age = self._age(nodes, measured)
        cluster = ClusterArrays(
            capacity=capacity,
            requested=requested,
            used=used,
            connections=measured.get("connections", unknown),
            traffic=measured.get("traffic", unknown),
            link_speed=measured.get("link-speed", unknown),
            latency=measured.get("latency", unknown),
            age=age,
            same_class=np.zeros(width) if nodes.bare else nodes.pick(self._classes.of(note.number)),
            mask=np.ones(width, dtype=np.bool_),
            nodes=np.float64(max(len(nodes.cluster.order.rows), width)),
            queue=np.float64(len(nodes.cluster.objects.pending_pods)),
        )
        stale = bool(self._readings) and bool(np.isnan(age).all())
        return Situation(cluster, pod, self._gpus(free), stale)

    def _amounts(self, nodes: Nodes) -> tuple[Floats, Floats, NDArray[np.int64]]:
        """Capacity and requests, float64[nodes, resources], and what each device has left, int64[devices, nodes]."""
        free = self._devices.free(nodes)
        shared = WHOLE * nodes.pick(self._devices.counts())
        of_devices = shared > 0
        offered = np.where(of_devices, shared, WHOLE * nodes.allocatable(WHOLE_GPU))
        held = np.where(of_devices, shared - free.sum(axis=0), WHOLE * nodes.requested(WHOLE_GPU))
        allowed = nodes.pick(nodes.cluster.resources.allowed_pods)
        capacity = [nodes.allocatable("cpu"), nodes.allocatable("memory"), offered, allowed]
        requested = [nodes.requested("cpu"), nodes.requested("memory"), held, nodes.pod_count]
        return np.stack(capacity, axis=-1).astype(np.float64), np.stack(requested, axis=-1).astype(np.float64), free

    def _age(self, nodes: Nodes, measured: Mapping[str, Floats]) -> Floats:
        """float64[nodes]: seconds since the newest sample, NaN where there is none."""
        newest = np.full(len(nodes), -math.inf)
        for name, column in measured.items():
            readings = self._readings[name]
            times = (
                np.array([readings.time_of(each) for each in nodes.names])
                if readings.times
                else np.full(len(nodes), readings.measured_at)
            )
            newest = np.where(np.isnan(column), newest, np.maximum(newest, times))
        return np.where(np.isinf(newest), np.nan, np.maximum(self._clock.now() - newest, 0.0))

    def _gpus(self, free: NDArray[np.int64]) -> GpuArrays | None:
        if self._seen is None or not len(free):
            return None
        typical = sorted(self._seen.typical, key=lambda each: -each.pods)[:MOST_TYPICAL]
        if not typical:
            return None
        pods = np.array([each.pods for each in typical], dtype=np.float64)
        return GpuArrays(
            free=free.T.astype(np.float64),
            typical_cpu=np.array([each.cpu for each in typical], dtype=np.float64),
            typical_gpus=np.array([each.request.gpus for each in typical]),
            typical_milli=np.array([each.request.milli for each in typical], dtype=np.float64),
            typical_share=pods / pods.sum(),
        )


def pod_note(cycle: Cycle) -> PodNote:
    """The class and the limits of the pod that is decided on."""
    known: PodNote | None = cycle.facts.notes.get(_NOTE)
    if known is None:
        known = cycle.facts.notes[_NOTE] = _note_of(cycle.pod)
    return known


def _note_of(pod: Pod) -> PodNote:
    return PodNote(pod_class(pod.metadata.labels), limits_of(pod.annotations))


class _ClassCounts:
    """How many pods of each class are on each row, counted again where pods came or went."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._cursor = cluster.row_cursor()
        self._counts = np.zeros((CLASSES, 0))

    def of(self, number: int) -> Floats:
        """float64[rows]: pods of a class."""
        if not self._cursor.at_end or self._counts.shape[1] != self._cluster.columns.rows:
            self._catch_up()
        counts: Floats = self._counts[number]
        return counts

    def _catch_up(self) -> None:
        changes, cluster = self._cursor.read(), self._cluster
        rows = cluster.columns.rows
        known = self._counts.shape[1]
        if known < rows:
            self._counts = np.concatenate([self._counts, np.zeros((CLASSES, rows - known))], axis=1)
        changed = range(rows) if changes is None else dict.fromkeys((*changes[0], *changes[1], *range(known, rows)))
        for row in changed:
            counts = [0] * CLASSES
            for placed in cluster.pods_on[row].values():
                note = placed.facts.notes.get(_NOTE)
                if note is None:
                    note = placed.facts.notes[_NOTE] = _note_of(placed.pod)
                counts[note.number] += 1
            self._counts[:, row] = counts


WINDOW: Final = Duration(300 * SECOND)
VIRTUAL: Final = "lo|veth.*|cali.*|cni.*|docker.*|flannel.*"
_BUSY: Final = rate('node_cpu_seconds_total{mode!="idle"}', WINDOW)
_RECEIVED, _SENT = (
    rate(selector(f"node_network_{way}_bytes_total", unlike={"device": VIRTUAL}), WINDOW)
    for way in ("receive", "transmit")
)
_LINK: Final = selector("node_network_speed_bytes", unlike={"device": VIRTUAL})

METRIC_QUERIES: Final[Mapping[str, str]] = {
    "cpu": f"1000 * sum by (instance, node) ({_BUSY})",
    "memory": "node_memory_MemTotal_bytes - node_memory_MemAvailable_bytes",
    "gpu": "10 * sum by (instance, node) (DCGM_FI_DEV_GPU_UTIL)",
    "connections": "node_netstat_Tcp_CurrEstab",
    "traffic": f"sum without (device) ({_RECEIVED} + {_SENT})",
    "link-speed": f"max by (instance, node) ({_LINK} > 0)",
    "latency": DEFAULT_QUERY,
}
"""Thousandths of a core, bytes, thousandths of a GPU, connections, bytes a second twice, milliseconds."""


def metric_series(source: SourceSettings, queries: Mapping[str, str] | None = None) -> dict[str, Series]:
    """The series of each metric; `queries` has those that are measured otherwise, "" for those that aren't."""
    wanted = {**METRIC_QUERIES, **(queries or {})}
    return {name: Series(source=source, query=query) for name, query in wanted.items() if query}
