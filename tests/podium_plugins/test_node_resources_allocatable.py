from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.cluster import Cluster, Nodes
from podium.config.field import FieldPath
from podium.framework import Cycle
from podium_plugins.node_resources_allocatable import NodeResourcesAllocatable, NodeResourcesAllocatableArgs
from tests.podium.plugins.ask import raw_scores
from tests.podium.plugins.resource_worlds import ALLOCATABLE, GPU, divided
from tools.kit.builders import make_cluster, make_node, make_plugin, make_pod

SIZES = make_cluster(
    [
        make_node("a", cpu="4000m", memory="8Gi"),
        make_node("b", cpu="8000m", memory="16Gi"),
        make_node("c", cpu="6000m", memory="12Gi"),
    ]
)


def both(cluster: Cluster, **args: Any) -> tuple[dict[str, int], dict[str, int]]:
    """Raw and normalised scores by node."""
    plugin, pod = make_plugin(NodeResourcesAllocatable, cluster, **args), make_pod()
    raw = raw_scores(plugin, pod, cluster)
    nodes = Nodes(cluster, cluster.order.rows)
    normal = plugin.normalize(Cycle(pod, cluster), nodes, np.array(list(raw.values()), dtype=np.int64))
    return raw, dict(zip(raw, normal.tolist(), strict=True))


def test_the_example_of_the_specification() -> None:
    raw, scores = both(SIZES)
    assert raw == {"a": -12191, "b": -24383, "c": -18287}  # rounding down would give one less each
    assert scores == {"a": 100, "b": 0, "c": 50}


def test_most_prefers_large_nodes() -> None:
    assert both(SIZES, mode="Most")[1] == {"a": 0, "b": 100, "c": 50}


def test_nodes_of_equal_size_score_0() -> None:
    assert both(make_cluster([make_node("a"), make_node("b")]))[1] == {"a": 0, "b": 0}


def test_what_runs_on_a_node_does_not_matter() -> None:
    full = make_cluster([make_node("a"), make_node("b", cpu=8)], [make_pod(node="a", requests={"cpu": 4})])
    assert both(full)[1] == {"a": 100, "b": 0}


def test_a_name_that_is_no_resource_counts_0() -> None:
    assert both(SIZES, resources=[{"name": "bananas", "weight": 5}])[0] == {"a": 0, "b": 0, "c": 0}


def test_of_a_resource_that_is_listed_twice_the_last_weight_counts() -> None:
    twice = [{"name": "cpu", "weight": 5}, {"name": "memory", "weight": 1}, {"name": "cpu", "weight": 1 << 20}]
    assert both(SIZES, resources=twice) == both(SIZES)


def test_sums_beyond_64_bits_are_exact() -> None:
    offers = [{"memory": 2**62}, {"memory": 2**62 + 2**61}, {"memory": 2**61}]
    cluster = make_cluster([make_node(name, allocatable=offer) for name, offer in zip("abc", offers, strict=True)])
    raw, scores = both(cluster, mode="Most", resources=[{"name": "memory", "weight": 2**40}])
    assert list(raw.values()) == [offer["memory"] for offer in offers]
    assert scores == {"a": 50, "b": 100, "c": 0}


@given(
    st.lists(ALLOCATABLE, min_size=1, max_size=5),
    st.lists(st.tuples(st.sampled_from(["cpu", "memory", GPU, "x"]), st.integers(1, 2**30)), min_size=1, max_size=3),
    st.sampled_from(["Least", "Most"]),
)
def test_scores_are_those_of_the_formula(
    offers: list[dict[str, Any]], weights: list[tuple[str, int]], mode: str
) -> None:
    cluster = make_cluster([make_node(f"n{i}", allocatable=offer) for i, offer in enumerate(offers)])
    raw, scores = both(cluster, mode=mode, resources=[{"name": name, "weight": weight} for name, weight in weights])
    sign, last = 1 if mode == "Most" else -1, dict(weights)
    for row in cluster.order.rows.tolist():
        total = sum(sign * int(cluster.resources.allocatable_of(name)[row]) * weight for name, weight in last.items())
        assert raw[cluster.names[row]] == divided(total, sum(last.values()))
    low, high = min(raw.values()), max(raw.values())
    for name, each in raw.items():
        assert scores[name] == (0 if low == high else (each - low) * 100 // (high - low))


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({"mode": "Some"}, 'mode: Invalid value: "Some": invalid support ModeType; write Least or Most'),
        (
            {"resources": [{"name": "cpu", "weight": 0}]},
            "resources[0].weight: Invalid value: 0: resource weight of cpu should be a positive value, got :0",
        ),
        (
            {"resources": [{"name": "cpu", "weight": -2}]},
            "resources[0].weight: Invalid value: -2: resource weight of cpu",
        ),
    ],
)
def test_arguments_that_make_no_sense(args: dict[str, Any], said: str) -> None:
    errors = [str(error) for error in msgspec.convert(args, NodeResourcesAllocatableArgs).validate(FieldPath())]
    assert len(errors) == 1
    assert errors[0].startswith(said)


def test_defaults() -> None:
    args = NodeResourcesAllocatableArgs(resources=())
    assert args.mode == "Least"
    assert {each.name: each.weight for each in args.resources} == {"cpu": 1048576, "memory": 1}
    assert not list(args.validate(FieldPath()))
