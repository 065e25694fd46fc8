"""SafeOverload and SafeBalance: the table of worked nodes, what bad annotations do, and one node at a time."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.cluster import Cluster, Nodes
from podium.config.durations import Duration
from podium.config.field import FieldPath
from podium.framework import Code, Cycle, ManualClock, PluginError
from podium.kube import Node, Pod
from podium.kube.meta import format_time
from podium.load.beta import probability
from podium_plugins.safe import SafeBalance, SafeOverload, SafeOverloadArgs, free_and_deviation, overload_risks, table
from tests.podium.framework.runtimes import make_runtime
from tests.podium.plugins.ask import raw_scores, refusals, refused
from tools.kit.builders import make_cluster, make_node, make_plugin, make_pod

MIB = 2**20


def cpu_node(capacity: int, mean: object, deviation: object = None, forecast: object = None, name: str = "n1") -> Node:
    given = {"mean-free-cpu": mean, "std-free-cpu": deviation, "forcasted-free-cpu": forecast}
    annotations = {key: str(value) for key, value in given.items() if value is not None}
    return make_node(name, cpu=f"{capacity}m", annotations=annotations)


class Judged(NamedTuple):
    accepted: bool
    overload: int
    balance: int


def judge(node: Node, pod: Pod, **args: int) -> Judged:
    """The verdict on a node, and its points from 0 to 10."""
    cluster = make_cluster([node])
    overload = make_plugin(SafeOverload, cluster, **args)
    weight = {"forecastWeight": args["forecastWeight"]} if "forecastWeight" in args else {}
    balance = make_plugin(SafeBalance, cluster, **weight)
    return Judged(
        refusals(overload, pod, cluster)[node.name] is None,
        raw_scores(overload, pod, cluster)[node.name] // 10,
        raw_scores(balance, pod, cluster)[node.name] // 10,
    )


class Row(NamedTuple):
    capacity: int
    mean: int
    deviation: int
    forecast: int | None
    demand: int
    mu: float
    sigma: float
    risk: float
    expected: Judged
    args: Mapping[str, int] = MappingProxyType({})


TABLE = {
    "S1": Row(2000, 900, 200, None, 200, 0.65, 0.1, 0.001098723, Judged(True, 9, 5)),
    "S2": Row(2000, 1600, 50, None, 200, 0.30, 0.025, 0, Judged(True, 10, 8)),
    "S3": Row(2000, 1700, 200, None, 200, 0.25, 0.1, 4.03e-11, Judged(True, 9, 7)),
    "S4": Row(4000, 1600, 400, None, 500, 0.725, 0.1, 0.020794250, Judged(True, 7, 5)),
    "S5": Row(4000, 1400, 400, None, 500, 0.775, 0.1, 0.089301044, Judged(True, 4, 5)),
    "S6": Row(4000, 1100, 240, None, 500, 0.85, 0.06, 0.212883398, Judged(True, 1, 5)),
    "S7": Row(4000, 1250, 500, None, 500, 0.8125, 0.125, 0.284187671, Judged(True, 0, 4)),
    "S8": Row(4000, 1000, 200, None, 500, 0.875, 0.05, 0.342516521, Judged(False, 0, 5)),
    "S9": Row(4000, 2500, 400, 2000, 500, 0.525, 0.1, 1.8563e-6, Judged(True, 9, 6)),
    "S10": Row(
        *(4000, 2500, 400, 2000, 500, 0.5625, 0.1, 0.005136465, Judged(True, 8, 6)),
        {"utilization": 80, "percentile": 20, "forecastWeight": 50},
    ),
    "S11": Row(4000, 1000, 0, None, 500, 0.875, 0, 0, Judged(True, 10, 6)),
    "S12": Row(4000, 2000, 2100, None, 500, 0.625, 0.525, 1, Judged(False, 0, 3)),
}


@pytest.mark.parametrize("row", TABLE.values(), ids=TABLE)
def test_the_worked_nodes(row: Row) -> None:
    node = cpu_node(row.capacity, row.mean, row.deviation, row.forecast)
    assert judge(node, make_pod(requests={"cpu": f"{row.demand}m"}), **row.args) == row.expected


@pytest.mark.parametrize("row", TABLE.values(), ids=TABLE)
def test_the_risk_of_the_worked_nodes(row: Row) -> None:
    cluster = make_cluster([cpu_node(row.capacity, row.mean, row.deviation, row.forecast)])
    plugin = make_plugin(SafeOverload, cluster, **row.args)
    pod = make_pod(requests={"cpu": f"{row.demand}m"})
    cpu, memory = plugin.risks(Cycle(pod, cluster), Nodes(cluster))[:, 0].tolist()
    assert cpu == pytest.approx(row.risk, abs=2e-8, rel=1e-3)
    assert math.isnan(memory)
    (mu,), (sigma,) = (each[0].tolist() for each in plugin._utilization.of(Nodes(cluster), (row.demand, 0)))
    assert (mu, sigma) == (pytest.approx(row.mu), pytest.approx(row.sigma))


def memory_node(allocatable: str, mean: int, deviation: int, forecast: int | None = None) -> Node:
    annotations = {"mean-free-memory": str(mean), "std-free-memory": str(deviation)}
    if forecast is not None:
        annotations["forcasted-free-memory"] = str(forecast)
    return make_node(memory=allocatable, annotations=annotations)


def test_memory_is_in_bytes() -> None:
    node, pod = memory_node("256Mi", 155597063, 30372823, 200000000), make_pod(requests={"memory": "64Mi"})
    assert judge(node, pod) == Judged(True, 9, 5)
    cluster = make_cluster([node])
    risks = make_plugin(SafeOverload, cluster).risks(Cycle(pod, cluster), Nodes(cluster))
    assert risks[1, 0] == pytest.approx(0.002415, abs=5e-7)


def test_the_resource_that_is_worse_off_decides() -> None:
    node = memory_node("8192Mi", 2048 * MIB, 700 * MIB)
    node.annotations.update({"mean-free-cpu": "2500", "std-free-cpu": "400"})
    pod = make_pod(requests={"cpu": "500m", "memory": "1024Mi"})
    assert judge(node, pod) == Judged(False, 0, 4)
    cluster = make_cluster([node])
    plugin = make_plugin(SafeOverload, cluster)
    assert plugin.risks(Cycle(pod, cluster), Nodes(cluster))[:, 0].tolist() == [
        pytest.approx(4.676e-7, rel=1e-3),
        pytest.approx(0.464883, abs=1e-6),
    ]
    reason = "node(s) had a risk of memory overload above 30 percent"
    assert refused(refusals(plugin, pod, cluster)) == {"n1": (Code.UNRESOLVABLE, (reason,))}


def test_an_init_container_that_asks_for_more_counts() -> None:
    init = [{"name": "i", "image": "app", "resources": {"requests": {"cpu": "1500m"}}}]
    pod = make_pod(requests={"cpu": "500m"}, spec={"initContainers": init})
    node = cpu_node(4000, 2500, 400)
    assert judge(node, pod) == Judged(True, 6, 5)
    cluster = make_cluster([node])
    risk = make_plugin(SafeOverload, cluster).risks(Cycle(pod, cluster), Nodes(cluster))[0, 0]
    assert risk == pytest.approx(0.045403948, abs=2e-8)


@pytest.mark.parametrize(
    ("mu", "sigma", "rank"),
    [(0.9, 0.005, 0.494089), (0.895, 0.003, 0.953732), (0.905, 0.004, 0.106874), (0.95, 1e-9, 0.0), (0.9, 1e-9, 1.0)],
)
def test_small_deviations_are_computed_too(mu: float, sigma: float, rank: float) -> None:
    assert 1 - overload_risks(np.array([mu]), np.array([sigma]), 0.9)[0] == pytest.approx(rank, abs=1e-6)


POD = make_pod(requests={"cpu": "500m"})
UNKNOWN = Judged(True, 0, 0)


@pytest.mark.parametrize("mean", [None, "", "N/A", "None", "nan", "NaN", "inf", "-Infinity", " 900", "1_000", "1e999"])
def test_a_node_without_a_usable_mean_passes_and_comes_last(mean: str | None) -> None:
    assert judge(cpu_node(4000, mean, 400), POD) == UNKNOWN


@pytest.mark.parametrize("deviation", [None, "", "N/A", "-1", "-1e300", "x"])
def test_an_unusable_deviation_counts_as_none(deviation: str | None) -> None:
    assert judge(cpu_node(4000, 1000, deviation), POD) == Judged(True, 10, 6)


@pytest.mark.parametrize("bad", ["nan", "inf", "-inf"])
def test_a_value_that_is_not_finite_makes_the_statistics_void(bad: str) -> None:
    assert judge(cpu_node(4000, 1000, bad), POD) == UNKNOWN
    assert judge(cpu_node(4000, 1000, 100, bad), POD) == UNKNOWN


@pytest.mark.parametrize("forecast", ["N/A", "None", "", " 5"])
def test_an_unreadable_forecast_changes_nothing(forecast: str) -> None:
    assert judge(cpu_node(4000, 1600, 400, forecast), POD) == Judged(True, 7, 5)


def test_a_node_that_offers_nothing_has_no_statistics() -> None:
    assert judge(cpu_node(0, 1000, 100), POD) == UNKNOWN


@pytest.mark.parametrize(("mean", "deviation"), [("-5000", "100"), ("1e308", "1e308"), ("-1e308", "0")])
def test_amounts_beyond_the_node_are_cut_to_it(mean: str, deviation: str) -> None:
    judged = judge(cpu_node(4000, mean, deviation), POD)
    assert 0 <= judged.overload <= 10
    assert 0 <= judged.balance <= 10


def test_where_no_risk_is_acceptable_only_none_scores() -> None:
    assert judge(cpu_node(4000, 1000, 0), POD, percentile=0) == Judged(True, 10, 6)
    assert judge(cpu_node(4000, 2500, 400), POD, percentile=0) == Judged(False, 0, 6)


def test_a_node_at_exactly_the_acceptable_risk_passes() -> None:
    # All risk is acceptable: even a node that is full for certain passes.
    assert judge(cpu_node(4000, 0, 0), POD, percentile=100) == Judged(True, 0, 5)


def test_a_changed_annotation_counts_at_once() -> None:
    cluster = make_cluster([cpu_node(4000, 1600, 400), cpu_node(4000, 1000, 200, name="n2")])
    plugin = make_plugin(SafeOverload, cluster)
    assert raw_scores(plugin, POD, cluster) == {"n1": 70, "n2": 0}
    cluster.set_node(cpu_node(4000, 1100, 240, name="n2"))
    assert raw_scores(plugin, POD, cluster) == {"n1": 70, "n2": 10}
    assert raw_scores(plugin, make_pod(requests={"cpu": "700m"}), cluster) == {"n1": 40, "n2": 0}


# One node at a time, in plain Python


def plain_moments(node: Node, resource: str, demand: int, capacity: int, weight: float) -> tuple[float, float] | None:
    free, deviation = free_and_deviation(node.annotations, resource, weight)
    if math.isnan(free) or capacity <= 0:
        return None
    used = max(capacity - free, 0.0)
    return min(max((used + demand) / capacity, 0.0), 1.0), min(max(deviation / capacity, 0.0), 1.0)


def plain_risk(mu: float, sigma: float, threshold: float) -> float:
    if mu == 0:
        return 0.0
    if sigma < 1e-6:
        return 0.0 if mu <= threshold else 1.0
    variance = sigma * sigma
    if variance >= mu * (1 - mu):
        return 1.0
    k = max(mu * (1 - mu) / variance - 1, 2.3e-308)
    return 1 - probability(threshold, mu * k, (1 - mu) * k)


def plain_judge(cluster: Cluster, row: int, demand: dict[str, int], shares: tuple[float, float, float]) -> Judged:
    threshold, acceptable, weight = shares
    node = cluster.nodes[row]
    assert node is not None
    overload: list[int] = []
    balance: list[int] = []
    accepted = True
    for resource, asked in demand.items():
        capacity = int(cluster.resources.allocatable_of(resource)[row])
        moments = plain_moments(node, resource, asked, capacity, weight)
        if moments is None:
            continue
        mu, sigma = moments
        risk = plain_risk(mu, sigma, threshold)
        accepted = accepted and not risk > acceptable
        share = min(risk / acceptable, 1.0) if acceptable else float(risk > 0)
        overload.append(int(10 * (1 - math.sqrt(share))))
        balance.append(int(10 * (1 - (mu + math.sqrt(sigma)) / 2) + 0.5))
    return Judged(accepted, min(overload, default=0), min(balance, default=0))


KINDS = ("mean", "std", "forcasted")
texts = (
    st.none()
    | st.integers(-500, 9000).map(str)
    | st.floats(0, 9000).map(str)
    | st.sampled_from(["nan", "inf", "-1", "N/A", "", "1e308"])
)


@st.composite
def annotated_nodes(draw: st.DrawFn) -> list[Node]:
    nodes = []
    for number in range(draw(st.integers(1, 6))):
        given = {
            f"{kind}-free-{resource}": draw(texts)
            for kind in ("mean", "std", "forcasted")
            for resource in ("cpu", "memory")
        }
        annotations = {key: text for key, text in given.items() if text is not None}
        cpu, memory = draw(st.sampled_from([0, 1, 4000, 8000])), draw(st.sampled_from([0, 1000, 9000]))
        nodes.append(make_node(f"n{number}", cpu=f"{cpu}m", memory=str(memory), annotations=annotations))
    return nodes


percents = st.sampled_from([0, 1, 20, 30, 50, 90, 100])


@settings(deadline=None)
@given(annotated_nodes(), st.integers(0, 5000), st.integers(0, 5000), percents, percents, percents)
def test_all_nodes_at_once_are_judged_like_each_alone(
    nodes: list[Node], cpu: int, memory: int, utilization: int, percentile: int, weight: int
) -> None:
    cluster = make_cluster(nodes)
    pod = make_pod(requests={"cpu": f"{cpu}m", "memory": str(memory)})
    overload = make_plugin(SafeOverload, cluster, utilization=utilization, percentile=percentile, forecastWeight=weight)
    balance = make_plugin(SafeBalance, cluster, forecastWeight=weight)
    passing = refusals(overload, pod, cluster)
    overloads, balances = raw_scores(overload, pod, cluster), raw_scores(balance, pod, cluster)
    shares = (utilization / 100, percentile / 100, weight / 100)
    for row, node in enumerate(nodes):
        found = Judged(passing[node.name] is None, overloads[node.name] // 10, balances[node.name] // 10)
        assert found == plain_judge(cluster, row, {"cpu": cpu, "memory": memory}, shares)


# The table in the log


def test_the_table_of_a_distribution_is_consistent() -> None:
    lines = [[float(each) for each in line.split()] for line in table(0.65, 0.1).splitlines()[1:]]
    assert [line[0] for line in lines] == [pytest.approx(number / 20) for number in range(21)]
    assert [line[2] for line in lines] == sorted(line[2] for line in lines)
    assert 1 - lines[18][2] == pytest.approx(0.001098723, abs=1e-4)
    assert sum(line[1] for line in lines) / 20 == pytest.approx(1, abs=0.01)
    assert lines[0][3] == pytest.approx(0.65, abs=1e-4)
    assert table(0.5, 0.6) == table(0.5, 0) == table(math.nan, 0.1) == ""


def test_the_table_is_logged_when_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAFEPRINTTABLE", "true")
    records: list[str] = []
    log, handler = logging.getLogger("podium_plugins.safe"), logging.Handler()
    monkeypatch.setattr(handler, "emit", lambda record: records.append(record.getMessage()))
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        judge(cpu_node(4000, 1600, 400), POD)
    finally:
        log.removeHandler(handler)
        log.setLevel(logging.NOTSET)
    assert [line for line in records if "\n" in line] == []  # one record a line, or a log shows it as one line
    at = next(number for number, line in enumerate(records) if line.startswith("cpu of node n1:"))
    assert records[at + 1].split() == ["x", "density", "cdf", "mrl"]
    assert records[at + 2].startswith("0.00")
    assert not any("memory of node" in line for line in records)


# Age


@pytest.mark.parametrize("kind", [SafeOverload, SafeBalance])
def test_what_was_measured_too_long_ago_is_not_believed(kind: type[SafeOverload] | type[SafeBalance]) -> None:
    def measured(name: str, age: float | None) -> Node:
        node = cpu_node(4000, 2500, 400, name=name)
        if age is not None:
            node.annotations["usage-measured-at"] = format_time(1_000_000 - age)
        return node

    nodes = [measured("new", 100), measured("old", 601), measured("unsaid", None), measured("soon", 590)]
    cluster = make_cluster(nodes)
    plugin, trusting = make_plugin(kind, cluster, maxAge=Duration.parse("10m")), make_plugin(kind, cluster)
    clock = plugin.handle.clock
    assert isinstance(clock, ManualClock)
    known = [name for name, score in raw_scores(plugin, POD, cluster).items() if score]
    assert known == ["new", "unsaid", "soon"]
    assert 0 not in raw_scores(trusting, POD, cluster).values()

    before = plugin.answer_key(POD), trusting.answer_key(POD)
    clock.advance(10)
    assert plugin.answer_key(POD) == before[0]
    clock.advance(1)
    assert plugin.answer_key(POD) != before[0]
    assert raw_scores(plugin, POD, cluster)["soon"] == 0
    cluster.set_node(measured("soon", -11))
    assert raw_scores(plugin, POD, cluster)["soon"] > 0
    clock.advance(10_000)
    assert trusting.answer_key(POD) == before[1]


# Settings


def test_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAFEUTILIZATION", "80")
    monkeypatch.setenv("SAFEPERCENTILE", "20")
    monkeypatch.setenv("SAFEFORECASTWEIGHT", "50")
    row = TABLE["S10"]
    node = cpu_node(row.capacity, row.mean, row.deviation, row.forecast)
    assert judge(node, make_pod(requests={"cpu": "500m"})) == row.expected
    # What the arguments say wins.
    assert judge(node, make_pod(requests={"cpu": "500m"}), utilization=90, percentile=30).overload == 9


@pytest.mark.parametrize(
    ("name", "value"), [("SAFEUTILIZATION", "101"), ("SAFEPERCENTILE", "a"), ("SAFEFORECASTWEIGHT", "-1")]
)
def test_a_bad_variable_stops_the_start(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(PluginError, match=f'initializing plugin "SafeOverload": environment variable {name}: '):
        make_runtime(make_cluster([]), "SafeOverload")


def test_arguments_are_percentages() -> None:
    args = SafeOverloadArgs(utilization=101, percentile=-1, forecast_weight=1000, max_age=Duration(0))
    assert [str(error) for error in args.validate(FieldPath())] == [
        "utilization: Invalid value: 101: must be a percentage from 0 to 100",
        "percentile: Invalid value: -1: must be a percentage from 0 to 100",
        "forecastWeight: Invalid value: 1000: must be a percentage from 0 to 100",
        'maxAge: Invalid value: "0s": must be greater than zero',
    ]
