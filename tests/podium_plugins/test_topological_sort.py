"""TopologicalSort: an order, and the right one, whatever comes while pods wait."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.config.field import FieldPath
from podium.framework import QueuedPod
from podium_plugins.app_group import RESOURCE
from podium_plugins.topological_sort import TopologicalSort, TopologicalSortArgs
from tests.podium.engine.schedulers import World
from tests.together.network_worlds import make_app_group, of_workload, set_app_group
from tools.kit.builders import make_cluster, make_plugin, make_pod

ORDER = ("p1", "p3", "p2", "p4")
"""The specification's example: p1 needs p2 and p3, which need p4; Kahn's and Tarjan's algorithms."""
GROUP = make_app_group({"p1": [("p2", 0), ("p3", 0)], "p2": [("p4", 0)], "p3": [("p4", 0)], "p4": []}, ORDER)


def sort_world(group: Any = GROUP) -> World:
    world = World("NodeResourcesFit", sorter=TopologicalSort)
    if group is not None:
        set_group(world, group)
    return world


def set_group(world: World, group: Any, name: str = "app") -> None:
    world.intake.set_custom(RESOURCE, f"default/{name}", group)


def names(world: World) -> list[str]:
    return [each.pod.name for each in world.queue]


@pytest.mark.parametrize("arrival", [("p1", "p2", "p3", "p4"), ("p4", "p3", "p2", "p1"), ("p2", "p4", "p1", "p3")])
def test_the_example_of_the_specification(arrival: tuple[str, ...]) -> None:
    world = sort_world()
    for each in arrival:
        world.add(of_workload(each, each))
        world.clock.advance(1)
    assert names(world) == list(ORDER)


def queued(pod: Any, since: float = 1.0, number: int = 0) -> QueuedPod:
    return QueuedPod(pod, since, number)


PAIRS: list[tuple[str, QueuedPod, QueuedPod]] = [
    ("higher priority", queued(make_pod("a", priority=2), 9.0), queued(make_pod("b", priority=1))),
    ("who waits longer", queued(make_pod("a"), 1.0), queued(make_pod("b"), 2.0)),
    ("who came first", queued(make_pod("a"), 1.0, 1), queued(make_pod("b"), 1.0, 2)),
    (
        "different groups: priority",
        queued(of_workload("a", "p4", priority=1), 9.0),
        queued(of_workload("b", "p1", group="other")),
    ),
    ("different groups: time", queued(of_workload("a", "p4"), 1.0), queued(of_workload("b", "p1", group="other"), 2.0)),
    ("one group: the index", queued(of_workload("a", "p1"), 9.0), queued(of_workload("b", "p4"), 1.0)),
    (
        "one group: whatever the priority",
        queued(of_workload("a", "p1")),
        queued(of_workload("b", "p4", priority=9), 0.5),
    ),
    ("one group: no index goes first", queued(of_workload("a", "unlisted"), 9.0), queued(of_workload("b", "p1"), 1.0)),
    (
        "a missing group: time",
        queued(of_workload("a", "p4", group="lost"), 1.0),
        queued(of_workload("b", "p1", group="lost"), 2.0),
    ),
]


@pytest.mark.parametrize(("first", "second"), [case[1:] for case in PAIRS], ids=[case[0] for case in PAIRS])
def test_which_of_two_goes_first(first: QueuedPod, second: QueuedPod) -> None:
    cluster = make_cluster([])
    set_app_group(cluster, GROUP)
    set_app_group(cluster, make_app_group({}, ["p1"], name="other"), "other")
    plugin = make_plugin(TopologicalSort, cluster)
    if first.pod.labels.get("appgroup.diktyo.x-k8s.io") == second.pod.labels.get("appgroup.diktyo.x-k8s.io") == "app":
        for each in (first, second):
            cluster.objects.pending_pods.set(each.pod.key, each.pod)
    assert (plugin.less(first, second), plugin.less(second, first)) == (True, False)


def test_inside_a_group_priority_does_not_count_and_the_group_goes_by_its_highest() -> None:
    world = sort_world()
    world.add(make_pod("plain", priority=5))
    world.add(of_workload("p1", "p1"), of_workload("p4", "p4", priority=10))
    assert names(world) == ["p1", "p4", "plain"]


def test_a_group_has_one_place_so_that_the_order_is_one() -> None:
    """By pairs alone p1 goes before p4, p4 before the plain pod, and that before p1."""
    world = sort_world()
    for pod in (of_workload("p4", "p4"), make_pod("plain"), of_workload("p1", "p1")):
        world.add(pod)
        world.clock.advance(1)
    assert names(world) == ["p1", "p4", "plain"]


