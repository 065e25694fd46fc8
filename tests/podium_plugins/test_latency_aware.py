"""LatencyAware: limits of pods, fresh and stale measurements, and P0."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from podium.load import GivenLoad, Series
from podium_plugins.latency_aware import (
    TOO_FAR,
    ConsolidationWeights,
    LatencyAwareArgs,
    consolidation,
    latency_merit,
    limits_of,
)
from tests.podium.engine.schedulers import World
from tools.kit.builders import make_node, make_pod

ARGS = {"prometheusAddress": "http://prometheus:9090"}


def world(latency: dict[str, float], *, age: float = 0.0, **args: Any) -> World:
    load = GivenLoad()
    found = World("LatencyAware", args={"LatencyAware": {**ARGS, **args}}, load=load)
    (series,) = load.followed
    assert isinstance(series, Series)
    load.set(series, latency, found.clock.now() - age)
    found.add(*(make_node(f"n{i}") for i in range(3)))
    return found


def limited(name: str, **annotations: str) -> Any:
    return make_pod(name, metadata={"annotations": annotations})


HARD = {"podium.dev/latency-hard": "100ms"}


@pytest.mark.parametrize(
    ("annotations", "soft", "hard"),
    [
        ({}, math.nan, math.nan),
        ({"podium.dev/latency-soft": "35ms", "podium.dev/latency-hard": "0.1s"}, 35.0, 100.0),
        ({"latencySoftConstraint": "35", "latencyHardConstraint": "100"}, 35.0, 100.0),
        ({"podium.dev/latency-hard": "50", "latencyHardConstraint": "100"}, math.nan, 50.0),
        ({"podium.dev/latency-soft": "500us"}, 0.5, math.nan),
        ({"podium.dev/latency-soft": "200ms", "podium.dev/latency-hard": "100ms"}, 100.0, 100.0),
    ],
)
def test_limits_are_read_from_both_kinds_of_annotations(annotations: dict[str, str], soft: float, hard: float) -> None:
    found = limits_of(annotations)
    np.testing.assert_equal((found.soft, found.hard, found.problem), (soft, hard, ""))


@pytest.mark.parametrize("text", ["soon", "-5", "0", "nan", "inf", "1e3", "5 m", "", "9" * 400])
def test_a_limit_that_cannot_be_read_does_not_count_and_is_said(text: str) -> None:
    found = limits_of({"podium.dev/latency-hard": text})
    assert math.isnan(found.hard)
    assert "podium.dev/latency-hard" in found.problem


def test_a_node_beyond_the_hard_limit_is_refused_with_a_reason() -> None:
    found = world({"n0": 150.0, "n1": 120.0, "n2": 90.0})
    found.attempt(limited("a", **HARD))
    assert found.bound == [("a", "n2")]
    found = world({"n0": 150.0, "n1": 120.0, "n2": 101.0})
    found.attempt(limited("a", **HARD))
    assert found.bound == []
    assert found.failures[0].message.startswith(f"0/3 nodes are available: 3 {TOO_FAR}")


def test_stale_and_missing_measurements_refuse_nobody() -> None:
    for latency, age in (({"n0": 500.0, "n1": 500.0, "n2": 500.0}, 61.0), ({}, 0.0), ({"n0": 500.0}, 0.0)):
        found = world(latency, age=age)
        found.attempt(limited("a", **HARD))
        assert len(found.bound) == 1
        if not age and latency:
            assert found.bound[0][1] != "n0"


def test_a_pod_without_limits_is_not_looked_at() -> None:
    found = world({"n0": 500.0, "n1": 1.0, "n2": 500.0})
    places = set()
    for i in range(3):
        found.attempt(make_pod(f"p{i}", requests={"cpu": "1"}))
        places.add(found.bound[-1][1])
    assert len(places) >= 1
    assert not found.failures


def test_a_near_node_is_preferred_and_an_unknown_one_is_in_between() -> None:
    limits = {"podium.dev/latency-soft": "10ms", "podium.dev/latency-hard": "100ms"}
    found = world({"n0": 90.0, "n1": 5.0, "n2": 95.0})
    found.attempt(limited("a", **limits))
    assert found.bound == [("a", "n1")]
    merit = latency_merit(np, np.array([5.0, 55.0, np.nan, 100.0, 200.0]), 10.0, 100.0)
    np.testing.assert_allclose(merit, [1.0, 0.5, 0.5, 0.0, 0.0])


def test_p0_is_what_it_says() -> None:
    """W = 3, E = {1, 2}: on node 0 a third node is opened; on node 1 the mean of 0.5 and 0.7 counts."""
    before, after = np.array([0.0, 0.4, 0.5]), np.array([0.1, 0.7, 0.8])
    found = consolidation(
        np, before, after, np.array([False, True, True]), np.ones(3, dtype=bool), np.zeros(3), ConsolidationWeights()
    )
    np.testing.assert_allclose(found, [(0 + (0.4 + 0.5 + 0.1) / 3) / 3, (1 / 3 + 0.6) / 3, (1 / 3 + 0.6) / 3])


def test_weights_are_taken_as_shares() -> None:
    weights = LatencyAwareArgs(nodes_weight=1.0, use_weight=1.0, latency_weight=2.0).weights
    assert weights == ConsolidationWeights(0.25, 0.25, 0.5)
