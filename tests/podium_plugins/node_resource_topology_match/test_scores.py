"""The four scoring strategies: on arrays and one node at a time (`raw_scores` compares both)."""

from __future__ import annotations

from typing import Any

import pytest

from podium.kube import Pod
from podium_plugins.node_resource_topology_match.least_numa_nodes import score_of
from tests.podium.plugins.ask import raw_scores
from tests.together.zone_worlds import GPU, make_report, make_zone, zone_cluster, zone_plugin, zone_pod

LEAST, MOST, BALANCED, FEWEST = "LeastAllocated", "MostAllocated", "BalancedAllocation", "LeastNUMANodes"
POD = zone_pod({"cpu": 2, "memory": "8Gi"})


def score(report: dict[str, Any] | None, pod: Pod, strategy: str, **options: Any) -> int:
    """One node's score, beside nodes that differ in everything."""
    others = {
        "without": None,
        "lax": make_report([{"cpu": 8, "memory": "8Gi"}] * 2, policy="none"),
        "wide": make_report([{"cpu": 1, "memory": "1Gi"}] * 4, scope="pod"),
    }
    cluster = zone_cluster({"n1": report, **others})
    plugin = zone_plugin(cluster, scoringStrategy={"type": strategy, **options})
    return raw_scores(plugin, pod, cluster)["n1"]


@pytest.mark.parametrize("scope", ["pod", "container"])
@pytest.mark.parametrize(
    ("strategy", "zones", "expected"),
    [
        pytest.param(LEAST, [{"cpu": 6, "memory": "16Gi"}], 58, id="the example of least"),
        pytest.param(BALANCED, [{"cpu": 6, "memory": "16Gi"}], 98, id="the example of balanced"),
        pytest.param(MOST, [{"cpu": 6, "memory": "16Gi"}], 41, id="most"),
        pytest.param(LEAST, [{"cpu": 6, "memory": "16Gi"}, {"cpu": 4, "memory": "16Gi"}], 50, id="the lowest zone"),
        pytest.param(LEAST, [{"cpu": 6, "memory": "16Gi"}, {"cpu": 2, "memory": "8Gi"}], 58, id="0 does not count"),
        pytest.param(LEAST, [{"cpu": 6, "memory": "16Gi"}, {"cpu": 1, "memory": "16Gi"}], 25, id="a resource short"),
        pytest.param(LEAST, [{"cpu": 1, "memory": "1Gi"}], 0, id="no zone has room"),
        pytest.param(MOST, [{"cpu": 2, "memory": "8Gi"}], 100, id="most: full"),
        pytest.param(BALANCED, [{"cpu": 4, "memory": "16Gi"}], 100, id="balanced: even"),
        pytest.param(BALANCED, [{"cpu": 1, "memory": "16Gi"}], 0, id="balanced: too little"),
        pytest.param(BALANCED, [{"cpu": 4}], 87, id="balanced: what is not there counts as used"),
        pytest.param(LEAST, [], 0, id="no zones"),
    ],
)
def test_strategies_by_zone(strategy: str, zones: list[Any], scope: str, expected: int) -> None:
    assert score(make_report(zones, scope=scope), POD, strategy) == expected


def test_weights_count_for_least_and_most() -> None:
    weights = [{"name": "cpu", "weight": 3}, {"name": "memory", "weight": 0}]
    report = make_report([{"cpu": 6, "memory": "16Gi"}])
    assert score(report, POD, LEAST, resources=weights) == (66 * 3 + 50) // 4
    assert score(report, POD, MOST, resources=weights) == (33 * 3 + 50) // 4
    assert score(report, POD, LEAST, resources=[]) == 58


def test_fractions_of_a_core_count() -> None:
    """In the original both are rounded up to whole cores, which gives 0."""
    assert (
        score(make_report([{"cpu": "1500m", "memory": "16Gi"}]), zone_pod({"cpu": "500m", "memory": "8Gi"}), LEAST)
        == 58
    )


