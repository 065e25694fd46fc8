"""Reads measured load that comes through the API server: from metrics-server, and from annotations on nodes.

metrics-server tells the use of cpu and memory of every node in one list. As load-watcher does it, that becomes percent
of the node's capacity, as `CPU/Latest` and `Memory/Latest`; averages and deviations it does not have, and a series that
asks for them stays empty.

An annotation is a number, or a number and the time it was measured: `37.5` or `37.5,2026-01-31T12:00:00Z`. Without a
time it counts as measured now, for as long as it is there.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Protocol

import msgspec

from kubecel.quantity import QuantityError, parse
from podium.kube.bounds import UNDECODABLE
from podium.kube.meta import Resources, parse_time
from podium.load.series import Series
from podium.load.settings import SourceSettings
from podium.load.sources.matching import NodeIndex
from podium.load.sources.sample import Measured, Measurements, SourceError, in_slices

NODE_METRICS = "/apis/metrics.k8s.io/v1beta1/nodes"
RESOURCES = {"CPU": "cpu", "Memory": "memory"}


class ApiReader(Protocol):
    """The Kubernetes client, as far as it is needed here."""

    async def get(self, path: str, *, timeout: float | None = None) -> bytes: ...


class _Name(msgspec.Struct, frozen=True):
    name: str = ""


class _NodeMetrics(msgspec.Struct):
    metadata: _Name = _Name()
    timestamp: str = ""
    usage: Resources = {}


class _List(msgspec.Struct):
    items: list[msgspec.Raw] = []


_list = msgspec.json.Decoder(_List)
_node_metrics = msgspec.json.Decoder(_NodeMetrics)


class MetricsServer:
    """Asks metrics-server through `api`, which may raise whatever its client raises: that text is reported."""

    def __init__(self, source: SourceSettings, api: ApiReader | None) -> None:
        self._source = source
        self._api = api

    async def ask(self, wanted: Iterable[Series], nodes: NodeIndex, now: float) -> Measurements:
        items = await self._items()
        usage = [(series, Measured(0.0), _resource(series.query)) for series in wanted]
        async for part in in_slices(items):
            for raw in part:
                try:
                    metrics = _node_metrics.decode(raw)
                except UNDECODABLE:
                    metrics = _NodeMetrics()
                for _, measured, resource in usage:
                    if resource:
                        _read_usage(metrics, resource, measured, nodes, now)
        for _, measured, _ in usage:
            measured.measured_at = max(measured.times.values(), default=now)
        return {series: measured for series, measured, _ in usage}

    async def close(self) -> None:
        pass

    async def _items(self) -> list[msgspec.Raw]:
        if self._api is None:
            raise SourceError("metrics-server is reached through an API server, and there is none")
        try:
            body = await self._api.get(NODE_METRICS, timeout=self._source.timeout.seconds)
            return _list.decode(body).items
        except UNDECODABLE:
            raise SourceError("metrics-server answered with something else than a list of node metrics") from None
        except Exception as error:  # the client is handed in, and its errors are of its own family
            hint = ": is it installed?" if getattr(error, "status", 0) in (404, 503) else ""
            raise SourceError(f"metrics-server does not answer ({error}){hint}") from error


def _resource(query: str) -> str | None:
    kind, _, operator = query.partition("/")
    return RESOURCES.get(kind) if operator == "Latest" else None


def _read_usage(metrics: _NodeMetrics, resource: str, measured: Measured, nodes: NodeIndex, now: float) -> None:
    measured.samples += 1
    name = metrics.metadata.name
    node = nodes.nodes.get(name)
    if node is None:
        measured.unmatched += 1
        return
    try:
        capacity = parse(node.status.capacity.get(resource, 0))
        value = 100 * parse(metrics.usage[resource]) / capacity
        time = parse_time(metrics.timestamp) if metrics.timestamp else now
    except (KeyError, QuantityError, ValueError, ZeroDivisionError, OverflowError):
        measured.not_finite += 1
        return
    measured.duplicates += name in measured.values
    measured.values[name], measured.times[name] = value, time


class Annotations:
    """Reads annotations of the nodes that are known."""

    async def ask(self, wanted: Iterable[Series], nodes: NodeIndex, now: float) -> Measurements:
        answer: dict[Series, Measured] = {series: Measured(now) for series in wanted}
        async for part in in_slices(nodes.nodes.values()):
            for node in part:
                for series, measured in answer.items():
                    text = node.annotations.get(series.query)
                    if text is not None:
                        _read_annotation(node.name, text, measured)
        return answer

    async def close(self) -> None:
        pass


def _read_annotation(name: str, text: str, measured: Measured) -> None:
    number, _, time = text.partition(",")
    measured.samples += 1
    try:
        value = float(number)
        if time:
            measured.times[name] = parse_time(time.strip())
    except ValueError:
        value = math.nan
    if math.isfinite(value):
        measured.values[name] = value
    else:
        measured.not_finite += 1
