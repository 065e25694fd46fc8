from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from podium.cluster import Cluster, Nodes
from podium.framework import Code, Cycle, PluginError
from podium.kube import Pod
from podium.kube.requests import fit_requests, is_extended_resource_name
from podium.plugins.node_resources_fit import NodeResourcesFit
from tests.podium.plugins.ask import refusals, refused
from tests.podium.plugins.resource_worlds import (
    GPU,
    PAGES,
    SHARE,
    STORAGE,
    allocatable_of,
    names_of,
    pods_on,
    used_on,
    worlds,
)
from tools.kit.builders import make_cluster, make_node, make_plugin, make_pod


def judged(allocatable: dict[str, Any], used: dict[str, Any], wanted: dict[str, Any], **args: Any) -> Any:
    """(code, reasons) of the only node, which holds one pod; None when the pod fits."""
    cluster = make_cluster([make_node("n", allocatable=allocatable)], [make_pod("there", requests=used, node="n")])
    plugin = make_plugin(NodeResourcesFit, cluster, **args)
    return refused(refusals(plugin, make_pod(requests=wanted), cluster)).get("n")


ROOM = {"cpu": "4", "memory": "8Gi", STORAGE: "10Gi", GPU: 2, PAGES: "8Mi"}


@pytest.mark.parametrize(
    ("used", "wanted", "expected"),
    [
        pytest.param({"cpu": "3500m"}, {"cpu": "500m"}, None, id="all that is left"),
        pytest.param({"cpu": "3500m"}, {"cpu": "600m"}, (Code.UNSCHEDULABLE, ("Insufficient cpu",)), id="cpu"),
        pytest.param({"cpu": "3500m"}, {"cpu": "4100m"}, (Code.UNRESOLVABLE, ("Insufficient cpu",)), id="never"),
        pytest.param({"cpu": "3500m"}, {"cpu": "4"}, (Code.UNSCHEDULABLE, ("Insufficient cpu",)), id="the whole node"),
        pytest.param({"memory": "8Gi"}, {"memory": 1}, (Code.UNSCHEDULABLE, ("Insufficient memory",)), id="memory"),
        pytest.param(
            {STORAGE: "9Gi"}, {STORAGE: "2Gi"}, (Code.UNSCHEDULABLE, ("Insufficient ephemeral-storage",)), id="storage"
        ),
        pytest.param({GPU: 2}, {GPU: 1}, (Code.UNSCHEDULABLE, (f"Insufficient {GPU}",)), id="extended resource"),
        pytest.param({PAGES: "8Mi"}, {PAGES: "2Mi"}, (Code.UNSCHEDULABLE, (f"Insufficient {PAGES}",)), id="huge pages"),
        pytest.param(
            {"cpu": "3500m"},
            {"cpu": "600m", "absent.io/x": 1},
            (Code.UNRESOLVABLE, ("Insufficient cpu", "Insufficient absent.io/x")),
            id="a resource that the node does not have",
        ),
        pytest.param(
            {"cpu": "4", "memory": "8Gi", STORAGE: "10Gi", GPU: 2, PAGES: "8Mi"},
            {"cpu": "1", "memory": "1Gi", STORAGE: "1Gi", GPU: 1, PAGES: "2Mi"},
            (
                Code.UNSCHEDULABLE,
                (
                    "Insufficient cpu",
                    "Insufficient memory",
                    "Insufficient ephemeral-storage",
                    f"Insufficient {GPU}",
                    f"Insufficient {PAGES}",
                ),
            ),
            id="everything at once, in order",
        ),
        pytest.param({"cpu": "5"}, {}, None, id="a pod that asks for nothing fits an overfull node"),
        pytest.param({"cpu": "5"}, {"cpu": 0, "memory": 0, GPU: 0}, None, id="asking for 0 is asking for nothing"),
        pytest.param({"cpu": "5"}, {"memory": "1Gi"}, None, id="only what the pod asks for matters"),
        pytest.param({}, {"strange": 5}, None, id="names that are no resource names do not count"),
    ],
)
def test_what_a_node_is_short_of(used: dict[str, Any], wanted: dict[str, Any], expected: Any) -> None:
    assert judged(ROOM, used, wanted) == expected


def test_a_node_that_holds_as_many_pods_as_it_may_is_full_but_not_forever() -> None:
    assert judged({"pods": 1}, {}, {}) == (Code.UNSCHEDULABLE, ("Too many pods",))
    assert judged({"pods": 2}, {}, {}) is None
    assert judged({"pods": 0}, {}, {}) == (Code.UNSCHEDULABLE, ("Too many pods",))
    assert judged({"pods": 1}, {}, {"cpu": 1000}) == (Code.UNRESOLVABLE, ("Too many pods", "Insufficient cpu"))


