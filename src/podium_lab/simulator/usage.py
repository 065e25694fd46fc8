"""Measures what pods use in a simulation, and tells the plugins that follow it.

Each running pod has a slot in a few arrays, so that the use of all pods at one moment is one expression (see
`UsageModel`), added up by node. The last measurements make mean and deviation over a window, as Prometheus would give
them. Plugins that read load through their handle get the series they follow; for those that read annotations of nodes,
the annotations are written. What is measured may become known late, or be missing of a node (`late`, `missing`).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

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
LEVEL, SWING, FIRST, SECOND, NETWORK, CPU, MEMORY, CONNECTIONS = range(8)
WIDTH = 8
MEASURED = ("cpu", "memory", "traffic", "connections", "latency")
"""The lines of a measurement: thousandths of a core, bytes, bytes a second, connections, milliseconds."""
LATENCY_WORDS = ("latency", "probe_duration", "smokeping", "rtt")
"""A query with one of them asks for the latency of nodes, in milliseconds."""
TRAFFIC_LINE, CONNECTIONS_LINE, LATENCY_LINE = 2, 3, 4


class Measurement(NamedTuple):
    """What was measured at one moment, of the nodes present then."""

    at: float
    """Seconds of the engine's clock."""
    rows: NDArray[np.intp]
    names: list[str]
    figures: dict[str, Floats]
    """float64[lines of MEASURED, nodes]: Latest, AVG and STD."""
    offered: Floats
    scraped: NDArray[np.bool_]
    """Of which nodes it becomes known."""


def traits_sampler(model: UsageModel, seed: int) -> Callable[[], tuple[float, ...]]:
    """Draws level, swing, both phases, network use and connections of a pod, in the order pods arrive."""
    streams = [np.random.default_rng(each) for each in generator(seed, "usage").integers(2**63, size=4)]
    level, swing, network = (
        sampler(amount, rng) for amount, rng in zip((model.level, model.swing, model.network), streams, strict=False)
    )
    phases = one_by_one(lambda number: streams[3].uniform(0.0, 1.0, number))
    connections = sampler(model.connections, generator(seed, "connections"))
    return lambda: (level(), swing(), phases(), phases(), network(), float(round(connections())))


