"""Extenders that bind in the scheduler's stead."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from podium.framework.extender import ExtenderError
from podium.kube import Pod
from tests.podium.engine.in_process import InProcess
from tests.podium.engine.schedulers import CLEARED, Launched, World
from tools.kit.builders import make_node, make_pod

NODES = [make_node("n1")]


def accept(_pod: Pod, _node_name: str) -> None:
    return None


def failing(message: str) -> Callable[[Pod, str], None]:
    def fail(_pod: Pod, _node_name: str) -> None:
        raise ExtenderError(message)

    return fail


def test_an_extender_binds_instead_of_the_bind_plugins() -> None:
    extender = InProcess(binds=accept)
    world = World(nodes=NODES, extenders=[extender])
    world.attempt(make_pod())
    assert (world.bound, world.scheduled_pods, extender.asked) == ([], [("p1", "n1")], [("bind", "p1", ["n1"])])


def test_the_first_that_binds_and_cares_for_the_pod_is_asked() -> None:
    extenders = [
        InProcess("no binder"),
        InProcess("not interested", binds=accept, cares_for=lambda _pod: False),
        InProcess("first", binds=accept),
        InProcess("second", binds=accept),
    ]
    World(nodes=NODES, extenders=extenders).attempt(make_pod())
    assert [extender.name for extender in extenders if extender.asked] == ["first"]


def test_an_extender_that_fails_to_bind_fails_the_binding_in_its_own_words() -> None:
    world = World(nodes=NODES, extenders=[InProcess(binds=failing("pod is bound elsewhere"))])
    world.attempt(make_pod())
    assert world.failures == [("default/p1", "SchedulerError", "pod is bound elsewhere", CLEARED)]
    assert (world.bound, world.nothing_left_of(), world.place("p1")) == ([], True, "backoff")


def test_where_it_may_be_ignored_the_bind_plugins_bind() -> None:
    world = World(nodes=NODES, extenders=[InProcess(binds=failing("no answer"), ignorable=True)])
    world.attempt(make_pod())
    assert (world.bound, world.failures) == ([("p1", "n1")], [])
    assert world.reports == ["binding default/p1: extender http://extender: no answer"]


@pytest.mark.parametrize("error", [None, ExtenderError("no"), OSError("gone")])
def test_binding_may_take_its_time(error: Exception | None) -> None:
    async def later() -> None:
        await asyncio.sleep(0)
        if error is not None:
            raise error

    def bind(_pod: Pod, _node_name: str) -> Awaitable[None]:
        return later()

    launched = Launched()
    world = World(nodes=NODES, extenders=[InProcess(binds=bind)], launch=launched)
    world.attempt(make_pod())

    async def main() -> None:
        for work in launched.waiting:
            await work

    asyncio.run(main())
    told: Any = {None: [], "no": ["no"], "gone": ['extender "http://extender": OSError: gone']}
    assert [failure.message for failure in world.failures] == told[error and str(error)]
    assert len(world.scheduled_pods) == (error is None)


def test_a_fault_of_the_scheduler_itself_puts_the_pod_back_too() -> None:
    def once_placed(_pod: Pod) -> bool:
        if world.cluster.pods:
            raise KeyError("x")
        return False

    world = World(nodes=NODES, extenders=[InProcess(binds=accept, cares_for=once_placed)])
    world.attempt(make_pod())
    assert world.failures == [("default/p1", "SchedulerError", "KeyError: 'x'", CLEARED)]
    assert not world.cluster.pods
    assert world.place("p1") == "backoff"
