"""The smallest objects the API server accepts, for the test bed's own tests."""

from typing import Any

from tests.testbed.apiclient import Object


def make_node(name: str = "node") -> Object:
    resources = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    status = {"allocatable": resources, "capacity": resources, "conditions": [{"type": "Ready", "status": "True"}]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}


def make_pod(name: str = "pod", namespace: str = "default", **spec: Any) -> Object:
    containers = [{"name": "main", "image": "image"}]
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers, **spec}}


def make_namespace(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
