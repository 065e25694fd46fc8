"""Pods whose binding takes its time: where they are going is said before, and a more important pod may stop them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine
from contextlib import suppress
from typing import Any

import pytest

from podium.framework import SKIP, Cycle, Nomination, Plugin, PluginError, Status, Wait
from podium.framework.waiting import WaitingPod
from podium.kube import Pod
from tests.podium.engine.schedulers import CLEARED, Launched, World
from tests.podium.framework.runtimes import answering
from tools.kit.builders import make_node, make_pod

NODES = [make_node("n1", cpu=4)]
LARGE = {"cpu": 3}


class Hold(Plugin):
    def permit(self, _cycle: Cycle, _node_name: str) -> Wait:
        return Wait(30.0)


def held(world: World, name: str = "p1") -> WaitingPod:
    waiting = world.scheduler.waiting.get(f"default-{name}")
    assert waiting is not None
    return waiting


# Nominations


@pytest.mark.parametrize(
    ("plugins", "nominated"),
    [
        ([], []),
        ([answering("Works", pre_bind=None)], [("p1", "n1")]),
        ([answering("Works", pre_bind_preflight=None, pre_bind=None)], [("p1", "n1")]),
        ([answering("Skips", pre_bind_preflight=SKIP, pre_bind=None)], []),
        (
            [answering("Skips", pre_bind_preflight=SKIP, pre_bind=None), answering("Works", pre_bind=None)],
            [("p1", "n1")],
        ),
        ([Hold], [("p1", "n1")]),
        ([Hold, answering("Skips", pre_bind_preflight=SKIP, pre_bind=None)], [("p1", "n1")]),
    ],
)
def test_a_pod_is_nominated_if_it_is_held_or_prepared_before_it_is_bound(
    plugins: list[type[Plugin]], nominated: list[tuple[str, str]]
) -> None:
    world = World(*plugins, nodes=NODES)
    world.attempt(make_pod())
    assert world.nominated == nominated


def test_a_pod_that_is_nominated_to_its_node_already_is_left_alone() -> None:
    world = World(Hold, nodes=NODES)
    world.attempt(make_pod(status={"nominatedNodeName": "n1"}))
    assert world.nominated == []


def failing() -> Awaitable[Status | None]:
    async def fail() -> Status | None:
        raise OSError("gone")

    return fail()


@pytest.mark.parametrize("how", ["status", "exception"])
def test_that_a_nomination_could_not_be_written_is_only_reported(how: str) -> None:
    world = World(answering("Works", pre_bind=None), nodes=NODES)
    world.nominate_answer = Status.error("no") if how == "status" else failing()
    world.attempt(make_pod())
    assert world.bound == [("p1", "n1")]
    told = "no" if how == "status" else "OSError: gone"
    assert world.reports == [f"nominating n1 for pod default/p1: {told}"]


def test_a_binding_that_fails_takes_the_nomination_back() -> None:
    world = World(answering("Works", pre_bind=Status.error("broken")), nodes=NODES)
    world.attempt(make_pod())
    assert world.failures[0].nomination == CLEARED


# Before the wait at Permit


def test_who_has_something_to_prepare_is_asked_before_the_wait() -> None:
    asked: list[str] = []

    class Asked(Plugin):
        def pre_bind_preflight(self, _cycle: Cycle, _node_name: str) -> None:
            asked.append("preflight")

        def pre_bind(self, _cycle: Cycle, _node_name: str) -> None:
            asked.append("pre_bind")

    world = World(Hold, Asked, nodes=NODES)
    world.attempt(make_pod())
    assert (asked, world.bound) == (["preflight"], [])
    held(world).allow("Hold")
    assert (asked, world.bound) == (["preflight", "pre_bind"], [("p1", "n1")])


def test_a_preflight_that_fails_ends_the_wait_for_good() -> None:
    world = World(Hold, answering("Bad", pre_bind_preflight=Status.error("broken"), pre_bind=None), nodes=NODES)
    waits: list[WaitingPod] = []
    add = world.scheduler.waiting.add
    world.scheduler.waiting.add = lambda *args: waits.append(add(*args)) or waits[-1]  # type: ignore[method-assign,func-returns-value]
    world.attempt(make_pod())
    assert world.failures == [("default/p1", "SchedulerError", 'running PreBindPreFlight "Bad": broken', CLEARED)]
    assert (world.nothing_left_of(), world.nominated) == (True, [])
    waits[0].allow("Hold")
    world.pass_time(31)
    assert (world.bound, len(world.failures)) == ([], 1)


def test_a_wait_that_is_over_is_not_waited_for() -> None:
    launched = Launched()
    world = World(Hold, nodes=NODES, launch=launched)
    world.attempt(make_pod())
    launched.finish()
    assert world.scheduler.next_timer() == world.clock.now() + 30.0
    held(world).allow("Hold")
    assert world.scheduler.next_timer() is None, "the binding has not begun"
    launched.finish()
    assert world.bound == [("p1", "n1")]


# What really takes time


class Tasks:
    """A driver on an event loop; give it as `launch`."""

    def __init__(self) -> None:
        self.all: list[asyncio.Task[None]] = []

    def __call__(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        self.all.append(asyncio.get_running_loop().create_task(work))
        return self.all[-1]


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.mark.parametrize("allowed", [True, False])
def test_a_wait_that_is_over_before_the_nomination_is_written_is_heeded_after_it(allowed: bool) -> None:
    async def main() -> None:
        written = asyncio.Event()

        async def slowly() -> Status | None:
            await written.wait()
            return None

        world = World(Hold, nodes=NODES, launch=Tasks())
        world.nominate_answer = slowly()
        world.attempt(make_pod())
        await settle()
        if allowed:
            held(world).allow("Hold")
        else:
            held(world).reject("Hold", "no quota")
        await settle()
        assert (world.bound, world.failures) == ([], [])
        written.set()
        await settle()
        assert (len(world.bound), len(world.failures)) == ((1, 0) if allowed else (0, 1))

    asyncio.run(main())


class Slow(Plugin):
    """Prepares until the pod's annotation is let through."""

    gate: asyncio.Event
    heeds: type[BaseException] = KeyError

    async def pre_bind(self, cycle: Cycle, _node_name: str) -> Status | None:
        if cycle.pod.name.startswith("slow"):
            with suppress(self.heeds):
                await self.gate.wait()
        return None


