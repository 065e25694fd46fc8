"""Measures what pods use in a simulation, and tells the plugins that follow it.

Each running pod has a slot in a few arrays, so that the use of all pods at one moment is one expression (see
`UsageModel`), added up by node. The last measurements make mean and deviation over a window, as Prometheus would give
them. Plugins that read load through their handle get the series they follow; for those that read annotations of nodes,
the annotations are written.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from podium.cluster import Cluster
from podium.kube import Node
from podium.kube.meta import format_time
from podium.load.readings import GivenLoad
from podium.load.series import Series
from podium_lab.simulator.distributions import generator, is_quantity, one_by_one, sampler
from podium_lab.simulator.pods import PodTemplate
from podium_lab.simulator.scenario import UsageModel

Floats = NDArray[np.float64]
SECONDARY = 4.7
"""How much faster the second wave is."""
RESOURCES = ("cpu", "memory")
LEVEL, SWING, FIRST, SECOND, NETWORK, CPU, MEMORY = range(7)
WIDTH = 7


def traits_sampler(model: UsageModel, seed: int) -> Callable[[], tuple[float, ...]]:
    """Draws level, swing, both phases and network use of a pod, in the order pods arrive."""
    streams = [np.random.default_rng(each) for each in generator(seed, "usage").integers(2**63, size=4)]
    level, swing, network = (
        sampler(amount, rng) for amount, rng in zip((model.level, model.swing, model.network), streams, strict=False)
    )
    phases = one_by_one(lambda number: streams[3].uniform(0.0, 1.0, number))
    return lambda: (level(), swing(), phases(), phases(), network())


class UsageMeter:
    """What every node uses now, and did over the window."""

    def __init__(self, model: UsageModel, cluster: Cluster, load: GivenLoad, set_node: Callable[[Node], None] | None):
        """`set_node` takes nodes with new annotations; None where no plugin reads any."""
        self._model = model
        self._cluster = cluster
        self._load = load
        self._set_node = set_node
        self._slot_of: dict[str, int] = {}
        self._free: list[int] = []
        self._pods: Floats = np.zeros((WIDTH, 64))
        self._rows: NDArray[np.intp] = np.zeros(64, dtype=np.intp)
        self._unrequested = (
            1000 * is_quantity(model.unrequested.get("cpu", 0)),
            is_quantity(model.unrequested.get("memory", 0)),
        )
        samples = max(1, round(model.window / model.interval))
        self._history: Floats = np.full((samples, 3, 0), np.nan)
        self._taken = 0
        self._latest: Floats = np.zeros((3, 0))
        self.utilisation: Floats = np.zeros(0)
        """float64[present nodes]: share of its CPU that each used at the last measurement, beyond 1 where pods want
        more than there is."""
        self.network_imbalance = math.nan
        """Deviation of traffic over nodes, in percent of its mean."""
        self.overloaded_minutes = 0.0
        self.unknown: set[str] = set()
        """Series that plugins follow and nothing here measures."""

    # Pods

    def pod_added(self, uid: str, node_name: str, template: PodTemplate, traits: tuple[float, ...]) -> None:
        if not self._free:
            self._grow()
        slot = self._slot_of[uid] = self._free.pop()
        cpu, memory = template.cpu or self._unrequested[0], template.memory or self._unrequested[1]
        self._pods[:, slot] = (*traits, cpu, memory)
        self._rows[slot] = self._cluster.row_of[node_name]

    def pod_removed(self, uid: str) -> None:
        slot = self._slot_of.pop(uid)
        self._pods[:, slot] = 0.0
        self._free.append(slot)

    def _grow(self) -> None:
        old = len(self._rows) if self._slot_of else 0
        size = max(64, 2 * old)
        pods, rows = np.zeros((WIDTH, size)), np.zeros(size, dtype=np.intp)
        pods[:, :old], rows[:old] = self._pods[:, :old], self._rows[:old]
        self._pods, self._rows = pods, rows
        self._free = list(range(size - 1, old - 1, -1))

    # Measuring

    def measure(self, now: float, time: float) -> None:
        """Take one measurement, at a virtual time, and write it to the series that are followed."""
        use = self._use(time)
        rows = use.shape[1]
        if self._history.shape[2] < rows:
            grown = np.full((*self._history.shape[:2], rows), np.nan)
            grown[:, :, : self._history.shape[2]] = self._history
            self._history = grown
        self._history[self._taken % len(self._history), :, :rows] = use
        self._taken += 1
        self._latest = use
        present = self._cluster.order.rows
        offered = self._cluster.resources.table(RESOURCES, offered=True)[0][present]
        self.utilisation = use[0][present] / np.maximum(offered, 1)
        traffic = use[2][present]
        mean = float(traffic.mean()) if len(traffic) else 0.0
        self.network_imbalance = 100 * float(traffic.std()) / mean if mean else math.nan
        over = int(np.count_nonzero(self.utilisation > self._model.overload))
        self.overloaded_minutes += over * self._model.interval / 60e9
        self._tell(now)

    def load_of(self, row: int) -> tuple[float, float, float]:
        """What a node used at the last measurement: shares of its cpu and memory, bytes a second."""
        if row >= self._latest.shape[1]:
            return 0.0, 0.0, 0.0
        cpu, memory, network = self._latest[:, row].tolist()
        offered = self._cluster.resources.table(RESOURCES, offered=True)[:, row].tolist()
        return min(cpu / max(offered[0], 1), 1.0), min(memory / max(offered[1], 1), 1.0), network

    def _use(self, time: float) -> Floats:
        """float64[cpu in thousandths, memory in bytes, bytes a second; rows]."""
        pods, turn = self._pods, 2 * math.pi
        period = self._model.period.seconds
        waves = np.sin(turn * (time / period + pods[FIRST])) * (2 / 3)
        waves += np.sin(turn * (SECONDARY * time / period + pods[SECOND])) / 3
        cpu_share = np.clip(pods[LEVEL] * (1 + pods[SWING] * waves), 0.0, self._model.burst)
        memory_share = np.clip(pods[LEVEL], 0.0, 1.0)
        cpu = cpu_share * pods[CPU]
        rows = self._cluster.columns.rows
        weights = (cpu, memory_share * pods[MEMORY], pods[NETWORK] * cpu / 1000)
        return np.array([np.bincount(self._rows, each, minlength=rows)[:rows] for each in weights])

    def _tell(self, now: float) -> None:
        if not self._load.followed and self._set_node is None:
            return
        cluster = self._cluster
        present = cluster.order.rows
        names = [cluster.names[row] for row in present.tolist()]
        taken = self._history[:, :, present]
        latest = taken[(self._taken - 1) % len(taken)]
        known = taken[: min(self._taken, len(taken))]
        mean, deviation = np.nanmean(known, axis=0), np.nanstd(known, axis=0)
        offered = np.maximum(cluster.resources.table(RESOURCES, offered=True)[:, present], 1).astype(np.float64)
        figures = {"Latest": latest, "AVG": mean, "STD": deviation}
        for series, readings in self._load.followed.items():
            if not isinstance(series, Series):
                continue
            wanted = meaning(series)
            if wanted is None:
                self.unknown.add(str(series))
                continue
            line, operator = wanted
            values = figures[operator][line]
            if line < 2:
                values = 100 * values / offered[line]
            readings.write(dict(zip(names, values.tolist(), strict=True)), now)
        if self._set_node is not None:
            self._annotate(mean, deviation, offered, present, now)

    def _annotate(
        self, mean: Floats, deviation: Floats, offered: Floats, present: NDArray[np.intp], now: float
    ) -> None:
        assert self._set_node is not None
        free = np.maximum(offered - mean[:2], 0).round().astype(np.int64).T.tolist()
        spread = deviation[:2].round().astype(np.int64).T.tolist()
        measured = format_time(now)
        for row, (cpu, memory), (cpu_std, memory_std) in zip(present.tolist(), free, spread, strict=True):
            node = self._cluster.nodes[row]
            if node is not None:
                annotations = {
                    **node.metadata.annotations,
                    "mean-free-cpu": str(cpu),
                    "std-free-cpu": str(cpu_std),
                    "mean-free-memory": str(memory),
                    "std-free-memory": str(memory_std),
                    "usage-measured-at": measured,
                }
                self._set_node(replace(node, metadata=replace(node.metadata, annotations=annotations)))


def meaning(series: Series) -> tuple[int, str] | None:
    """Which line of the measurements a series asks for, and what of it; None where that is not measured."""
    query = series.query
    if "node_network" in query or query.startswith("Bandwidth"):
        return 2, "AVG"
    operator = "STD" if "stddev" in query or "/STD" in query else "Latest" if "/Latest" in query else "AVG"
    lowered = query.lower()
    if "mem" in lowered:
        return 1, operator
    if "cpu" in lowered or "load1" in lowered:
        return 0, operator
    return None
