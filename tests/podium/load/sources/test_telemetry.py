"""Refreshing in the background: when sources are asked, how long values hold, and what is told."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any

import pytest

from podium.config.durations import Duration
from podium.kube import Node
from podium.load.readings import Readings
from podium.load.series import NodeMatch, Series
from podium.load.settings import SourceSettings
from podium.load.sources import Telemetry
from tests.podium.load.sources.stand_in import StandIn, node, stand_in, vector
from tools.kit.virtual_time import run_virtually

EPOCH = 1_000_000.0
METRICS = SourceSettings(kind="metrics-server", refresh_interval=Duration.parse("30s"), max_age=Duration.parse("100s"))
CPU = Series(source=METRICS, query="CPU/Latest")
MEMORY = Series(source=METRICS, query="Memory/Latest")


class LoopClock:
    """The engine's time on a virtual loop."""

    def now(self) -> float:
        return EPOCH + asyncio.get_running_loop().time()


class Api:
    """A metrics-server that counts; `fault` is what happens instead of an answer."""

    def __init__(self) -> None:
        self.asked: list[float] = []
        self.fault: Exception | None = None
        self.cpu = "1"

    async def get(self, _path: str, *, timeout: float | None = None) -> bytes:
        self.asked.append(asyncio.get_running_loop().time())
        if self.fault is not None:
            raise self.fault
        usage = {"cpu": self.cpu, "memory": "1Gi"}
        return json.dumps({"items": [{"metadata": {"name": "a"}, "usage": usage}]}).encode()


class World:
    def __init__(self, nodes: list[Node] | None = None) -> None:
        self.api = Api()
        self.log: list[str] = []
        self.nodes = [node("a"), node("b")] if nodes is None else nodes
        self.telemetry = Telemetry(
            clock=LoopClock(), rng=random.Random(1), nodes=lambda: self.nodes, api=self.api, report=self.log.append
        )

    def run(self, test: Callable[[], Awaitable[None]]) -> None:
        """Run a test beside the refreshing, in virtual time."""

        async def main() -> None:
            refreshing = asyncio.create_task(self.telemetry.run())
            try:
                await test()
            finally:
                refreshing.cancel()
                await asyncio.gather(refreshing, return_exceptions=True)

        run_virtually(main())


def test_values_are_there_after_the_first_round_and_equal_series_share_them() -> None:
    world = World()
    readings = world.telemetry.follow(CPU)
    assert world.telemetry.follow(Series(source=METRICS, query="CPU/Latest")) is readings

    async def test() -> None:
        await world.telemetry.first_refresh(60)
        assert readings.values == {"a": 25.0}
        assert (readings.measured_at, readings.problem) == (EPOCH, None)

    world.run(test)


def test_one_request_serves_everything_that_is_followed_of_a_source() -> None:
    world = World()
    cpu, memory = world.telemetry.follow(CPU), world.telemetry.follow(MEMORY)

    async def test() -> None:
        await world.telemetry.first_refresh(60)
        assert (cpu.of("a"), memory.of("a")) == (25.0, 12.5)
        assert world.api.asked == [0.0]

    world.run(test)


def test_a_source_is_asked_every_interval_give_or_take_a_tenth() -> None:
    world = World()
    world.telemetry.follow(CPU)

    async def test() -> None:
        await asyncio.sleep(3000)
        asked = world.api.asked
        gaps = [after - before for before, after in pairwise(asked)]
        assert all(27 <= gap <= 33.1 for gap in gaps)
        assert len(set(gaps)) > 50
        assert len(gaps) == pytest.approx(100, abs=10)

    world.run(test)


def test_when_a_source_goes_down_values_hold_until_they_are_too_old_and_come_back_with_it() -> None:
    world = World()
    readings = world.telemetry.follow(CPU)
    other = world.telemetry.follow(MEMORY)

    async def test() -> None:
        await asyncio.sleep(1)
        world.api.fault = OSError("it is gone")
        await asyncio.sleep(98.9)
        assert readings.of("a") == 25.0
        assert readings.problem is not None
        assert "it is gone" in readings.problem
        generation = readings.generation
        await asyncio.sleep(0.2)  # one hundred seconds old, between two refreshes
        assert (readings.of("a"), other.of("a")) == (None, None)
        assert readings.generation == generation + 1
        await asyncio.sleep(500)
        assert readings.generation == generation + 1
        world.api.fault = None
        await asyncio.sleep(34)
        assert readings.of("a") == 25.0
        assert world.telemetry.problems == {}

    world.run(test)