class Stubborn(Slow):
    """Takes no notice of being stopped."""

    heeds = asyncio.CancelledError


class Wrapping(Slow):
    """Has its own words for being stopped."""

    async def pre_bind(self, cycle: Cycle, node_name: str) -> Status | None:
        try:
            return await super().pre_bind(cycle, node_name)
        except asyncio.CancelledError:
            raise PluginError("stopped") from None


def slow(priority: int = 0) -> Pod:
    return make_pod("slow", requests=LARGE, priority=priority)


IMPORTANT = make_pod("important", requests=LARGE, priority=10)


@pytest.mark.parametrize(
    ("plugin", "told"),
    [
        (Slow, 'running PreBind plugin "Slow": preempted by DefaultPreemption'),
        (Stubborn, "preempted by DefaultPreemption"),
        (Wrapping, 'running PreBind plugin "Wrapping": preempted by DefaultPreemption'),
    ],
)
def test_a_more_important_pod_has_a_preparation_called_off(plugin: type[Slow], told: str) -> None:
    async def main() -> None:
        plugin.gate = asyncio.Event()
        tasks = Tasks()
        world = World(plugin, "NodeResourcesFit", "DefaultPreemption", nodes=NODES, launch=tasks)
        world.attempt(slow())
        await settle()
        world.attempt(IMPORTANT)
        assert (world.evicted, world.gave_way) == ([], [("slow", "important", "n1")])
        assert world.failures[-1].nomination == Nomination("n1")
        await settle()
        assert world.failures[-1] == ("default/slow", "SchedulerError", told, CLEARED)
        assert tasks.all[0].done()
        assert (tasks.all[0].cancelled(), tasks.all[0].cancelling()) == (False, 0)
        assert world.node_of("slow") is None
        world.pass_time(1)
        world.try_next()
        await settle()
        assert world.bound == [("important", "n1")]

    asyncio.run(main())


def test_a_pod_of_a_driver_that_cannot_cancel_is_given_up_when_it_is_prepared() -> None:
    async def main() -> None:
        Slow.gate = asyncio.Event()
        tasks = Tasks()
        world = World(
            Slow, "NodeResourcesFit", "DefaultPreemption", nodes=NODES, launch=lambda work: tasks(work) and None
        )
        world.attempt(slow())
        await settle()
        world.attempt(IMPORTANT)
        await settle()
        assert world.node_of("slow") == "n1"
        Slow.gate.set()
        await settle()
        assert (world.node_of("slow"), world.bound, world.message) == (None, [], "preempted by DefaultPreemption")

    asyncio.run(main())


def test_a_pod_that_is_being_bound_is_evicted_like_any_other() -> None:
    async def main() -> None:
        gate = asyncio.Event()

        async def bind() -> Status | None:
            await gate.wait()
            return None

        world = World(
            answering("Works", pre_bind=None), "NodeResourcesFit", "DefaultPreemption", nodes=NODES, launch=Tasks()
        )
        world.bind_answer = bind()
        world.attempt(slow())
        await settle()
        world.attempt(IMPORTANT)
        assert (world.evicted, world.gave_way) == (["slow"], [])
        gate.set()
        await settle()

    asyncio.run(main())


