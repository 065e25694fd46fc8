"""The smallest objects the API server accepts, for the test bed's own tests."""

from collections.abc import Sequence
from typing import Any

from tools.testbed.apiclient import Object


def make_node(
    name: str = "node", *, cpu: str = "4", labels: dict[str, str] | None = None, taints: Sequence[Object] = ()
) -> Object:
    resources = {"cpu": cpu, "memory": "8Gi", "pods": "110"}
    status = {"allocatable": resources, "capacity": resources, "conditions": [{"type": "Ready", "status": "True"}]}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels or {}}, "status": status}
    return {**node, "spec": {"taints": list(taints)}} if taints else node


def make_pod(
    name: str = "pod",
    namespace: str = "default",
    *,
    cpu: str | None = None,
    labels: dict[str, str] | None = None,
    **spec: Any,
) -> Object:
    container: Object = {"name": "main", "image": "image"}
    if cpu is not None:
        container["resources"] = {"requests": {"cpu": cpu}}
    metadata = {"name": name, "namespace": namespace, "labels": labels or {}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container], **spec}}


def make_namespace(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
