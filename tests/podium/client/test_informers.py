"""Custom resources that plugins ask for: looked up, listed before scheduling begins, and no hindrance where missing."""

import asyncio
import random
import socket
from collections.abc import Awaitable, Callable

import pytest
from aiohttp import web

from podium.client.informers import Informers, WatchedKinds, custom_kinds
from podium.client.problem_reports import SharedOutage
from podium.cluster import Cluster, NodeInfo
from podium.framework import Action, Cycle, Interest, Plugin
from podium.kube import Pod
from tests.podium.client.asking import new_client
from tests.podium.client.servers import serving
from tests.podium.engine.schedulers import World
from tests.podium.framework.runtimes import make_runtime

NAME = "widgets.example.test"
WIDGET = {"metadata": {"name": "w", "namespace": "default", "uid": "1", "resourceVersion": "5"}}
FOUND = {
    "/apis/example.test": {"preferredVersion": {"groupVersion": "example.test/v1"}},
    "/apis/example.test/v1": {"resources": [{"name": "widgets"}]},
}


def start(
    discovery: dict[str, object],
    story: Callable[[Informers, World], Awaitable[None]],
    slowness: float = 0.0,
    name: str = NAME,
) -> list[str]:
    """What was reported while `story` ran with informers on a cluster that has one widget and nothing else."""
    reports: list[str] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        found = discovery.get(request.path)
        if isinstance(found, int):
            return web.json_response({"kind": "Status", "message": f"answered {found}"}, status=found)
        if found is not None:
            return web.json_response(found)
        if request.path == "/apis/example.test":
            return web.json_response({"message": "not here"}, status=404)
        if "watch" in request.query:
            await asyncio.sleep(60)
        widgets = request.path.rpartition("/")[2] == name.partition(".")[0]
        await asyncio.sleep(slowness if widgets else 0)
        return web.json_response({"metadata": {"resourceVersion": "9"}, "items": [WIDGET] if widgets else []})

    async def main() -> None:
        async with serving(answer) as url, new_client(url) as client:
            world = World("NodeName")
            informers = Informers(
                client,
                world.intake,
                changed=lambda: None,
                rng=random.Random(1),
                report=reports.append,
                watched=WatchedKinds(custom={name}),
            )
            running = asyncio.create_task(informers.run())
            try:
                async with asyncio.timeout(20):
                    await story(informers, world)
            finally:
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)

    asyncio.run(main())
    return reports


def test_scheduling_waits_until_a_custom_kind_is_listed() -> None:
    async def story(informers: Informers, world: World) -> None:
        await informers.by_kind[Pod].synced.wait()
        assert NAME in informers.waiting_for
        await informers.synced()
        assert informers.waiting_for == []
        assert world.cluster.objects.custom_store(NAME).get("default/w") == WIDGET

    assert start(FOUND, story, slowness=0.3) == []


def test_a_kind_of_the_core_group_needs_no_discovery() -> None:
    async def story(informers: Informers, world: World) -> None:
        await informers.synced()
        assert world.cluster.objects.custom_store("configmaps").get("default/w") == WIDGET

    assert start({}, story, name="configmaps") == []


def test_a_custom_kind_that_is_not_served_is_not_waited_for() -> None:
    async def story(informers: Informers, _world: World) -> None:
        await informers.synced()

    [report] = start({}, story)
    assert report == f"plugins that read {NAME} see none of it for now: the API server does not serve example.test"


def test_a_server_that_fails_is_waited_for_and_one_that_says_no_is_not() -> None:
    async def waits(informers: Informers, _world: World) -> None:
        await informers.by_kind[Pod].synced.wait()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(2.5):  # longer than it takes to ask again
                await informers.synced()
        assert informers.waiting_for == [NAME]

    async def goes_on(informers: Informers, _world: World) -> None:
        await informers.synced()

    for path in ("/apis/example.test", "/apis/example.test/v1/widgets"):
        [report, *_] = start({**FOUND, path: 503}, waits)
        assert "503" in report or "answered" in report
        [report, *_] = start({**FOUND, path: 403}, goes_on)
        assert "403" in report or "answered" in report


def test_discovery_that_says_nonsense_is_told_and_stops_nothing() -> None:
    async def story(informers: Informers, _world: World) -> None:
        await informers.synced()

    [report] = start({"/apis/example.test": {"kind": "Odd"}}, story)
    assert report.endswith("what the API server says about example.test cannot be understood")


def test_what_a_plugin_says_it_reads_is_watched() -> None:
    class Reader(Plugin):
        resources = (f"{NAME}/v1",)

        def interests(self) -> tuple[Interest, ...]:
            return (Interest("gadgets.example.com", Action.ALL), Interest("configmaps", Action.ALL))

        def score_node(self, _cycle: Cycle, _node: NodeInfo) -> int:
            return 0

    assert custom_kinds([make_runtime(Cluster(), Reader)]) == {NAME, "gadgets.example.com", "configmaps"}


def test_an_api_server_that_is_away_is_reported_once_for_all_kinds() -> None:
    reports: list[str] = []

    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]  # and free again: nothing answers there
        async with new_client(f"http://127.0.0.1:{port}") as client:
            informers = Informers(
                client,
                World("NodeName").intake,
                changed=lambda: None,
                rng=random.Random(1),
                report=reports.append,
                watched=WatchedKinds(custom=()),
            )
            running = asyncio.create_task(informers.run())
            async with asyncio.timeout(20):
                while not all(each.problem for each in informers.by_kind.values()):
                    await asyncio.sleep(0.01)
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            assert len(informers.by_kind) > 10
            assert "cannot be listed: " in str(informers.by_kind[Pod].problem)

    asyncio.run(main())
    (report,) = reports
    assert report.startswith("the API server cannot be reached: ")


def test_the_end_of_an_outage_is_reported_when_all_parts_are_served_again() -> None:
    async def main() -> list[str]:
        reports: list[str] = []
        outage = SharedOutage(reports.append)
        for part in ("pods", "nodes"):
            outage.begin(part, "connection refused")
        for part in ("pods", "nodes", "nodes"):
            outage.end(part)
        return reports

    assert asyncio.run(main()) == [
        "the API server cannot be reached: connection refused",
        "the API server can be reached again",
    ]
