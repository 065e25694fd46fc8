from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from podium.cluster import Cluster
from podium.kube import Pod
from podium.load.commitment import NO_OVERCOMMITMENT, Commitment, Overcommitted, commitment_of
from tools.kit.builders import make_cluster, make_node, make_pod


def limited(number: int, node: str, resources: dict[str, Any]) -> Pod:
    return make_pod(f"p{number}", node=node, spec={"containers": [{"name": "c", "resources": resources}]})


def test_a_limit_is_at_least_the_request() -> None:
    pod = limited(0, "", {"requests": {"cpu": "2", "memory": "1Mi"}, "limits": {"cpu": "500m", "memory": "3Mi"}})
    assert commitment_of(pod, Cluster().facts.of(pod)) == Commitment(2000, 1 << 20, 2000, 3 << 20)


def test_a_pod_that_is_being_resized_is_committed_to_what_it_may_have() -> None:
    status = {"containerStatuses": [{"name": "c", "resources": {"requests": {"cpu": "3"}}}]}
    pod = make_pod("p", requests={"cpu": "1"}, status=status)
    assert commitment_of(pod, Cluster().facts.of(pod)).cpu == 3000


RESOURCES = st.sampled_from(
    [
        {},
        {"requests": {"cpu": "1"}},
        {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}},
        {"requests": {"memory": "1Gi"}, "limits": {"cpu": "300m", "memory": "4Gi"}},
    ]
)


@given(st.lists(st.tuples(st.integers(0, 4), st.sampled_from("ab"), RESOURCES), max_size=20), st.integers(0, 20))
def test_the_sums_are_those_of_the_pods_that_are_there(steps: list[tuple[int, str, Any]], watched_from: int) -> None:
    """A pod that is named again has changed, has moved, or, if it is the same, goes."""
    cluster, sums = make_cluster([make_node("a"), make_node("b")]), None
    for i, (number, node, resources) in enumerate(steps):
        if i == watched_from:
            sums = Overcommitted(cluster)
        pod = limited(number, node, resources)
        known = cluster.pods.get(pod.uid)
        if known is not None and known.pod == pod:
            cluster.remove_pod(pod.uid)
        else:
            cluster.set_pod(pod)
    sums = sums or Overcommitted(cluster)
    for row in range(cluster.columns.rows):
        each = [commitment_of(placed.pod, placed.facts) for placed in cluster.pods_on[row].values()]
        cpu, memory = sum(c.cpu_limit - c.cpu for c in each), sum(c.memory_limit - c.memory for c in each)
        assert sums.on(row) == (cpu, memory)
        assert (sums.on(row) is NO_OVERCOMMITMENT) == (not cpu and not memory)
        np.testing.assert_array_equal(sums.over_rows()[:, row], [cpu, memory])