def test_containers_are_averaged_on_the_same_amounts() -> None:
    report = make_report([{"cpu": 6, "memory": "16Gi"}])
    pod = zone_pod({"cpu": 2, "memory": "8Gi"}, {"cpu": 3, "memory": "4Gi"}, {"cpu": 6, "memory": "16Gi"})
    assert score(report, pod, LEAST) == (58 + 62 + 0) // 3


def test_one_resource_is_balanced() -> None:
    pod = zone_pod(
        {}, spec={"resources": {"requests": {"cpu": 1, "memory": "1Gi"}, "limits": {"cpu": 1, "memory": "1Gi"}}}
    )
    assert score(make_report([{"cpu": 4, "memory": "4Gi"}]), pod, BALANCED) == 100  # no container asks for anything
    assert score(make_report([{"cpu": 4, "memory": "4Gi"}], scope="pod"), pod, BALANCED) == 100


@pytest.mark.parametrize("strategy", [LEAST, MOST, BALANCED, FEWEST])
def test_pods_that_are_not_guaranteed_score_100_everywhere(strategy: str) -> None:
    cluster = zone_cluster({"n1": make_report([{"cpu": 1}]), "n2": None})
    pod = zone_pod({"cpu": 2}, guaranteed=False)
    found = raw_scores(zone_plugin(cluster, scoringStrategy={"type": strategy}), pod, cluster)
    assert found == {"n1": 100, "n2": 100}


@pytest.mark.parametrize("strategy", [LEAST, MOST, BALANCED, FEWEST])
def test_no_report_scores_0(strategy: str) -> None:
    assert score(None, POD, strategy) == 0


@pytest.mark.parametrize("strategy", [LEAST, MOST, BALANCED])
@pytest.mark.parametrize("policy", ["none", "best-effort", "restricted"])
def test_other_policies_score_0_but_for_least_numa_nodes(strategy: str, policy: str) -> None:
    report = make_report([{"cpu": 6, "memory": "16Gi"}], policy=policy)
    assert score(report, POD, strategy) == 0
    assert score(report, POD, FEWEST) == 94


# LeastNUMANodes

EVEN = {0: 10, 1: 20, 2: 20, 3: 20}


def four(amounts: dict[str, Any], costs: list[dict[int, int]] | None = None, **options: Any) -> dict[str, Any]:
    zones = [make_zone(number, amounts, costs[number] if costs else None) for number in range(4)]
    return make_report(zones, **options)


NEAR = [
    {0: 10, 1: 12, 2: 30, 3: 30},
    {0: 12, 1: 10, 2: 30, 3: 30},
    {0: 30, 1: 30, 2: 10, 3: 15},
    {0: 30, 1: 30, 2: 15, 3: 10},
]


@pytest.mark.parametrize("scope", ["pod", "container"])
@pytest.mark.parametrize(
    ("cpu", "expected"),
    [(2, 94), (4, 94), (5, 82), (8, 82), (12, 70), (16, 58), (17, 0)],
)
def test_fewer_zones_score_more(cpu: int, scope: str, expected: int) -> None:
    report = four({"cpu": 4, "memory": "16Gi"}, scope=scope)
    assert score(report, zone_pod({"cpu": cpu, "memory": "1Gi"}), FEWEST) == expected


def test_the_numbers_of_the_specification() -> None:
    assert [score_of(zones, True, 8) for zones in (1, 2, 3)] == [94, 82, 70]
    assert [score_of(zones, False, 8) for zones in (1, 2, 3)] == [88, 76, 64]
    assert [score_of(zones, True, 101) for zones in (1, 60)] == [100, 100]
    assert score_of(3, False, 2) == 0


def test_zones_farther_from_each_other_than_others_score_less() -> None:
    far = make_report([make_zone(n, {"cpu": 4 if n != 0 else 1, "memory": "16Gi"}, NEAR[n]) for n in range(4)])
    near = make_report([make_zone(n, {"cpu": 4, "memory": "16Gi"}, NEAR[n]) for n in range(4)])
    pod = zone_pod({"cpu": 8, "memory": "1Gi"})
    assert score(near, pod, FEWEST) == 82
    assert score(far, pod, FEWEST) == 76  # 2 and 3 will do, but 0 and 1 are nearer to each other


