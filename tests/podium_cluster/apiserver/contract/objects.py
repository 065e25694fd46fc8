"""Objects that cases begin with."""

from typing import Any

Object = dict[str, Any]

PODS = "/api/v1/namespaces/{ns}/pods"
NODES = "/api/v1/nodes"
CONFIG_MAPS = "/api/v1/namespaces/{ns}/configmaps"
DEPLOYMENTS = "/apis/apps/v1/namespaces/{ns}/deployments"
NAMESPACES = "/api/v1/namespaces"


def config_map(name: str = "c", *, labels: dict[str, str] | None = None, **data: str) -> Object:
    metadata: Object = {"name": name, **({"labels": labels} if labels else {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **({"data": data} if data else {})}


def pod(name: str = "p", *, labels: dict[str, str] | None = None, **spec: Any) -> Object:
    metadata: Object = {"name": name, **({"labels": labels} if labels else {})}
    containers = [{"name": "c", "image": "i"}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers, **spec}}


def node(name: str, **spec: Any) -> Object:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, **({"spec": spec} if spec else {})}


def deployment(name: str = "d", **spec: Any) -> Object:
    template = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    filled = {"selector": {"matchLabels": {"app": "a"}}, "template": template, **spec}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": filled}


def binding(pod_name: str, node_name: str, **metadata: str) -> Object:
    target = {"apiVersion": "v1", "kind": "Node", "name": node_name}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod_name, **metadata}, "target": target}
