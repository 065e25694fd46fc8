import pytest

from podium.framework import QueuedPod
from podium.plugins.priority_sort import PrioritySort
from tools.kit.builders import make_cluster, make_plugin, make_pod

PLUGIN = make_plugin(PrioritySort, make_cluster([]))


@pytest.mark.parametrize(
    ("a", "b", "a_first", "b_first"),
    [
        pytest.param((10, 5.0, 2), (9, 1.0, 1), True, False, id="priority beats waiting"),
        pytest.param((5, 1.0, 2), (5, 2.0, 1), True, False, id="of equals, who waits longer"),
        pytest.param((5, 1.0, 1), (5, 1.0, 2), True, False, id="of equals since the same moment, who came first"),
        pytest.param((5, 1.0, 1), (5, 1.0, 1), False, False, id="nothing goes before itself"),
        pytest.param((-1, 1.0, 1), (0, 2.0, 2), False, True, id="priorities may be negative"),
    ],
)
def test_order(a: tuple[int, float, int], b: tuple[int, float, int], a_first: bool, b_first: bool) -> None:
    one, other = (QueuedPod(make_pod(priority=priority), since, number) for priority, since, number in (a, b))
    assert PLUGIN.less(one, other) is a_first
    assert PLUGIN.less(other, one) is b_first


def test_a_pod_without_priority_counts_as_0() -> None:
    without = QueuedPod(make_pod(spec={"priority": None}), 1.0)
    assert not PLUGIN.less(QueuedPod(make_pod(priority=0), 2.0), without)
    assert PLUGIN.less(QueuedPod(make_pod(priority=1), 2.0), without)
