"""The driver between the engine and the loop: wake-ups, turns, bindings that end strangely, and the end."""

import asyncio
import random
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from podium.framework import Plugin, Status, SystemClock
from podium.framework.cycle import Cycle
from podium.kube import Pod
from podium.kube.versions import NEWEST, VersionRules, find_rules
from podium.run.driver import LiveParts, LiveScheduler
from podium.serving.event_recorder import EventRecorder
from tests.podium.client.asking import new_client
from tests.podium.client.servers import Handler, serving
from tests.podium.framework.runtimes import setup
from tools.kit.builders import make_node, make_pod


@asynccontextmanager
async def scheduling(
    answer: Handler, *plugins: type[Plugin] | str, rules: VersionRules = NEWEST
) -> AsyncIterator[LiveScheduler]:
    """A live scheduler whose writes `answer` gets; tests bring the news themselves."""
    config, registry = setup(*plugins, "DefaultBinder", rules=rules)
    async with serving(answer) as url, new_client(url) as client:
        rng, clock = random.Random(1), SystemClock()
        recorder = EventRecorder(client, host="here", clock=clock, rng=rng, report=print)
        live = LiveScheduler(config, registry, LiveParts(client=client, recorder=recorder, clock=clock, rng=rng))
        task = asyncio.create_task(live.schedule())
        try:
            async with asyncio.timeout(20):
                yield live
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def tell(live: LiveScheduler, *pods: Pod) -> None:
    """As the informers do."""
    for pod in pods:
        live.informers.by_kind[Pod].store[pod.key] = pod
        live.informers._set(pod)


async def until(there: Callable[[], bool]) -> None:
    while not there():
        await asyncio.sleep(0.01)


async def fine(_request: web.Request) -> web.Response:
    return web.json_response({})


def test_a_condition_that_waits_when_told_to_stop_is_still_written() -> None:
    async def main() -> None:
        written: list[str] = []

        async def answer(request: web.Request) -> web.Response:
            await asyncio.sleep(0.05)
            written.append(request.path)
            return web.json_response({})

        async with scheduling(answer, "NodeResourcesFit") as live:
            tell(live, *(make_pod(f"p{i}") for i in range(20)))  # no nodes: each is refused
            await until(lambda: bool(written))
            await live.finish(1.0)
            await live.statuses.drained()
            assert len(written) == 20

    asyncio.run(main())


@pytest.mark.parametrize(("minor", "attempts", "failed"), [("1.36", 2, True), ("1.37", 3, False)])
def test_v39_a_binding_that_the_api_server_cannot_carry_out_is_tried_again_at_once(
    minor: str, attempts: int, failed: bool
) -> None:
    async def main() -> None:
        bindings: list[str] = []
        conditions: list[str] = []

        async def answer(request: web.Request) -> web.Response:
            if request.path.endswith("/binding"):
                bindings.append(request.path)
                return web.json_response({}, status=503 if len(bindings) < attempts else 201)
            if request.path.endswith("/status"):
                conditions.append(await request.text())
            return web.json_response({})

        async with scheduling(answer, "NodeResourcesFit", rules=find_rules(minor).rules) as live:
            live.engine.intake.set(make_node("n1", cpu=1))
            tell(live, make_pod("p"))
            await until(lambda: len(bindings) == attempts)
            await live.finish(1.0)
            await live.statuses.drained()
        assert any("SchedulerError" in each for each in conditions) is failed

    asyncio.run(main())


def test_a_preemptor_is_tried_again_when_its_victims_could_not_be_evicted() -> None:
    async def main() -> None:
        deleted: list[str] = []

        async def answer(request: web.Request) -> web.Response:
            if request.method == "DELETE":
                deleted.append(request.path)
                return web.json_response({"message": "not you"}, status=403)
            return web.json_response({})

        async with scheduling(answer, "NodeResourcesFit", "DefaultPreemption") as live:
            live.engine.intake.set(make_node("n1", cpu=1))
            tell(
                live, make_pod("low", node="n1", requests={"cpu": 1}), make_pod("high", priority=9, requests={"cpu": 1})
            )
            await until(lambda: len(deleted) >= 2)

    asyncio.run(main())


def test_a_victim_whose_status_is_just_being_changed_is_not_taken_for_gone() -> None:
    """The API server answers 409 when others keep changing an object, too."""

    async def main() -> None:
        asked: list[str] = []

        async def answer(request: web.Request) -> web.Response:
            if "low" in request.path:
                asked.append(request.method)
                if len(asked) == 1:
                    return web.json_response({"reason": "Conflict", "message": "it was changed"}, status=409)
            return web.json_response({})

        async with scheduling(answer, "NodeResourcesFit", "DefaultPreemption") as live:
            live.engine.intake.set(make_node("n1", cpu=1))
            tell(
                live, make_pod("low", node="n1", requests={"cpu": 1}), make_pod("high", priority=9, requests={"cpu": 1})
            )
            await until(lambda: "DELETE" in asked)

    asyncio.run(main())


def test_other_work_gets_its_turn_between_decisions_that_take_long() -> None:
    class Ponderous(Plugin):
        def filter(self, _cycle: Cycle, _node: object) -> Status | None:
            time.sleep(0.02)  # as an extender that is asked
            return Status.unschedulable("no")

    async def main() -> None:
        async with scheduling(fine, Ponderous) as live:
            live.engine.intake.set(make_node("n1"))
            tell(live, *(make_pod(f"p{i}") for i in range(8)))
            decided = 0
            while decided < 8:
                await asyncio.sleep(0)
                assert live.engine.queue.cycles - decided <= 1
                decided = live.engine.queue.cycles

    asyncio.run(main())


def test_a_pod_whose_plugin_waited_for_something_cancelled_is_put_back() -> None:
    class Torn(Plugin):
        async def pre_bind(self, _cycle: Cycle, _node_name: str) -> Status | None:
            elsewhere = asyncio.get_running_loop().create_future()
            elsewhere.cancel()
            await elsewhere
            return None

    async def main() -> None:
        async with scheduling(fine, Torn) as live:
            live.engine.intake.set(make_node("n1"))
            tell(live, make_pod("p1"))
            await until(lambda: live.engine.queue.cycles > 0)
            await until(lambda: live.engine.queue.get("default/p1") is not None)
            assert not live.engine.cluster.pods

    asyncio.run(main())


def test_the_second_signal_ends_the_process_at_once() -> None:
    program = """
import asyncio
from podium.serving.environment import stop_on_signals
async def main():
    stop = stop_on_signals()
    print("ready", flush=True)
    await stop.wait()
    print("stopping", flush=True)
    await asyncio.sleep(60)
asyncio.run(main())
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        for said in (b"ready\n", b"stopping\n"):
            assert process.stdout.readline() == said
            process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 1


def test_a_plugin_that_raises_is_logged_once_with_its_traceback_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    class Fussy(Plugin):
        def pre_filter(self, cycle: Cycle) -> None:
            raise KeyError(cycle.pod.name)

    async def main() -> None:
        async with scheduling(fine, Fussy) as live:
            live.engine.intake.set(make_node("n"))
            tell(live, make_pod("a"), make_pod("b"))
            await until(lambda: sum(live.plugin_failures.counts.values()) >= 2)

    with caplog.at_level("ERROR"):
        asyncio.run(main())
    (record,) = (each for each in caplog.records if "Fussy" in each.getMessage())
    assert record.getMessage().startswith("plugin \"Fussy\" failed at PreFilter for pod default/a: KeyError: 'a'")
    assert record.exc_info is not None
    assert "in pre_filter" in caplog.text
