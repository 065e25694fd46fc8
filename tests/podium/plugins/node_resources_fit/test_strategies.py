from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.cluster import Cluster, Nodes
from podium.framework import Cycle
from podium.kube import Pod
from podium.kube.requests import is_scalar_resource_name, score_requests
from podium.plugins.node_resources_fit import NodeResourcesFit
from tests.podium.plugins.ask import raw_scores
from tests.podium.plugins.resource_worlds import (
    GPU,
    PAGES,
    STORAGE,
    allocatable_of,
    divided,
    int64,
    names_of,
    used_on,
    worlds,
)
from tools.kit.builders import make_cluster, make_node, make_plugin, make_pod

Points = list[tuple[int, int]]
RISING: Points = [(0, 0), (100, 10)]
FALLING: Points = [(0, 10), (100, 0)]


def strategy(kind: str, resources: dict[str, int] | None = None, shape: Points | None = None) -> dict[str, Any]:
    chosen: dict[str, Any] = {"type": kind}
    if resources is not None:
        chosen["resources"] = [{"name": name, "weight": weight} for name, weight in resources.items()]
    if shape is not None:
        points = [{"utilization": utilization, "score": score} for utilization, score in shape]
        chosen["requestedToCapacityRatio"] = {"shape": points}
    return chosen


LEAST = strategy("LeastAllocated")
MOST = strategy("MostAllocated")


def ratio(shape: Points, resources: dict[str, int] | None = None) -> dict[str, Any]:
    return strategy("RequestedToCapacityRatio", resources, shape)


def score(
    chosen: dict[str, Any], allocatable: dict[str, Any], used: dict[str, Any], wanted: dict[str, Any], **spec: Any
) -> int:
    cluster = make_cluster([make_node("n", allocatable=allocatable)], [make_pod("there", requests=used, node="n")])
    plugin = make_plugin(NodeResourcesFit, cluster, scoringStrategy=chosen)
    return raw_scores(plugin, make_pod(requests=wanted, spec=spec), cluster)["n"]


OFFER = {"cpu": "4000m", "memory": "8Gi"}
USED = {"cpu": "1000m", "memory": "2Gi"}


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        pytest.param(LEAST, 67, id="(62 + 72)/2"),
        pytest.param(MOST, 32, id="(37 + 27)/2"),
        pytest.param(ratio(RISING), 32, id="37 and 27, rising"),
        pytest.param(ratio(FALLING), 68, id="63 and 73, falling"),
        pytest.param(strategy("LeastAllocated", {"cpu": 3, "memory": 1}), (3 * 62 + 72) // 4, id="weighted least"),
        pytest.param(strategy("MostAllocated", {"cpu": 1, "memory": 5}), (37 + 5 * 27) // 6, id="weighted most"),
        pytest.param(strategy("LeastAllocated", {"cpu": 0}), 62, id="a weight of 0 is 1"),
        pytest.param(strategy("LeastAllocated", {}), 67, id="no resources are the default ones"),
    ],
)
def test_a_pod_without_a_memory_request_counts_200_mib(chosen: dict[str, Any], expected: int) -> None:
    assert score(chosen, OFFER, USED, {"cpu": "500m"}) == expected


def test_a_pod_without_requests_counts_100m_for_scoring() -> None:
    assert score(strategy("MostAllocated", {"cpu": 1}), {"cpu": "1"}, {"cpu": 0}, {}) == 10
    assert score(strategy("MostAllocated", {"cpu": 1}), {"cpu": "1"}, {}, {}) == 20  # and so does the one there


def test_the_combined_example() -> None:
    nodes = [make_node("n1", cpu="4000m", memory="8Gi"), make_node("n2", cpu="4000m", memory="8Gi")]
    cluster = make_cluster(nodes, [make_pod("there", requests={"cpu": "1000m", "memory": "1Gi"}, node="n2")])
    pod = make_pod(requests={"cpu": "500m", "memory": "1Gi"})
    assert raw_scores(make_plugin(NodeResourcesFit, cluster), pod, cluster) == {"n1": 87, "n2": 68}


