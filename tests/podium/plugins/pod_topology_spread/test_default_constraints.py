"""Which constraints pods get that have none, and with which selector."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from podium.cluster import Cluster, Nodes
from podium.framework import SKIP, Cycle
from podium.kube import Pod, ReplicaSet, ReplicationController, Service, StatefulSet
from podium.plugins.pod_topology_spread import PodTopologySpread
from podium.plugins.pod_topology_spread.constraints import DefaultSelectors
from tests.podium.plugins.ask import refusals, refused
from tests.podium.plugins.pod_topology_spread.pieces import ZONE, Data, hard, host, spreading, webs
from tools.kit.builders import build, make_cluster, make_plugin, make_pod

NODES = [host("n1", "z1"), host("n2", "z2")]


def service(name: str = "s", namespace: str = "default", **selector: str) -> Service:
    return build(Service, {"metadata": {"name": name, "namespace": namespace}, "spec": {"selector": selector}})


def controlled(by: str, version: str = "apps/v1", controller: bool = True, **labels: str) -> Pod:
    owner = {"apiVersion": version, "kind": by, "name": "owner", "uid": "u", "controller": controller}
    return make_pod(labels=labels, metadata={"ownerReferences": [owner]})


def replica_set(selector: Data | None) -> ReplicaSet:
    return build(ReplicaSet, {"metadata": OWNER, "spec": {} if selector is None else {"selector": selector}})


OWNER = {"name": "owner", "namespace": "default"}
STATEFUL_SET = build(StatefulSet, {"metadata": OWNER, "spec": {"selector": {"matchLabels": {"tier": "x"}}}})
CONTROLLER = build(ReplicationController, {"metadata": OWNER, "spec": {"selector": {"app": "old"}}})
EXISTS: Data = {"matchExpressions": [{"key": "tier", "operator": "Exists"}]}
BROKEN: Data = {"matchExpressions": [{"key": "tier", "operator": "?"}]}


@pytest.mark.parametrize(
    ("pod", "objects", "selector"),
    [
        (make_pod(labels={"app": "web"}), [], None),
        (make_pod(labels={"app": "web"}), [service(app="web")], {("app", "In", ("web",))}),
        (make_pod(labels={"app": "web"}), [service(app="web", tier="x")], None),
        (make_pod(labels={"app": "web"}), [service(namespace="blue", app="web")], None),
        (make_pod(labels={"app": "web"}), [service()], None),
        (
            make_pod(labels={"app": "web", "tier": "x"}),
            [service("one", app="web"), service("two", tier="x"), service("three", tier="y")],
            {("app", "In", ("web",)), ("tier", "In", ("x",))},
        ),
        (controlled("ReplicaSet", app="web"), [replica_set(EXISTS)], {("tier", "Exists", ())}),
        (
            controlled("ReplicaSet", app="web"),
            [replica_set(EXISTS), service(app="web")],
            {("app", "In", ("web",)), ("tier", "Exists", ())},
        ),
        (controlled("ReplicaSet", app="web"), [replica_set(None), service(app="web")], {("app", "In", ("web",))}),
        (controlled("ReplicaSet", app="web"), [replica_set(BROKEN), service(app="web")], {("app", "In", ("web",))}),
        (controlled("ReplicaSet", app="web"), [replica_set({})], None),
        (controlled("ReplicaSet"), [], None),
        (controlled("ReplicaSet", controller=False), [replica_set(EXISTS)], None),
        (controlled("ReplicaSet", version="extensions/v1"), [replica_set(EXISTS)], None),
        (controlled("StatefulSet"), [STATEFUL_SET], {("tier", "In", ("x",))}),
        (controlled("StatefulSet"), [replica_set(EXISTS)], None),
        # A replication controller's map is merged into the services' and wins where they differ.
        (
            controlled("ReplicationController", "v1", app="web"),
            [CONTROLLER, service(app="web")],
            {("app", "In", ("old",))},
        ),
        (controlled("ReplicationController", "apps/v1"), [CONTROLLER], None),
        (controlled("Job", "batch/v1"), [replica_set(EXISTS)], None),
    ],
)
def test_the_selector_comes_from_services_and_the_controller(
    pod: Pod, objects: Iterable[Any], selector: set[tuple[str, str, tuple[str, ...]]] | None
) -> None:
    selectors = DefaultSelectors(make_cluster([], objects=objects).objects)
    basis = selectors.basis(pod)
    found = None if basis is None else selectors.selector(pod, basis)
    if selector is None:
        assert found is None or found.empty
    else:
        assert found is not None
        assert {(each.key, each.operator, each.values) for each in found.requirements} == selector


LISTED = {
    "defaultingType": "List",
    "defaultConstraints": [{"topologyKey": ZONE, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}],
}


def refused_nodes(cluster: Cluster, plugin: PodTopologySpread, pod: Pod) -> set[str]:
    return set(refused(refusals(plugin, pod, cluster)))


def test_listed_hard_defaults_apply_to_pods_that_something_selects() -> None:
    cluster = make_cluster(NODES, webs(n1=1))
    plugin = make_plugin(PodTopologySpread, cluster, **LISTED)
    pod = make_pod(labels={"app": "web"})
    assert refused_nodes(cluster, plugin, pod) == set()
    cluster.objects.services.set("default/s", service(app="web"))
    assert refused_nodes(cluster, plugin, pod) == {"n1"}
    cluster.objects.services.discard("default/s")
    assert refused_nodes(cluster, plugin, pod) == set()


def test_defaults_do_not_apply_to_pods_with_constraints_of_their_own() -> None:
    cluster = make_cluster(NODES, webs(n1=1), [service(app="web")])
    plugin = make_plugin(PodTopologySpread, cluster, **LISTED)
    assert refused_nodes(cluster, plugin, spreading(hard(max_skew=5))) == set()


def test_without_defaults_pods_without_constraints_are_left_alone_for_good() -> None:
    cluster = make_cluster(NODES, webs(n1=1), [service(app="web")])
    plugin = make_plugin(PodTopologySpread, cluster, defaultingType="List")
    pod = make_pod(labels={"app": "web"})
    cycle = Cycle(pod, cluster)
    assert plugin.pre_filter(cycle) == SKIP
    assert plugin.pre_score(cycle, Nodes(cluster)) == SKIP
    assert plugin.answer_key(pod) == ()


def test_services_move_the_answer_key_only_of_the_pods_they_select() -> None:
    cluster = make_cluster(NODES, webs(n1=1), [service(app="web")])
    plugin = make_plugin(PodTopologySpread, cluster)
    pod, other = make_pod(labels={"app": "web"}), make_pod(labels={"app": "other"})
    marks = plugin.answer_key(pod), plugin.answer_key(other)
    cluster.objects.services.set("default/db", service("db", app="db"))
    assert (plugin.answer_key(pod), plugin.answer_key(other)) == marks
    cluster.set_pod(webs(n2=1)[0])
    assert plugin.answer_key(pod) != marks[0]
    assert plugin.answer_key(other) == marks[1]
    cluster.objects.services.set("default/other", service("other", app="other"))
    assert plugin.answer_key(other) != marks[1]


def test_a_service_that_selects_others_than_before_moves_the_answer_key() -> None:
    placed = [*webs(n1=1, n2=1), make_pod("x", labels={"tier": "x"}, node="n1")]
    cluster = make_cluster(NODES, placed, [service(app="web")])
    plugin = make_plugin(PodTopologySpread, cluster)
    pod = make_pod(labels={"app": "web", "tier": "x"})
    mark = plugin.answer_key(pod)
    cluster.objects.services.set("default/s", service(tier="x"))
    assert plugin.answer_key(pod) != mark


def test_a_controller_whose_status_changes_does_not_move_the_answer_key() -> None:
    cluster = make_cluster(NODES, [], [replica_set(EXISTS)])
    plugin = make_plugin(PodTopologySpread, cluster)
    pod = controlled("ReplicaSet", tier="x")
    mark = plugin.answer_key(pod)
    cluster.objects.replica_sets.set("default/owner", replica_set(EXISTS))
    assert plugin.answer_key(pod) == mark
    cluster.objects.replica_sets.set("default/owner", replica_set({"matchLabels": {"tier": "x"}}))
    assert plugin.answer_key(pod) != mark


def test_taints_move_the_answer_key_only_where_a_constraint_heeds_them() -> None:
    cluster = make_cluster(NODES)
    plugin = make_plugin(PodTopologySpread, cluster)
    heedless, heeding = spreading(hard()), spreading(hard(nodeTaintsPolicy="Honor"))
    marks = plugin.answer_key(heedless), plugin.answer_key(heeding)
    cluster.set_node(host("n1", "z1", taints=[{"key": "t", "effect": "NoSchedule"}]))
    assert plugin.answer_key(heedless) == marks[0]
    assert plugin.answer_key(heeding) != marks[1]
