from __future__ import annotations

import pytest

from podium.framework import QueuedPod
from podium_plugins.qos_sort import QOSSort
from tests.podium.engine.schedulers import World
from tools.kit.builders import make_cluster, make_plugin, make_pod

PLUGIN = make_plugin(QOSSort, make_cluster([]))
Given = tuple[int, str, float]


def queued(priority: int, qos: str, since: float, number: int = 0) -> QueuedPod:
    return QueuedPod(make_pod(priority=priority, status={"qosClass": qos}), since, number)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param((10, "BestEffort", 5.0), (9, "Guaranteed", 1.0), id="priority beats class"),
        pytest.param((5, "Guaranteed", 5.0), (5, "Burstable", 1.0), id="guaranteed before burstable"),
        pytest.param((5, "Burstable", 5.0), (5, "BestEffort", 1.0), id="burstable before best effort"),
        pytest.param((5, "BestEffort", 5.0), (5, "Unheard", 1.0), id="a class that is not known goes last"),
        pytest.param((5, "Burstable", 1.0), (5, "Burstable", 2.0), id="of equals, who waits longer"),
    ],
)
def test_order(first: Given, second: Given) -> None:
    one, other = queued(*first), queued(*second)
    assert PLUGIN.less(one, other)
    assert not PLUGIN.less(other, one)
    assert PLUGIN.sort_key(one) < PLUGIN.sort_key(other)


def test_nothing_goes_before_itself() -> None:
    assert not PLUGIN.less(queued(1, "Burstable", 1.0), queued(1, "Burstable", 1.0))


def test_without_a_status_the_class_follows_from_the_resources() -> None:
    burstable, best_effort = QueuedPod(make_pod(requests={"cpu": 1}), 2.0), QueuedPod(make_pod(), 1.0)
    assert PLUGIN.less(burstable, best_effort)


def test_the_queue_goes_by_it() -> None:
    world = World("NodeResourcesFit", sorter=QOSSort)
    world.add(make_pod("a"), make_pod("b", requests={"cpu": 1}), make_pod("c", priority=1))
    assert [each.pod.name for each in world.queue] == ["c", "b", "a"]
