"""Gangs on a real API server: they start whole, whatever happens in the middle."""

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from podium.controllers.catalog import definitions
from tests.podium.cli.command import podium as podium_cli
from tests.podium.run.crowd import until
from tools.testbed import Component, ControlPlane
from tools.testbed.apiclient import Object
from tools.testbed.http_faults import FaultProxy, Faults
from tools.testbed.objects import make_node, make_pod

CONFIG: dict[str, Any] = {
    "profiles": [
        {
            "plugins": {
                "multiPoint": {"enabled": [{"name": "Coscheduling"}], "disabled": [{"name": "PrioritySort"}]},
            },
        }
    ]
}
SIZE = 50
EXAMPLE = Path(__file__).parents[3] / "examples" / "config" / "coscheduling.yaml"


@pytest.fixture(scope="module")
def own_plane(testbed_programs: None) -> Iterator[ControlPlane]:
    with ControlPlane() as plane:
        plane.client.create(definitions()["podgroups"])
        until(lambda: _serves_groups(plane), "PodGroups are served")
        yield plane


@pytest.fixture
def plane(own_plane: ControlPlane) -> Iterator[ControlPlane]:
    yield own_plane
    own_plane.stop_components()
    own_plane.wipe()


def _serves_groups(plane: ControlPlane) -> bool:
    try:
        plane.client.list("scheduling.x-k8s.io/v1alpha1/PodGroup")
    except Exception:
        return False
    return True


def create_group(plane: ControlPlane, name: str = "gang", minimum: int = SIZE) -> None:
    plane.client.create(
        {
            "apiVersion": "scheduling.x-k8s.io/v1alpha1",
            "kind": "PodGroup",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"minMember": minimum},
        }
    )


def member(number: int, group: str = "gang") -> Object:
    return make_pod(f"{group}-{number:02}", cpu="1", labels={"scheduling.x-k8s.io/pod-group": group})


def create_members(plane: ControlPlane, count: int = SIZE, group: str = "gang") -> None:
    plane.client.create_all(member(number, group) for number in range(count))


def create_nodes(plane: ControlPlane, cpus: int, prefix: str = "node") -> None:
    """Nodes of five CPUs."""
    plane.client.create_all(make_node(f"{prefix}-{number}", cpu="5") for number in range(cpus // 5))


def placed(plane: ControlPlane) -> dict[str, str]:
    return {
        pod["metadata"]["name"]: pod["spec"]["nodeName"]
        for pod in plane.client.list("Pod")
        if pod["spec"].get("nodeName")
    }


def refused(plane: ControlPlane) -> int:
    """How many pods are said to be unschedulable."""
    return sum(
        condition.get("reason") == "Unschedulable"
        for pod in plane.client.list("Pod")
        for condition in pod["status"].get("conditions", ())
    )


def until_placed(plane: ControlPlane, count: int, *components: Component) -> None:
    until(lambda: len(placed(plane)) >= count, f"{count} pods are bound", *components)


def assert_no_node_is_overfull(plane: ControlPlane) -> None:
    assert max(Counter(placed(plane).values()).values()) <= 5


def test_a_gang_of_50_waits_and_then_starts_whole(plane: ControlPlane) -> None:
    create_nodes(plane, 40)
    podium = plane.start_podium(CONFIG)
    create_group(plane)
    create_members(plane)
    until(lambda: refused(plane) == SIZE, "all are refused", podium)
    assert placed(plane) == {}
    explained = podium_cli("explain", "gang-07", "--kubeconfig", str(plane.kubeconfig_path), "--config", str(EXAMPLE))
    assert explained.code == 1
    assert (
        "PodGroup default/gang: 50 of at least 50 members are there, 0 have a node; 40 of the other 50 would fit, "
        "50 must: none starts"
    ) in explained.out
    create_nodes(plane, 10, "late")
    until_placed(plane, SIZE, podium)
    assert_no_node_is_overfull(plane)


def test_a_gang_of_which_one_member_is_deleted_waits_for_another(plane: ControlPlane) -> None:
    create_nodes(plane, 40)
    podium = plane.start_podium(CONFIG)
    create_group(plane)
    create_members(plane)
    until(lambda: refused(plane) == SIZE, "all are refused", podium)
    plane.client.delete("Pod", "gang-07")
    create_nodes(plane, 10, "late")
    time.sleep(3)
    assert placed(plane) == {}
    plane.client.create(member(7))
    until_placed(plane, SIZE, podium)
    assert_no_node_is_overfull(plane)


def test_a_gang_whose_scheduler_is_killed_between_bindings_is_completed_by_the_next(
    plane: ControlPlane, tmp_path: Path
) -> None:
    create_nodes(plane, 50)
    create_group(plane)
    with FaultProxy(plane, Faults(), seed=1) as proxy:
        kubeconfig = plane.write_kubeconfig(tmp_path / "proxied", server=proxy.url)
        podium = plane.start_podium(CONFIG, kubeconfig=kubeconfig)
        proxy.faults = Faults(delay=1.0, longest_delay=5.0)
        create_members(plane)
        until_placed(plane, 5, podium)
        podium.kill()
    assert 5 <= len(placed(plane)) < SIZE, "the scheduler was killed in the middle"
    podium = plane.start_podium(CONFIG)
    until_placed(plane, SIZE, podium)
    assert_no_node_is_overfull(plane)


def test_a_gang_whose_node_dies_gets_its_members_back(plane: ControlPlane) -> None:
    create_nodes(plane, 60)
    podium = plane.start_podium(CONFIG)
    create_group(plane)
    create_members(plane)
    until_placed(plane, SIZE, podium)
    dead = placed(plane)["gang-00"]
    lost = [name for name, node in placed(plane).items() if node == dead]
    plane.client.delete("Node", dead)
    for name in lost:
        plane.client.delete("Pod", name)
        plane.client.create(member(int(name.removeprefix("gang-"))))
    until(lambda: len(placed(plane)) == SIZE and dead not in placed(plane).values(), "all are bound again", podium)
    assert_no_node_is_overfull(plane)


def test_of_two_gangs_that_need_60_percent_each_one_starts_and_the_other_waits(plane: ControlPlane) -> None:
    create_nodes(plane, 50)
    podium = plane.start_podium(CONFIG)
    for group in ("a", "b"):
        create_group(plane, group, 30)
    plane.client.create_all(member(number, group) for number in range(30) for group in ("a", "b"))
    until_placed(plane, 30, podium)
    until(lambda: refused(plane) == 30, "the other gang is refused", podium)
    time.sleep(2)
    started = {name[0] for name in placed(plane)}
    assert (len(placed(plane)), len(started)) == (30, 1)
    for name in placed(plane):
        plane.client.delete("Pod", name)
    until_placed(plane, 30, podium)
    assert {name[0] for name in placed(plane)} == {"a", "b"} - started
