"""Random clusters for plugins that look at resources, and 64-bit arithmetic as kube-scheduler does it."""

from __future__ import annotations

from hypothesis import strategies as st

from podium.cluster import Cluster
from podium.kube import Pod
from podium.kube.requests import nonzero_requested, offered, requested
from tools.kit.builders import make_cluster, make_node, make_pod

GPU = "example.com/gpu"
PAGES = "hugepages-2Mi"
STORAGE = "ephemeral-storage"
SHARE = "other.io/share"

Amount = st.SearchStrategy[str | int]

AMOUNTS: dict[str, Amount] = {
    "cpu": st.sampled_from([0, "100m", "250m", "1", "2500m"]),
    "memory": st.sampled_from([0, "64Mi", "200Mi", "1Gi", 1500000001]),
    STORAGE: st.sampled_from([0, "1Gi", "3Gi"]),
    GPU: st.integers(0, 3),
    PAGES: st.sampled_from([0, "2Mi", "8Mi"]),
    SHARE: st.integers(0, 2),
}
ALWAYS: dict[str, Amount] = {
    "cpu": st.sampled_from([0, "1", "4"]),
    "memory": st.sampled_from([0, "2Gi", "3000000000"]),
}
SOMETIMES: dict[str, Amount] = {
    "pods": st.integers(0, 4),
    STORAGE: st.sampled_from([0, "2Gi", "5Gi"]),
    GPU: st.integers(0, 4),
    PAGES: st.sampled_from([0, "4Mi", "16Mi"]),
    SHARE: st.integers(0, 2),
}
REQUESTS = st.fixed_dictionaries({}, optional=AMOUNTS)
ALLOCATABLE = st.fixed_dictionaries(ALWAYS, optional=SOMETIMES)


@st.composite
def worlds(draw: st.DrawFn) -> tuple[Cluster, Pod]:
    """A cluster with pods on its nodes, maybe a node that went, and a pod to place."""
    offers = draw(st.lists(ALLOCATABLE, min_size=1, max_size=4))
    nodes = [make_node(f"n{i}", pods=2, allocatable=offer) for i, offer in enumerate(offers)]
    placed: list[Pod] = []
    for i, wants in enumerate(draw(st.lists(REQUESTS, max_size=6))):
        placed.append(make_pod(f"placed{i}", requests=wants, node=f"n{i % len(nodes)}"))
    cluster = make_cluster(nodes, placed)
    if len(nodes) > 1 and draw(st.booleans()):
        cluster.remove_node("n0")
    return cluster, make_pod("incoming", requests=draw(REQUESTS))


def allocatable_of(cluster: Cluster, name: str) -> dict[str, int]:
    """What a node offers, from the object itself."""
    node = cluster.nodes[cluster.row_of[name]]
    assert node is not None
    return offered(node.status.allocatable)


def pods_on(cluster: Cluster, name: str) -> list[Pod]:
    return [placed.pod for placed in cluster.pods_on[cluster.row_of[name]].values()]


def used_on(cluster: Cluster, name: str, resource: str, *, nonzero: bool) -> int:
    """What the pods of a node ask for, added up from the objects themselves."""
    if nonzero and resource in ("cpu", "memory"):
        return sum(nonzero_requested(pod)[resource == "memory"] for pod in pods_on(cluster, name))
    return sum(requested(pod).get(resource, 0) for pod in pods_on(cluster, name))


def int64(number: int) -> int:
    """The number as 64 bits hold it."""
    return (number + 2**63) % 2**64 - 2**63


def divided(numerator: int, denominator: int) -> int:
    """Division toward zero."""
    quotient = abs(numerator) // abs(denominator)
    return quotient if (numerator < 0) == (denominator < 0) else -quotient


def names_of(cluster: Cluster) -> list[str]:
    return [cluster.names[row] for row in cluster.order.rows]