def test_containers_use_zones_up_and_the_largest_set_counts() -> None:
    report = four({"cpu": 4, "memory": "16Gi"})
    two = zone_pod({"cpu": 4, "memory": "1Gi"}, {"cpu": 6, "memory": "1Gi"})
    assert score(report, two, FEWEST) == 82
    assert score(report, zone_pod(*[{"cpu": 4, "memory": "1Gi"}] * 4), FEWEST) == 94
    assert score(report, zone_pod(*[{"cpu": 4, "memory": "1Gi"}] * 5), FEWEST) == 0
    spread = zone_pod({"cpu": 3, "memory": "1Gi"}, {"cpu": 6, "memory": "1Gi"}, {"cpu": 7, "memory": "1Gi"})
    assert score(report, spread, FEWEST) == 70  # 3 of the first; 4 and 2 of the next two; 1, 2 and 4 are left


@pytest.mark.parametrize("scope", ["pod", "container"])
@pytest.mark.parametrize(("strategy", "expected"), [(LEAST, 48), (MOST, 17), (BALANCED, 76), (FEWEST, 0)])
def test_a_request_of_0_counts(strategy: str, expected: int, scope: str) -> None:
    """As the original scores a device that no zone lists."""
    report = make_report([{"cpu": 4, "memory": "32Gi"}] * 2, scope=scope)
    assert score(report, zone_pod({"cpu": 2, "memory": "1Gi", GPU: 0}), strategy) == expected


@pytest.mark.parametrize(("strategy", "expected"), [(LEAST, (50 + 96 + 100) // 3), (MOST, (50 + 3 + 0) // 3)])
def test_a_request_of_0_of_what_a_zone_has_leaves_all_of_it(strategy: str, expected: int) -> None:
    report = make_report([{"cpu": 4, "memory": "32Gi", GPU: 2}])
    assert score(report, zone_pod({"cpu": 2, "memory": "1Gi", GPU: 0}), strategy) == expected
    assert score(report, zone_pod({"cpu": 2, "memory": "1Gi", GPU: 0}), FEWEST) == 94
    empty = make_report([{"cpu": 4, "memory": "32Gi", GPU: 0}])
    assert score(empty, zone_pod({"cpu": 2, "memory": "1Gi", GPU: 0}), strategy) == (48 if strategy == LEAST else 17)


def test_least_numa_nodes_wants_everything_listed_that_is_asked_for() -> None:
    report = four({"cpu": 4, "memory": "16Gi"})
    assert score(report, zone_pod({"cpu": 2, "memory": "1Gi", "ephemeral-storage": "1Gi"}), FEWEST) == 0
    assert score(report, zone_pod({"cpu": 2, "memory": "1Gi", GPU: 1}), FEWEST) == 0
    assert score(four({"cpu": 4}), zone_pod({"cpu": 2, "memory": "1Gi"}), FEWEST) == 0  # memory nowhere
    assert score(four({GPU: 4}), zone_pod({"cpu": 2, "memory": "1Gi"}), FEWEST) == 100  # nothing anywhere


def test_every_zone_of_a_set_lists_every_resource() -> None:
    zones = [make_zone(0, {"cpu": 4, "memory": "8Gi"}), make_zone(1, {"cpu": 4, "memory": "8Gi", GPU: 1})]
    assert score(make_report(zones), zone_pod({"cpu": 6, "memory": "1Gi", GPU: 1}), FEWEST) == 0
    assert score(make_report(zones), zone_pod({"cpu": 4, "memory": "1Gi", GPU: 1}), FEWEST) == 94


def test_max_numa_nodes_of_the_kubelet() -> None:
    report = four({"cpu": 4, "memory": "16Gi"}, attributes={"topologyManagerMaxNUMANodes": "4"})
    assert score(report, zone_pod({"cpu": 8, "memory": "1Gi"}), FEWEST) == 100 - 2 * 25 + 12


def test_a_node_with_very_many_zones_scores_0() -> None:
    assert score(make_report([{"cpu": 4, "memory": "8Gi"}] * 13), POD, FEWEST) == 0
    assert score(make_report([{"cpu": 4, "memory": "8Gi"}] * 12), POD, FEWEST) == 94
