"""`podium run` on a real API server does what people know from kube-scheduler."""

from collections.abc import Callable
from typing import Any

from tools.testbed import ControlPlane
from tools.testbed.objects import make_node, make_pod

TWO_PROFILES = {"profiles": [{"schedulerName": "default-scheduler"}, {"schedulerName": "second"}]}


def bound(items: list[Any]) -> dict[str, str]:
    return {each["metadata"]["name"]: each["spec"].get("nodeName", "") for each in items}


def all_bound(count: int) -> Callable[[list[Any]], bool]:
    return lambda items: sum(1 for node in bound(items).values() if node) == count


def refused(items: list[Any]) -> list[str]:
    """The messages of the pods that are said to be unschedulable."""
    return [
        condition["message"]
        for each in items
        for condition in each.get("status", {}).get("conditions", ())
        if condition["type"] == "PodScheduled" and condition.get("reason") == "Unschedulable"
    ]


def test_pods_of_both_profiles_are_bound_and_those_of_other_schedulers_left_alone(
    empty_control_plane: ControlPlane,
) -> None:
    client = empty_control_plane.client
    client.create_all([make_node("n1"), make_node("n2")])
    empty_control_plane.start_podium(TWO_PROFILES)
    client.create(make_pod("foreign", schedulerName="somebody-else"))
    client.create(make_pod("first"))
    client.create(make_pod("second", schedulerName="second"))
    client.poll("Pod", all_bound(2))
    assert bound(client.list("Pod"))["foreign"] == ""


def test_events_and_conditions_read_as_kube_scheduler_writes_them(empty_control_plane: ControlPlane) -> None:
    """The same story under each scheduler, as `kubectl describe` tells it."""
    plane = empty_control_plane
    plane.client.create(make_node("n1", cpu="2"))
    stories: list[list[Any]] = []
    for name, start in (("podium", plane.start_podium), ("kube", plane.start_scheduler)):
        scheduler = start({"profiles": [{"schedulerName": name}]})
        plane.client.create(make_pod("fits", schedulerName=name))
        plane.client.create(make_pod("big", cpu="64", schedulerName=name))
        plane.client.poll("Pod", lambda items: all_bound(1)(items) and len(refused(items)) == 1)
        plane.client.poll("events.k8s.io/v1/Event", lambda items: len(items) >= 2)
        stories.append([_events(plane.kubectl("describe", "pod", each), name) for each in ("fits", "big")])
        conditions = plane.client.get("Pod", "big")["status"]["conditions"]
        stories[-1].append([{**each, "lastTransitionTime": ""} for each in conditions])
        scheduler.stop()
        plane.client.delete_all("Pod")
        plane.client.delete_all("events.k8s.io/v1/Event")
    ours, theirs = stories
    assert ours == theirs
    assert "Successfully assigned default/fits to n1" in str(ours[0])


def _events(described: str, scheduler: str) -> list[list[str]]:
    """Type, reason, source and message of each event; not its age."""
    lines = described.partition("\nEvents:")[2].splitlines()[3:]
    return [[*(words := line.split(None, 2))[:2], words[2].partition(scheduler)[2]] for line in lines]


def test_a_deployment_is_scheduled(empty_control_plane: ControlPlane) -> None:
    plane = empty_control_plane
    plane.client.create_all([make_node("n1"), make_node("n2")])
    plane.start_controller_manager(["deployment-controller", "replicaset-controller"])
    plane.start_podium()
    plane.kubectl("create", "deployment", "web", "--image=web", "--replicas=6")
    pods = plane.client.poll("Pod", all_bound(6))
    assert sorted(bound(pods).values()) == ["n1"] * 3 + ["n2"] * 3


