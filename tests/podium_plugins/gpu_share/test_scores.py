"""The scores: the worked example of the openb fact sheet, and that one node and many get the same answers."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.cluster import Cluster, NodeInfo, Nodes
from podium.config.field import FieldPath
from podium.framework import Cycle
from podium.kube import Pod
from podium.plugins import load_registry
from podium_plugins.gpu_share import GpuBestFit, GpuClustering, GpuDotProd, GpuFGD, GpuPacking, fgd
from podium_plugins.gpu_share.fgd import score_limits
from tests.podium.engine.schedulers import World
from tests.podium.plugins.ask import raw_scores
from tests.podium_plugins.gpu_share.gpu_worlds import POLICIES, REQUESTS, SHARES, TYPICAL, gpu_node, gpu_pod
from tools.kit.builders import make_cluster, make_plugin
from tools.kit.effort import examples

ARGS: dict[Any, dict[str, Any]] = {GpuFGD: {"typicalPods": TYPICAL}}


def example() -> Cluster:
    """N1: 6 cores, devices [1000, 400], a sharing pod. N2: 8 cores, devices [0, 600], a 1-GPU and a sharing pod."""
    return make_cluster(
        [gpu_node("n1", 2, cpu=6), gpu_node("n2", 2, cpu=8)],
        [
            gpu_pod("a", 600, devices="1", node="n1"),
            gpu_pod("b", 1000, devices="0", node="n2"),
            gpu_pod("c", 400, devices="1", node="n2"),
        ],
    )


ARRIVES = gpu_pod("arrives", 500, cpu=4)


@pytest.mark.parametrize(
    ("policy", "scores"),
    [
        (GpuFGD, {"n1": 42, "n2": 57}),
        (GpuBestFit, {"n1": 93, "n2": 97}),
        (GpuDotProd, {"n1": 99, "n2": 99}),
        (GpuPacking, {"n1": 49, "n2": 94}),
        (GpuClustering, {"n1": 95, "n2": 73}),
    ],
)
def test_the_worked_example(policy: Any, scores: dict[str, int]) -> None:
    cluster = example()
    assert raw_scores(make_plugin(policy, cluster, **ARGS.get(policy, {})), ARRIVES, cluster) == scores


@pytest.mark.parametrize(
    ("policy", "node"),
    [("GpuFGD", "n2"), ("GpuBestFit", "n2"), ("GpuPacking", "n2"), ("GpuClustering", "n1"), ("GpuDotProd", "n1")],
)
def test_the_worked_example_decides(policy: str, node: str) -> None:
    """DotProd ties, and the first node wins."""
    args = {"GpuFGD": {"typicalPods": TYPICAL}} if policy == "GpuFGD" else {}
    world = World("GpuShare", policy, args=args)
    cluster = example()
    world.add(*(each for each in cluster.nodes if each is not None), *(each.pod for each in cluster.pods.values()))
    world.attempt(ARRIVES)
    assert world.bound == [("arrives", node)]
    assert world.annotated["arrives"] == {"alibabacloud.com/gpu-index": "0" if node == "n1" else "1"}


def test_best_fit_is_stretched_over_the_feasible_nodes() -> None:
    cluster = example()
    plugin = make_plugin(GpuBestFit, cluster)
    cycle, nodes = Cycle(ARRIVES, cluster), Nodes(cluster)
    assert plugin.normalize(cycle, nodes, np.array([93, 97, 95])).tolist() == [0, 100, 50]
    assert plugin.normalize(cycle, nodes, np.array([97, 97])).tolist() == [0, 0]


@pytest.mark.parametrize(
    ("free", "pod", "score"),
    [
        ([1000] * 8, gpu_pod("p", 500), 25),
        ([1000], gpu_pod("p", 1000, 1), 32),
        ([1000, 1000, 0], gpu_pod("p", 1000, 2), 48),
        ([1000] * 20 + [0], gpu_pod("p", 1000, 20), 33),
        ([1000, 999, 0], gpu_pod("p", 500), 91),
        ([1000, 999, 500], gpu_pod("p", 500), 95),
        ([1000, 400, 0], gpu_pod("p", 500), 49),
        ([400, 0], gpu_pod("p", 500), 0),
        ([400, 0], gpu_pod("p", cpu=1), 0),
    ],
)
def test_packing_table(free: list[int], pod: Pod, score: int) -> None:
    running = [
        gpu_pod(f"r{device}", 1000 - left, devices=str(device), node="n")
        for device, left in enumerate(free)
        if left < 1000
    ]
    cluster = make_cluster([gpu_node("n", len(free))], running)
    assert raw_scores(make_plugin(GpuPacking, cluster), pod, cluster) == {"n": score}


@pytest.mark.parametrize(
    ("running", "pod", "score"),
    [
        ([], (500, 1), 25),
        ([], (0, 0), 0),
        ([(500, 1)], (300, 1), 76),
        ([(500, 1), (1000, 2)], (300, 1), 57),
        ([(1000, 2)], (300, 1), 6),
        ([(1000, 2)], (1000, 1), 6),
        ([(1000, 2), (1000, 2)], (1000, 2), 87),
    ],
)
def test_clustering_table(running: list[tuple[int, int]], pod: tuple[int, int], score: int) -> None:
    pods = [gpu_pod(f"r{number}", *each, node="n") for number, each in enumerate(running)]
    cluster = make_cluster([gpu_node("n", 8)], pods)
    assert raw_scores(make_plugin(GpuClustering, cluster), gpu_pod("p", *pod), cluster) == {"n": score}


def test_the_limits_of_fgd_are_those_of_the_sigmoid() -> None:
    limits = score_limits(8152)
    for change in range(-4000, 4001, 7):
        score = int(100 / (1 + np.exp(-change / 1000)))
        assert np.searchsorted(limits, change * 8152, side="right") == score


WORLDS = st.lists(
    st.tuples(
        st.integers(0, 4), st.sampled_from([2, 8, 128]), st.sampled_from(["T4", "P100"]), st.lists(SHARES, max_size=4)
    ),
    min_size=1,
    max_size=5,
)


@settings(max_examples=examples(120), deadline=None)
@given(WORLDS, REQUESTS, st.sampled_from([0, 1, 4, 200]), st.sampled_from(["", "T4"]))
def test_one_node_and_many_get_the_same_answers(
    world: list[tuple[int, int, str, list[int]]], request_: tuple[int, int], cpu: int, models: str
) -> None:
    cluster = make_cluster(
        [gpu_node(f"n{number}", gpus, cpu=cores, model=model) for number, (gpus, cores, model, _) in enumerate(world)],
        [
            gpu_pod(f"p{number}-{i}", share, cpu=1, node=f"n{number}")
            for number, (*_, shares) in enumerate(world)
            for i, share in enumerate(shares)
        ],
    )
    pod = gpu_pod("p", *request_, cpu=cpu, models=models)
    typical = [*TYPICAL, {"cpu": 1, "gpuCount": 1, "gpuMilli": 250, "gpuCardModels": ["T4"], "pods": 4}]
    for name in POLICIES[1:]:
        args = {"typicalPods": typical} if name == "GpuFGD" else {}
        plugin: Any = make_plugin(load_registry()[name], cluster, **args)
        cycle = Cycle(pod, cluster)
        one = [plugin.score_node(cycle, NodeInfo(cluster, row)) for row in range(len(world))]
        few, fgd.FEW = fgd.FEW, -1
        try:
            many = plugin.score(cycle, Nodes(cluster)).tolist()
        finally:
            fgd.FEW = few
        assert one == many, name
        assert name == "GpuBestFit" or all(0 <= score <= 100 for score in one), name


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        ({}, "typicalPods: Required value: the classes of pods"),
        ({"typicalPods": [{"cpu": "lots"}]}, 'typicalPods[0].cpu: Invalid value: "lots": must be an amount of cpu'),
        ({"typicalPods": [{"cpu": -1}]}, "typicalPods[0].cpu: Invalid value: -1: must be an amount of cpu"),
        (
            {"typicalPods": [{}, {"gpuCount": 65}]},
            "typicalPods[1].gpuCount: Invalid value: 65: must be",
        ),
        ({"typicalPods": [{"gpuMilli": 0}]}, "typicalPods[0].gpuMilli: Invalid value: 0: must be between 1 and 1000"),
        (
            {"typicalPods": [{"gpuCount": 2, "gpuMilli": 500}]},
            "typicalPods[0].gpuMilli: Invalid value: 500: must",
        ),
        ({"typicalPods": [{"pods": 0}]}, "typicalPods[0].pods: Invalid value: 0: must be between 1 and 1000000000"),
    ],
)
def test_arguments_that_cannot_be_used_are_refused(args: dict[str, Any], problem: str) -> None:
    assert GpuFGD.Args is not None
    decoded: Any = msgspec.convert(args, GpuFGD.Args)
    (error,) = decoded.validate(FieldPath())
    assert str(error).startswith(problem)
