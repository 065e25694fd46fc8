from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.cluster import Cluster
from podium.kube import Pod
from podium.load.readings import GivenLoad
from podium_plugins.load_variation_risk_balancing import LoadVariationRiskBalancing, LoadVariationRiskBalancingArgs
from tests.podium.plugins.ask import raw_scores
from tests.podium.plugins.loads import load_of, machine, measured
from tools.kit.builders import make_cluster, make_plugin, make_pod

GIB = 1 << 30
POD = make_pod(requests={"cpu": "800m", "memory": "2Gi"})
CPU = {"cpu_avg": {"n": 30.0}, "cpu_std": {"n": 9.0}}
MEMORY = {"memory_avg": {"n": 50.0}, "memory_std": {"n": 1.0}}


def score(cluster: Cluster, load: GivenLoad, pod: Pod = POD, **args: Any) -> dict[str, int]:
    return raw_scores(measured(LoadVariationRiskBalancing, cluster, load, **args), pod, cluster)


def on_one(load: GivenLoad, **args: Any) -> int:
    return score(make_cluster([machine("n", 8000, 32 * GIB)]), load, **args)["n"]


@pytest.mark.parametrize(
    ("metrics", "sensitivity", "expected"),
    [
        pytest.param(CPU | MEMORY, 2, 65, id="the lower of both"),
        pytest.param(CPU, 2, 65, id="cpu alone"),
        pytest.param(MEMORY, 2, 67, id="memory alone, 66.875"),
        pytest.param(CPU, 1, 76, id="cpu with sensitivity 1, 75.5"),
        pytest.param(CPU, 0, 80, id="no deviation below 1 counts"),
        pytest.param({"cpu_std": {"n": 100.0}}, 0, 45, id="a deviation of 1 does; the mean is 0"),
        pytest.param({"cpu_avg": {"n": 30.0}}, 2, 80, id="a deviation that is not measured is 0"),
        pytest.param({"cpu_latest": {"n": 30.0}}, 2, 80, id="the latest value stands for the mean"),
        pytest.param({"cpu_": {"n": 30.0}}, 2, 80, id="so does a value without operator"),
        pytest.param({"cpu_latest": {"n": 90.0}, "cpu_avg": {"n": 30.0}}, 2, 80, id="an average overrides it"),
        pytest.param({}, 2, 0, id="nothing is known"),
        pytest.param({"cpu_avg": {"m": 30.0}}, 2, 0, id="nothing is known of this node"),
    ],
)
def test_scores(metrics: dict[str, dict[str, float]], sensitivity: float, expected: int) -> None:
    assert on_one(load_of(**metrics), safeVarianceSensitivity=sensitivity) == expected


def test_the_margin_widens_the_deviation() -> None:
    assert on_one(load_of(**CPU), safeVarianceMargin=2, safeVarianceSensitivity=2) == 50
    assert on_one(load_of(**CPU), safeVarianceMargin=0) == 80
    assert on_one(load_of(**CPU), safeVarianceMargin=1000) == 30


def test_negative_arguments_count_as_1() -> None:
    args = LoadVariationRiskBalancingArgs(safe_variance_margin=-1, safe_variance_sensitivity=-0.5)
    assert (args.safe_variance_margin, args.safe_variance_sensitivity) == (1, 1)


def test_a_node_that_offers_nothing_scores_0() -> None:
    assert score(make_cluster([machine("n", 0)]), load_of(**CPU)) == {"n": 0}


def test_an_init_container_counts_where_it_needs_more_and_overhead_always() -> None:
    spec = {
        "containers": [{"name": "c", "resources": {"requests": {"cpu": "300m"}}}],
        "initContainers": [{"name": "i", "resources": {"requests": {"cpu": "700m"}}}],
        "overhead": {"cpu": "100m"},
    }
    cluster = make_cluster([machine("n", 8000)])
    assert score(cluster, load_of(**CPU), make_pod(spec=spec), safeVarianceSensitivity=2) == {"n": 65}


def test_where_nobody_measures_all_score_0() -> None:
    cluster = make_cluster([machine("n")])
    assert raw_scores(make_plugin(LoadVariationRiskBalancing, cluster), POD, cluster) == {"n": 0}


def clamp(number: float, most: float = 1.0) -> float:
    return min(most, max(0.0, number))


def plainly(
    cap: float, request: float, avg: float | None, std: float | None, margin: float, sensitivity: float
) -> float | None:
    """The score by one resource; None where it is not measured."""
    if avg is None and std is None:
        return None
    if cap <= 0:
        return 0.0
    used, deviation = clamp((avg or 0.0) * cap / 100, cap), clamp((std or 0.0) * cap / 100, cap)
    mu, sigma = clamp((used + max(0.0, request)) / cap), clamp(deviation / cap)
    sigma = (0.0 if sigma < 1 else 1.0) if sensitivity == 0 else sigma ** (1 / sensitivity)
    return (1 - (mu + clamp(sigma * margin)) / 2) * 100


PERCENT = st.one_of(st.none(), st.floats(-20, 150))


@given(
    st.lists(st.tuples(st.integers(0, 9000), st.integers(0, 40), *[PERCENT] * 4), min_size=1, max_size=5),
    st.floats(0, 3),
    st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.0]),
)
def test_scores_are_those_of_the_formula(nodes: list[Any], margin: float, sensitivity: float) -> None:
    cluster = make_cluster([machine(f"n{i}", each[0], each[1] * GIB) for i, each in enumerate(nodes)])
    names = ("cpu_avg", "cpu_std", "memory_avg", "memory_std")
    metrics = {
        name: {f"n{i}": each[k] for i, each in enumerate(nodes) if each[k] is not None}
        for k, name in enumerate(names, start=2)
    }
    found = score(cluster, load_of(**metrics), safeVarianceMargin=margin, safeVarianceSensitivity=sensitivity)
    for i, (cpu, memory, *percents) in enumerate(nodes):
        by_cpu = plainly(float(cpu), 800.0, percents[0], percents[1], margin, sensitivity)
        by_memory = plainly(memory * 1024.0, 2048.0, percents[2], percents[3], margin, sensitivity)
        known = [each for each in (by_cpu, by_memory) if each is not None]
        expected = min(known, default=0.0)
        assert 0 <= found[f"n{i}"] <= 100
        if abs(expected % 1 - 0.5) > 1e-9:  # powers may differ in the last bit, which matters for halves alone
            assert found[f"n{i}"] == math.floor(expected + 0.5)
