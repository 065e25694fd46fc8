"""The tests' own client, against the real API server."""

from contextlib import closing
from itertools import islice
from typing import Any

import pytest

from tools.testbed import ApiClient, ApiError, ControlPlane
from tools.testbed.objects import make_namespace, make_node, make_pod

DISRUPTION = {"disruptionsAllowed": 2, "currentHealthy": 3, "desiredHealthy": 1, "expectedPods": 3}
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
VOLUME = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/volume"}}
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "gadgets.podium.test"},
    "spec": {
        "group": "podium.test",
        "scope": "Namespaced",
        "names": {"kind": "Gadget", "plural": "gadgets"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


@pytest.fixture
def client(empty_control_plane: ControlPlane) -> ApiClient:
    return empty_control_plane.client


@pytest.mark.parametrize(
    ("api_version", "kind", "spec", "status"),
    [
        ("v1", "Node", {}, {"allocatable": {"cpu": "2"}}),
        ("v1", "Node", {}, {"allocatable": {"cpu": "2000m"}}),
        ("v1", "Pod", make_pod()["spec"], {"phase": "Running", "nominatedNodeName": "there"}),
        ("v1", "PersistentVolume", VOLUME, {"phase": "Available"}),
        ("v1", "PersistentVolumeClaim", CLAIM, {"phase": "Bound", "accessModes": ["ReadWriteOnce"]}),
        ("policy/v1", "PodDisruptionBudget", {"minAvailable": 1, "selector": {}}, DISRUPTION),
    ],
)
def test_an_object_is_created_with_its_status(
    client: ApiClient, api_version: str, kind: str, spec: Any, status: dict[str, Any]
) -> None:
    client.create({"apiVersion": api_version, "kind": kind, "metadata": {"name": "it"}, "spec": spec, "status": status})
    stored = client.get(kind, "it")["status"]
    expected = {"allocatable": {"cpu": "2"}} if kind == "Node" else status
    assert stored.items() >= expected.items()


def test_many_are_created_at_once_and_answered_in_order(client: ApiClient) -> None:
    names = [f"node-{number:03}" for number in range(200)]
    created = client.create_all(make_node(name) for name in names)
    assert [node["metadata"]["name"] for node in created] == names
    assert sorted(node["metadata"]["name"] for node in client.list("Node")) == names


def test_in_order_each_exists_before_the_next(client: ApiClient) -> None:
    created = client.create_all([make_node(f"node-{number}") for number in range(50)], in_order=True)
    versions = [int(node["metadata"]["resourceVersion"]) for node in created]
    assert versions == sorted(versions)


def test_a_refusal_says_what_and_why(client: ApiClient) -> None:
    client.create(make_node())
    with pytest.raises(ApiError, match="POST /api/v1/nodes: 409 AlreadyExists") as caught:
        client.create(make_node())
    assert (caught.value.code, caught.value.reason) == (409, "AlreadyExists")
    with pytest.raises(LookupError, match="serves no v1/Gizmo"):
        client.list("v1/Gizmo")


def test_lists_may_be_narrowed(client: ApiClient) -> None:
    client.create(make_namespace("other"))
    labelled = make_pod("labelled")
    labelled["metadata"]["labels"] = {"app": "web"}
    client.create_all([labelled, make_pod("plain"), make_pod("far", "other")])
    named = [
        client.list("pods"),
        client.list("Pod", "other"),
        client.list("v1/Pod", label_selector="app=web"),
        client.list("v1/pods", field_selector="metadata.name=plain"),
    ]
    assert [sorted(pod["metadata"]["name"] for pod in pods) for pods in named] == [
        ["far", "labelled", "plain"],
        ["far"],
        ["labelled"],
        ["plain"],
    ]


def test_objects_are_replaced_and_patched(client: ApiClient) -> None:
    node = client.create(make_node())
    node["metadata"]["labels"] = {"zone": "a"}
    client.replace(node)
    with pytest.raises(ApiError, match="409 Conflict"):
        client.replace(node)
    client.patch("Node", "node", {"spec": {"unschedulable": True}})
    client.set_status({**make_node(), "status": {"allocatable": {"cpu": "9"}}})
    stored = client.get("Node", "node")
    assert stored["metadata"]["labels"] == {"zone": "a"}
    assert stored["spec"]["unschedulable"] is True
    assert stored["status"]["allocatable"]["cpu"] == "9"
    assert stored["status"]["allocatable"]["pods"] == "110"


def test_a_pod_is_bound_and_deleted_at_once(client: ApiClient) -> None:
    client.create_all([make_node(), make_pod()])
    client.bind("pod", "node")
    assert client.get("Pod", "pod")["spec"]["nodeName"] == "node"
    client.delete("Pod", "pod")
    assert client.list("Pod") == []


def test_all_of_a_kind_are_deleted_in_every_namespace(client: ApiClient) -> None:
    client.create(make_namespace("other"))
    client.create_all([make_pod("a"), make_pod("b"), make_pod("c", "other")])
    client.delete_all("Pod", "other")
    assert len(client.list("Pod")) == 2
    client.create(make_pod("c", "other"))
    client.delete_all("Pod")
    assert client.list("Pod") == []


def test_a_watch_tells_what_happens_after_a_list(client: ApiClient) -> None:
    client.create(make_node("before"))
    version = client.list_response("Node")["metadata"]["resourceVersion"]
    client.create(make_node("after"))
    client.delete("Node", "before")
    with closing(client.watch("Node", resource_version=version, timeout=10)) as events:
        seen = [(event["type"], event["object"]["metadata"]["name"]) for event in islice(events, 2)]
    assert seen == [("ADDED", "after"), ("DELETED", "before")]


def test_a_watch_ends_by_itself(client: ApiClient) -> None:
    assert list(client.watch("Node", timeout=1)) == []


def test_polling_gives_up(client: ApiClient) -> None:
    with pytest.raises(TimeoutError, match="the 0 listed objects were not as awaited"):
        client.poll("Pod", bool, timeout=0.1)


def test_a_custom_kind_is_found_once_it_is_served(client: ApiClient) -> None:
    client.create(DEFINITION)
    client.poll(
        "CustomResourceDefinition",
        lambda found: any(
            condition["type"] == "Established" and condition["status"] == "True"
            for condition in found[0]["status"]["conditions"] or []
        ),
    )
    gadget = {"apiVersion": "podium.test/v1", "kind": "Gadget", "metadata": {"name": "one"}, "size": 3}
    client.create(gadget)
    assert client.get("Gadget", "one")["size"] == 3
    client.delete("CustomResourceDefinition", "gadgets.podium.test")


def test_wiping_removes_what_tests_make_and_nothing_of_the_servers(empty_control_plane: ControlPlane) -> None:
    client = empty_control_plane.client
    before = client.list("PriorityClass"), client.list("Service")
    priority = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 9}
    held = make_pod("held", "other")
    held["metadata"]["finalizers"] = ["podium.test/held"]
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}]}}
    client.create_all([make_namespace("other"), make_node(), priority, service, make_pod()], in_order=True)
    client.create(held)
    empty_control_plane.wipe()
    assert client.list("Pod") == client.list("Node") == []
    assert (client.list("PriorityClass"), client.list("Service")) == before
    assert sorted(namespace["metadata"]["name"] for namespace in client.list("Namespace")) == [
        "default",
        "kube-node-lease",
        "kube-public",
        "kube-system",
    ]
