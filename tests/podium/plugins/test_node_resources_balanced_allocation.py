from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.cluster import Cluster, Nodes
from podium.config.field import FieldPath
from podium.framework import SKIP, Cycle
from podium.kube import Pod
from podium.kube.requests import balanced_requests, is_scalar_resource_name
from podium.plugins.node_resources_balanced_allocation import (
    NodeResourcesBalancedAllocation,
    NodeResourcesBalancedAllocationArgs,
)
from tests.podium.plugins.ask import raw_scores
from tests.podium.plugins.resource_worlds import GPU, PAGES, STORAGE, allocatable_of, names_of, used_on, worlds
from tools.kit.builders import build, make_cluster, make_node, make_plugin, make_pod


def over(*names: str) -> dict[str, Any]:
    return {"resources": [{"name": name} for name in names]} if names else {}


def score(allocatable: dict[str, Any], used: dict[str, Any], wanted: dict[str, Any], *names: str, **spec: Any) -> int:
    cluster = make_cluster([make_node("n", allocatable=allocatable)], [make_pod("there", requests=used, node="n")])
    plugin = make_plugin(NodeResourcesBalancedAllocation, cluster, **over(*names))
    return raw_scores(plugin, make_pod(requests=wanted, spec=spec), cluster)["n"]


OFFER = {"cpu": "4000m", "memory": "8Gi"}
EVEN = {"cpu": "1000m", "memory": "2Gi"}


@pytest.mark.parametrize(
    ("used", "wanted", "expected"),
    [
        pytest.param(EVEN, {"cpu": "1000m", "memory": "1Gi"}, 71, id="skews the node a little"),
        pytest.param(EVEN, EVEN, 75, id="keeps the balance"),
        pytest.param({"cpu": "4"}, {"memory": "8Gi"}, 100, id="evens it out"),
        pytest.param({}, {"cpu": "4"}, 50, id="skews it as far as can be"),
        pytest.param({"cpu": "1000m", "memory": "1Gi"}, {"cpu": "500m", "memory": "1Gi"}, 75, id="combined example"),
        pytest.param({"cpu": "9"}, {"cpu": "1", "memory": "4Gi"}, 87, id="an overfull resource is just full"),
    ],
)
def test_scores(used: dict[str, Any], wanted: dict[str, Any], expected: int) -> None:
    assert score(OFFER, used, wanted) == expected


def test_more_than_two_resources_take_the_standard_deviation() -> None:
    offer = {"cpu": "4", "memory": "4Gi", GPU: 4}
    # Without the pod all shares are 0; with it .5, .25 and .75: std .204124, g = 79.
    assert score(offer, {}, {"cpu": "2", "memory": "1Gi", GPU: 3}, "cpu", "memory", GPU) == 50 + (50 + 79 - 100) // 2


def test_a_resource_that_the_node_or_the_pod_does_not_have_is_left_out() -> None:
    wanted = {"cpu": "1000m", "memory": "1Gi"}
    assert score({**OFFER, GPU: 4}, {**EVEN, GPU: 4}, wanted, "cpu", "memory", GPU) == 71
    assert score(OFFER, EVEN, {**wanted, GPU: 1}, "cpu", "memory", GPU) == 71
    assert score({**OFFER, "memory": 0}, {"cpu": "1000m"}, wanted) == 75  # a single resource is always even


def test_two_resources_left_of_three_take_the_simple_form() -> None:
    # Shares 1 and .32: (1 − .68/2)·100 is 66; the standard deviation, off by a rounding, would give 65.
    wanted = {"cpu": 2, "memory": 8, GPU: 1}
    assert score({"cpu": 2, "memory": 25}, {}, wanted, "cpu", "memory", GPU) == 50 + (50 + 66 - 100) // 2


def test_pod_level_requests_count() -> None:
    assert score(OFFER, {}, {}, resources={"requests": {"cpu": "4"}}) == 50


def test_defaults_for_pods_without_requests_do_not_count() -> None:
    # The pod that is there would count 100m and make the node uneven before: 62.
    assert score({"cpu": "200m", "memory": "8Gi"}, {}, {"cpu": "200m"}) == 50


@pytest.mark.parametrize(
    ("wanted", "names"), [({}, ()), ({"cpu": 0, GPU: 1}, ()), ({"cpu": "1"}, ("memory",)), ({GPU: 1}, ("cpu",))]
)
def test_a_pod_that_asks_for_none_of_the_resources_is_not_scored(
    wanted: dict[str, Any], names: tuple[str, ...]
) -> None:
    cluster = make_cluster([make_node("n")])
    plugin = make_plugin(NodeResourcesBalancedAllocation, cluster, **over(*names))
    cycle = Cycle(make_pod(requests=wanted), cluster)
    assert plugin.pre_score(cycle, Nodes(cluster)) == SKIP
    # With PreScore disabled nobody skips it, and it scores 0 rather than 75.
    assert plugin.score(cycle, Nodes(cluster)).tolist() == [0]
    assert plugin.score_node(cycle, Nodes(cluster).info(0)) == 0


def test_scoring_works_without_pre_score() -> None:
    cluster = make_cluster([make_node("n", cpu=4)])
    cycle = Cycle(make_pod(requests={"cpu": "4"}), cluster)
    assert make_plugin(NodeResourcesBalancedAllocation, cluster).score(cycle, Nodes(cluster)).tolist() == [50]