def test_a_driver_that_ends_a_preparation_itself_is_obeyed() -> None:
    async def main() -> None:
        Slow.gate = asyncio.Event()
        tasks = Tasks()
        world = World(Slow, nodes=NODES, launch=tasks)
        world.attempt(slow())
        await settle()
        tasks.all[0].cancel()
        await settle()
        assert tasks.all[0].cancelled()
        assert world.failures == []

    asyncio.run(main())


def test_a_pod_whose_wait_is_just_over_is_evicted_like_any_other() -> None:
    launched = Launched()
    world = World(Hold, "NodeResourcesFit", "DefaultPreemption", nodes=NODES, launch=launched)
    world.attempt(slow())
    launched.finish()
    held(world, "slow").allow("Hold")
    world.attempt(IMPORTANT)
    assert (world.evicted, world.gave_way) == (["slow"], [])
    launched.finish()


def test_a_held_pod_that_gives_way_is_told_of() -> None:
    world = World(Hold, "NodeResourcesFit", "DefaultPreemption", nodes=NODES)
    world.attempt(slow(), IMPORTANT)
    assert (world.evicted, world.gave_way) == ([], [("slow", "important", "n1")])


# Plugins that prepare together


class TogetherA(Plugin):
    """One of three plugins that prepare, two of them together."""

    prepares_in_parallel = True
    log: list[str]
    gates: dict[str, asyncio.Event]
    answers: dict[str, Status]

    async def pre_bind(self, _cycle: Cycle, _node_name: str) -> Status | None:
        self.log.append(f"{self.name} begins")
        try:
            await self.gates[self.name].wait()
        except asyncio.CancelledError:
            self.log.append(f"{self.name} is stopped")
            raise
        self.log.append(f"{self.name} ends")
        return self.answers.get(self.name)


class TogetherB(TogetherA):
    pass


class Apart(TogetherA):
    prepares_in_parallel = False


NAMES = ("TogetherA", "TogetherB", "Apart")


async def preparing(*plugins: type[TogetherA], **answers: Status) -> tuple[World, list[str]]:
    TogetherA.log, TogetherA.answers = [], answers
    TogetherA.gates = {name: asyncio.Event() for name in NAMES}
    world = World(*plugins, nodes=NODES, launch=Tasks())
    world.attempt(make_pod())
    await settle()
    return world, TogetherA.log


async def let_through(name: str) -> None:
    TogetherA.gates[name].set()
    await settle()


def test_neighbours_that_allow_it_prepare_together() -> None:
    async def main() -> None:
        world, log = await preparing(TogetherA, TogetherB, Apart)
        assert log == ["TogetherA begins", "TogetherB begins"]
        await let_through("TogetherB")
        await let_through("TogetherA")
        assert log[2:] == ["TogetherB ends", "TogetherA ends", "Apart begins"]
        assert world.bound == []
        await let_through("Apart")
        assert world.bound == [("p1", "n1")]

    asyncio.run(main())


def test_a_plugin_that_prepares_alone_parts_its_neighbours() -> None:
    async def main() -> None:
        _world, log = await preparing(TogetherA, Apart, TogetherB)
        assert log == ["TogetherA begins"]
        for name in ("TogetherA", "Apart", "TogetherB"):
            await let_through(name)

    asyncio.run(main())


def test_one_that_fails_stops_the_others() -> None:
    async def main() -> None:
        world, log = await preparing(TogetherA, TogetherB, TogetherB=Status.error("broken"))
        await let_through("TogetherB")
        assert log[2:] == ["TogetherB ends", "TogetherA is stopped"]
        assert world.message == 'running PreBind plugin "TogetherB": broken'
        assert world.nothing_left_of()

    asyncio.run(main())


def test_one_that_fails_at_once_stops_one_that_has_begun() -> None:
    class AtOnce(Plugin):
        prepares_in_parallel = True

        def pre_bind(self, _cycle: Cycle, _node_name: str) -> Status | None:
            return Status.error("no")

    async def main() -> None:
        TogetherA.log, TogetherA.answers, TogetherA.gates = [], {}, {"TogetherA": asyncio.Event()}
        world = World(TogetherA, AtOnce, nodes=NODES, launch=Tasks())
        world.attempt(make_pod())
        await settle()
        assert TogetherA.log == ["TogetherA begins", "TogetherA is stopped"]
        assert world.message == 'running PreBind plugin "AtOnce": no'

    asyncio.run(main())
