"""PodGroups of scheduling.k8s.io on a real API server, with the gates on: `podium run` and `podium explain`."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.podium.cli.command import podium as podium_cli
from tests.podium.run.crowd import until
from tools.testbed import ControlPlane
from tools.testbed.apiclient import Object
from tools.testbed.objects import make_node, make_pod

GROUP = "scheduling.k8s.io/v1beta1/PodGroup"
NAMES = ("GenericWorkload", "TopologyAwareWorkloadScheduling")
GATES = f"--feature-gates={','.join(f'{name}=true' for name in NAMES)}"


@pytest.fixture(scope="module")
def own_plane(testbed_programs: None) -> Iterator[ControlPlane]:
    gates = dict.fromkeys(NAMES, True)
    with ControlPlane(feature_gates=gates, runtime_config={"scheduling.k8s.io/v1beta1": True}) as plane:
        yield plane


@pytest.fixture
def plane(own_plane: ControlPlane) -> Iterator[ControlPlane]:
    yield own_plane
    own_plane.stop_components()
    own_plane.wipe()


def create_group(plane: ControlPlane, minimum: int, **spec: Any) -> None:
    plane.client.create(
        {
            "apiVersion": "scheduling.k8s.io/v1beta1",
            "kind": "PodGroup",
            "metadata": {"name": "g", "namespace": "default"},
            "spec": {"schedulingPolicy": {"gang": {"minCount": minimum}}, **spec},
        }
    )


def create_members(plane: ControlPlane, *numbers: int, **spec: Any) -> None:
    named = {"schedulingGroup": {"podGroupName": "g"}, **spec}
    plane.client.create_all((make_pod(f"g-{number}", cpu="1", **named) for number in numbers), in_order=True)


def condition(plane: ControlPlane) -> tuple[str, str, str]:
    group = plane.client.get(GROUP, "g")
    for each in group.get("status", {}).get("conditions", ()):
        if each["type"] == "PodGroupInitiallyScheduled":
            return each["status"], each["reason"], each["message"]
    return "", "", ""


def placed(plane: ControlPlane) -> set[str]:
    return {pod["metadata"]["name"] for pod in plane.client.list("Pod") if pod["spec"].get("nodeName")}


def scheduled(pod: Object) -> Object:
    conditions = pod["status"].get("conditions", ())
    return next((each for each in conditions if each["type"] == "PodScheduled"), {})


def test_a_gang_waits_for_its_last_pod_and_its_group_says_that_it_is_scheduled(plane: ControlPlane) -> None:
    plane.client.create(make_node("n1", cpu="4"))
    podium = plane.start_podium(flags=(GATES,))
    create_group(plane, 3)
    create_members(plane, 0, 1)
    plane.client.create(make_pod("other", cpu="1"))
    until(lambda: "other" in placed(plane), "a pod that comes later is bound", podium)
    assert placed(plane) == {"other"}
    create_members(plane, 2)
    until(lambda: len(placed(plane)) == 4, "the gang is bound", podium)
    until(lambda: condition(plane) == ("True", "Scheduled", ""), "the condition is written", podium)


def test_a_gang_that_does_not_fit_says_why_and_starts_when_it_does(plane: ControlPlane) -> None:
    plane.client.create(make_node("n1", cpu="1"))
    podium = plane.start_podium(flags=(GATES,))
    create_group(plane, 2)
    create_members(plane, 0, 1)
    why = (
        "pod group is unschedulable, 0/1 placements are available, first placement status: "
        "minCount (2) cannot be satisfied: 1 scheduled, 0 remaining, "
        "pod group preemption: No preemption victims found for incoming preemptor"
    )
    until(lambda: condition(plane) == ("False", "Unschedulable", why), "the condition is written", podium)
    until(lambda: all(scheduled(pod) for pod in plane.client.list("Pod")), "all pods say why", podium)
    assert placed(plane) == set()
    explained = podium_cli("explain", "g-0", "--kubeconfig", str(plane.kubeconfig_path), GATES)
    assert explained.code == 1
    assert (
        "PodGroup default/g: 2 of at least 2 members are there, 0 have a node; 1 of the other 2 would fit, 2 must: "
        "none starts"
    ) in explained.out
    plane.client.create(make_node("n2", cpu="1"))
    until(lambda: len(placed(plane)) == 2, "the gang is bound", podium)
    until(lambda: condition(plane)[0] == "True", "the condition is written", podium)


def test_room_is_made_for_a_whole_group(plane: ControlPlane) -> None:
    plane.client.create_all(make_node(f"n{number}", cpu="1") for number in range(2))
    plane.client.create_all(make_pod(f"low-{number}", cpu="1", nodeName=f"n{number}") for number in range(2))
    podium = plane.start_podium(flags=(GATES,))
    create_group(plane, 2, priority=100)
    create_members(plane, 0, 1, priority=100)
    uid = plane.client.get(GROUP, "g")["metadata"]["uid"]

    def notes() -> set[str]:
        events = plane.client.list("events.k8s.io/v1/Event")
        return {each["note"] for each in events if each.get("reason") == "Preempted"}

    until(lambda: notes() == {f"Preempted by podgroup {uid} on node cluster"}, "victims are evicted", podium)
    for pod in plane.client.list("Pod"):
        if pod["metadata"]["name"].startswith("low"):
            target = next(each for each in pod["status"]["conditions"] if each["type"] == "DisruptionTarget")
            assert target["message"] == "default-scheduler: preempting to accommodate a higher priority podgroup"
            plane.client.delete("Pod", pod["metadata"]["name"])
    until(lambda: placed(plane) == {"g-0", "g-1"}, "the group is bound", podium)
