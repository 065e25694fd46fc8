from __future__ import annotations

import pytest

from tools.bench.suite import WORKLOADS, UnknownWorkloadError, by_name, select


@pytest.mark.parametrize(
    ("name", "nodes", "sizes"),
    [
        ("SchedulingBasic/5000Nodes_10000Pods", 500, {"nodes": 500, "init": 100, "measured": 1000}),
        ("PreemptionBasic/1000Nodes", 5, {"nodes": 5, "init": 20, "measured": 5}),
        ("SchedulingWithNodeInclusionPolicy/5000Nodes", 5, {"normal": 4, "tainted": 1, "measured": 4}),
        ("SchedulingWhileGated/1Node_10000GatedPods", 5, {"gated": 10, "deleting": 20, "measured": 20}),
        (
            "SchedulingRequiredPodAntiAffinityWithNSSelector/5000Nodes_2000Pods",
            60,
            {"nodes": 60, "namespaces": 1, "init": 40, "measured": 20},
        ),
        ("EventHandlingPodDelete/50Nodes_500Pods", 5, {"nodes": 5, "blockers": 48, "measured": 50}),
        ("EventHandlingPodDelete/50Nodes_500Pods", 5000, {"nodes": 50, "blockers": 480, "measured": 500}),
        ("EventHandlingPodAdd/1000Pods", 10, {"measured": 100}),
    ],
)
def test_sizes_scale_with_the_nodes(name: str, nodes: int, sizes: dict[str, int]) -> None:
    assert by_name(name).at(nodes).sizes == sizes


def test_required_anti_affinity_never_needs_more_nodes_than_there_are() -> None:
    for workload in select(["SchedulingRequiredPodAntiAffinityWithNSSelector", "SchedulingPodAntiAffinity"]):
        for nodes in range(3, 200):
            sizes = workload.at(nodes).sizes
            assert sizes["init"] + sizes["measured"] <= sizes["nodes"]


def test_a_case_name_selects_all_its_workloads() -> None:
    assert [workload.variant for workload in select(["TopologySpreading"])] == ["5000Nodes", "5000Nodes_5000Pods"]


def test_patterns_are_globs_over_the_whole_name() -> None:
    assert {workload.case for workload in select(["*PVs/*_5000Pods"])} == {
        "SchedulingMigratedInTreePVs",
        "SchedulingCSIPVs",
    }


def test_no_pattern_selects_everything() -> None:
    assert select([]) == list(WORKLOADS)


def test_a_pattern_that_matches_nothing_is_told_what_there_is() -> None:
    with pytest.raises(UnknownWorkloadError, match=r'no workload matches "Nope"; the cases are SchedulingBasic, '):
        select(["SchedulingBasic", "Nope"])
