"""Places for replicas that must run together."""

from __future__ import annotations

import numpy as np

from podium.cluster import Cluster
from podium_plugins.qos_aware.together import places
from tools.kit.builders import make_node, make_pod


def test_places_are_counted_in_what_is_free_and_what_may_be_evicted() -> None:
    cluster = Cluster()
    for node in (make_node("n1", cpu=4), make_node("n2", cpu=4, pods=2), make_node("n3", cpu=4)):
        cluster.set_node(node)
    for name, node_name in (("a", "n1"), ("b", "n1"), ("c", "n2"), ("d", "n3")):
        cluster.set_pod(make_pod(name, requests={"cpu": "1500m"}, node=node_name))
    placed = {each.pod.name: each for each in cluster.pods.values()}
    facts = cluster.facts.of(make_pod("new", requests={"cpu": 1, "memory": "1Gi"}))
    rows = np.array([cluster.row_of["n1"], cluster.row_of["n2"]])
    assert places(cluster, rows, facts, []) == 1 + 1, "n2 may hold one more pod, though it has room for two"
    assert places(cluster, rows, facts, [placed["a"]]) == 2 + 1
    assert places(cluster, rows, facts, [placed["a"], placed["c"], placed["d"]]) == 2 + 2, "n3 could not take the pod"
