"""Queries Prometheus, or a server with its HTTP API: one instant query for all nodes.

The answer is a vector, one sample per series. Each finds its node by its labels; several for one node become one as the
series says (`combine`). Prometheus' time of evaluation is the time of the query, so values are as old as the request
that brought them; of a series it has not scraped for five minutes Prometheus itself no longer speaks.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable

import msgspec

from podium.kube.bounds import UNDECODABLE
from podium.load.series import Combine, Series, SeriesPart
from podium.load.settings import SourceSettings
from podium.load.sources.http import LoadServer
from podium.load.sources.matching import Matcher, NodeIndex, matcher
from podium.load.sources.sample import Measured, Measurements, SourceError, in_slices

QUERY = "/api/v1/query"
AT_ONCE = 4
"""Queries under way at the same time."""
SHOWN = 300
"""Characters of a server's own words in a message."""


class _Data(msgspec.Struct, rename="camel"):
    result_type: str = ""
    result: msgspec.Raw = msgspec.Raw(b"[]")


class _Envelope(msgspec.Struct, rename="camel"):
    status: str = ""
    data: _Data | None = None
    error_type: str = ""
    error: str = ""


class _Sample(msgspec.Struct):
    metric: dict[str, str] = {}
    value: tuple[float, str | float] | None = None
    """None: a histogram, which is no number."""


_envelope = msgspec.json.Decoder(_Envelope)
_pieces = msgspec.json.Decoder(list[msgspec.Raw])
_sample = msgspec.json.Decoder(_Sample)


class Prometheus:
    """One server."""

    def __init__(self, source: SourceSettings) -> None:
        self._source = source
        self._server = LoadServer(source)
        self._reading = asyncio.Lock()  # answers are read one after the other: slices of several would add up

    async def ask(self, wanted: Iterable[Series], nodes: NodeIndex, now: float) -> Measurements:
        turn = asyncio.Semaphore(AT_ONCE)

        async def one(series: Series) -> Measured | SourceError:
            async with turn:
                try:
                    return await self._query(series, nodes, now)
                except SourceError as error:
                    return error

        wanted = list(wanted)
        return dict(zip(wanted, await asyncio.gather(*map(one, wanted)), strict=True))

    async def close(self) -> None:
        await self._server.close()

    async def _query(self, series: Series, nodes: NodeIndex, now: float) -> Measured:
        answer = await self._answer(series.query)
        async with self._reading:
            samples = result_of(self._source, *answer, "vector")
            measured = await read_vector(samples, matcher(series.match, nodes), series.combine, now)
        if not samples and series.parts:
            measured.missing = await self._missing(series)
        return measured

    async def _answer(self, query: str) -> tuple[int, bytes]:
        form = {"query": query, "timeout": f"{max(1, int(self._source.timeout) // 10**6)}ms"}
        return await self._server.ask("POST", QUERY, form)

    async def _missing(self, series: Series) -> tuple[SeriesPart, ...]:
        """The parts without samples; none where no part has any."""
        answers = [await self._answer(part.query) for part in series.parts]
        empty = [not result_of(self._source, *answer, "vector") for answer in answers]
        return () if all(empty) else tuple(part for part, none in zip(series.parts, empty, strict=True) if none)


def result_of(source: SourceSettings, status: int, body: bytes, kind: str) -> list[msgspec.Raw]:
    """The pieces of an answer, which must be of a kind: `vector` for one moment, `matrix` for a range of time."""
    try:
        envelope = _envelope.decode(body)
    except UNDECODABLE:
        if status == 200:
            raise SourceError(f"{source} answered with something else than Prometheus' JSON") from None
        envelope = _Envelope()
    if status != 200 or envelope.status != "success":
        raise SourceError(f"{source} {_refusal(status, envelope)}")
    data = envelope.data or _Data()
    if data.result_type != kind:
        raise SourceError(f"the query gives a {data.result_type or 'nothing'}, not one sample per node")
    try:
        return _pieces.decode(data.result)
    except UNDECODABLE:
        raise SourceError(f"{source} answered with a {kind} that is none") from None


def _refusal(status: int, envelope: _Envelope) -> str:
    match status:
        case 401 | 403:
            return f"does not accept the credentials (HTTP {status}): see token, tokenFile and basicAuth"
        case _ if envelope.error:
            return f"refuses the query: {envelope.error[:SHOWN]}"
        case 404:
            return f"has nothing at {QUERY} (HTTP 404): is the address that of Prometheus?"
    return f"answered HTTP {status}"


async def read_vector(samples: list[msgspec.Raw], node_of: Matcher, combine: Combine, now: float) -> Measured:
    """A vector's samples by node, and what became of those that are of no use."""
    measured = Measured(now, samples=len(samples))
    by_node: dict[str, float] = {}
    counts: dict[str, int] = {}
    async for part in in_slices(samples):
        for raw in part:
            labels, value = _read_sample(raw)
            name = node_of(labels)
            if name is None:
                measured.unmatched += 1
                measured.stranger = measured.stranger or labels
            elif not math.isfinite(value):
                measured.not_finite += 1
            elif name in by_node:
                measured.duplicates += 1
                counts[name] = counts.get(name, 1) + 1
                by_node[name] = _combined(combine, by_node[name], value)
            else:
                by_node[name] = value
    if combine == "mean":
        for name, count in counts.items():
            by_node[name] /= count
    measured.values = by_node
    return measured


def _read_sample(raw: msgspec.Raw) -> tuple[dict[str, str], float]:
    try:
        sample = _sample.decode(raw)
    except UNDECODABLE:
        return {}, math.nan
    try:
        return sample.metric, math.nan if sample.value is None else float(sample.value[1])
    except ValueError:
        return sample.metric, math.nan


def _combined(combine: Combine, one: float, other: float) -> float:
    match combine:
        case "max":
            return max(one, other)
        case "min":
            return min(one, other)
    return one + other
