"""The same objects under kube-controller-manager and under the embedded controllers come to the same end."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from tests.podium_cluster.apiserver.server import EmbeddedServer
from tests.podium_cluster.controllers.like_the_real_ones import ENDS, picture, play
from tools.testbed import ControlPlane
from tools.testbed.apiclient import ApiClient

Object = dict[str, Any]
CONTROLLERS = (
    "deployment-controller",
    "replicaset-controller",
    "statefulset-controller",
    "daemonset-controller",
    "job-controller",
    "disruption-controller",
    "garbage-collector-controller",
)


def pods(name: str, *, ends: str = "", **spec: Any) -> Object:
    labels = {"app": name, **({ENDS: ends} if ends else {})}
    container = {"name": "main", "image": "app:1", "resources": {"requests": {"cpu": "100m"}}}
    return {"metadata": {"labels": labels}, "spec": {"containers": [container], **spec}}


def selected(kind: str, name: str, **spec: Any) -> Object:
    spec = {"selector": {"matchLabels": {"app": name}}, "template": pods(name), **spec}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def job(name: str, ends: str, **spec: Any) -> Object:
    spec = {"template": pods(name, ends=ends, restartPolicy="Never"), **spec}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def node(name: str, **spec: Any) -> Object:
    conditions = [{"type": "Ready", "status": "True"}]
    status = {"allocatable": {"cpu": "8", "memory": "8Gi", "pods": "110"}, "conditions": conditions}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": spec, "status": status}


def status_of(client: ApiClient, kind: str, name: str) -> Object:
    found: Object = client.get(kind, name)["status"]
    return found


def is_over(client: ApiClient, name: str) -> bool:
    conditions = status_of(client, "Job", name).get("conditions", ())
    return any(each["type"] in ("Complete", "Failed") for each in conditions)


def come_to(clients: list[ApiClient], settled: Callable[[ApiClient], object]) -> None:
    """Both play on until they are settled, and then must show the same picture."""
    end = time.monotonic() + 30
    for client in clients:
        while not settled(client):
            assert time.monotonic() < end, picture(client)
            play(client)
            time.sleep(0.05)
    pictures = [picture(client) for client in clients]
    while pictures[0] != pictures[1] and time.monotonic() < end:
        for client in clients:
            play(client)
        time.sleep(0.1)
        pictures = [picture(client) for client in clients]
    for kind, real in pictures[0].items():
        assert pictures[1][kind] == real, kind


def test_the_same_objects_come_to_the_same_end(empty_control_plane: ControlPlane) -> None:
    empty_control_plane.start_controller_manager(CONTROLLERS)
    with EmbeddedServer(module="tests.podium_cluster.apiserver.with_controllers") as embedded:
        both = [empty_control_plane.client, embedded.client]

        def everywhere(act: Callable[[ApiClient], object]) -> None:
            for client in both:
                act(client)

        taint = {"key": "special", "value": "yes", "effect": "NoSchedule"}
        nodes = [node("node-0"), node("node-1", taints=[taint]), node("node-2", unschedulable=True)]
        everywhere(lambda client: client.create_all(nodes, in_order=True))
        budget_spec = {"maxUnavailable": "50%", "selector": {"matchLabels": {"app": "web"}}}
        budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"}}
        created = [
            {**budget, "metadata": {"name": "web", "namespace": "default"}, "spec": budget_spec},
            selected("Deployment", "web", replicas=3),
            selected("Deployment", "paused", replicas=1, paused=True, strategy={"type": "Recreate"}),
            selected("StatefulSet", "db", replicas=2, serviceName="db"),
            selected("DaemonSet", "agent"),
            job("work", "Succeeded", completions=3, parallelism=2),
            job("indexed", "Succeeded", completions=3, parallelism=3, completionMode="Indexed"),
            job("failing", "Failed", backoffLimit=0),
        ]
        everywhere(lambda client: client.create_all(created, in_order=True))

        def started(client: ApiClient) -> bool:
            return (
                status_of(client, "Deployment", "web").get("availableReplicas") == 3
                and status_of(client, "StatefulSet", "db").get("availableReplicas") == 2
                and status_of(client, "DaemonSet", "agent").get("numberAvailable") == 2
                and status_of(client, "PodDisruptionBudget", "web").get("disruptionsAllowed") == 2
                and all(is_over(client, name) for name in ("work", "indexed", "failing"))
            )

        come_to(both, started)

        image = {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "app:2"}]}}}}
        everywhere(lambda client: client.patch("Deployment", "web", {**image}, patch_type=STRATEGIC))
        everywhere(lambda client: client.patch("StatefulSet", "db", {**image}, patch_type=STRATEGIC))
        everywhere(lambda client: client.patch("DaemonSet", "agent", {**image}, patch_type=STRATEGIC))

        def updated(client: ApiClient) -> bool:
            return (
                status_of(client, "Deployment", "web").get("updatedReplicas") == 3
                and status_of(client, "Deployment", "web").get("replicas") == 3
                and status_of(client, "StatefulSet", "db").get("updatedReplicas") == 2
                and status_of(client, "DaemonSet", "agent").get("updatedNumberScheduled") == 2
            )

        come_to(both, updated)

        everywhere(lambda client: client.patch("Deployment", "web", {"spec": {"replicas": 5}}))
        everywhere(lambda client: client.patch("StatefulSet", "db", {"spec": {"replicas": 1}}))
        everywhere(lambda client: client.patch("Deployment", "paused", {"spec": {"paused": False}}))

        def scaled(client: ApiClient) -> bool:
            return (
                status_of(client, "Deployment", "web").get("availableReplicas") == 5
                and status_of(client, "StatefulSet", "db")["replicas"] == 1
                and status_of(client, "Deployment", "paused").get("availableReplicas") == 1
            )

        come_to(both, scaled)

        everywhere(lambda client: client.delete("Deployment", "web"))
        everywhere(lambda client: client.delete("Job", "work"))

        def deleted(client: ApiClient) -> bool:
            left = [pod["metadata"]["labels"]["app"] for pod in client.list("Pod")]
            jobs = [each["metadata"]["name"] for each in client.list("Job")]
            return "web" not in left and "work" not in jobs  # a Job leaves its pods behind unless told otherwise

        come_to(both, deleted)


STRATEGIC = "application/strategic-merge-patch+json"
