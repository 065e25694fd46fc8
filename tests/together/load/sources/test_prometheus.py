"""What becomes of Prometheus' answers: one rule for gaps, for what is no number, for duplicates, for strangers."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Any

import msgspec
import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from podium.load.series import Combine, NodeMatch, Series
from podium.load.settings import SourceSettings
from podium.load.sources.matching import NodeIndex, matcher
from podium.load.sources.prometheus import AT_ONCE, Prometheus, read_vector
from podium.load.sources.sample import SLICE, Measured, SourceError
from podium_plugins.network_traffic import NetworkTrafficArgs, parts_of, query_of
from tests.podium.load.sources.stand_in import StandIn, node, stand_in, vector

NODES = NodeIndex([node("a", "10.0.0.1"), node("b", "10.0.0.2"), node("c", "10.0.0.3")])


def read(samples: Sequence[tuple[dict[str, str], str]], combine: Combine = "max") -> Measured:
    pieces = [msgspec.Raw(msgspec.json.encode(each)) for each in vector(*samples)["data"]["result"]]
    return asyncio.run(read_vector(pieces, matcher(NodeMatch(), NODES), combine, 5.0))


def ask(server: StandIn, query: str = "up", combine: Combine = "max", **settings: Any) -> Any:
    """What one query brings: a Measured, or the sentence that says why not."""

    async def asking() -> Measured | str:
        series = Series(source=SourceSettings(address=server.url, **settings), query=query, combine=combine)
        prometheus = Prometheus(series.source)
        try:
            answer = (await prometheus.ask([series], NODES, 5.0))[series]
        finally:
            await prometheus.close()
        return str(answer) if isinstance(answer, SourceError) else answer

    return asking()


def test_one_query_brings_the_values_of_all_nodes() -> None:
    async def main() -> None:
        async with stand_in() as server:
            server.says(vector(({"instance": "10.0.0.1:9100"}, "1.5"), ({"node": "b"}, "2e3")))
            measured = await ask(server, 'rate(x{a="ü"}[5m])')
            assert (measured.values, measured.measured_at) == ({"a": 1.5, "b": 2000.0}, 5.0)
            (request,) = server.requests
            assert (request.method, request.path) == ("POST", "/api/v1/query")
            assert server.forms == [{"query": 'rate(x{a="ü"}[5m])', "timeout": "10000ms"}]

    asyncio.run(main())


def test_a_few_queries_are_under_way_at_the_same_time() -> None:
    async def main() -> None:
        going, most, all_there = 0, 0, asyncio.Event()

        async def reply(_request: web.Request) -> web.StreamResponse:
            nonlocal going, most
            going += 1
            most = max(most, going)
            if most == AT_ONCE:
                all_there.set()
            await all_there.wait()
            await asyncio.sleep(0.02)  # so that one more would be seen
            going -= 1
            return web.json_response(vector(({"node": "b"}, "1")))

        async with stand_in() as server:
            server.reply = reply
            source = SourceSettings(address=server.url)
            prometheus = Prometheus(source)
            wanted = [Series(source=source, query=f"q{number}") for number in range(3 * AT_ONCE)]
            answer = await prometheus.ask(wanted, NODES, 5.0)
            await prometheus.close()
        assert list(answer) == wanted
        assert all(isinstance(each, Measured) and each.values == {"b": 1.0} for each in answer.values())
        assert most == AT_ONCE

    asyncio.run(main())


def test_long_complaints_are_cut() -> None:
    async def main() -> None:
        async with stand_in() as server:
            server.says({"status": "error", "error": "x" * 5000}, status=422)
            said = await ask(server)
            assert "refuses the query: xxx" in said
            assert len(said) < 400

    asyncio.run(main())


def test_the_address_may_have_a_path() -> None:
    async def main() -> None:
        async with stand_in() as server:
            server.says(vector(({"node": "b"}, "1")))
            server.url += "/prometheus/"
            assert (await ask(server)).values == {"b": 1.0}
            assert server.requests[0].path == "/prometheus/api/v1/query"

    asyncio.run(main())


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-Inf", "nonsense", ""])
def test_a_node_whose_value_is_no_finite_number_has_none(value: str) -> None:
    measured = read([({"node": "a"}, value), ({"node": "b"}, "1")])
    assert (measured.values, measured.not_finite) == ({"b": 1.0}, 1)


def test_a_nan_beside_a_number_for_the_same_node_does_not_count() -> None:
    assert read([({"node": "a"}, "NaN"), ({"node": "a"}, "3"), ({"node": "a"}, "Inf")]).values == {"a": 3.0}


def test_series_of_no_known_node_are_counted_and_left_out() -> None:
    measured = read([({"node": "gone"}, "1"), ({}, "2"), ({"node": "a"}, "3")])
    assert (measured.values, measured.unmatched, measured.samples) == ({"a": 3.0}, 2, 3)


@pytest.mark.parametrize(("combine", "expected"), [("max", 4.0), ("min", 1.0), ("sum", 7.0), ("mean", 7 / 3)])
def test_several_series_of_one_node_are_combined(combine: Combine, expected: float) -> None:
    samples = [({"node": "a", "device": str(i)}, value) for i, value in enumerate("142")]
    measured = read(samples, combine)
    assert measured.values == {"a": pytest.approx(expected)}
    assert measured.duplicates == 2


def test_a_sample_without_a_number_is_left_out() -> None:
    histogram = {"metric": {"node": "a"}, "histogram": [1, {"count": "3"}]}
    pieces = [msgspec.Raw(msgspec.json.encode(each)) for each in (histogram, 7, {"metric": {"node": 7}}, None)]
    measured = asyncio.run(read_vector(pieces, matcher(NodeMatch(), NODES), "max", 5.0))
    assert (measured.values, measured.samples, measured.not_finite + measured.unmatched) == ({}, 4, 4)


RULES: dict[str, Callable[[list[float]], float]] = {"max": max, "min": min, "sum": sum, "mean": fmean}
numbers = st.floats(width=32) | st.sampled_from([math.nan, math.inf, -math.inf])


@given(
    st.lists(st.tuples(st.sampled_from(["a", "b", "c", "gone"]), numbers), max_size=3 * SLICE),
    st.sampled_from(["max", "min", "sum", "mean"]),
)
def test_every_sample_is_accounted_for_and_only_finite_numbers_of_known_nodes_count(
    given_samples: list[tuple[str, float]], combine: Combine
) -> None:
    measured = read([({"node": name}, str(value)) for name, value in given_samples], combine)
    finite = {
        name: [value for other, value in given_samples if other == name and math.isfinite(value)] for name in "abc"
    }
    expected = {name: RULES[combine](values) for name, values in finite.items() if values}
    assert measured.values == pytest.approx(expected)
    used = sum(map(len, finite.values()))
    assert measured.samples == len(given_samples) == used + measured.unmatched + measured.not_finite
    assert measured.duplicates == used - len(expected)


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (400, {"status": "error", "errorType": "bad_data", "error": "parse error"}, "refuses the query: parse error"),
        (503, {"status": "error", "errorType": "timeout", "error": "query timed out"}, "query timed out"),
        (200, {"status": "error", "error": "strange"}, "refuses the query: strange"),
        (401, "<html>", "does not accept the credentials (HTTP 401)"),
        (403, "", "does not accept the credentials (HTTP 403)"),
        (404, "404 page not found", "is the address that of Prometheus?"),
        (502, "<html>", "answered HTTP 502"),
        (200, "<html>", "something else than Prometheus' JSON"),
        (200, "", "something else than Prometheus' JSON"),
        (200, '{"status": "success", "data": ', "something else than Prometheus' JSON"),
        (200, {"status": "success", "data": {"resultType": "scalar", "result": [1, "2"]}}, "gives a scalar"),
        (200, {"status": "success", "data": {"resultType": "matrix", "result": []}}, "gives a matrix"),
        (200, {"status": "success", "data": {"resultType": "vector", "result": {}}}, "a vector that is none"),
        (200, {"status": "success"}, "not one sample per node"),
        (307, "", "redirects to"),
    ],
)
def test_an_answer_of_no_use_is_one_sentence(status: int, body: Any, said: str) -> None:
    async def main() -> None:
        async with stand_in() as server:
            server.says(body, status)
            sentence = await ask(server)
            assert said in sentence
            assert "\n" not in sentence

    asyncio.run(main())


def test_one_bad_query_does_not_spoil_the_others() -> None:
    async def main() -> None:
        async with stand_in() as server:
            server.answers({"good": vector(({"node": "a"}, "1")), "bad": {"status": "error", "error": "no"}})
            source = SourceSettings(address=server.url)
            good, bad = (Series(source=source, query=query) for query in ("good", "bad"))
            prometheus = Prometheus(source)
            answer = await prometheus.ask([bad, good], NODES, 5.0)
            await prometheus.close()
            assert isinstance(answer[bad], SourceError)
            assert isinstance(answer[good], Measured)

    asyncio.run(main())


def test_a_sum_without_samples_says_which_of_its_parts_has_none() -> None:
    """Some exporters count received bytes only, and a sum of both directions then has no samples at all."""
    args = NetworkTrafficArgs(prometheus_address="x")
    received, sent = (part.query for part in parts_of(args))
    some, none = vector(({"node": "a"}, "1")), vector()

    async def missing(of_received: Any, of_sent: Any) -> list[str]:
        async with stand_in() as server:
            server.answers({query_of(args): none, received: of_received, sent: of_sent})
            settings = SourceSettings(address=server.url)
            series = Series(source=settings, query=query_of(args), parts=parts_of(args))
            prometheus = Prometheus(settings)
            try:
                measured = (await prometheus.ask([series], NODES, 5.0))[series]
            finally:
                await prometheus.close()
            assert isinstance(measured, Measured)
            return [f"{part.name}: {part.otherwise}" for part in measured.missing]

    advice = "node_network_transmit_bytes_total: set direction: rx to go by node_network_receive_bytes_total alone"
    assert asyncio.run(missing(some, none)) == [advice]
    assert [each.split(":")[0] for each in asyncio.run(missing(none, some))] == ["node_network_receive_bytes_total"]
    assert asyncio.run(missing(none, none)) == []  # another interface, another name: neither half is to blame