def oracle(names: tuple[str, ...], cluster: Cluster, node: str, pod: Pod) -> int:
    """One node at a time, straight from the rules."""
    allocatable, wanted = allocatable_of(cluster, node), balanced_requests(pod)
    with_pod, without = [], []
    for name in names:
        capacity, request = allocatable.get(name, 0), wanted.get(name, 0)
        if capacity == 0 or name == "pods" or (request == 0 and is_scalar_resource_name(name)):
            continue
        used = used_on(cluster, node, name, nonzero=False)
        with_pod.append(min(float(used + request) / float(capacity), 1.0))
        without.append(min(float(used) / float(capacity), 1.0))
    return 50 + math.trunc((50 + balance(with_pod) - balance(without)) / 2)


def balance(shares: list[float]) -> int:
    std = 0.0
    if len(shares) == 2:
        std = abs((shares[0] - shares[1]) / 2)
    elif len(shares) > 2:
        total = 0.0
        for share in shares:
            total += share
        mean, squares = total / len(shares), 0.0
        for share in shares:
            squares = squares + (share - mean) * (share - mean)
        std = math.sqrt(squares / len(shares))
    return math.trunc((1 - std) * 100.0)


NAMES = st.lists(st.sampled_from(["cpu", "memory", STORAGE, GPU, PAGES, "pods"]), min_size=1, max_size=5, unique=True)


@given(worlds(), st.just(["cpu", "memory"]) | NAMES)
def test_every_node_is_scored_as_one_node_at_a_time_would_be(world: tuple[Cluster, Pod], names: list[str]) -> None:
    cluster, pod = world
    if not any(balanced_requests(pod).get(name) for name in names if name != "pods"):
        pod = make_pod("incoming", requests={**dict.fromkeys(names[:1], 1), "cpu": "300m"})
        names = [*dict.fromkeys([*names, "cpu"])]
    plugin = make_plugin(NodeResourcesBalancedAllocation, cluster, **over(*names))
    found = raw_scores(plugin, pod, cluster)  # compares the column form with the one-node form as well
    assert found == {node: oracle(tuple(names), cluster, node, pod) for node in names_of(cluster)}


SHARES = st.integers(0, 2**40)


@given(st.lists(st.tuples(st.integers(1, 2**40), SHARES, SHARES), min_size=2, max_size=4))
def test_floats_are_added_in_the_configured_order(amounts: list[tuple[int, int, int]]) -> None:
    names = [f"example.com/r{i}" for i in range(len(amounts))]
    offer, used, wanted = ({name: each[k] for name, each in zip(names, amounts, strict=True)} for k in range(3))
    wanted[names[0]] += 1
    cluster = make_cluster([make_node("n", allocatable=offer)], [make_pod("there", requests=used, node="n")])
    plugin = make_plugin(NodeResourcesBalancedAllocation, cluster, **over(*names))
    pod = make_pod(requests=wanted)
    assert raw_scores(plugin, pod, cluster) == {"n": oracle(tuple(names), cluster, "n", pod)}


def errors_of(args: dict[str, Any]) -> list[str]:
    return [str(error) for error in build(NodeResourcesBalancedAllocationArgs, args).validate(FieldPath())]


def test_default_arguments() -> None:
    args = build(NodeResourcesBalancedAllocationArgs, {"resources": []})
    assert [(each.name, each.weight) for each in args.resources] == [("cpu", 1), ("memory", 1)]
    assert errors_of({}) == []
    assert errors_of({"resources": [{"name": "cpu", "weight": 0}, {"name": GPU, "weight": 1}]}) == []


def test_resources_are_named_once_and_weigh_1() -> None:
    given_twice = [{"name": "cpu"}, {"name": "cpu", "weight": 2}, {"name": "memory", "weight": -1}]
    assert errors_of({"resources": given_twice}) == [
        'resources[1].name: Duplicate value: "cpu"',
        "resources[1].weight: Invalid value: 2: must be 1",
        "resources[2].weight: Invalid value: -1: must be 1",
    ]


def test_what_nodes_use_already_follows_pods_and_nodes_that_come_go_and_change() -> None:
    cluster = make_cluster([make_node(name, allocatable=OFFER) for name in "ab"], [])
    plugin, pod = make_plugin(NodeResourcesBalancedAllocation, cluster), make_pod("new", requests={"memory": "4Gi"})
    skewed = make_pod("there", requests={"cpu": "2000m"}, node="a")
    steps: list[Callable[[], object]] = [
        lambda: cluster.set_pod(skewed),
        lambda: cluster.set_node(make_node("b", allocatable={"cpu": "8", "memory": "2Gi"})),
        lambda: cluster.set_node(make_node("c", allocatable={"cpu": "1"})),
        lambda: cluster.remove_pod(skewed.uid),
        lambda: cluster.remove_node("b"),
        *([lambda: cluster.set_node(make_node("a", allocatable=OFFER))] * 20),
    ]
    seen = []
    for step in steps:
        step()
        seen.append(raw_scores(plugin, pod, cluster))
        assert seen[-1] == raw_scores(make_plugin(NodeResourcesBalancedAllocation, cluster), pod, cluster)
    assert seen[0]["a"] != seen[3]["a"]
