"""PigeonHoling: the worked sequences, objectives against one placement at a time, and bad annotations and settings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.cluster import Cluster, Nodes
from podium.config.field import FieldPath
from podium.framework import Cycle, PluginError
from podium.kube import Node, Pod
from podium_plugins.pigeon import (
    DemandMoments,
    PigeonHoling,
    PigeonHolingArgs,
    Placements,
    _variation,
    adaptive_bin_packing,
    consolidate,
    load_balance,
    points,
)
from tests.podium.framework.runtimes import make_runtime
from tools.kit.builders import make_cluster, make_node, make_plugin, make_pod

MIB = 2**20
Pair = tuple[int, int]
"""cpu in thousandths, memory in MiB"""


def node_of(name: str, capacity: Pair, usage: Pair) -> Node:
    annotations = {"requested-cpu": str(usage[0]), "requested-memory": str(usage[1] * MIB)}
    return make_node(name, cpu=f"{capacity[0]}m", memory=f"{capacity[1]}Mi", annotations=annotations)


def pod_of(demand: Pair) -> Pod:
    return make_pod(requests={"cpu": f"{demand[0]}m", "memory": f"{demand[1]}Mi"})


class Found(NamedTuple):
    values: list[float]
    """NaN where the pod does not fit."""
    points: list[int]


def ask(plugin: PigeonHoling, cluster: Cluster, pod: Pod) -> Found:
    cycle, nodes = Cycle(pod, cluster), Nodes(cluster, cluster.order.rows)
    plugin.pre_score(cycle, nodes)
    scores = plugin.score(cycle, nodes)
    assert scores.dtype == np.int64
    placements = plugin.placements(cycle, nodes)
    values = np.where(placements.feasible, plugin.values(placements), math.nan)
    return Found(values.tolist(), (scores // 10).tolist())


def set_usage(cluster: Cluster, capacity: Pair, usages: Sequence[Pair]) -> None:
    for number, usage in enumerate(usages, start=1):
        cluster.set_node(node_of(f"n{number}", capacity, usage))


def near(values: Sequence[float], tolerance: float = 1e-6) -> object:
    return pytest.approx(list(values), abs=tolerance, nan_ok=True)


NAN = math.nan


@pytest.mark.parametrize(
    ("objective", "values", "expected"),
    [
        ("A_BINPACK", [0.837634, 0.545667, 0.545667], [1, 10, 10]),
        ("LOAD_BALANCE", [0.223917, 0.158552, 0.158552], [1, 10, 10]),
        ("CONSOLIDATE", [0.477248, 0.614396, 0.614396], [10, 1, 1]),
    ],
)
def test_the_published_run(objective: str, values: list[float], expected: list[int]) -> None:
    cluster = Cluster()
    set_usage(cluster, (2000, 1396), [(1000, 140), (250, 0), (250, 0)])
    found = ask(make_plugin(PigeonHoling, cluster, objective=objective), cluster, pod_of((200, 200)))
    assert found.values == near(values)
    assert found.points == expected


class Call(NamedTuple):
    demand: Pair
    usages: list[Pair]
    values: list[float]
    points: list[int]


EMPTY, SMALL, LARGE = (0, 0), (500, 1024), (3000, 6144)
SEQUENCE = [
    Call((500, 1024), [EMPTY] * 4, [1.732051] * 4, [10] * 4),
    Call((500, 1024), [SMALL, EMPTY, EMPTY, EMPTY], [1.732051, 1, 1, 1], [1, 10, 10, 10]),
    Call(LARGE, [SMALL, SMALL, EMPTY, EMPTY], [0.573854, 0.573854, 0.288720, 0.288720], [1, 1, 10, 10]),
    Call((500, 512), [SMALL, SMALL, LARGE, EMPTY], [0.038521, 0.038521, 0.212999, 0], [8, 8, 1, 10]),
    Call((3500, 7168), [(1000, 1536), SMALL, LARGE, EMPTY], [NAN, 0.060979, NAN, 0.214139], [0, 10, 0, 1]),
    Call(
        *((100, 128), [(1000, 1536), SMALL, LARGE, (3500, 7168)]),
        *([0.391713, 0.394735, 0.374969, 0.371086], [2, 1, 9, 10]),
    ),
]


@pytest.mark.parametrize("compared", ["cluster", "candidates"])
def test_adaptive_bin_packing_learns_from_pod_to_pod(compared: str) -> None:
    cluster = Cluster()
    plugin = make_plugin(PigeonHoling, cluster, compared=compared)
    for call in SEQUENCE:
        set_usage(cluster, (4000, 8192), call.usages)
        found = ask(plugin, cluster, pod_of(call.demand))
        assert found.values == near(call.values)
        assert found.points == call.points
    assert plugin.moments.mean.tolist() == pytest.approx([1350, 2666.667])
    assert plugin.moments.second.ravel().tolist() == pytest.approx([3668333.3, 7468800, 7468800, 15250773.3])


def test_adaptive_bin_packing_of_cpu_alone() -> None:
    cluster = Cluster()
    plugin = make_plugin(PigeonHoling, cluster, numResources=1)
    for cpu, usages, values, expected in [
        (500, [0, 1000, 3000], [0.720082, 0.816497, 0.981307], [10, 7, 1]),
        (2500, [500, 1000, 3000], [0.262606, 0.104238, NAN], [1, 10, 0]),
        (500, [500, 1000, 3000], [0.242437, 0.191681, 0.020721], [1, 3, 10]),
    ]:
        set_usage(cluster, (4000, 8192), [(usage, 0) for usage in usages])
        found = ask(plugin, cluster, pod_of((cpu, 0)))
        assert found.values == near(values)
        assert found.points == expected


PRIME_USAGES = [(1000, 1536), (500, 1024), (3000, 6144), (0, 0)]


@pytest.mark.parametrize(
    ("objective", "demand", "values", "expected"),
    [
        ("LOAD_BALANCE", (500, 512), [0.286411, 0.272431, 0.336573, 0.257694], [7, 8, 1, 10]),
        ("LOAD_BALANCE", (2000, 1024), [0.346579, 0.298106, NAN, 0.240036], [1, 5, 0, 10]),
        ("LOAD_BALANCE", (100, 128), [0.284220, 0.281458, 0.295011, 0.278669], [7, 8, 1, 10]),
        ("CONSOLIDATE", (500, 512), [0.334188, 0.390706, 0.280726, 0.460334], [7, 4, 10, 1]),
        ("CONSOLIDATE", (2000, 1024), [0.266916, 0.363831, NAN, 0.503178], [10, 6, 0, 1]),
        ("CONSOLIDATE", (100, 128), [0.339939, 0.354418, 0.328318, 0.369228], [7, 4, 10, 1]),
    ],
)
def test_objectives_of_one_resource(objective: str, demand: Pair, values: list[float], expected: list[int]) -> None:
    cluster = Cluster()
    set_usage(cluster, (4000, 8192), PRIME_USAGES)
    plugin = make_plugin(PigeonHoling, cluster, objective=objective)
    found = ask(plugin, cluster, pod_of(demand))
    assert found.values == near(values)
    assert found.points == expected
    assert plugin.moments.pods == 0


@pytest.mark.parametrize(
    ("objective", "values", "expected"),
    [
        ("LOAD_BALANCE", [NAN, 0.386401, 0.412479], [0, 10, 1]),
        ("CONSOLIDATE", [NAN, -0.119068, -0.137469], [0, 1, 10]),
    ],
)
def test_a_node_with_more_than_it_has_counts_as_it_is(objective: str, values: list[float], expected: list[int]) -> None:
    cluster = Cluster()
    set_usage(cluster, (4000, 8192), [(5000, 0), (1000, 0), (2000, 0)])
    found = ask(make_plugin(PigeonHoling, cluster, objective=objective), cluster, pod_of((500, 512)))
    assert found.values == near(values)
    assert found.points == expected


# Of cpu, memory and GPU: the mean, and the covariances cc, cm, cg, mm, mg, gg; and what was published as γ of them.
PUBLISHED = {
    "pods, observed": ((0.300, 0.218, 0.566), (0.033, 0.022, 0.073, 0.017, 0.049, 0.166), 0.6792),
    "packed": ((0.459, 0.396, 0.703), (0.035, 0.030, 0.055, 0.043, 0.013, 0.175), 0.4558),
    "spread": ((0.465, 0.404, 0.703), (0.036, 0.038, 0.051, 0.044, 0.047, 0.095), 0.4225),
    "balanced": ((0.457, 0.393, 0.703), (0.033, 0.029, 0.061, 0.033, 0.039, 0.143), 0.4574),
    "adaptive": ((0.455, 0.390, 0.703), (0.090, 0.087, 0.122, 0.094, 0.106, 0.191), 0.6358),
}


@pytest.mark.parametrize(("mean", "covariances", "expected"), PUBLISHED.values(), ids=PUBLISHED)
def test_the_published_coefficients_of_variation(
    mean: tuple[float, ...], covariances: tuple[float, ...], expected: float
) -> None:
    cc, cm, cg, mm, mg, gg = covariances
    matrix = np.array([[cc, cm, cg], [cm, mm, mg], [cg, mg, gg]])
    assert _variation(np.array(mean)[:, None], matrix[:, :, None])[0] == pytest.approx(expected, abs=5e-5)


def test_how_much_the_published_mix_of_pods_differs() -> None:
    moments = DemandMoments(3)
    for pod in ((2, 24, 0), (8, 32, 2), (16, 96, 4)):
        moments.learn(np.array(pod) / np.array([32, 256, 4]))
    assert moments.mean.tolist() == pytest.approx([0.271, 0.198, 0.500], abs=5e-4)
    upper = moments.covariance[np.triu_indices(3)].tolist()
    assert upper == pytest.approx([0.032, 0.021, 0.073, 0.016, 0.047, 0.167], abs=5e-4)
    assert _variation(moments.mean[:, None], moments.covariance[:, :, None])[0] == pytest.approx(0.7602, abs=5e-5)


# Points


def test_points_where_the_pod_fits_nowhere_or_once() -> None:
    values = np.array([3.0, 1.0, 2.0])
    assert points(values, np.array([False, False, False])).tolist() == [0, 0, 0]
    assert points(values, np.array([True, False, False])).tolist() == [10, 0, 0]
    assert points(values, np.array([True, True, False])).tolist() == [1, 10, 0]
    assert points(np.array([1.0, 1.0 + 1e-9]), np.array([True, True])).tolist() == [10, 10]


@given(st.lists(st.tuples(st.floats(-2, 2), st.booleans()), min_size=1, max_size=9))
def test_the_best_gets_ten_the_worst_one_and_the_others_between(entries: list[tuple[float, bool]]) -> None:
    values, feasible = (np.array(each) for each in zip(*entries, strict=True))
    found = points(values, feasible)
    assert (found[~feasible] == 0).all()
    if feasible.any():
        assert found[feasible].max() == 10
        assert found[feasible].min() in (1, 10)
        best = np.where(feasible, values, np.inf).argmin()
        assert found[best] == 10


# One placement at a time, in plain Python


def plain_shares(placements: Placements, chosen: int, resource: int) -> list[float]:
    shares = []
    for node in range(placements.capacity.shape[1]):
        used = float(placements.usage[resource, node]) + (float(placements.demand[resource]) if node == chosen else 0)
        capacity = float(placements.capacity[resource, node])
        shares.append(used / capacity if capacity > 0 else 1.0)
    return shares


def plain_load_balance(placements: Placements, chosen: int, resource: int) -> float:
    shares = plain_shares(placements, chosen, resource)
    mean = math.fsum(shares) / len(shares)
    return math.sqrt(math.fsum((share - mean) ** 2 for share in shares) / len(shares))


def plain_consolidate(placements: Placements, chosen: int, resource: int) -> float:
    shares = plain_shares(placements, chosen, resource)
    mean = math.fsum(shares) / len(shares)
    if not 0 < mean < 1:
        return 0.0
    apart = [(mean - share) / mean if share < mean else (share - mean) / (1 - mean) for share in shares]
    return 1 - math.sqrt(math.fsum(each * each for each in apart) / len(apart))


def plain_variation(mean: list[float], covariance: list[list[float]]) -> float:
    both = range(len(mean))
    spread = math.fsum(mean[r] * covariance[r][s] * mean[s] for r in both for s in both)
    size = math.fsum(each * each for each in mean)
    return math.sqrt(spread) / size if spread > 0 and size > 0 else 0.0


def plain_adaptive(placements: Placements, chosen: int, moments: DemandMoments) -> float:
    resources, count = range(len(placements.demand)), placements.capacity.shape[1]
    shares: list[list[float]] = []
    for r in resources:
        line = []
        for node in range(count):
            used = float(placements.usage[r, node]) + (float(placements.demand[r]) if node == chosen else 0)
            capacity = float(placements.capacity[r, node])
            line.append(min(used / capacity, 1.0) if capacity > 0 else float(used > 0))
        shares.append(line)
    had = [r for r in resources if (placements.capacity[r] > 0).any()]
    mean = [math.fsum(shares[r]) / count for r in had]
    covariance = [
        [
            math.fsum((shares[r][n] - mean[i]) * (shares[s][n] - mean[j]) for n in range(count)) / count
            for j, s in enumerate(had)
        ]
        for i, r in enumerate(had)
    ]
    typical = {r: float(placements.capacity[r][placements.capacity[r] > 0].mean()) for r in had}
    asked = [float(moments.mean[r]) / typical[r] for r in had]
    differing = [
        [float(moments.second[r, s] - moments.mean[r] * moments.mean[s]) / typical[r] / typical[s] for s in had]
        for r in had
    ]
    return abs(plain_variation(mean, covariance) - plain_variation(asked, differing))


@st.composite
def worlds(draw: st.DrawFn) -> tuple[Placements, DemandMoments]:
    resources, count = draw(st.integers(1, 5)), draw(st.integers(1, 7))
    amounts = st.integers(0, 40)

    def table(numbers: st.SearchStrategy[int]) -> np.ndarray:
        lines = st.lists(st.lists(numbers, min_size=count, max_size=count), min_size=resources, max_size=resources)
        return np.array(draw(lines), dtype=np.float64)

    moments = DemandMoments(resources)
    for _ in range(draw(st.integers(1, 4))):
        moments.learn(np.array(draw(st.lists(amounts, min_size=resources, max_size=resources)), dtype=np.float64))
    demand = np.array(draw(st.lists(amounts, min_size=resources, max_size=resources)), dtype=np.float64)
    candidates = draw(st.lists(st.integers(0, count - 1), min_size=1, unique=True))
    capacity = table(st.sampled_from([0, 16, 40, 64]))
    return Placements(capacity, table(amounts), demand, np.array(candidates, dtype=np.intp)), moments


@settings(deadline=None)
@given(worlds())
def test_all_candidates_at_once_are_valued_like_each_alone(world: tuple[Placements, DemandMoments]) -> None:
    placements, moments = world
    chosen = placements.candidates.tolist()
    # The root of a difference that should be nothing is the root of the last digit.
    assert load_balance(placements, 0).tolist() == near([plain_load_balance(placements, i, 0) for i in chosen], 1e-6)
    assert consolidate(placements, 0).tolist() == near([plain_consolidate(placements, i, 0) for i in chosen], 1e-6)
    packed = adaptive_bin_packing(placements, moments).tolist()
    assert packed == near([plain_adaptive(placements, i, moments) for i in chosen], 1e-5)


@pytest.mark.parametrize("objective", ["A_BINPACK", "LOAD_BALANCE", "CONSOLIDATE"])
@given(st.integers(1, 9), st.lists(st.integers(1, 4000), min_size=1, max_size=5), st.integers(1, 3999))
def test_equal_nodes_get_equal_points(objective: str, nodes: int, cpus: list[int], usage: int) -> None:
    cluster = make_cluster([node_of(f"n{i}", (8000, 8192), (usage, usage)) for i in range(nodes)])
    plugin = make_plugin(PigeonHoling, cluster, objective=objective)
    for cpu in cpus:
        assert set(ask(plugin, cluster, pod_of((cpu, 100))).points) == {10}


@given(st.lists(st.lists(st.integers(0, 10**6), min_size=2, max_size=2), min_size=1, max_size=99))
def test_a_hundred_pods_count_alike(pods: list[list[int]]) -> None:
    moments = DemandMoments(2)
    for pod in pods:
        moments.learn(np.array(pod, dtype=np.float64))
    table = np.array(pods, dtype=np.float64)
    np.testing.assert_allclose(moments.mean, table.mean(axis=0), rtol=1e-9)
    np.testing.assert_allclose(moments.second, table.T @ table / len(pods), rtol=1e-9)


def test_after_a_hundred_pods_each_counts_a_hundredth() -> None:
    moments = DemandMoments(1)
    for _ in range(150):
        moments.learn(np.array([100.0]))
    moments.learn(np.array([300.0]))
    assert moments.mean[0] == pytest.approx(102.0)


# What counts


def single(node: Node, pod: Pod, pods: Sequence[Pod] = (), **args: object) -> Placements:
    cluster = make_cluster([node], pods)
    return make_plugin(PigeonHoling, cluster, **args).placements(Cycle(pod, cluster), Nodes(cluster))


def test_units_and_least_amounts() -> None:
    offers = {"nvidia.com/gpu": "4", "ephemeral-storage": "10Gi"}
    annotations = {
        "requested-cpu": "855",
        "requested-memory": "272629760",
        "requested-pods": "12",
        "requested-gpu": "1",
        "requested-ephemeral-storage": str(3 * 2**30 + 5),
    }
    node = make_node(cpu=2, memory="2033401856", allocatable=offers, annotations=annotations)
    placements = single(node, make_pod(), numResources=5)
    assert placements.capacity[:, 0].tolist() == [2000, 1939, 110, 4, 10]
    assert placements.usage[:, 0].tolist() == [855, 260, 12, 1, 3]
    assert placements.demand.tolist() == [10, 16, 1, 0, 0]


def test_gpus_and_storage_are_asked_for_in_the_units_of_nodes() -> None:
    pod = make_pod(requests={"nvidia.com/gpu": 2, "ephemeral-storage": "2Gi", "cpu": "1", "memory": "1Gi"})
    assert single(make_node(), pod, numResources=5).demand.tolist() == [1000, 1024, 1, 2, 2]
    other = make_pod(requests={"amd.com/gpu": 3})
    assert single(make_node(), other, numResources=4, gpuResource="amd.com/gpu").demand.tolist() == [10, 16, 1, 3]


def test_init_containers_do_not_count() -> None:
    init = [{"name": "i", "image": "app", "resources": {"requests": {"cpu": "1500m"}}}]
    assert single(make_node(), make_pod(spec={"initContainers": init})).demand.tolist() == [10, 16]


@pytest.mark.parametrize(
    ("text", "used"),
    [
        ("1000", 1000),
        ("1000.5", 1000),
        ("1E+3", 1000),
        ("-5", 0),
        ("nan", 0),
        ("inf", 0),
        ("abc", 0),
        ("", 0),
        (" 7", 0),
        ("1e300", 2.0**62),
    ],
)
def test_an_annotation_that_tells_no_amount_tells_of_no_usage(text: str, used: float) -> None:
    node = make_node(annotations={"requested-cpu": text})
    assert single(node, make_pod()).usage[0, 0] == used


@pytest.mark.parametrize(
    ("usage", "used"), [("highest", [2000, 500]), ("annotations", [300, 500]), ("pods", [2000, 0])]
)
def test_pods_tell_what_annotations_do_not_know_yet(usage: str, used: list[int]) -> None:
    nodes = [make_node("a", annotations={"requested-cpu": "300"}), make_node("b", annotations={"requested-cpu": "500"})]
    cluster = make_cluster(nodes, [make_pod("placed", node="a", requests={"cpu": 2})])
    plugin = make_plugin(PigeonHoling, cluster, usage=usage)
    assert plugin.placements(Cycle(make_pod(), cluster), Nodes(cluster)).usage[0].tolist() == used


@pytest.mark.parametrize(("compared", "count"), [("cluster", 3), ("candidates", 2)])
def test_nodes_that_were_filtered_out_are_compared_with_unless_they_take_no_pods(compared: str, count: int) -> None:
    nodes = [make_node("a"), make_node("b"), make_node("c"), make_node("closed", unschedulable=True)]
    cluster = make_cluster(nodes)
    plugin = make_plugin(PigeonHoling, cluster, compared=compared)
    placements = plugin.placements(Cycle(make_pod(), cluster), Nodes(cluster, np.array([2, 0])))
    assert placements.capacity.shape[1] == count
    assert placements.candidates.tolist() == [count - 1, 0]


def test_resources_that_no_node_has_change_nothing() -> None:
    found = []
    for resources in (3, 5):
        cluster = Cluster()
        plugin = make_plugin(PigeonHoling, cluster, numResources=resources)
        for call in SEQUENCE[:3]:
            set_usage(cluster, (4000, 8192), call.usages)
            found.append(ask(plugin, cluster, pod_of(call.demand)))
    assert [each.points for each in found[:3]] == [each.points for each in found[3:]]
    assert found[2].values == near(found[5].values)


def test_a_cycle_that_starts_over_is_learnt_from_once() -> None:
    cluster = make_cluster([make_node()])
    plugin = make_plugin(PigeonHoling, cluster)
    cycle = Cycle(make_pod(), cluster)
    plugin.pre_score(cycle, Nodes(cluster))
    plugin.pre_score(cycle, Nodes(cluster))
    assert plugin.moments.pods == 1


# Settings


def test_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLICY_OBJECTIVE", "CONSOLIDATE")
    monkeypatch.setenv("NUM_RESOURCES", "3")
    cluster = make_cluster([make_node()])
    assert single(make_node(), make_pod()).demand.tolist() == [10, 16, 1]
    ask(plugin := make_plugin(PigeonHoling, cluster), cluster, make_pod())
    assert plugin.moments.pods == 0


@pytest.mark.parametrize(
    ("name", "value"), [("POLICY_OBJECTIVE", "a_binpack"), ("NUM_RESOURCES", "6"), ("NUM_RESOURCES", "two")]
)
def test_a_bad_variable_stops_the_start(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(PluginError, match=f'initializing plugin "PigeonHoling": environment variable {name}: '):
        make_runtime(make_cluster([]), "PigeonHoling")


def test_the_prime_resource_must_count() -> None:
    with pytest.raises(PluginError, match="policyResourceIndex is 2, but only 2 resources count"):
        make_runtime(make_cluster([]), "PigeonHoling", args={"PigeonHoling": {"policyResourceIndex": 2}})


def test_arguments_have_limits() -> None:
    def complaints(args: PigeonHolingArgs) -> list[str]:
        return [str(error) for error in args.validate(FieldPath())]

    assert complaints(PigeonHolingArgs(num_resources=6)) == ["numResources: Invalid value: 6: must be from 1 to 5"]
    assert complaints(PigeonHolingArgs(num_resources=2, policy_resource_index=2)) == [
        "policyResourceIndex: Invalid value: 2: must be from 0 to 1"
    ]
    assert complaints(PigeonHolingArgs(gpu_resource="")) == ["gpuResource: Required value: such as nvidia.com/gpu"]