def test_preemption_evicts_and_then_places(empty_control_plane: ControlPlane) -> None:
    client = empty_control_plane.client
    client.create(make_node("n1", cpu="2"))
    empty_control_plane.start_podium()
    client.create(make_pod("low", cpu="2", priority=1, terminationGracePeriodSeconds=0))
    client.poll("Pod", all_bound(1))
    client.create(make_pod("high", cpu="2", priority=1000))
    client.poll("Pod", lambda items: bound(items) == {"high": "n1"})
    events = client.poll("events.k8s.io/v1/Event", lambda items: any(each["reason"] == "Preempted" for each in items))
    preempted = next(each for each in events if each["reason"] == "Preempted")
    assert preempted["regarding"]["name"] == "low"
    assert preempted["related"]["name"] == "high"


def test_a_gate_that_is_lifted_lets_the_pod_in(empty_control_plane: ControlPlane) -> None:
    client = empty_control_plane.client
    client.create(make_node("n1"))
    empty_control_plane.start_podium()
    client.create(make_pod("gated", schedulingGates=[{"name": "example.com/wait"}]))
    client.create(make_pod("free"))
    client.poll("Pod", all_bound(1))
    assert bound(client.list("Pod"))["gated"] == ""
    client.patch("Pod", "gated", {"spec": {"schedulingGates": None}})
    client.poll("Pod", all_bound(2))


def test_a_taint_that_goes_and_a_node_that_comes_unblock_the_pods_that_waited_for_them(
    empty_control_plane: ControlPlane,
) -> None:
    client = empty_control_plane.client
    client.create(make_node("tainted", taints=[{"key": "k", "effect": "NoSchedule"}]))
    empty_control_plane.start_podium()
    client.create(make_pod("waits"))
    client.create(make_pod("picky", nodeSelector={"disk": "ssd"}))
    client.poll("Pod", lambda items: len(refused(items)) == 2)
    client.patch("Node", "tainted", {"spec": {"taints": None}})
    client.poll("Pod", lambda items: bound(items) == {"waits": "tainted", "picky": ""})
    client.create(make_node("late", labels={"disk": "ssd"}))
    client.poll("Pod", lambda items: bound(items) == {"waits": "tainted", "picky": "late"})


def test_a_volume_that_waits_for_its_first_consumer_is_bound_where_the_pod_goes(
    empty_control_plane: ControlPlane,
) -> None:
    plane = empty_control_plane
    for name in ("n1", "n2"):
        plane.client.create(make_node(name, labels={"kubernetes.io/hostname": name}))
    plane.client.create(make_class("local", "kubernetes.io/no-provisioner"))
    affinity = {
        "nodeSelectorTerms": [
            {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["n2"]}]}
        ]
    }
    plane.client.create(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": "disk"},
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "local",
                "local": {"path": "/mnt/disk"},
                "nodeAffinity": {"required": affinity},
            },
        }
    )
    plane.client.create(make_claim("claim", "local"))
    plane.start_controller_manager(["persistentvolume-binder-controller"])
    plane.start_podium()
    plane.client.create(make_pod("uses", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "claim"}}]))
    plane.client.poll("Pod", lambda items: bound(items) == {"uses": "n2"})
    assert plane.client.get("PersistentVolumeClaim", "claim")["spec"]["volumeName"] == "disk"


def test_a_provisioner_is_told_the_node_and_the_pod_waits_for_its_volume(empty_control_plane: ControlPlane) -> None:
    client = empty_control_plane.client
    client.create(make_node("n1"))
    client.create(make_class("dynamic", "example.com/disks"))
    client.create(make_claim("claim", "dynamic"))
    empty_control_plane.start_podium()
    client.create(make_pod("uses", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "claim"}}]))
    selected = "volume.kubernetes.io/selected-node"
    client.poll(
        "PersistentVolumeClaim", lambda items: items[0]["metadata"].get("annotations", {}).get(selected) == "n1"
    )
    assert bound(client.list("Pod")) == {"uses": ""}


def make_class(name: str, provisioner: str) -> dict[str, Any]:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def make_claim(name: str, storage_class: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage_class,
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
