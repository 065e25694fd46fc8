"""Builds the nodes and pods of a test from what matters about them; all else goes in as the API spells it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from podium.kube import Node, Pod

Quantity = str | int


def node(
    name: str,
    *,
    cpu: Quantity = 4,
    memory: Quantity = "8Gi",
    pods: int = 110,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    taints: Sequence[Mapping[str, str]] = (),
    resources: Mapping[str, Quantity] | None = None,
    spec: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
) -> Node:
    """A node with room for pods. `resources` are further allocatable ones; `spec` and `status` are as in a manifest.

    >>> node("gpu", resources={"nvidia.com/gpu": 4}).status.allocatable["nvidia.com/gpu"]
    4
    """
    allocatable = {"cpu": cpu, "memory": memory, "pods": pods, **(resources or {})}
    return msgspec.convert(
        {
            "metadata": {
                "name": name,
                "uid": name,
                "labels": {"kubernetes.io/hostname": name, **(labels or {})},
                "annotations": dict(annotations or {}),
            },
            "spec": {"taints": list(taints), **(spec or {})},
            "status": {"allocatable": allocatable, "capacity": allocatable, **(status or {})},
        },
        Node,
    )


def pod(
    name: str = "pod",
    *,
    namespace: str = "default",
    cpu: Quantity | None = None,
    memory: Quantity | None = None,
    resources: Mapping[str, Quantity] | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    on: str = "",
    priority: int = 0,
    spec: Mapping[str, Any] | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> Pod:
    """A pod of one container. `on` is the node that it runs on already; `spec` and `metadata` are as in a manifest.

    >>> pod("web", cpu="500m", on="n1").key
    'default/web'
    """
    requests = {"cpu": cpu, "memory": memory, **(resources or {})}
    container = {
        "name": "main",
        "image": "app",
        "resources": {"requests": {resource: amount for resource, amount in requests.items() if amount is not None}},
    }
    return msgspec.convert(
        {
            "metadata": {
                "name": name,
                "namespace": namespace,
                "uid": f"{namespace}/{name}",
                "labels": dict(labels or {}),
                "annotations": dict(annotations or {}),
                **(metadata or {}),
            },
            "spec": {"containers": [container], "nodeName": on, "priority": priority, **(spec or {})},
        },
        Pod,
    )
