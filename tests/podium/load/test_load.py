"""Readings: what a plugin sees of measured load, and when it must look again."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from podium.cluster import Cluster
from podium.load.readings import GenerationCounter, GivenLoad, Readings, follow
from podium.load.series import Series
from podium.load.settings import BasicAuth, Header, SourceSettings
from tools.kit.builders import make_handle, make_node

CPU = Series(source=SourceSettings(kind="load-watcher", address="http://watcher:2020"), query="CPU/AVG")


def cluster_of(*names: str) -> Cluster:
    cluster = Cluster()
    for name in names:
        cluster.set_node(make_node(name))
    return cluster


def readings_of(values: dict[str, float], measured_at: float = 10.0) -> Readings:
    readings = Readings()
    readings.write(values, measured_at)
    return readings


def test_equal_series_have_one_reading() -> None:
    load = GivenLoad()
    again = Series(source=SourceSettings(kind="load-watcher", address="http://watcher:2020"), query="CPU/AVG")
    assert load.follow(CPU) is load.follow(again)
    other = Series(source=CPU.source, query="CPU/STD")
    assert load.follow(CPU) is not load.follow(other)


def test_without_a_source_readings_stay_empty() -> None:
    readings = follow(make_handle(Cluster()), CPU)
    assert (readings.of("a"), readings.generation, readings.measured_at) == (None, 0, 0.0)


def test_news_of_several_readings_are_counted() -> None:
    load, generation, others = GivenLoad(), GenerationCounter(), GenerationCounter()
    handle = make_handle(Cluster())
    handle.load = load
    cpu, memory = (
        follow(handle, Series(source=CPU.source, query=query), generation) for query in ("CPU/AVG", "Memory/AVG")
    )
    follow(handle, CPU, others)
    cpu.write({"a": 1.0}, 10.0)
    cpu.write({"a": 1.0}, 10.0)  # nothing new
    memory.write({"a": 2.0}, 10.0)
    assert (generation.count, others.count) == (2, 1)
    cpu.give_up(older_than=20.0)
    assert (generation.count, others.count) == (3, 2)


def test_a_column_has_a_value_for_each_known_node_and_nan_elsewhere() -> None:
    column = readings_of({"a": 1.5, "gone": 9.0}).column(cluster_of("a", "b"))
    assert column[0] == 1.5
    assert math.isnan(column[1])


def test_a_column_is_kept_until_values_or_nodes_change() -> None:
    cluster, readings = cluster_of("a", "b"), readings_of({"a": 1.0, "c": 3.0})
    first = readings.column(cluster)
    assert readings.column(cluster) is first
    readings.write({"a": 2.0, "c": 3.0}, 20.0)
    assert readings.column(cluster)[0] == 2.0
    cluster.remove_node("b")
    cluster.set_node(make_node("c"))
    assert readings.column(cluster)[cluster.row_of["c"]] == 3.0
    cluster.set_node(make_node("d"))
    assert len(readings.column(cluster)) == 3
    assert first[0] == 1.0


@given(
    st.lists(st.tuples(st.sampled_from("abcdef"), st.booleans(), st.booleans())),
    st.dictionaries(st.sampled_from("abcdef"), st.floats(allow_nan=False, allow_infinity=False)),
)
def test_a_column_brought_up_to_date_is_as_one_made_afresh(
    changes: list[tuple[str, bool, bool]], values: dict[str, float]
) -> None:
    cluster, readings = Cluster(), readings_of(values)
    for name, comes, looks in changes:
        if comes:
            cluster.set_node(make_node(name))
        elif name in cluster.row_of:
            cluster.remove_node(name)
        if looks:
            fresh = [values.get(each, math.nan) if each else math.nan for each in cluster.names]
            np.testing.assert_array_equal(readings.column(cluster), np.array(fresh))


def test_another_cluster_has_a_column_of_its_own() -> None:
    readings = readings_of({"a": 1.0, "b": 2.0})
    assert readings.column(cluster_of("a", "b")).tolist() == [1.0, 2.0]
    assert readings.column(cluster_of("b", "a")).tolist() == [2.0, 1.0]


def test_the_generation_moves_only_with_news() -> None:
    readings = readings_of({"a": 1.0})
    assert readings.generation == 1
    readings.write({"a": 1.0}, 10.0)
    assert readings.generation == 1
    readings.write({"a": 1.0}, 11.0)
    assert readings.generation == 2


def test_what_is_no_finite_number_is_left_out() -> None:
    readings = readings_of({"a": math.nan, "b": math.inf, "c": -math.inf, "d": 0.0})
    assert readings.values == {"d": 0.0}


def test_values_that_are_too_old_are_given_up_node_by_node() -> None:
    readings = Readings()
    readings.write({"a": 1.0, "b": 2.0}, 100.0, {"b": 50.0})
    readings.give_up(50.0)
    assert readings.generation == 1
    readings.give_up(60.0)
    assert (readings.values, readings.times, readings.generation) == ({"a": 1.0}, {}, 2)
    readings.give_up(101.0)
    assert (readings.values, readings.generation) == ({}, 3)
    readings.give_up(200.0)
    assert readings.generation == 3


def test_secrets_are_not_shown() -> None:
    source = SourceSettings(
        address="http://x", token="t0p", basic_auth=BasicAuth("me", "t0p"), headers=(Header("X-Key", "t0p"),)
    )
    series = Series(source=source, query="up")
    assert "t0p" not in f"{source} {source!r} {series} {series!r} {source.basic_auth!r} {source.headers!r}"