def test_one_line_tells_that_trouble_begins_and_one_that_it_is_over() -> None:
    world = World()
    world.telemetry.follow(CPU)
    world.telemetry.follow(MEMORY)

    async def test() -> None:
        await asyncio.sleep(40)
        assert world.log == []
        world.api.fault = OSError("it is gone")
        await asyncio.sleep(400)
        (line,) = world.log
        assert "metrics-server does not answer (it is gone); values are kept until they are 1m40s old" in line
        assert "CPU/Latest, Memory/Latest" in line
        assert set(world.telemetry.problems) == {CPU, MEMORY}
        world.api.fault = None
        await asyncio.sleep(400)
        assert world.log[1:] == ["measured load: metrics-server answers again"]
        assert world.telemetry.problems == {}

    world.run(test)


def test_a_node_that_the_source_leaves_out_has_no_value_any_more() -> None:
    world = World()
    readings = world.telemetry.follow(CPU)

    async def test() -> None:
        await asyncio.sleep(1)
        assert readings.values == {"a": 25.0}
        world.nodes = [node("b")]
        await asyncio.sleep(34)
        assert readings.values == {}

    world.run(test)


def test_values_that_were_old_when_they_came_are_not_taken() -> None:
    source = SourceSettings(kind="annotations", max_age=Duration.parse("100s"))
    world = World([node("a", load="1,1970-01-12T13:46:40Z"), node("b", load="2,1970-01-12T13:40:00Z")])
    readings = world.telemetry.follow(Series(source=source, query="load"))

    async def test() -> None:
        await asyncio.sleep(1)
        assert readings.values == {"a": 1.0}
        await asyncio.sleep(98.5)
        assert readings.values == {"a": 1.0}
        await asyncio.sleep(1)
        assert readings.values == {}

    world.run(test)


def test_a_series_followed_while_it_runs_is_fetched_too() -> None:
    world = World()

    async def test() -> None:
        await asyncio.sleep(100)
        readings = world.telemetry.follow(CPU)
        await asyncio.sleep(1)
        assert readings.values == {"a": 25.0}
        more = world.telemetry.follow(MEMORY)
        await asyncio.sleep(34)
        assert more.values == {"a": 12.5}

    world.run(test)


def test_a_fault_of_our_own_is_a_problem_of_the_series_and_not_the_end_of_refreshing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World()
    readings = world.telemetry.follow(CPU)
    world.nodes = [None]  # type: ignore[list-item]

    async def test() -> None:
        await asyncio.sleep(1)
        assert readings.problem is not None
        assert readings.problem.startswith("internal error: AttributeError")
        world.nodes = [node("a")]
        await asyncio.sleep(34)
        assert readings.values == {"a": 25.0}
        assert world.telemetry.problems == {}

    world.run(test)
    assert "refreshing the load of metrics-server failed" in caplog.text


def test_two_runs_with_the_same_seed_ask_at_the_same_times() -> None:
    def times() -> list[float]:
        world = World()
        world.telemetry.follow(CPU)
        world.run(lambda: asyncio.sleep(500))
        return world.api.asked

    assert times() == times()


# A real server

FAST = Duration.parse("20ms")


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.005)


def with_prometheus(test: Callable[[StandIn, Telemetry, list[str]], Awaitable[None]]) -> None:
    async def main() -> None:
        async with stand_in() as server:
            log: list[str] = []
            telemetry = Telemetry(
                clock=LoopClock(),
                rng=random.Random(1),
                nodes=lambda: [node("a", "10.0.0.1"), node("b", "10.0.0.2")],
                report=log.append,
            )
            refreshing = asyncio.create_task(telemetry.run())
            try:
                await test(server, telemetry, log)
            finally:
                refreshing.cancel()
                await asyncio.gather(refreshing, return_exceptions=True)

    asyncio.run(main())


def follow(server: StandIn, telemetry: Telemetry, query: str = "q", **settings: Any) -> Readings:
    source = SourceSettings(address=server.url, refresh_interval=FAST, **settings)
    return telemetry.follow(Series(source=source, query=query))


