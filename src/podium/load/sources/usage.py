"""Measures how much cpu and memory nodes have free, from Prometheus: mean, deviation and forecast over a window.

What is measured is use, because free is a matter of whose: a node exporter counts what the whole machine has, pods may
take what is allocatable.

    used    cpu      Σ over the processors of 1 − rate of idle seconds, in cores
            memory   MemTotal − MemAvailable, in bytes
    mean    avg_over_time(used[window:step]),  std  stddev_over_time(used[window:step])
    free    allocatable − used, not below 0

One query for each quantity speaks of all nodes. A node that is not measured at the moment is not spoken of, however
much is known of yesterday: each query ends with `and used`. The forecast is that of `forecast`, from the means of a
hundredth of the window each.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence

import msgspec
import numpy as np

from podium.config.durations import SECOND, Duration
from podium.framework.clock import Clock
from podium.kube import Node
from podium.kube.bounds import UNDECODABLE
from podium.kube.requests import offered
from podium.load.promql import duration
from podium.load.readings import Readings
from podium.load.series import NodeMatch, Series
from podium.load.settings import SourceSettings
from podium.load.sources.http import LoadServer
from podium.load.sources.matching import NodeIndex, matcher
from podium.load.sources.prometheus import result_of
from podium.load.sources.sample import SourceError, in_slices
from podium.load.sources.telemetry import Telemetry

RESOURCES = ("cpu", "memory")
MEAN, DEVIATION, FORECAST = "mean-free-{}", "std-free-{}", "forcasted-free-{}"
USAGE_KEYS = tuple(kind.format(resource) for resource in RESOURCES for kind in (MEAN, DEVIATION, FORECAST))
"""The annotations; spelt as those who read them spell them."""
MILLI = 1000
RANGE = "/api/v1/query_range"
CHUNKS = 100
ORDER = 5
SHORTEST = 4 * ORDER
"""Values needed to foretell the next."""


class UsageSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Where use is measured, over which window, and by which queries."""

    source: SourceSettings
    match: NodeMatch = NodeMatch()
    window: Duration = Duration(86400 * SECOND)
    step: Duration = Duration(60 * SECOND)
    """How far apart the values are of which mean and deviation are taken; at least four scrapes."""
    cpu_query: str = ""
    memory_query: str = ""
    """Use in cores and in bytes, one series per node; empty: as node exporters tell it."""
    forecast: bool = False

    def used(self, resource: str) -> str:
        """The expression for what is used of a resource, now."""
        if resource == "cpu":
            idle = f'rate(node_cpu_seconds_total{{mode="idle"}}[{duration(self.step)}])'
            return self.cpu_query or f"sum without (cpu, mode) (1 - {idle})"
        return self.memory_query or "node_memory_MemTotal_bytes - node_memory_MemAvailable_bytes"

    def over_time(self, function: str, resource: str) -> str:
        """The query for a mean or a deviation, of nodes that are still measured."""
        used = self.used(resource)
        return f"{function}_over_time(({used})[{duration(self.window)}:{duration(self.step)}]) and ({used})"


