"""QueueSort plugins that fail: pods still leave the queue, in the usual order where the plugin has none."""

from __future__ import annotations

from typing import Any

import pytest

from podium.engine.queue.queue_sort import unfailing
from podium.framework import Plugin, QueuedPod
from podium.plugins.priority_sort import PrioritySort
from tests.podium.engine.schedulers import World
from tools.kit.builders import make_cluster, make_node, make_plugin, make_pod

NODES = [make_node("n1")]


class ByName(Plugin):
    """By name; fails on pods called "bad…"."""

    def less(self, a: QueuedPod, b: QueuedPod) -> bool:
        return self._name(a) < self._name(b)

    def _name(self, queued: QueuedPod) -> str:
        if queued.pod.name.startswith("bad"):
            raise ValueError("what a name")
        return queued.pod.name


class ByKey(ByName):
    def sort_key(self, queued: QueuedPod) -> str:
        return self._name(queued)


class ByStrangeKey(ByName):
    """Keys that do not compare with each other: a number for some pods."""

    def sort_key(self, queued: QueuedPod) -> Any:
        return 5 if queued.pod.name.startswith("bad") else queued.pod.name


class Mute:
    def __eq__(self, _other: object) -> bool:
        raise RuntimeError("do not look")

    __hash__ = None  # type: ignore[assignment]


class ByKeyWithoutOrder(ByName):
    """Keys that cannot even be told apart."""

    def sort_key(self, queued: QueuedPod) -> Any:
        return Mute()


class Nameless(Plugin):
    def less(self, a: QueuedPod, b: QueuedPod) -> bool:
        raise KeyError(a.key)


def bound(sorter: type[Plugin], *pods: Any) -> World:
    """All pods are there before the first is tried."""
    world = World(nodes=NODES, sorter=sorter)
    world.add(*pods)
    for _ in pods:
        world.try_next()
    return world


@pytest.mark.parametrize("sorter", [ByName, ByKey])
def test_a_plugin_decides_the_order_as_long_as_it_answers(sorter: type[Plugin]) -> None:
    world = bound(sorter, make_pod("b"), make_pod("c"), make_pod("a", priority=-1))
    assert [name for name, _ in world.bound] == ["a", "b", "c"]
    assert world.reports == []


@pytest.mark.parametrize(
    ("sorter", "told"),
    [
        (ByName, "ValueError: what a name"),
        (ByKey, "ValueError: what a name"),
        (ByStrangeKey, "TypeError: '<' not supported between instances of "),
        (ByKeyWithoutOrder, "RuntimeError: do not look"),
    ],
)
def test_where_it_fails_the_usual_order_counts_and_no_pod_is_lost(sorter: type[Plugin], told: str) -> None:
    pods = [make_pod("bad1"), make_pod("b"), make_pod("bad2", priority=5), make_pod("a"), make_pod("bad3", priority=9)]
    world = bound(sorter, *pods)
    order = [name for name, _ in world.bound]
    assert sorted(order) == ["a", "b", "bad1", "bad2", "bad3"]
    if sorter is not ByStrangeKey:  # which says that these are equal
        assert order.index("bad3") < order.index("bad2") < order.index("bad1")
    assert world.reports
    if sorter in (ByName, ByKey):
        assert world.reports == [f'running QueueSort plugin "{sorter.__name__}": {told}']
    assert world.reports[0].startswith(f'running QueueSort plugin "{sorter.__name__}": {told}')
    assert len(world.reports) == len(set(world.reports)), "each way of failing is told of once"


def test_one_that_always_fails_is_as_good_as_none_and_does_not_go_on_about_it() -> None:
    pods = [make_pod(f"p{number}", priority=number % 7) for number in range(150)]
    world = bound(Nameless, *pods)
    priorities = [int(name[1:]) % 7 for name, _ in world.bound]
    assert priorities == sorted(priorities, reverse=True)
    assert 0 < len(world.reports) <= 100


def test_a_pod_that_failed_goes_back_into_a_queue_whose_plugin_fails() -> None:
    world = World("NodeResourcesFit", nodes=NODES, sorter=Nameless)
    world.attempt(make_pod(requests={"cpu": 100}))
    world.add(make_pod("p2", requests={"cpu": 100}))
    world.try_next()
    world.add(make_node("n2", cpu=128))
    world.pass_time(10)
    world.try_next()
    assert world.bound == [("p1", "n2")]


def test_priority_sort_needs_no_guard() -> None:
    sorter = make_plugin(PrioritySort, make_cluster([]))
    assert unfailing(sorter, print) is sorter


def test_a_subclass_of_a_trusted_plugin_is_guarded() -> None:
    class Mine(PrioritySort):
        def sort_key(self, queued: QueuedPod) -> Any:
            raise ValueError("what a name")

    world = bound(Mine, make_pod("low"), make_pod("high", priority=5))
    assert [name for name, _ in world.bound] == ["high", "low"]
    assert world.reports == ['running QueueSort plugin "Mine": ValueError: what a name']
