"""Reads load-watcher: percentages of several metrics over one window, for all nodes in one answer.

The service measures over fifteen minutes and falls back to ten by itself; which window it was is in the answer, and its
end is when the values were measured. A series is a type and an operator (`CPU/AVG`), with the metric's own name where a
type has several (`Bandwidth/AVG/instance:node_network_receive_bytes:rate:sum`); of several metrics that fit, the last
one counts, as it does for those who read load-watcher elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import msgspec

from podium.kube.bounds import UNDECODABLE
from podium.load.series import Series
from podium.load.settings import SourceSettings
from podium.load.sources.http import LoadServer
from podium.load.sources.matching import NodeIndex
from podium.load.sources.sample import Measured, Measurements, SourceError, in_slices

WATCHER = "/watcher"


class _Metric(msgspec.Struct):
    name: str = ""
    type: str = ""
    operator: str = ""
    value: float | None = None


class _Node(msgspec.Struct):
    metrics: list[_Metric] | None = None


class _Window(msgspec.Struct, frozen=True):
    end: float = 0


class _Data(msgspec.Struct):
    nodes: dict[str, msgspec.Raw] | None = msgspec.field(name="NodeMetricsMap", default=None)


class _Answer(msgspec.Struct):
    timestamp: float = 0
    window: _Window = _Window()
    data: _Data = msgspec.field(default_factory=_Data)


_answer = msgspec.json.Decoder(_Answer)
_node = msgspec.json.Decoder(_Node)


class LoadWatcher:
    """One load-watcher."""

    def __init__(self, source: SourceSettings) -> None:
        self._source = source
        self._server = LoadServer(source)

    async def ask(self, wanted: Iterable[Series], nodes: NodeIndex, now: float) -> Measurements:
        status, body = await self._server.ask("GET", WATCHER)
        if status != 200:
            raise SourceError(f"{self._source} answered HTTP {status}{_meaning(status)}")
        try:
            answer = _answer.decode(body)
        except UNDECODABLE:
            raise SourceError(f"{self._source} answered with something else than load-watcher's JSON") from None
        measured_at = answer.window.end or answer.timestamp or now
        measured = {series: Measured(measured_at) for series in wanted}
        async for part in in_slices((answer.data.nodes or {}).items()):
            for host, raw in part:
                _read_node(nodes.either(host), raw, measured)
        return measured

    async def close(self) -> None:
        await self._server.close()


def _read_node(name: str | None, raw: msgspec.Raw, measured: dict[Series, Measured]) -> None:
    try:
        metrics = _node.decode(raw).metrics or []
    except UNDECODABLE:
        metrics = []
    values: dict[str, float] = {}
    for metric in metrics:
        key = f"{metric.type}/{metric.operator}"
        values[key] = values[f"{key}/{metric.name}"] = math.nan if metric.value is None else metric.value
    for series, into in measured.items():
        value = values.get(series.query)
        if value is None:
            continue
        into.samples += 1
        if name is None:
            into.unmatched += 1
        elif not math.isfinite(value):
            into.not_finite += 1
        else:
            into.duplicates += name in into.values
            into.values[name] = value


def _meaning(status: int) -> str:
    match status:
        case 500:
            return ": it has no measurements yet"
        case 404:
            return f": is there a load-watcher at that address, with {WATCHER}?"
    return ""
