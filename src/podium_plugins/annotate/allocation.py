"""Sums up what the pods on each node request and what is left of the node, as annotations.

Every pod that is bound to the node and has not ended counts, whether it runs yet or not, with what Kubernetes reckons
it to ask for: the larger of its containers and its init containers, and its overhead. cpu is in thousandths, memory and
storage in bytes, pods and GPUs are counted; all are whole numbers.
"""

from __future__ import annotations

from collections.abc import Iterable

from podium.kube import Node, Pod
from podium.kube.requests import offered, requested

RESOURCES = ("cpu", "memory", "pods", "gpu", "ephemeral-storage")
REQUESTED, FREE = "requested-{}", "free-{}"
ALLOCATION_KEYS = tuple(kind.format(resource) for resource in RESOURCES for kind in (REQUESTED, FREE))
ENDED = ("Succeeded", "Failed")


def allocations(nodes: Iterable[Node], pods: Iterable[Pod], gpu: str) -> dict[str, dict[str, str]]:
    """The annotations of each node; `gpu` is what GPUs are called."""
    used: dict[str, dict[str, int]] = {}
    for pod in pods:
        if pod.node_name and pod.status.phase not in ENDED:
            total = used.setdefault(pod.node_name, {"pods": 0})
            total["pods"] += 1
            for name, amount in requested(pod).items():
                total[name] = total.get(name, 0) + amount
    return {node.name: _annotations(node, used.get(node.name, {}), gpu) for node in nodes}


def _annotations(node: Node, used: dict[str, int], gpu: str) -> dict[str, str]:
    capacity = offered(node.status.allocatable)
    found = {}
    for resource in RESOURCES:
        name = gpu if resource == "gpu" else resource
        taken = used.get(name, 0)
        found[REQUESTED.format(resource)] = str(taken)
        found[FREE.format(resource)] = str(max(capacity.get(name, 0) - taken, 0))
    return found