class UsageMeter:
    """What every node uses now, and did over the window."""

    def __init__(
        self,
        model: UsageModel,
        cluster: Cluster,
        load: GivenLoad,
        set_node: Callable[[Node], None] | None,
        seed: int = 0,
    ):
        """`set_node` takes nodes with new annotations; None where no plugin reads any."""
        self._model = model
        self._scrapes = generator(seed, "scrapes")
        self._late: deque[Measurement] = deque()
        self.latency: dict[str, float] = {}
        """Milliseconds from a node to the users, by name; nodes without one have no latency."""
        self.seen: Floats = np.full((len(MEASURED), 0), np.nan)
        """float64[lines of MEASURED, rows]: the newest that became known; NaN where nothing did."""
        self.seen_at: Floats = np.zeros(0)
        """float64[rows]: when it was measured, by the engine's clock."""
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
        self._history: Floats = np.full((samples, LATENCY_LINE, 0), np.nan)
        self._taken = 0
        self._latest: Floats = np.zeros((LATENCY_LINE, 0))
        self.utilisation: Floats = np.zeros(0)
        """float64[present nodes]: share of its CPU that each used at the last measurement, beyond 1 where pods want
        more than there is."""
        self.network_imbalance = math.nan
        """Deviation of traffic over nodes, in percent of its mean."""
        self.overloaded_minutes = 0.0
        self.followed = False
        """Whether something beside plugins reads what is `seen`."""
        self.unknown: set[str] = set()
        """Series that plugins follow and nothing here measures."""

    # Pods

    def pod_added(self, uid: str, node_name: str, template: PodTemplate, traits: tuple[float, ...]) -> None:
        if not self._free:
            self._grow()
        slot = self._slot_of[uid] = self._free.pop()
        cpu, memory = template.cpu or self._unrequested[0], template.memory or self._unrequested[1]
        self._pods[:, slot] = (*traits[:CPU], cpu, memory, traits[CPU] if len(traits) > CPU else 0.0)
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

    def measure(self, now: float, time: float) -> bool:
        """Take one measurement, at a virtual time, and write it to the series that are followed; True where that has
        to be done later, by `publish`."""
        use = self.use(time)
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
        if self._load.followed or self._set_node is not None or self.followed:
            self._late.append(self._measurement(now))
            if self._model.late:
                return True
            self.publish()
        return False

    def load_of(self, row: int) -> tuple[float, float, float]:
        """What a node used at the last measurement: shares of its cpu and memory, bytes a second."""
        if row >= self._latest.shape[1]:
            return 0.0, 0.0, 0.0
        cpu, memory, network = self._latest[:CONNECTIONS_LINE, row].tolist()
        offered = self._cluster.resources.table(RESOURCES, offered=True)[:, row].tolist()
        return min(cpu / max(offered[0], 1), 1.0), min(memory / max(offered[1], 1), 1.0), network

    def use(self, time: float) -> Floats:
        """What nodes use now: float64[cpu in thousandths, memory in bytes, bytes a second, connections; rows]."""
        pods, turn = self._pods, 2 * math.pi
        period = self._model.period.seconds
        waves = np.sin(turn * (time / period + pods[FIRST])) * (2 / 3)
        waves += np.sin(turn * (SECONDARY * time / period + pods[SECOND])) / 3
        cpu_share = np.clip(pods[LEVEL] * (1 + pods[SWING] * waves), 0.0, self._model.burst)
        memory_share = np.clip(pods[LEVEL], 0.0, 1.0)
        cpu = cpu_share * pods[CPU]
        rows = self._cluster.columns.rows
        weights = (cpu, memory_share * pods[MEMORY], pods[NETWORK] * cpu / 1000, pods[CONNECTIONS])
        return np.array([np.bincount(self._rows, each, minlength=rows)[:rows] for each in weights])

    def _measurement(self, now: float) -> Measurement:
        cluster, model = self._cluster, self._model
        present = cluster.order.rows
        names = [cluster.names[row] for row in present.tolist()]
        taken = self._history[:, :, present]
        known = taken[: min(self._taken, len(taken))]
        latency = np.array([[self.latency.get(name, math.nan) for name in names]])
        lines = {"Latest": taken[(self._taken - 1) % len(taken)]}
        if self._load.followed or self._set_node is not None:
            lines |= {"AVG": np.nanmean(known, axis=0), "STD": np.nanstd(known, axis=0)}
        figures = {
            name: np.concatenate((found, 0 * latency if name == "STD" else latency)) for name, found in lines.items()
        }
        offered = np.maximum(cluster.resources.table(RESOURCES, offered=True)[:, present], 1).astype(np.float64)
        scraped = np.ones(len(names), dtype=np.bool_)
        if model.missing:
            scraped[present.argsort()] = self._scrapes.random(len(names)) >= model.missing  # in the order of rows
        return Measurement(now, present.copy(), names, figures, offered, scraped)

    def publish(self) -> None:
        """Let the oldest measurement that nothing knows of yet become known."""
        found = self._late.popleft()
        rows, scraped = found.rows, found.scraped
        wanted = self._cluster.columns.rows
        if len(self.seen_at) < wanted:
            seen, times = np.full((len(MEASURED), wanted), np.nan), np.full(wanted, -math.inf)
            seen[:, : len(self.seen_at)], times[: len(self.seen_at)] = self.seen, self.seen_at
            self.seen, self.seen_at = seen, times
        self.seen[:, rows[scraped]] = found.figures["Latest"][:, scraped]
        self.seen_at[rows[scraped]] = found.at
        for series, readings in self._load.followed.items():
            if not isinstance(series, Series):
                continue
            wanted_line = meaning(series)
            if wanted_line is None:
                self.unknown.add(str(series))
                continue
            line, operator = wanted_line
            values = found.figures[operator][line]
            if line < len(RESOURCES):
                values = 100 * values / found.offered[line]
            pairs = zip(found.names, values.tolist(), scraped.tolist(), strict=True)
            readings.write({name: value for name, value, is_known in pairs if is_known}, found.at)
        if self._set_node is not None:
            mean, deviation = found.figures["AVG"], found.figures["STD"]
            self._annotate(mean, deviation, found.offered, rows, found.at)

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
        return TRAFFIC_LINE, "AVG"
    operator = "STD" if "stddev" in query or "/STD" in query else "Latest" if "/Latest" in query else "AVG"
    lowered = query.lower()
    if "currestab" in lowered or "connections" in lowered:
        return CONNECTIONS_LINE, "Latest"
    if any(word in lowered for word in LATENCY_WORDS):
        return LATENCY_LINE, "Latest"
    if "mem" in lowered:
        return 1, operator
    if "cpu" in lowered or "load1" in lowered:
        return 0, operator
    return None