def test_pod_level_requests_count_for_the_filter() -> None:
    cluster = make_cluster([make_node("n", cpu=4)])
    spec = {"resources": {"requests": {"cpu": "5"}}}
    found = refused(refusals(make_plugin(NodeResourcesFit, cluster), make_pod(spec=spec), cluster))
    assert found == {"n": (Code.UNRESOLVABLE, ("Insufficient cpu",))}


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ({}, (GPU, PAGES, SHARE)),
        ({"ignoredResources": [GPU]}, (PAGES, SHARE)),
        ({"ignoredResourceGroups": ["other.io"]}, (GPU, PAGES)),
        ({"ignoredResourceGroups": ["example.com", "other.io"]}, (PAGES,)),
        pytest.param({"ignoredResources": [PAGES]}, (GPU, PAGES, SHARE), id="only extended resources can be ignored"),
        pytest.param({"ignoredResourceGroups": ["example"]}, (GPU, PAGES, SHARE), id="a group is the whole prefix"),
        pytest.param({"ignoredResourceGroups": ["cpu"], "ignoredResources": ["cpu"]}, (GPU, PAGES, SHARE), id="core"),
    ],
)
def test_extended_resources_that_somebody_else_looks_after(args: dict[str, Any], expected: tuple[str, ...]) -> None:
    found = judged({}, {}, {GPU: 1, PAGES: "2Mi", SHARE: 1}, **args)
    assert found == (Code.UNRESOLVABLE, tuple(f"Insufficient {name}" for name in expected))


def test_a_pod_may_ask_for_more_resources_than_a_code_has_bits() -> None:
    wanted: dict[str, str | int] = {f"example.com/r{i:03}": 1 for i in range(100)}
    full = {**wanted, "example.com/r050": 0, "pods": 1}
    cluster = make_cluster([make_node("full", allocatable=full), make_node("fits", allocatable=wanted), make_node("z")])
    cluster.set_pod(make_pod("there", node="full"))
    found = refused(refusals(make_plugin(NodeResourcesFit, cluster), make_pod(requests=wanted), cluster))
    assert found == {
        "full": (Code.UNRESOLVABLE, ("Too many pods", "Insufficient example.com/r050")),
        "z": (Code.UNRESOLVABLE, tuple(f"Insufficient {name}" for name in sorted(wanted))),
    }


def test_filtering_without_pre_filter_is_an_error() -> None:
    cluster = make_cluster([make_node()])
    plugin = make_plugin(NodeResourcesFit, cluster)
    message = r'^error reading "PreFilterNodeResourcesFit" from cycleState: not found$'
    with pytest.raises(PluginError, match=message):
        plugin.filter(Cycle(make_pod(), cluster), Nodes(cluster))
    with pytest.raises(PluginError, match=message):
        plugin.filter_node(Cycle(make_pod(), cluster), Nodes(cluster).info(0))


def test_the_verdict_follows_pods_that_come_and_go() -> None:
    cluster = make_cluster([make_node("n", cpu=2)])
    plugin = make_plugin(NodeResourcesFit, cluster)
    pod = make_pod(requests={"cpu": "1500m"})
    assert refusals(plugin, pod, cluster)["n"] is None
    cluster.set_pod(make_pod("there", requests={"cpu": 1}, node="n"))
    assert refusals(plugin, pod, cluster)["n"] is not None
    cluster.remove_pod("default-there")
    assert refusals(plugin, pod, cluster)["n"] is None


def oracle(cluster: Cluster, name: str, pod: Pod, ignored: tuple[str, ...]) -> Any:
    """One node at a time, straight from the rules."""
    allocatable, reasons, never = allocatable_of(cluster, name), [], False
    if len(pods_on(cluster, name)) + 1 > allocatable.get("pods", 0):
        reasons.append("Too many pods")
    wanted = fit_requests(pod)
    core = [resource for resource in ("cpu", "memory", STORAGE) if resource in wanted]
    for resource in core + sorted(wanted.keys() - set(core)):
        amount, offer = wanted[resource], allocatable.get(resource, 0)
        if amount == 0 or (is_extended_resource_name(resource) and resource in ignored):
            continue
        if amount > offer - used_on(cluster, name, resource, nonzero=False):
            reasons.append(f"Insufficient {resource}")
            never = never or amount > offer
    return (Code.UNRESOLVABLE if never else Code.UNSCHEDULABLE, tuple(reasons)) if reasons else None


@given(worlds())
def test_every_node_is_judged_as_one_node_at_a_time_would_be(world: tuple[Cluster, Pod]) -> None:
    cluster, pod = world
    for ignored in ((), (GPU,)):
        plugin = make_plugin(NodeResourcesFit, cluster, ignoredResources=list(ignored))
        found = refused(refusals(plugin, pod, cluster))  # compares the column form with the one-node form as well
        expected = {name: oracle(cluster, name, pod, ignored) for name in names_of(cluster)}
        assert found == {name: verdict for name, verdict in expected.items() if verdict is not None}