def test_an_overfull_resource_scores_0_for_least_and_100_for_most() -> None:
    wanted = {"cpu": "5"}
    assert score(strategy("LeastAllocated", {"cpu": 1}), OFFER, USED, wanted) == 0
    assert score(strategy("MostAllocated", {"cpu": 1}), OFFER, USED, wanted) == 100
    assert score(ratio([(0, 0), (99, 0), (100, 7)], {"cpu": 1}), OFFER, USED, wanted) == 70


def test_pod_level_requests_do_not_count_for_the_score() -> None:
    chosen = strategy("MostAllocated", {"cpu": 1})
    plain = score(chosen, OFFER, USED, {"cpu": "500m"})
    assert score(chosen, OFFER, USED, {"cpu": "500m"}, resources={"requests": {"cpu": "3"}}) == plain == 37


def test_an_extended_resource_counts_only_if_pod_and_node_have_it() -> None:
    chosen = strategy("MostAllocated", {"cpu": 1, GPU: 1})
    without = {**OFFER, GPU: 4}
    assert score(chosen, without, {"cpu": "1000m", GPU: 1}, {"cpu": "500m"}) == 37
    assert score(chosen, without, {"cpu": "1000m", GPU: 1}, {"cpu": "500m", GPU: 2}) == (37 + 75) // 2
    assert score(chosen, OFFER, USED, {"cpu": "500m", GPU: 2}) == 37


def test_ephemeral_storage_counts_whether_or_not_the_pod_asks_for_it() -> None:
    chosen = strategy("MostAllocated", {STORAGE: 1})
    assert score(chosen, {STORAGE: "10Gi"}, {STORAGE: "4Gi"}, {}) == 40


@pytest.mark.parametrize("name", ["pods", "strange", "absent.io/x"])
def test_where_no_resource_counts_the_score_is_0(name: str) -> None:
    for chosen in (
        strategy("LeastAllocated", {name: 1}),
        strategy("MostAllocated", {name: 1}),
        ratio(FALLING, {name: 1}),
    ):
        assert score(chosen, OFFER, USED, {"cpu": "1"}) == 0


def test_a_ratio_of_0_is_left_out_and_does_not_pull_the_average_down() -> None:
    shape = [(0, 0), (30, 0), (100, 10)]
    resources = {"cpu": 1, "memory": 1}
    assert score(ratio(shape, resources), OFFER, USED, {"cpu": "2", "memory": 0}) == 64  # cpu 75, memory 25 → 0


def test_ratios_are_rounded_to_the_nearest_and_halves_up() -> None:
    assert (
        score(ratio(RISING), {"cpu": 1, "memory": 1000}, {"cpu": 0, "memory": 0}, {"cpu": "500m", "memory": 510}) == 51
    )
    assert (
        score(ratio(RISING), {"cpu": 1, "memory": 1000}, {"cpu": 0, "memory": 0}, {"cpu": "500m", "memory": 520}) == 51
    )
    assert score(MOST, {"cpu": 1, "memory": 1000}, {"cpu": 0, "memory": 0}, {"cpu": "500m", "memory": 510}) == 50


