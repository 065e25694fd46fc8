from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.cluster import Cluster, Nodes
from podium.config.field import FieldPath
from podium.framework import Cycle
from podium.kube import Pod
from podium.load.readings import GivenLoad
from podium_plugins.peaks import MODEL_FILE, Peaks, PeaksArgs, PowerModel, read_models
from tests.podium.plugins.ask import raw_scores
from tests.podium.plugins.loads import ADDRESS, load_of, machine, measured
from tools.kit.builders import make_cluster, make_plugin, make_pod

POD = make_pod(requests={"cpu": "400m"})
MODELS = {"a": {"k1": -20.0, "k2": -0.02}, "b": {"k1": -20.0, "k2": -0.02}, "c": {"k1": -10.0, "k2": -0.02}}
LOAD = {"a": 20.0, "b": 50.0, "c": 20.0}


def scores(plugin: Peaks, cluster: Cluster, pod: Pod = POD) -> dict[str, int]:
    raw = raw_scores(plugin, pod, cluster)
    nodes = Nodes(cluster, cluster.order.rows)
    normal = plugin.normalize(Cycle(pod, cluster), nodes, np.array(list(raw.values()), dtype=np.int64))
    return dict(zip(raw, normal.tolist(), strict=True))


def placed(names: str, load: dict[str, float], pod: Pod = POD, **args: Any) -> dict[str, int]:
    cluster = make_cluster([machine(name) for name in names])
    given = {"nodePowerModel": MODELS, **args}
    return scores(measured(Peaks, cluster, load_of(cpu_avg=load), **given), cluster, pod)


def test_the_example_of_the_specification() -> None:
    cluster = make_cluster([machine(name) for name in "abc"])
    plugin = measured(Peaks, cluster, load_of(cpu_avg=LOAD), nodePowerModel=MODELS)
    jumps = [raw / 1e15 for raw in raw_scores(plugin, POD, cluster).values()]
    assert jumps == pytest.approx([2.43017, 1.33370, 1.21508], abs=1e-5)
    assert scores(plugin, cluster) == {"a": 0, "b": 91, "c": 100}


def test_a_node_that_is_not_measured_is_the_best_as_in_the_original() -> None:
    assert placed("abcd", LOAD, unknownNodes="Best") == {"a": 0, "b": 46, "c": 51, "d": 100}


def test_a_node_that_is_not_measured_is_not_preferred_unless_asked_for() -> None:
    assert placed("abcd", LOAD) == {"a": 0, "b": 91, "c": 100, "d": 0}


@pytest.mark.parametrize(("choice", "expected"), [("Best", 100), ("Worst", 0)])
def test_so_is_a_node_without_model_and_one_that_would_be_overloaded(choice: str, expected: int) -> None:
    assert placed("abcd", LOAD | {"d": 20.0}, unknownNodes=choice)["d"] == expected
    overloaded = placed("abcd", LOAD | {"d": 95.0}, nodePowerModel=MODELS | {"d": MODELS["a"]}, unknownNodes=choice)
    assert overloaded["d"] == expected


def test_nodes_that_add_the_same_score_100_and_nodes_that_add_nothing_0() -> None:
    same: dict[str, Any] = {"nodePowerModel": {"a": MODELS["a"], "b": MODELS["a"]}}
    assert placed("ab", {"a": 20.0, "b": 20.0}, **same) == {"a": 100, "b": 100}
    assert placed("ab", {"a": 20.0, "b": 50.0}, make_pod(), **same) == {"a": 0, "b": 0}
    assert placed("de", {}) == {"d": 0, "e": 0}


def test_overhead_alone_is_no_request() -> None:
    assert placed("abc", LOAD, make_pod(spec={"overhead": {"cpu": "400m"}})) == {"a": 0, "b": 0, "c": 0}
    less = make_pod(requests={"cpu": "300m"}, spec={"overhead": {"cpu": "100m"}})
    assert placed("abc", LOAD, less) == {"a": 0, "b": 91, "c": 100} == placed("abc", LOAD)


def test_power_beyond_all_numbers_stays_within_scores() -> None:
    models = {"a": {"k1": 1e300, "k2": 10.0}, "b": {"k1": -1e300, "k2": 10.0}, "c": {"k1": 1.0, "k2": 0.01}}
    assert placed("abc", LOAD, nodePowerModel=models) == {"a": 0, "b": 100, "c": 50}


