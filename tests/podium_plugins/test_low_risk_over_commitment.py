from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.cluster import Cluster
from podium.kube import Pod
from podium.load.beta import probability
from podium.load.readings import GivenLoad
from podium_plugins.low_risk_over_commitment import LowRiskOverCommitment, LowRiskOverCommitmentArgs
from tests.podium.plugins.ask import raw_scores
from tests.podium.plugins.loads import load_of, machine, measured
from tools.kit.builders import make_cluster, make_plugin, make_pod

GIB = 1 << 30


def wants(name: str, cpu: int, cpu_limit: int, memory: int, memory_limit: int, node: str = "") -> Pod:
    """A pod by what it asks for, cpu in thousandths and memory in GiB, and its limits; a limit of 0 is none."""
    limits = {"cpu": f"{cpu_limit}m", "memory": f"{memory_limit}Gi"}
    resources = {
        "requests": {"cpu": f"{cpu}m", "memory": f"{memory}Gi"},
        "limits": {key: value for key, value in limits.items() if value[0] != "0"},
    }
    return make_pod(name, node=node, spec={"containers": [{"name": "c", "resources": resources}]})


def score(cluster: Cluster, load: GivenLoad, pod: Pod, **args: Any) -> dict[str, int]:
    return raw_scores(measured(LowRiskOverCommitment, cluster, load, **args), pod, cluster)


THERE, POD = wants("there", 3000, 7000, 6, 16, "n"), wants("new", 1000, 3000, 2, 4)
CPU = {"cpu_avg": {"n": 40.0}, "cpu_std": {"n": 6.0}}
MEMORY = {"memory_avg": {"n": 30.0}, "memory_std": {"n": 2.0}}


def on_one(metrics: dict[str, dict[str, float]], pod: Pod = POD, **args: Any) -> int:
    return score(make_cluster([machine("n", 8000, 32 * GIB)], [THERE]), load_of(**metrics), pod, **args)["n"]


def only(cpu: float, memory: float) -> dict[str, Any]:
    return {"riskLimitWeights": {"cpu": cpu, "memory": memory}}


@pytest.mark.parametrize(
    ("metrics", "args", "expected"),
    [
        pytest.param(CPU | MEMORY, {}, 50, id="the example of the specification"),
        pytest.param(CPU, {}, 56, id="cpu alone, risk 0.44404"),
        pytest.param(CPU, only(1, 1), 67, id="limits alone, risk 1/3"),
        pytest.param(CPU, only(0, 0), 45, id="load alone, risk 0.55476"),
        pytest.param(MEMORY, only(1, 0), 0, id="memory's load alone, risk 0.9968"),
        pytest.param(MEMORY, only(1, 1), 67, id="a resource that is not measured still has its limits"),
        pytest.param({"cpu_avg": {"n": 40.0}}, only(0, 0), 0, id="no deviation: the mean is above what is requested"),
        pytest.param({"cpu_avg": {"n": 37.0}}, only(0, 0), 100, id="no deviation: it is below"),
        pytest.param({"cpu_latest": {"n": 37.0}}, only(0, 0), 100, id="the latest value stands for the mean"),
        pytest.param({"cpu_std": {"n": 5.0}}, only(0, 0), 100, id="a mean that is not measured is 0"),
        pytest.param({"cpu_avg": {"m": 5.0}}, {}, 0, id="nothing is known of this node"),
        pytest.param({}, {}, 0, id="nothing is known"),
    ],
)
def test_scores(metrics: dict[str, dict[str, float]], args: dict[str, Any], expected: int) -> None:
    assert on_one(metrics, **args) == expected


def test_the_smoothing_window_widens_the_deviation() -> None:
    assert on_one(CPU, **only(0, 0), smoothingWindowSize=1) == 35
    assert on_one(CPU, **only(0, 0), smoothingWindowSize=-1) == on_one(CPU, **only(0, 0)) == 45


def test_a_pod_that_asks_for_nothing_scores_0() -> None:
    assert on_one(CPU, make_pod()) == 0
    assert on_one(CPU, make_pod(requests={"example.com/gpu": 1})) == 0


def test_a_limit_below_the_request_counts_as_the_request() -> None:
    assert on_one(CPU, wants("p", 5000, 1000, 0, 0), **only(1, 1)) == on_one(
        CPU, wants("p", 5000, 0, 0, 0), **only(1, 1)
    )


def test_a_node_without_pods_has_no_risk_of_load() -> None:
    cluster = make_cluster([machine("n", 8000, 32 * GIB)])
    assert score(cluster, load_of(**CPU), wants("p", 100, 0, 0, 0)) == {"n": 100}


def test_a_node_that_offers_nothing() -> None:
    cluster, load = make_cluster([machine("n", 0)]), load_of(cpu_avg={"n": 50.0}, cpu_std={"n": 5.0})
    assert score(cluster, load, wants("p", 100, 200, 0, 0)) == {"n": 50}  # the limits are beyond it, the load is not