def test_a_group_whose_pods_have_gone_gets_a_new_place() -> None:
    world = sort_world()
    world.add(of_workload("p4", "p4", priority=10))
    world.delete(of_workload("p4", "p4", priority=10))
    world.clock.advance(1)
    world.add(make_pod("plain"))
    world.clock.advance(1)
    world.add(of_workload("p1", "p1"))
    assert names(world) == ["plain", "p1"]


def test_waiting_pods_are_sorted_again_when_the_order_comes_changes_and_goes() -> None:
    world = sort_world(None)
    for each in ("p4", "p2", "p3", "p1"):
        world.add(of_workload(each, each))
        world.clock.advance(1)
    assert names(world) == ["p4", "p2", "p3", "p1"]
    set_group(world, make_app_group({}))
    assert names(world) == ["p4", "p2", "p3", "p1"]
    set_group(world, GROUP)
    assert names(world) == list(ORDER)
    set_group(world, make_app_group({}, reversed(ORDER)))
    assert names(world) == list(reversed(ORDER))
    set_group(world, None)
    assert names(world) == ["p4", "p2", "p3", "p1"]


def test_a_missing_group_is_reported_once() -> None:
    world = sort_world(None)
    world.add(of_workload("p1", "p1"), of_workload("p2", "p2"))
    assert world.reports == ["AppGroup app: not found in default; its pods are sorted as if they named none"]


@pytest.mark.parametrize(
    ("status", "problem"),
    [
        (
            {"topologyOrder": 5},
            "status: Expected `array`, got `int` - at `$.topologyOrder`; its workloads have no order",
        ),
        (
            {"topologyOrder": [{"workload": {"selector": "p1"}, "index": each} for each in (1, 2)]},
            "status.topologyOrder names a workload twice; its workloads have no order",
        ),
    ],
)
def test_an_order_that_cannot_be_read_counts_as_none(status: Any, problem: str) -> None:
    world = sort_world({**GROUP, "status": status})
    for each in ("p4", "p1"):
        world.add(of_workload(each, each))
        world.clock.advance(1)
    assert names(world) == ["p4", "p1"]
    assert world.reports == [f"AppGroup default/app: {problem} until that is put right"]


def test_namespaces_are_looked_through_in_turn() -> None:
    cluster = make_cluster([])
    cluster.objects.custom_store(RESOURCE).set("b/app", make_app_group({}, ["p2", "p1"]))
    set_app_group(cluster, GROUP)
    plugin = make_plugin(TopologicalSort, cluster, namespaces=["a", "b", "default"])
    assert plugin.less(queued(of_workload("x", "p2")), queued(of_workload("y", "p1")))


def test_a_namespace_without_a_name_is_refused() -> None:
    args = msgspec.convert({"namespaces": [""]}, TopologicalSortArgs)
    assert [str(error) for error in args.validate(FieldPath())] == [
        "namespaces[0]: Required value: name a namespace in which AppGroups are looked for"
    ]
    assert msgspec.convert({"namespaces": []}, TopologicalSortArgs).namespaces == ("default",)


@given(st.integers(0, 2**32))
def test_the_queue_is_that_of_a_scheduler_that_sees_everything_at_once(seed: int) -> None:
    """Whatever comes and goes while pods wait, they leave in the order of their keys as they are in the end."""
    rng = random.Random(seed)
    world = sort_world(None)
    sorter: Any = world.scheduler.profiles["default-scheduler"].plugins["TopologicalSort"]
    waiting: dict[str, Any] = {}
    for number in range(15):
        world.clock.advance(rng.choice((0, 1)))
        match rng.randrange(4):
            case 0:
                name = rng.choice(("app", "other"))
                set_group(world, make_app_group({}, rng.sample(ORDER, rng.randrange(5)), name=name), name)
            case 1 if waiting:
                world.delete(waiting.pop(rng.choice(sorted(waiting))))
            case _:
                priority = rng.choice((0, 0, 10))
                if rng.random() < 0.3:
                    pod = make_pod(f"x{number}", priority=priority)
                else:
                    group = rng.choice(("app", "other", "lost"))
                    pod = of_workload(f"x{number}", rng.choice(ORDER), group=group, priority=priority)
                world.add(pod)
                waiting[pod.name] = pod
        queue = list(world.queue)
        assert queue == sorted(queue, key=lambda each: (sorter.sort_key(each), each.sequence))
        for one, other in pairwise(queue):
            assert sorter.less(one, other)
            assert not sorter.less(other, one)
