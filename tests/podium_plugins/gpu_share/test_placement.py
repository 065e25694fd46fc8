"""GpuShare: where a pod may go, which devices it gets, and that the account of devices stays right."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from podium.cluster import Cluster, Nodes
from podium.framework import Status
from podium.kube import Pod
from podium_plugins.gpu.devices import GpuDevices
from podium_plugins.gpu.request import INDEX
from podium_plugins.gpu_share import GpuShare
from podium_plugins.gpu_share.plugin import NOT_ENOUGH, TOO_FEW, WRONG_MODEL
from tests.podium.engine.schedulers import Launched, World, on
from tests.podium.plugins.ask import refusals
from tests.podium_plugins.gpu_share.gpu_worlds import POLICIES, REQUESTS, TYPICAL, gpu_node, gpu_pod
from tools.kit.builders import make_cluster, make_plugin
from tools.kit.effort import examples


def world_of(policy: str = "GpuPacking", *others: str, **options: Any) -> World:
    args = {"GpuFGD": {"typicalPods": TYPICAL}} if policy == "GpuFGD" else {}
    return World("NodeResourcesFit", "GpuShare", policy, *others, args=args, **options)


def free(cluster: Cluster) -> dict[str, list[int]]:
    """What each device has left; checked to be the same in the matrix."""
    devices = GpuDevices.of(cluster)
    by_name = {cluster.names[row]: list(devices.free_on(row)) for row in cluster.order.rows.tolist()}
    matrix = devices.free(Nodes(cluster))
    for name, left in by_name.items():
        assert matrix[:, cluster.row_of[name]].tolist() == left + [0] * (len(matrix) - len(left))
    return by_name


def bound(pod: Pod, world: World) -> Pod:
    """The pod as the API server shows it, with the annotations that were written."""
    node = world.node_of(pod.name)
    assert node is not None
    shown = on(pod, node)
    annotations = {**pod.annotations, **world.annotated.get(pod.name, {})}
    return replace(shown, metadata=replace(shown.metadata, annotations=annotations))


# Where a pod may go


@pytest.mark.parametrize(
    ("pod", "statuses"),
    [
        (gpu_pod("p", 400), {"n1": None, "n2": None, "n3": TOO_FEW}),
        (gpu_pod("p", 700), {"n1": None, "n2": NOT_ENOUGH, "n3": TOO_FEW}),
        (gpu_pod("p", 1000, 2), {"n1": NOT_ENOUGH, "n2": TOO_FEW, "n3": TOO_FEW}),
        (gpu_pod("p", 100, models="P100|A10"), {"n1": WRONG_MODEL, "n2": None, "n3": WRONG_MODEL}),
        (gpu_pod("p", cpu=1), {"n1": None, "n2": None, "n3": None}),
    ],
)
def test_filter(pod: Pod, statuses: dict[str, Status | None]) -> None:
    cluster = make_cluster(
        [gpu_node("n1", 2), gpu_node("n2", 1, model="P100"), gpu_node("n3", 0)],
        [gpu_pod("a", 400, node="n1", devices="1"), gpu_pod("b", 500, node="n2", devices="0")],
    )
    assert refusals(make_plugin(GpuShare, cluster), pod, cluster) == statuses


def test_a_pod_whose_request_cannot_be_read_is_unschedulable_and_says_why() -> None:
    world = world_of(nodes=[gpu_node("n1", 2)])
    world.attempt(gpu_pod("p", "many"))
    problem = 'annotation alibabacloud.com/gpu-milli is "many"; write a whole number from 0 to 1000'
    assert world.message == f"0/1 nodes are available: {problem}."


@pytest.mark.parametrize("gpus", [65, -1])
def test_a_node_that_says_it_has_more_gpus_than_any_has_none(gpus: int) -> None:
    assert free(make_cluster([gpu_node("n1", gpus)])) == {"n1": []}


# Which devices it gets


@pytest.mark.parametrize(
    ("policy", "pod", "index"),
    [
        ("GpuPacking", gpu_pod("p", 300), "2"),
        ("GpuPacking", gpu_pod("p", 500), "1"),
        ("GpuPacking", gpu_pod("p", 1000, 2), "0-3"),
        ("GpuFGD", gpu_pod("p", 1000, 1), "0"),
    ],
)
def test_devices_are_written_to_the_pod(policy: str, pod: Pod, index: str) -> None:
    world = world_of(policy, nodes=[gpu_node("n1", 5)])
    world.add(gpu_pod("a", 500, node="n1", devices="1"), gpu_pod("b", 600, node="n1", devices="2"))
    world.attempt(pod)
    assert world.annotated == {"p": {INDEX: index}}


def test_a_pod_without_gpus_is_not_written_to() -> None:
    world = world_of(nodes=[gpu_node("n1", 2)])
    world.attempt(gpu_pod("p", cpu=1))
    assert (world.bound, world.annotated) == ([("p", "n1")], {})


def test_random_takes_any_device_that_suffices() -> None:
    world = world_of("GpuRandom", nodes=[gpu_node("n1", 3)])
    world.add(gpu_pod("full", 900, node="n1", devices="1"))
    seen = set()
    for number in range(40):
        pod = gpu_pod(f"p{number}", 300)
        world.attempt(pod)
        seen.add(world.annotated[pod.name][INDEX])
        world.delete(pod)
    assert seen == {"0", "2"}


# The account


def test_what_could_not_be_written_gives_the_devices_back() -> None:
    world = world_of(nodes=[gpu_node("n1", 2)])
    world.annotate_answer = Status.error("no answer")
    world.attempt(gpu_pod("p", 300))
    assert (world.bound, free(world.cluster)) == ([], {"n1": [1000, 1000]})
    assert world.message == 'running PreBind plugin "GpuShare": no answer'


def test_a_binding_that_failed_gives_the_devices_back() -> None:
    world = world_of(nodes=[gpu_node("n1", 2)])
    world.bind_answer = Status.error("no answer")
    world.attempt(gpu_pod("p", 300))
    assert free(world.cluster) == {"n1": [1000, 1000]}


def test_a_binding_that_failed_but_happened_keeps_the_devices() -> None:
    later = Launched()
    world = world_of(nodes=[gpu_node("n1", 2)], launch=later)
    pod = gpu_pod("p", 300)
    world.attempt(pod)
    world.annotated["p"] = {INDEX: "1"}
    world.add(bound(pod, world))
    world.bind_answer = Status.error("timed out")
    later.finish()
    assert free(world.cluster) == {"n1": [1000, 700]}


def test_devices_of_an_earlier_attempt_are_not_believed() -> None:
    world = world_of(nodes=[gpu_node("n1", 2)])
    world.attempt(gpu_pod("p", 300, devices="1"))
    assert (world.annotated["p"][INDEX], free(world.cluster)) == ("0", {"n1": [700, 1000]})


@pytest.mark.parametrize("index", [None, "", "7", "0-1", "first"])
def test_a_running_pod_without_usable_devices_holds_the_best_ones(index: str | None) -> None:
    cluster = make_cluster(
        [gpu_node("n1", 2)], [gpu_pod("a", 500, node="n1", devices=index), gpu_pod("b", 800, node="n1", devices="0")]
    )
    assert free(cluster) == {"n1": [200, 500]}


def test_a_running_pod_that_fits_nowhere_or_cannot_be_read_holds_nothing() -> None:
    pods = [gpu_pod("a", 1000, 4, node="n1"), gpu_pod("b", "x", node="n1"), gpu_pod("c", 100, node="gone")]
    assert free(make_cluster([gpu_node("n1", 2)], pods)) == {"n1": [1000, 1000]}


def test_devices_claimed_twice_have_nothing_left_and_come_back_right() -> None:
    first, second = (gpu_pod(name, 700, node="n1", devices="0") for name in "ab")
    cluster = make_cluster([gpu_node("n1", 2)], [first, second])
    assert free(cluster) == {"n1": [0, 1000]}
    cluster.remove_pod(first.uid)
    assert free(cluster) == {"n1": [300, 1000]}


def test_nodes_may_come_after_their_pods_and_change() -> None:
    cluster = make_cluster([], [gpu_pod("a", 500, node="n1", devices="1"), gpu_pod("b", 600, node="n1")])
    devices = GpuDevices.of(cluster)
    cluster.set_node(gpu_node("n1", 2))
    assert free(cluster) == {"n1": [400, 500]}
    cluster.set_node(gpu_node("n1", 1))
    assert free(cluster) == {"n1": [500]}
    cluster.set_node(gpu_node("n1", 4))
    assert free(cluster) == {"n1": [400, 500, 1000, 1000]}
    cluster.remove_node("n1")
    cluster.set_node(gpu_node("n1", 3))
    assert free(cluster) == {"n1": [400, 500, 1000]}
    assert GpuDevices.of(cluster) is devices


def test_a_newer_version_of_a_pod_that_does_not_name_its_devices_keeps_them() -> None:
    world = world_of("GpuRandom", nodes=[gpu_node("n1", 8)])
    pod = gpu_pod("p", 300)
    world.attempt(pod)
    before = free(world.cluster)
    world.add(replace(on(pod, "n1"), metadata=replace(pod.metadata, labels={"new": "yes"})))
    assert free(world.cluster) == before


def test_preemption_makes_room_on_a_device() -> None:
    """Of two victims on one device the lesser goes; what they hold is the same after all that was tried."""
    world = world_of("GpuPacking", "DefaultPreemption", nodes=[gpu_node("n1", 1)])
    running = [gpu_pod("low", 400, node="n1", devices="0"), gpu_pod("mid", 500, node="n1", devices="0", priority=5)]
    world.slow_evictions = True
    world.add(*running)
    world.attempt(gpu_pod("high", 500, priority=10))
    assert (world.evicted, free(world.cluster)) == (["low"], {"n1": [100]})
    world.delete(running[0])
    world.evictions.pop()(None)
    world.pass_time(60)
    world.try_next()
    assert (world.node_of("high"), free(world.cluster)) == ("n1", {"n1": [0]})


STEPS = st.lists(st.tuples(REQUESTS, st.sampled_from(["confirm", "assume", "fail", "delete"])), max_size=25)


@settings(max_examples=examples(60), deadline=None)
@given(st.sampled_from(POLICIES), st.lists(st.integers(0, 4), min_size=1, max_size=4), STEPS)
def test_devices_are_never_given_twice_and_a_restart_counts_the_same(
    policy: str, nodes: list[int], steps: list[tuple[tuple[int, int], str]]
) -> None:
    world = world_of(policy, nodes=[gpu_node(f"n{number}", gpus) for number, gpus in enumerate(nodes)])
    running: dict[str, Pod] = {}
    for number, (request, what) in enumerate(steps):
        before = free(world.cluster)
        if what == "delete" and running:
            world.delete(running.pop(next(iter(running))))
            continue
        pod = gpu_pod(f"p{number}", *request, cpu=1)
        world.bind_answer = Status.error("no") if what == "fail" else None
        world.attempt(pod)
        if world.node_of(pod.name) is None:
            assert free(world.cluster) == before
            world.delete(pod)
            continue
        running[pod.name] = bound(pod, world)
        if what == "confirm":
            world.add(running[pod.name])
    used: dict[str, list[int]] = {f"n{number}": [0] * gpus for number, gpus in enumerate(nodes)}
    for pod in running.values():
        for device in filter(None, pod.annotations.get(INDEX, "").split("-")):
            used[pod.node_name][int(device)] += int(pod.annotations["alibabacloud.com/gpu-milli"])
    assert all(milli <= 1000 for devices in used.values() for milli in devices)
    assert free(world.cluster) == {name: [1000 - milli for milli in devices] for name, devices in used.items()}
    restarted = make_cluster([node for node in world.cluster.nodes if node is not None], running.values())
    assert free(restarted) == free(world.cluster)


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.tuples(REQUESTS, st.sampled_from(["0", "1", "0-1", None])), max_size=8), st.data())
def test_a_dry_run_is_undone_exactly(pods: list[tuple[tuple[int, int], str | None]], data: st.DataObject) -> None:
    """Pods whose devices are known and pods whose devices are supposed, taken off and put back in any order."""
    placed = [
        gpu_pod(f"p{number}", *request, devices=devices, node="n1") for number, (request, devices) in enumerate(pods)
    ]
    cluster = make_cluster([gpu_node("n1", 3)], placed)
    before = free(cluster)
    held = {pod.uid: GpuDevices.of(cluster).held_by(pod.uid) for pod in placed}
    victims = [placed for placed in cluster.pods.values() if data.draw(st.booleans())]
    with cluster.dry_run():
        rival = cluster.stand_in(gpu_pod("rival", 500), cluster.row_of["n1"])
        for victim in victims:
            cluster.take_off(victim)
        cluster.put_on(rival)
        cluster.take_off(rival)
        for victim in data.draw(st.permutations(victims)):
            cluster.put_on(victim)
    assert free(cluster) == before
    assert {pod.uid: GpuDevices.of(cluster).held_by(pod.uid) for pod in placed} == held