def test_scoring_works_without_pre_score() -> None:
    cluster = make_cluster([make_node("n", cpu="4000m", memory="8Gi")])
    plugin = make_plugin(NodeResourcesFit, cluster)
    cycle = Cycle(make_pod(requests={"cpu": "1"}), cluster)
    expected = plugin.score(cycle, Nodes(cluster)).tolist()
    plugin.pre_score(cycle, Nodes(cluster))
    assert plugin.score(cycle, Nodes(cluster)).tolist() == expected == [(75 + 97) // 2]


def test_two_profiles_keep_their_own_view_of_one_pod() -> None:
    cluster = make_cluster([make_node("n", cpu="4000m", memory="8Gi")])
    pod = make_pod(requests={"cpu": "3", "memory": "1Gi"})
    by_cpu = make_plugin(NodeResourcesFit, cluster, scoringStrategy=strategy("MostAllocated", {"cpu": 1}))
    by_memory = make_plugin(NodeResourcesFit, cluster, scoringStrategy=strategy("MostAllocated", {"memory": 1}))
    assert (raw_scores(by_cpu, pod, cluster), raw_scores(by_memory, pod, cluster)) == ({"n": 75}, {"n": 12})


# Against one node at a time


def oracle(chosen: dict[str, Any], cluster: Cluster, name: str, pod: Pod) -> int:
    allocatable, wanted = allocatable_of(cluster, name), score_requests(pod)
    total = weights = 0
    for spec in chosen.get("resources", [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}]):
        resource, weight = spec["name"], spec["weight"]
        request, capacity = wanted.get(resource, 0), 0 if resource == "pods" else allocatable.get(resource, 0)
        if capacity == 0 or (request == 0 and is_scalar_resource_name(resource)):
            continue
        requested = int64(used_on(cluster, name, resource, nonzero=True) + request)
        of_resource = resource_oracle(chosen, requested, capacity)
        if of_resource > 0 or chosen["type"] != "RequestedToCapacityRatio":
            total += of_resource * weight
            weights += weight
    if weights == 0:
        return 0
    if chosen["type"] == "RequestedToCapacityRatio":
        return math.floor(total / weights + 0.5)
    return divided(total, weights)


def resource_oracle(chosen: dict[str, Any], requested: int, capacity: int) -> int:
    if chosen["type"] == "LeastAllocated":
        return 0 if requested > capacity else divided(int64((capacity - requested) * 100), capacity)
    if chosen["type"] == "MostAllocated":
        return divided(int64(min(requested, capacity) * 100), capacity)
    utilization = 100 if requested > capacity else divided(int64(requested * 100), capacity)
    points: Points = [(p["utilization"], p["score"] * 10) for p in chosen["requestedToCapacityRatio"]["shape"]]
    for i, (u, y) in enumerate(points):
        if utilization <= u:
            before_u, before_y = points[i - 1]
            return y if i == 0 else before_y + divided((y - before_y) * (utilization - before_u), u - before_u)
    return points[-1][1]


RESOURCES = st.dictionaries(
    st.sampled_from(["cpu", "memory", STORAGE, GPU, PAGES, "pods"]), st.integers(1, 100), min_size=1, max_size=4
)
SHAPES = st.sampled_from([RISING, FALLING, [(20, 0), (50, 10), (80, 3)], [(40, 0), (41, 10)], [(0, 5)]])
STRATEGIES = st.one_of(
    st.builds(strategy, st.sampled_from(["LeastAllocated", "MostAllocated"]), st.none() | RESOURCES),
    st.builds(ratio, SHAPES, st.none() | RESOURCES),
)


@given(worlds(), STRATEGIES)
def test_every_node_is_scored_as_one_node_at_a_time_would_be(
    world: tuple[Cluster, Pod], chosen: dict[str, Any]
) -> None:
    cluster, pod = world
    plugin = make_plugin(NodeResourcesFit, cluster, scoringStrategy=chosen)
    found = raw_scores(plugin, pod, cluster)  # compares the column form with the one-node form as well
    assert found == {name: oracle(chosen, cluster, name, pod) for name in names_of(cluster)}


HUGE = st.integers(2**55, 2**62) | st.integers(1, 100)


@given(HUGE, HUGE, HUGE, st.sampled_from([LEAST, MOST, ratio(RISING), ratio(FALLING)]))
def test_amounts_past_64_bits_wrap_as_kube_schedulers_do(
    offer: int, used: int, wanted: int, kind: dict[str, Any]
) -> None:
    chosen = {**kind, "resources": [{"name": GPU, "weight": 1}]}
    cluster = make_cluster(
        [make_node("n", allocatable={GPU: offer})], [make_pod("there", requests={GPU: used}, node="n")]
    )
    pod = make_pod(requests={GPU: wanted})
    plugin = make_plugin(NodeResourcesFit, cluster, scoringStrategy=chosen)
    assert raw_scores(plugin, pod, cluster) == {"n": oracle(chosen, cluster, "n", pod)}
