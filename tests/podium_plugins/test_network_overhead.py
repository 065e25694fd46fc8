"""NetworkOverhead: which nodes are too far, what the others cost, and what bad objects do."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.cluster import Cluster, Nodes
from podium.config.field import FieldPath
from podium.framework import SKIP, Code, Cycle, Handle
from podium.framework.object_problems import ObjectProblems
from podium.kube import Node, Pod
from podium_plugins.network_overhead import NetworkOverhead, plugin
from podium_plugins.network_overhead.network_topology import NetworkOverheadArgs
from tests.podium.engine.schedulers import World
from tests.podium.plugins.ask import hint_of, raw_scores, refusals, refused
from tests.together.network_worlds import (
    PLACES,
    REGIONS,
    ZONES,
    example_nodes,
    located,
    make_app_group,
    make_topology,
    of_workload,
    set_app_group,
    set_topology,
)
from tools.kit.builders import make_cluster, make_handle, make_pod

NEAR = make_app_group({"p1": [("p2", 15)], "p2": []})


def example(*placed: Pod, nodes: list[Node] | None = None, group: Any = NEAR, topology: Any = None) -> Cluster:
    cluster = make_cluster(example_nodes() if nodes is None else nodes, placed)
    set_app_group(cluster, group)
    set_topology(cluster, make_topology() if topology is None else topology)
    return cluster


def plugin_of(cluster: Cluster, reports: list[str] | None = None, **args: Any) -> NetworkOverhead:
    handle: Handle = make_handle(cluster)
    if reports is not None:
        handle.report = reports.append
        handle.problems = ObjectProblems(reports.append)
    return NetworkOverhead(msgspec.convert(args, NetworkOverheadArgs), handle)


def normalised(plugin: NetworkOverhead, cluster: Cluster, raw: list[int]) -> list[int]:
    nodes, scores = Nodes(cluster, cluster.order.rows), np.array(raw, dtype=np.int64)
    found: list[int] = plugin.normalize(Cycle(make_pod(), cluster), nodes, scores).tolist()
    return found


def is_neutral(plugin: NetworkOverhead, pod: Pod, cluster: Cluster) -> bool:
    cycle = Cycle(pod, cluster)
    return plugin.pre_filter(cycle) is SKIP and plugin.pre_score(cycle, Nodes(cluster)) is SKIP


def test_the_example_of_the_specification() -> None:
    cluster = example(of_workload("peer", "p2", node="N1"))
    plugin, pod = plugin_of(cluster), of_workload("new", "p1")
    found = refused(refusals(plugin, pod, cluster))  # both forms, on every choice of rows
    assert found == {
        name: (
            Code.UNSCHEDULABLE,
            (
                f"Node {name} does not meet several network requirements from Workload dependencies: "
                "Satisfied: 0 Violated: 1",
            ),
        )
        for name in ("N5", "N6", "N7", "N8")
    }
    raw = raw_scores(plugin, pod, cluster)
    assert [raw[name] for name in PLACES] == [0, 1, 5, 5, 20, 20, 20, 20]
    assert normalised(plugin, cluster, [raw[name] for name in ("N1", "N2", "N3", "N4")]) == [100, 80, 0, 0]


@pytest.mark.parametrize(
    ("raw", "expected"),
    [([0, 0], [0, 0]), ([7, 7], [100, 100]), ([7], [100]), ([], []), ([0, 3], [100, 0]), ([1, 2, 4], [100, 67, 0])],
)
def test_costs_become_scores(raw: list[int], expected: list[int]) -> None:
    cluster = example()
    assert normalised(plugin_of(cluster), cluster, raw) == expected


NEUTRAL: list[tuple[str, Cluster, Pod]] = [
    ("no AppGroup named", example(of_workload("a", "p2", node="N1")), make_pod("new")),
    ("a workload that depends on nothing", example(of_workload("a", "p2", node="N1")), of_workload("new", "p2")),
    ("a workload that is not listed", example(of_workload("a", "p2", node="N1")), of_workload("new", "p9")),
    ("no pods of the group", example(), of_workload("new", "p1")),
    ("none that it depends on", example(of_workload("a", "p1", node="N1")), of_workload("new", "p1")),
    (
        "pods of another group",
        example(of_workload("a", "p2", node="N1", group="other")),
        of_workload("new", "p1"),
    ),
    ("its peer on a node that is gone", example(of_workload("a", "p2", node="gone")), of_workload("new", "p1")),
]


@pytest.mark.parametrize(("cluster", "pod"), [case[1:] for case in NEUTRAL], ids=[case[0] for case in NEUTRAL])
def test_where_nothing_is_to_be_near_every_node_will_do(cluster: Cluster, pod: Pod) -> None:
    assert is_neutral(plugin_of(cluster), pod, cluster)


def test_pods_of_any_namespace_count() -> None:
    cluster = example(of_workload("peer", "p2", node="N1", namespace="elsewhere"))
    assert raw_scores(plugin_of(cluster), of_workload("new", "p1", namespace="here"), cluster)["N3"] == 5


def test_a_tie_passes() -> None:
    cluster = example(of_workload("a", "p2", node="N1"), of_workload("b", "p2", node="N5"))
    assert refused(refusals(plugin_of(cluster), of_workload("new", "p1"), cluster)) == {}


# Bad and missing objects


def test_a_missing_app_group_is_reported_once_and_its_pods_go_anywhere() -> None:
    reports: list[str] = []
    cluster = example(of_workload("a", "p2", node="N1", group="lost"))
    plugin = plugin_of(cluster, reports)
    for _ in range(2):
        assert is_neutral(plugin, of_workload("new", "p1", group="lost"), cluster)
    assert reports == ["AppGroup lost: not found in default; its pods are placed as if they named none"]


def test_a_missing_network_topology_is_reported_once_and_pods_go_anywhere() -> None:
    reports: list[str] = []
    cluster = example(of_workload("a", "p2", node="N1"))
    plugin = plugin_of(cluster, reports, networkTopologyName="nt-other", namespaces=["a", "b"])
    set_app_group(cluster, NEAR)
    cluster.objects.custom_store("appgroups.appgroup.diktyo.x-k8s.io").set("b/app", NEAR)
    for _ in range(2):
        assert is_neutral(plugin, of_workload("new", "p1"), cluster)
    assert reports == [
        "NetworkTopology nt-other: not found in a, b, or not readable; pods of AppGroups are placed whatever the "
        "network costs"
    ]


def test_the_first_namespace_that_has_an_object_counts() -> None:
    cluster = example(of_workload("a", "p2", node="N1"))
    cluster.objects.custom_store("networktopologies.networktopology.diktyo.x-k8s.io").set(
        "other/nt-default", make_topology({}, {("z2", "z1"): 9})
    )
    plugin = plugin_of(cluster, namespaces=["other", "default"])
    assert raw_scores(plugin, of_workload("new", "p1"), cluster)["N3"] == 9


def test_a_negative_cost_does_not_count_and_is_reported() -> None:
    reports: list[str] = []
    bad = make_topology(zones={("z2", "z1"): -5}, regions={("E", "W"): 10**10})
    cluster = example(of_workload("a", "p2", node="N1"), topology=bad)
    plugin = plugin_of(cluster, reports)
    raw = raw_scores(plugin, of_workload("new", "p1"), cluster)
    assert (raw["N3"], raw["N5"]) == (100, 100)
    assert refused(refusals(plugin, of_workload("new", "p1"), cluster)) == {}
    assert reports == [
        "NetworkTopology default/nt-default: the cost from E to W is 10000000000 and does not count, write a number "
        "from 0 to 1000000000; also: the cost from z2 to z1 is -5 and does not count, write a number from 0 to "
        "1000000000"
    ]


def test_of_many_bad_costs_a_few_are_said() -> None:
    reports: list[str] = []
    plugin_of(example(topology=make_topology({(f"r{each}", "W"): -1 for each in range(20)}, {})), reports)
    assert reports[0].endswith("; and 17 more")
    assert reports[0].count("does not count") == 3


@pytest.mark.parametrize(
    "spec",
    [
        {"weights": 5},
        {"weights": [{"name": "UserDefined", "topologyList": [{"originList": []}]}]},
        {"weights": [{"topologyList": []}]},
        [],
    ],
)
def test_a_network_topology_that_cannot_be_read_counts_as_not_there(spec: Any) -> None:
    reports: list[str] = []
    cluster = example(of_workload("a", "p2", node="N1"), topology={**make_topology(), "spec": spec})
    plugin = plugin_of(cluster, reports)
    if spec:
        assert is_neutral(plugin, of_workload("new", "p1"), cluster)
        assert reports[0].startswith("NetworkTopology default/nt-default: spec: ")
    set_topology(cluster, make_topology())
    assert not is_neutral(plugin, of_workload("new", "p1"), cluster)


def test_weights_that_are_not_there_leave_every_cost_unknown() -> None:
    reports: list[str] = []
    cluster = example(of_workload("a", "p2", node="N1"))
    raw = raw_scores(plugin_of(cluster, reports, weightsName="NetperfCosts"), of_workload("new", "p1"), cluster)
    assert [raw[name] for name in PLACES] == [0, 1, 100, 100, 100, 100, 100, 100]
    assert reports == [
        "NetworkTopology default/nt-default: it has no weights named NetperfCosts, so that no cost is known; it has "
        "UserDefined"
    ]


def test_measured_weights_count_where_they_are_asked_for() -> None:
    topology = make_topology()
    measured = make_topology({("E", "W"): 3}, {("z2", "z1"): 2}, weights="NetperfCosts")
    topology["spec"]["weights"] += measured["spec"]["weights"]
    cluster = example(of_workload("a", "p2", node="N1"), topology=topology)
    raw = raw_scores(plugin_of(cluster, weightsName="NetperfCosts"), of_workload("new", "p1"), cluster)
    assert [raw[name] for name in PLACES] == [0, 1, 2, 2, 3, 3, 3, 3]


@pytest.mark.parametrize(
    ("group", "problem"),
    [
        (
            make_app_group({"p1": [("p2", -1)]}),
            "p1 depends on p2 with maxNetworkCost -1; the dependency does not count, write a number from 0 to 10000",
        ),
        (
            make_app_group({"p1": [("p2", 10_001)]}),
            "p1 depends on p2 with maxNetworkCost 10001; the dependency does not count, write a number from 0 to 10000",
        ),
        (
            {"metadata": {"name": "app"}, "spec": {"workloads": "p1"}},
            "spec: Expected `array`, got `str` - at `$.workloads`; it counts as one without dependencies until that "
            "is put right",
        ),
    ],
)
def test_an_app_group_that_is_wrong_is_reported_and_its_pods_go_anywhere(group: Any, problem: str) -> None:
    reports: list[str] = []
    cluster = example(of_workload("a", "p2", node="N1"), group=group)
    assert is_neutral(plugin_of(cluster, reports), of_workload("new", "p1"), cluster)
    assert reports == [f"AppGroup default/app: {problem}"]


def test_a_cycle_of_dependencies_is_no_problem_here() -> None:
    group = make_app_group({"p1": [("p2", 15)], "p2": [("p1", 15)]})
    cluster = example(of_workload("a", "p2", node="N1"), of_workload("b", "p1", node="N2"), group=group)
    plugin = plugin_of(cluster)
    assert raw_scores(plugin, of_workload("new", "p1"), cluster)["N2"] == 1
    assert raw_scores(plugin, of_workload("new", "p2"), cluster)["N2"] == 0


# The answer key, dry runs, events


def test_the_answer_key_moves_with_the_peers_and_with_no_other_pod() -> None:
    cluster = example(of_workload("a", "p2", node="N1"))
    plugin, pod = plugin_of(cluster), of_workload("new", "p1")
    assert plugin.answer_key(make_pod()) == ()
    seen = [plugin.answer_key(pod)]
    cluster.set_pod(of_workload("b", "p1", node="N1"))
    cluster.set_pod(make_pod("c", node="N1"))
    set_app_group(cluster, {**NEAR, "status": {"runningWorkloads": 2}})
    assert plugin.answer_key(pod) == seen[0]
    cluster.set_pod(of_workload("d", "p2", node="N2"))
    seen.append(plugin.answer_key(pod))
    cluster.set_node(located("N1", "W", "z2"))
    seen.append(plugin.answer_key(pod))
    set_topology(cluster, make_topology(zones={}))
    seen.append(plugin.answer_key(pod))
    set_app_group(cluster, make_app_group({"p1": [("p2", 1)]}))
    seen.append(plugin.answer_key(pod))
    assert len(set(seen)) == len(seen)


def test_a_node_is_not_emptied_of_the_peers_that_make_it_near_enough() -> None:
    """Its peer on the node outweighs one that is too far; evicted, it would not."""
    nodes = [located("N1", "W", "z1", cpu=2), located("N5", "E", "z3", cpu=2)]
    near = of_workload("near", "p2", node="N1", requests={"cpu": 2})
    far = of_workload("far", "p2", node="N5", requests={"cpu": 2}, priority=1000)
    for peers, evicted in (([near, far], []), ([near], ["near"])):
        world = World("NodeResourcesFit", "NetworkOverhead", "DefaultPreemption", nodes=nodes)
        set_app_group(world.cluster, NEAR)
        set_topology(world.cluster, make_topology())
        world.add(*peers)
        world.attempt(of_workload("new", "p1", requests={"cpu": 2}, priority=10))
        assert world.evicted == evicted


def test_a_peer_that_is_evicted_is_not_missed_elsewhere() -> None:
    cluster = example(of_workload("a", "p2", node="N1"))
    plugin, cycle = plugin_of(cluster), Cycle(of_workload("new", "p1"), cluster)
    plugin.pre_filter(cycle)
    dry = cycle.clone()
    placed = cluster.pods["default-a"]
    plugin.remove_pod(dry, placed)
    assert dry.data["NetworkOverhead"].moved == {placed.row: -1}
    plugin.add_pod(dry, placed)
    assert dry.data["NetworkOverhead"].moved == {placed.row: 0}
    assert cycle.data["NetworkOverhead"].moved == {}


def test_a_pod_that_is_too_far_is_woken_by_what_may_help() -> None:
    plugin = plugin_of(example())
    pod, mate, other = of_workload("new", "p1"), of_workload("a", "p2", node="N3"), make_pod("b", node="N1")
    assert hint_of(plugin, "AssignedPod")(pod, None, mate)
    assert hint_of(plugin, "AssignedPod")(pod, mate, None)
    assert not hint_of(plugin, "AssignedPod")(pod, None, other)
    changed = hint_of(plugin, "appgroups.appgroup.diktyo.x-k8s.io")
    assert not changed(pod, NEAR, {**NEAR, "status": {"runningWorkloads": 3}})
    assert changed(pod, NEAR, {**NEAR, "spec": {}})
    assert changed(pod, None, NEAR)


def test_a_pod_that_is_too_far_goes_when_its_peer_comes_nearer() -> None:
    world = World("NodeResourcesFit", "NetworkOverhead", nodes=[located("N5", "E", "z3")])
    set_app_group(world.cluster, NEAR)
    set_topology(world.cluster, make_topology())
    world.add(located("N1", "W", "z1", cpu=0), of_workload("a", "p2", node="N1"))
    world.attempt(of_workload("new", "p1", requests={"cpu": 1}))
    assert "1 Node N5 does not meet several network requirements" in world.message
    world.add(of_workload("b", "p2", node="N5"))
    world.pass_time(20)
    world.try_next()
    assert world.bound == [("new", "N5")]


@pytest.mark.parametrize(
    ("given_args", "errors"),
    [
        ({}, []),
        ({"namespaces": [], "weightsName": "", "networkTopologyName": ""}, []),
        (
            {"namespaces": ["a", ""]},
            ["namespaces[1]: Required value: name a namespace in which AppGroups and the NetworkTopology are"],
        ),
    ],
)
def test_arguments(given_args: dict[str, Any], errors: list[str]) -> None:
    args = msgspec.convert(given_args, NetworkOverheadArgs)
    assert [str(error) for error in args.validate(FieldPath())] == errors
    if not errors:
        assert args == NetworkOverheadArgs(
            namespaces=("default",), weights_name="UserDefined", network_topology_name="nt-default"
        )


# Against the formula, pod by pod

REGION_NAMES = st.sampled_from(["", "W", "E"])
ZONE_NAMES = st.sampled_from(["", "z1", "z2", "z3"])
COSTS = st.integers(0, 30)


@settings(deadline=None)
@given(
    st.lists(st.tuples(REGION_NAMES, ZONE_NAMES), min_size=1, max_size=6),
    st.dictionaries(st.tuples(REGION_NAMES, REGION_NAMES), COSTS, max_size=5),
    st.dictionaries(st.tuples(ZONE_NAMES, ZONE_NAMES), COSTS, max_size=6),
    st.lists(st.tuples(st.sampled_from(["p2", "p3"]), st.integers(0, 25)), max_size=3),
    st.lists(st.tuples(st.integers(0, 5), st.sampled_from(["p1", "p2", "p3"])), max_size=8),
    st.sampled_from([2, 256]),
)
def test_both_forms_give_what_the_table_says(
    places: list[tuple[str, str]],
    regions: dict[tuple[str, str], int],
    zones: dict[tuple[str, str], int],
    needs: list[tuple[str, int]],
    pods: list[tuple[int, str]],
    few_locations: int,
) -> None:
    with patch.object(plugin, "FEW_LOCATIONS", few_locations):
        compare(places, regions, zones, needs, pods)


def compare(
    places: list[tuple[str, str]],
    regions: dict[tuple[str, str], int],
    zones: dict[tuple[str, str], int],
    needs: list[tuple[str, int]],
    pods: list[tuple[int, str]],
) -> None:
    nodes = [located(f"n{number}", *place) for number, place in enumerate(places)]
    placed = [(host % len(nodes), selector) for host, selector in pods]
    peers = [of_workload(f"q{i}", selector, node=f"n{host}") for i, (host, selector) in enumerate(placed)]
    cluster = example(*peers, nodes=nodes, group=make_app_group({"p1": needs}), topology=make_topology(regions, zones))
    plugin, pod = plugin_of(cluster), of_workload("new", "p1")
    expected = [slow_sums(number, places, regions, zones, needs, placed) for number in range(len(nodes))]
    if not any(need == selector for need, _ in needs for _, selector in placed):
        assert is_neutral(plugin, pod, cluster)
        return
    found = refused(refusals(plugin, pod, cluster))
    assert {name: reasons[0].partition("Satisfied: ")[2] for name, (_, reasons) in found.items()} == {
        f"n{number}": f"{satisfied} Violated: {violated}"
        for number, (satisfied, violated, _) in enumerate(expected)
        if violated > satisfied
    }
    assert raw_scores(plugin, pod, cluster) == {f"n{number}": cost for number, (_, _, cost) in enumerate(expected)}


def slow_sums(
    number: int,
    places: list[tuple[str, str]],
    regions: dict[tuple[str, str], int],
    zones: dict[tuple[str, str], int],
    needs: list[tuple[str, int]],
    placed: list[tuple[int, str]],
) -> tuple[int, int, int]:
    """(satisfied, violated, cost) of a node: the table of the specification, line by line."""
    region, zone = places[number]
    satisfied = violated = total = 0
    for host, selector in placed:
        for need, most in needs:
            if need != selector:
                continue
            its_region, its_zone = places[host]
            if host == number:
                satisfied += 1
            elif not its_region and not its_zone:
                violated, total = violated + 1, total + 100
            elif (region, zone) == (its_region, its_zone):
                satisfied, total = satisfied + 1, total + 1
            else:
                same = region == its_region
                origin = zone if same else region
                pair = (origin, its_zone if same else its_region)
                cost = (zones if same else regions).get(pair) if origin else None
                total += 100 if cost is None else cost
                if cost is not None:
                    satisfied += cost <= most
                    violated += cost > most
    return satisfied, violated, total


def test_the_example_of_the_specification_by_the_slow_way() -> None:
    numbers = {name: number for number, name in enumerate(PLACES)}
    sums = [
        slow_sums(numbers[name], list(PLACES.values()), REGIONS, ZONES, [("p2", 15)], [(0, "p2")]) for name in PLACES
    ]
    assert sums == [(1, 0, 0), (1, 0, 1), (1, 0, 5), (1, 0, 5), *[(0, 1, 20)] * 4]