def test_pods_that_come_and_go_are_seen() -> None:
    cluster = make_cluster([machine("n", 8000, 32 * GIB), machine("m", 8000, 32 * GIB)])
    plugin = measured(LowRiskOverCommitment, cluster, load_of(cpu_avg={"n": 40.0, "m": 40.0}), **only(0.5, 0.5))
    assert raw_scores(plugin, POD, cluster) == {"n": 100, "m": 100}
    cluster.set_pod(THERE)
    assert raw_scores(plugin, POD, cluster) == {"n": 33, "m": 100}
    cluster.remove_pod(THERE.uid)
    assert raw_scores(plugin, POD, cluster) == {"n": 100, "m": 100}


def test_where_nobody_measures_all_score_0() -> None:
    cluster = make_cluster([machine("n")])
    assert raw_scores(make_plugin(LowRiskOverCommitment, cluster), POD, cluster) == {"n": 0}


def test_weights_outside_0_and_1_count_as_a_half() -> None:
    args = msgspec.convert({"riskLimitWeights": {"cpu": 1.5}}, LowRiskOverCommitmentArgs)
    assert args.risk_limit_weights == {"cpu": 0.5, "memory": 0.5}
    assert LowRiskOverCommitmentArgs(smoothing_window_size=0).smoothing_window_size == 5


def clamp(number: float) -> float:
    return min(1.0, max(0.0, number))


def plainly(
    cap: int, there: tuple[int, int], pod: tuple[int, int], avg: float | None, std: float | None, window: int, w: float
) -> float:
    """The risk by one resource, from requests and limits (at least the requests) of what is there and of the pod."""
    before, limit_before = min(there[0], cap), there[1]
    request, limit = min(there[0] + pod[0], cap), there[1] + pod[1]
    by_limits = (limit - cap) / (limit - request) if limit > cap else 0.0
    by_load = 0.0
    if avg is not None or std is not None:
        mu = clamp((avg or 0.0) / 100) if cap else 0.0
        sigma = min(max(0.0, std or 0.0) * math.sqrt(window) / 100, math.sqrt(0.99 * mu * (1 - mu)))
        fit: tuple[float, float] | None = None
        t = clamp(before / cap) if cap else 0.0
        if mu == 0:
            p = 1.0
        elif sigma < 1e-15:
            p = 1.0 if mu <= t else 0.0
        else:
            k = mu * (1 - mu) / (sigma * sigma) - 1
            fit = mu * k, (1 - mu) * k
            p = probability(t, *fit)
        if limit_before < cap and before <= limit_before:
            q = limit_before / cap
            if q == 0:
                p = 1.0
            elif fit is not None and probability(q, *fit) > 0:
                p = clamp(p / probability(q, *fit))
        by_load = 1 - p
    return clamp(w * by_limits + (1 - w) * by_load)


PERCENT = st.one_of(st.none(), st.floats(-20, 150))
Asked = tuple[int, int, int, int]
ASKED = st.tuples(st.integers(0, 5000), st.integers(0, 9000), st.integers(0, 6), st.integers(0, 9))


@given(
    st.lists(st.tuples(st.integers(0, 9000), st.integers(0, 20), ASKED, *[PERCENT] * 4), min_size=1, max_size=5),
    ASKED,
    st.integers(1, 9),
    st.floats(0, 1),
)
def test_scores_are_those_of_the_formula(nodes: list[Any], asked: Asked, window: int, weight: float) -> None:
    cluster = make_cluster(
        [machine(f"n{i}", each[0], each[1] * GIB) for i, each in enumerate(nodes)],
        [wants(f"p{i}", *(*each[2], f"n{i}")) for i, each in enumerate(nodes)],
    )
    metrics = {
        name: {f"n{i}": each[k] for i, each in enumerate(nodes) if each[k] is not None}
        for k, name in enumerate(("cpu_avg", "cpu_std", "memory_avg", "memory_std"), start=3)
    }
    pod = wants("new", *asked)
    found = score(cluster, load_of(**metrics), pod, smoothingWindowSize=window, **only(weight, weight))
    cpu, memory = (asked[0], max(asked[:2])), (asked[2] * GIB, max(asked[2:]) * GIB)
    for i, (offer, offer_memory, there, *percents) in enumerate(nodes):
        expected = 0
        if any(asked) and any(each is not None for each in percents):
            by_cpu = plainly(offer, (there[0], max(there[:2])), cpu, percents[0], percents[1], window, weight)
            held = there[2] * GIB, max(there[2:]) * GIB
            by_memory = plainly(offer_memory * GIB, held, memory, percents[2], percents[3], window, weight)
            expected = math.floor(100 * (1 - max(by_cpu, by_memory)) + 0.5)
        assert found[f"n{i}"] == expected