class NodeUsage:
    """The use of nodes, asked for once per `measure`."""

    def __init__(self, settings: UsageSettings, *, clock: Clock, rng: random.Random) -> None:
        self._settings = settings
        self._nodes: Sequence[Node] = ()
        self._telemetry = Telemetry(clock=clock, rng=rng, nodes=lambda: self._nodes, report=lambda _line: None)
        self._means = {each: self._follow("avg", each) for each in RESOURCES}
        self._deviations = {each: self._follow("stddev", each) for each in RESOURCES}
        self._server = LoadServer(settings.source)
        self._no_forecast: str | None = None

    @property
    def problems(self) -> list[str]:
        """Why the last measurement says less than it should; each reason once."""
        found = [*self._telemetry.problems.values(), *([self._no_forecast] if self._no_forecast else [])]
        return list(dict.fromkeys(found))

    def _follow(self, function: str, resource: str) -> Readings:
        settings = self._settings
        series = Series(
            source=settings.source, query=settings.over_time(function, resource), match=settings.match, combine="max"
        )
        return self._telemetry.follow(series)

    async def measure(self, nodes: Sequence[Node], now: float) -> dict[str, dict[str, str]]:
        """The annotations of each node that is measured; `problems` tells why others are not."""
        self._nodes = nodes
        await self._telemetry.refresh()
        forecasts = {each: await self._forecast(each, nodes, now) for each in RESOURCES}
        found = {}
        for node in nodes:
            amounts = offered(node.status.allocatable)
            annotations: dict[str, str] = {}
            for resource in RESOURCES:
                if resource in amounts and self._is_fresh(resource):
                    annotations |= self._of(node.name, resource, amounts[resource], forecasts[resource])
            if annotations:
                found[node.name] = annotations
        return found

    async def close(self) -> None:
        await self._server.close()
        await self._telemetry.close()

    def _is_fresh(self, resource: str) -> bool:
        """Whether the last refresh brought what is known; old values are for those who schedule."""
        return self._means[resource].problem is None and self._deviations[resource].problem is None

    def _of(self, name: str, resource: str, allocatable: int, forecasts: Mapping[str, float]) -> dict[str, str]:
        mean, deviation = self._means[resource].of(name), self._deviations[resource].of(name)
        if mean is None or deviation is None:
            return {}
        unit = MILLI if resource == "cpu" else 1
        found = {
            MEAN.format(resource): _whole(allocatable - unit * mean),
            DEVIATION.format(resource): _whole(unit * deviation),
        }
        if name in forecasts:
            found[FORECAST.format(resource)] = _whole(min(allocatable - unit * forecasts[name], allocatable))
        return found

    async def _forecast(self, resource: str, nodes: Iterable[Node], now: float) -> dict[str, float]:
        """What each node will use next, where that can be foretold."""
        if not self._settings.forecast or not self._is_fresh(resource):
            return {}
        found = {}
        try:
            histories = await self._histories(resource, nodes, now)
            self._no_forecast = None
        except SourceError as error:
            self._no_forecast = str(error)
            return {}
        async for part in in_slices(histories.items()):
            for name, values in part:
                value = next_value(values)
                if value is not None:
                    found[name] = value
        return found

    async def _histories(self, resource: str, nodes: Iterable[Node], now: float) -> dict[str, list[float]]:
        settings = self._settings
        chunk = Duration(max(settings.window // CHUNKS, 1))
        step = min(settings.step, chunk)
        means = f"avg_over_time(({settings.used(resource)})[{duration(chunk)}:{duration(Duration(step))}])"
        form = {
            "query": means,
            "start": f"{now - settings.window.seconds + chunk.seconds:.3f}",
            "end": f"{now:.3f}",
            "step": f"{chunk.seconds:.3f}",
        }
        status, body = await self._server.ask("POST", RANGE, form)
        node_of = matcher(settings.match, NodeIndex(nodes))
        found: dict[str, list[float]] = {}
        async for part in in_slices(result_of(settings.source, status, body, "matrix")):
            for raw in part:
                line = _read(raw)
                name = node_of(line.metric)
                if name is not None:
                    found[name] = [float(value) for _time, value in line.values]
        return found


class _Line(msgspec.Struct):
    metric: dict[str, str] = {}
    values: list[tuple[float, str]] = []


_line = msgspec.json.Decoder(_Line)


def _read(raw: msgspec.Raw) -> _Line:
    try:
        return _line.decode(raw)
    except UNDECODABLE:
        return _Line()


def _whole(amount: float) -> str:
    return str(max(0, math.floor(amount + 0.5)))


def next_value(series: Sequence[float]) -> float | None:
    """The value after the last; None where that cannot be said.

    >>> next_value([float(each) for each in range(30)])
    30.0

    Forecasts the next value of a series from how its last steps followed from the steps before.

    An autoregression of the differences, ARIMA(5, 1, 0) in the usual letters, fitted by least squares:

        d(t) = φ1·d(t−1) + … + φ5·d(t−5),   d(t) = x(t) − x(t−1)

    A series that stands still stays, one that rises steadily goes on rising, and a wave goes on waving. Of a series
    that is too short, or on which the fit runs away, nothing is foretold.
    """
    if len(series) < SHORTEST:
        return None
    values = np.asarray(series, dtype=np.float64)
    if not np.isfinite(values).all():
        return None
    size = float(np.abs(values).max())
    if size == 0:
        return 0.0
    steps = np.diff(values / size)
    before = np.lib.stride_tricks.sliding_window_view(steps, ORDER)
    weights = np.linalg.lstsq(before[:-1], steps[ORDER:], rcond=1e-9)[0]
    found = float(values[-1] + size * (before[-1] @ weights))
    spread = float(values.max() - values.min())
    # The next value may leave the range of all before, but not by more than that range.
    if not values.min() - spread <= found <= values.max() + spread:
        return None
    return round(found, 6)