def test_the_original_spelling_is_understood() -> None:
    args = msgspec.convert({"WatcherAddress": ADDRESS, "NodePowerModel": MODELS}, PeaksArgs)
    assert not list(args.validate(FieldPath()))
    assert args.address == ADDRESS
    assert args.model["c"] == PowerModel(k1=-10.0, k2=-0.02)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({}, "watcherAddress: invalid MetricProvider.Type, got ; "),
        ({"watcherAddress": "here"}, 'watcherAddress: Invalid value: "here": must be a URL'),
        ({"watcherAddress": ADDRESS, "WatcherAddress": ADDRESS}, "WatcherAddress: Forbidden: watcherAddress is given"),
        (
            {"watcherAddress": ADDRESS, "nodePowerModel": MODELS, "NodePowerModel": MODELS},
            "NodePowerModel: Forbidden: nodePowerModel is given",
        ),
        (
            {"watcherAddress": ADDRESS, "nodePowerModel": {"a": {"k1": math.inf}}},
            'nodePowerModel.a: Invalid value: "a": its numbers must be finite',
        ),
    ],
)
def test_arguments_that_make_no_sense(args: dict[str, Any], said: str) -> None:
    (error,) = msgspec.convert(args, PeaksArgs).validate(FieldPath())
    assert str(error).startswith(said)


def test_an_address_must_be_given() -> None:
    with pytest.raises(ValueError, match=r"invalid MetricProvider\.Type, got "):
        make_plugin(Peaks, make_cluster([]))


def test_models_may_come_from_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "models.json"
    file.write_bytes(msgspec.json.encode(MODELS))
    monkeypatch.setenv(MODEL_FILE, str(file))
    cluster = make_cluster([machine(name) for name in "abc"])
    plugin = measured(Peaks, cluster, load_of(cpu_avg=LOAD))  # no map at all, and no empty one either
    assert scores(plugin, cluster) == {"a": 0, "b": 91, "c": 100}


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "cannot be read"), ("{", "is not of the form"), ('{"a": {"k3": 1}}', "is not of the form")],
)
def test_a_file_of_models_that_cannot_be_used_is_told(tmp_path: Path, content: str | None, said: str) -> None:
    file = tmp_path / "models.json"
    if content is not None:
        file.write_text(content)
    with pytest.raises(ValueError, match=said):
        read_models({MODEL_FILE: str(file)})


def test_where_nobody_measures_all_score_0() -> None:
    cluster = make_cluster([machine("a"), machine("b")])
    assert scores(measured(Peaks, cluster, GivenLoad(), nodePowerModel=MODELS), cluster) == {"a": 0, "b": 0}


NODE = st.tuples(
    st.integers(0, 9000), st.one_of(st.none(), st.floats(0, 120)), st.floats(-50, 50), st.floats(-0.05, 0.05)
)


@given(st.lists(NODE, min_size=1, max_size=5), st.sampled_from(["Best", "Worst"]))
def test_scores_are_those_of_the_formula(nodes: list[Any], choice: str) -> None:
    cluster = make_cluster([machine(f"n{i}", each[0]) for i, each in enumerate(nodes)])
    models = {f"n{i}": {"k1": each[2], "k2": each[3]} for i, each in enumerate(nodes)}
    used = {f"n{i}": each[1] for i, each in enumerate(nodes) if each[1] is not None}
    plugin = measured(Peaks, cluster, load_of(cpu_avg=used), nodePowerModel=models, unknownNodes=choice)
    raw = raw_scores(plugin, POD, cluster)
    known: dict[str, int] = {}
    for i, (capacity, before, k1, k2) in enumerate(nodes):
        after = 0.0 if before is None or not capacity else 100 * (before / 100 * capacity + 400) / capacity
        if before is not None and after <= 100:
            expected = math.trunc(1e15 * k1 * (math.exp(k2 * after) - math.exp(k2 * before)))
            assert raw[f"n{i}"] == pytest.approx(expected, abs=1e15 * abs(k1) * 1e-12)  # exponentials, to 12 digits
            known[f"n{i}"] = raw[f"n{i}"]
        elif choice == "Best":
            known[f"n{i}"] = 0
    low, high = min(known.values(), default=0), max(known.values(), default=0)
    for name, score in scores(plugin, cluster).items():
        if name not in known or low == high == 0:
            assert score == 0
        elif low == high:
            assert score == 100
        else:
            assert score == 100 - math.trunc(100 * float(known[name] - low) / float(high - low))