def test_prometheus_is_followed_through_good_and_bad() -> None:
    async def test(server: StandIn, telemetry: Telemetry, log: list[str]) -> None:
        server.says(vector(({"instance": "10.0.0.1:9100"}, "1"), ({"node": "b"}, "2")))
        readings = follow(server, telemetry)
        await until(lambda: readings.values == {"a": 1.0, "b": 2.0})
        server.says(vector(({"node": "a"}, "3")))
        await until(lambda: readings.values == {"a": 3.0})
        server.says("oops", status=500)
        await until(lambda: readings.problem is not None)
        assert readings.values == {"a": 3.0}
        server.says(vector(({"node": "a"}, "4")))
        await until(lambda: readings.values == {"a": 4.0})
        assert [line.split(";")[0] for line in log] == [
            f"measured load: prometheus {server.url} answered HTTP 500",
            f"measured load: prometheus {server.url} answers again",
        ]

    with_prometheus(test)


@pytest.mark.parametrize(
    ("samples", "said"),
    [
        ([], "has no series for the query"),
        (
            [({"__name__": "up", "host": "a\n", "job": "x"}, "1"), ({}, "2")],
            'answered with 2 series, but none names a node: the first has host="a\\n", job="x"',
        ),
        ([({}, "1")], "answered with 1 series, but none names a node: the first has no labels"),
        ([({"node": "a"}, "NaN")], "answered without a finite number"),
    ],
)
def test_an_answer_that_says_nothing_about_any_node_is_a_problem(samples: list[Any], said: str) -> None:
    async def test(server: StandIn, telemetry: Telemetry, log: list[str]) -> None:
        server.says(vector(({"node": "a"}, "1")))
        readings = follow(server, telemetry)
        await until(lambda: readings.values == {"a": 1.0})
        server.says(vector(*samples))
        await until(lambda: readings.problem is not None)
        assert said in str(readings.problem)
        assert readings.values == {}
        assert len(log) == 1

    with_prometheus(test)


def test_answers_that_say_nothing_are_counted_as_failures() -> None:
    async def test(server: StandIn, telemetry: Telemetry, log: list[str]) -> None:
        server.says(vector())
        readings = follow(server, telemetry)
        (followed,) = telemetry.followed
        await until(lambda: followed.refreshes > 2)
        assert followed.failures == followed.refreshes
        assert readings.problem is not None

    with_prometheus(test)


def test_where_there_are_no_nodes_yet_an_answer_is_no_problem() -> None:
    async def main() -> None:
        log: list[str] = []
        async with stand_in() as server:
            server.says(vector(({"node": "a"}, "1")))
            telemetry = Telemetry(clock=LoopClock(), rng=random.Random(1), nodes=list, report=log.append)
            readings = telemetry.follow(Series(source=SourceSettings(address=server.url), query="up"))
            await telemetry.refresh()
            await telemetry.close()
        assert (readings.values, readings.problem, log) == ({}, None, [])

    asyncio.run(main())


def test_what_is_measured_of_pods_finds_their_nodes() -> None:
    async def main() -> None:
        async with stand_in() as server:
            of_pods = [({"namespace": "shop", "pod": name}, "2") for name in ("web", "db", "gone")]
            server.says(vector(*of_pods))
            telemetry = Telemetry(
                clock=LoopClock(),
                rng=random.Random(1),
                nodes=lambda: [node("a"), node("b")],
                pods=lambda: {"shop/web": "a", "shop/db": "a"},
            )
            by_pod = NodeMatch(by="pod")
            series = Series(source=SourceSettings(address=server.url), query="q", match=by_pod, combine="sum")
            readings = telemetry.follow(series)
            await telemetry.refresh()
            await telemetry.close()
        assert readings.values == {"a": 4.0}

    asyncio.run(main())


def test_a_refresh_that_fails_gives_up_what_is_too_old_at_once() -> None:
    world = World()
    readings = world.telemetry.follow(CPU)

    async def main() -> None:
        await world.telemetry.refresh()
        assert readings.values == {"a": 25.0}
        await asyncio.sleep(101)
        world.api.fault = OSError("it is gone")
        await world.telemetry.refresh()
        assert readings.values == {}

    run_virtually(main())


def test_a_query_that_fails_does_not_spoil_the_others_of_its_source() -> None:
    async def test(server: StandIn, telemetry: Telemetry, log: list[str]) -> None:
        server.answers({"good": vector(({"node": "a"}, "1")), "bad": {"status": "error", "error": "no such function"}})
        good, bad = follow(server, telemetry, "good"), follow(server, telemetry, "bad")
        await until(lambda: bool(good.values) and bad.problem is not None)
        assert good.problem is None
        assert "no such function" in str(bad.problem)
        (counted,) = (each for each in telemetry.followed if each.readings is bad)
        await until(lambda: counted.failures > 2)
        assert len(log) == 1

    with_prometheus(test)
