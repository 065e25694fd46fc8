"""Costs between regions and zones follow from latencies measured between nodes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.controllers.controller import ReconcileResult
from podium.framework import ManualClock
from podium.kube import Node, Pod
from podium.kube.json_object import JsonObject
from podium_plugins.controllers.network_topology import (
    REGION,
    SEGMENT,
    ZONE,
    CostGraph,
    NetworkTopologyController,
    read_measurements,
)
from tools.kit.builders import build

NOW = 1_700_000_000.0
TIME = "2023-11-14T22:13:20Z"
PLACES = {"n1": ("west", "z1"), "n2": ("west", "z1"), "n3": ("west", "z2"), "n4": ("east", "z3"), "n5": ("north", "z4")}


def key(origin: str, destination: str) -> str:
    return f"netperf.p90.latency.milliseconds.origin.{origin}.destination.{destination}"


def node(name: str, region: str, zone: str, segment: str = "") -> Node:
    labels = {REGION: region, ZONE: zone, SEGMENT: segment}
    return build(Node, {"metadata": {"name": name, "labels": {key: value for key, value in labels.items() if value}}})


NODES = [node(name, *place) for name, place in PLACES.items()]
HAND = {
    "name": "UserDefined",
    "topologyList": [
        {
            "topologyKey": ZONE,
            "originList": [
                {
                    "origin": "z1",
                    "costList": [
                        {"destination": "z2", "networkCost": 5, "bandwidthCapacity": "10Gi", "isAllowed": True}
                    ],
                }
            ],
        }
    ],
}


def topology(status: JsonObject | None = None, weights: Any = (HAND,)) -> JsonObject:
    spec = {"configmapName": "netperf", "weights": list(weights)}
    return {"metadata": {"name": "nt", "namespace": "default"}, "spec": spec, "status": status or {}}


def reconcile(
    item: JsonObject, data: dict[str, str] | None, nodes: Any = NODES, at: float = NOW, **related: Any
) -> ReconcileResult:
    maps = [] if data is None else [{"data": data}]
    given = {"nodes": nodes, "pods": (), "appgroups": (), "configmaps": maps, **related}
    return NetworkTopologyController(ManualClock(at)).reconcile(item, given)


def costs(result: ReconcileResult, label: str) -> dict[tuple[str, str], int]:
    return {pair: cost["networkCost"] for pair, cost in entries(result, label).items()}


def entries(result: ReconcileResult, label: str) -> dict[tuple[str, str], JsonObject]:
    assert result.spec is not None
    [computed] = [each for each in result.spec["weights"] if each["name"] == "NetperfCosts"]
    return {
        (origin["origin"], cost["destination"]): cost
        for each in computed["topologyList"]
        if each["topologyKey"] == label
        for origin in each["originList"]
        for cost in origin["costList"]
    }


MEASURED = {key("n1", "n3"): "6", key("n1", "n4"): "20", key("n4", "n5"): "15"}


def test_costs_are_shortest_paths_in_both_directions() -> None:
    result = reconcile(topology(), MEASURED)
    assert costs(result, REGION) == {
        ("west", "east"): 20, ("east", "west"): 20, ("east", "north"): 15, ("north", "east"): 15,
        ("west", "north"): 35, ("north", "west"): 35,
    }  # fmt: skip
    assert costs(result, ZONE) == {("z1", "z2"): 6, ("z2", "z1"): 6}  # z3 and z4 are alone in their regions
    assert result.status == {"nodeCount": 5, "weightCalculationTime": TIME}
    assert result.due == 300


def test_lists_are_sorted_as_the_scheduler_looks_them_up() -> None:
    result = reconcile(topology(), MEASURED)
    assert result.spec is not None
    by_hand, computed = result.spec["weights"]
    assert (by_hand, computed["name"]) == (HAND, "NetperfCosts")
    assert [each["topologyKey"] for each in computed["topologyList"]] == [REGION, ZONE]
    for each in computed["topologyList"]:
        assert each["originList"] == sorted(each["originList"], key=lambda origin: origin["origin"])
        for origin in each["originList"]:
            assert origin["costList"] == sorted(origin["costList"], key=lambda cost: cost["destination"])


def test_a_further_measurement_counts_as_the_mean_rounded_down() -> None:
    measured = {key("n1", "n3"): "6", key("n2", "n3"): "3"}
    assert costs(reconcile(topology(), measured), ZONE) == {("z1", "z2"): 4, ("z2", "z1"): 4}


def test_bandwidth_and_permission_are_those_written_by_hand() -> None:
    found = entries(reconcile(topology(), MEASURED), ZONE)
    by_hand = {"destination": "z2", "isAllowed": True, "bandwidthCapacity": "10Gi"}
    assert found["z1", "z2"] == {**by_hand, "networkCost": 6, "bandwidthAllocated": "0"}
    assert (found["z2", "z1"]["isAllowed"], found["z2", "z1"]["bandwidthCapacity"]) == (False, "1G")


def test_segments_have_costs_where_nodes_have_segments() -> None:
    nodes = [node("n1", "west", "z1", "s1"), node("n3", "west", "z2", "s2")]
    assert costs(reconcile(topology(), MEASURED, nodes), SEGMENT) == {("s1", "s2"): 6, ("s2", "s1"): 6}


def test_costs_are_computed_every_five_minutes_and_the_nodes_counted_at_once() -> None:
    status = {"nodeCount": 5, "weightCalculationTime": TIME}
    assert reconcile(topology(status), None, at=NOW + 100) == ReconcileResult(due=200)
    assert reconcile(topology(status), None, NODES[:2], at=NOW + 100) == ReconcileResult(
        status={"nodeCount": 2}, due=200
    )
    assert reconcile(topology(status), MEASURED, at=NOW + 300).spec is not None


def test_weights_of_people_stay_whatever_their_name() -> None:
    other = {"name": "Seasonal", "topologyList": []}
    result = reconcile(topology(weights=[other, {"name": "NetperfCosts", "topologyList": []}]), MEASURED)
    assert result.spec is not None
    assert [each["name"] for each in result.spec["weights"]] == ["UserDefined", "Seasonal", "NetperfCosts"]


def test_costs_that_are_right_already_are_not_written() -> None:
    spec = reconcile(topology(), MEASURED).spec
    assert spec is not None
    assert reconcile(topology(weights=spec["weights"]), MEASURED).spec is None


def test_a_missing_config_map_is_reported_and_looked_for_again() -> None:
    result = reconcile(topology(), None)
    assert (result.status, result.spec, result.due) == ({"nodeCount": 5}, None, 30)
    assert result.problem is not None
    assert result.problem.reason == "ConfigMapMissing"


@pytest.mark.parametrize("value", ["", "fast", "-5", "1.5", "٣", "9" * 30])
def test_a_latency_that_is_no_number_counts_as_0_and_is_reported(value: str) -> None:
    result = reconcile(topology(), {key("n1", "n4"): value})
    assert costs(result, REGION)["west", "east"] == 0
    assert result.problem is not None
    assert key("n1", "n4") in result.problem.note


def test_names_of_nodes_may_have_dots_and_the_words_of_the_key() -> None:
    names = ["a.destination.b", "c.d"]
    data = {key("a.destination.b", "c.d"): "7", key("gone", "c.d"): "1", "note": "by netperf"}
    assert read_measurements(data, names) == ({("a.destination.b", "c.d"): 7}, [])


def test_a_path_over_other_labels_may_be_the_shortest() -> None:
    graph = CostGraph("abcd")
    for origin, destination, cost in (("a", "b", 10), ("b", "c", 5), ("a", "c", 50)):
        graph.measure(origin, destination, cost)
    assert graph.paths("a") == {"a": 0, "b": 10, "c": 15}


def test_a_measurement_between_labels_with_a_path_counts_as_the_mean_of_both() -> None:
    graph = CostGraph("abc")
    for origin, destination, cost in (("a", "c", 50), ("a", "b", 10), ("b", "c", 5)):
        graph.measure(origin, destination, cost)
    assert graph.paths("b")["c"] == (60 + 5) // 2


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from("abcdef"), st.integers(0, 99)), max_size=20))
def test_paths_are_as_short_as_links_allow(measured: list[tuple[str, str, int]]) -> None:
    graph, links = CostGraph("abcdef"), dict[tuple[str, str], int]()

    def shortest(origin: str, destination: str) -> int | None:
        """By trying every step again until nothing gets shorter."""
        found = {origin: 0}
        for _ in "abcdef":
            for (here, there), cost in links.items():
                if here in found:
                    found[there] = min(found.get(there, 10**9), found[here] + cost)
        return found.get(destination)

    for origin, destination, cost in measured:
        if origin == destination:
            continue
        known = shortest(origin, destination)
        link = cost if known is None else (known + cost) // 2
        graph.measure(origin, destination, cost)
        for pair in ((origin, destination), (destination, origin)):
            links[pair] = min(link, links.get(pair, link))
    for origin in "abcdef":
        expected = {label: shortest(origin, label) for label in "abcdef"}
        assert graph.paths(origin) == {label: cost for label, cost in expected.items() if cost is not None}


def test_a_label_with_more_values_than_an_object_can_hold_has_no_costs_and_is_reported() -> None:
    nodes = [node(f"n{number}", f"r{number}", "z") for number in range(101)]
    data = {key("n0", f"n{number}"): "1" for number in range(1, 101)}
    result = reconcile(topology(), data, nodes)
    assert result.problem is not None
    assert "no costs are computed for topology.kubernetes.io/region" in result.problem.note
    assert entries(result, REGION) == {}


GROUP: JsonObject = {
    "metadata": {"name": "shop", "namespace": "default"},
    "spec": {
        "workloads": [
            {
                "workload": {"kind": "Deployment", "name": "web", "selector": "web"},
                "dependencies": [
                    {"workload": {"kind": "Deployment", "name": "db", "selector": "db"}, "minBandwidth": "100Mi"}
                ],
            }
        ]
    },
}


def member(name: str, selector: str, on: str, phase: str = "Running") -> Pod:
    labels = {"appgroup.diktyo.x-k8s.io": "shop", "appgroup.diktyo.x-k8s.io.workload": selector}
    metadata = {"name": name, "namespace": "default", "labels": labels}
    return build(Pod, {"metadata": metadata, "spec": {"nodeName": on}, "status": {"phase": phase}})


def test_pods_that_depend_on_others_use_bandwidth_between_zones_and_regions() -> None:
    pods = [
        *(member("web-1", "web", "n1"), member("web-2", "web", "n2")),
        *(member("db-1", "db", "n3"), member("db-2", "db", "n4"), member("db-3", "db", "n1")),
        *(member("db-4", "db", "n3", "Succeeded"), member("db-5", "db", "")),
    ]
    broken = {"metadata": {"name": "shop2", "namespace": "default"}, "spec": {"workloads": 7}}
    result = reconcile(topology(), MEASURED, pods=pods, appgroups=[broken, GROUP])
    assert entries(result, ZONE)["z1", "z2"]["bandwidthAllocated"] == "200Mi"
    assert entries(result, ZONE)["z2", "z1"]["bandwidthAllocated"] == "0"
    assert entries(result, REGION)["west", "east"]["bandwidthAllocated"] == "200Mi"
