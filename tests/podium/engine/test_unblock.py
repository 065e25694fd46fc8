"""What would unblock a pod: the smallest change that the plugins themselves accept."""

from typing import Any

from podium.config.load import default_config
from podium.engine.explain import explain, handle_for_trial
from podium.engine.sampling import Sampling
from podium.engine.unblock import MOST, Remedy
from podium.engine.unblock import remedies as find_remedies
from podium.framework.profile import ProfileRuntime
from podium.kube import Node, Pod
from podium.plugins import load_registry
from tools.kit.builders import make_node, make_pod

GPU = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
CORDON = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
SPREAD = {
    "maxSkew": 1,
    "topologyKey": "zone",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "web"}},
}


def remedies(pod: Pod, *objects: Node | Pod) -> list[Remedy]:
    return explain(objects, pod).remedies


def apart(key: str = "kubernetes.io/hostname") -> dict[str, Any]:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": "web"}}}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def test_a_pod_that_fits_needs_nothing() -> None:
    assert remedies(make_pod(), make_node()) == []


def test_amounts_that_are_missing_are_said_and_the_closest_node_comes_first() -> None:
    there = make_pod("there", requests={"cpu": "3"}, node="busy", spec={"priority": 5})
    found = remedies(make_pod(requests={"cpu": "5", "memory": "1Gi"}), make_node("busy"), make_node("empty"), there)
    assert found == [
        Remedy("empty", ["1 more cpu (asks for 5, 4 of 4 free)"]),
        Remedy("busy", ["4 more cpu (asks for 5, 1 of 4 free)"]),
    ]


def test_memory_is_told_in_binary_units() -> None:
    (found,) = remedies(make_pod(requests={"memory": "10Gi"}), make_node())
    assert found.changes == ["2Gi more memory (asks for 10Gi, 8Gi of 8Gi free)"]


def test_a_cordoned_node_is_uncordoned() -> None:
    cordoned = make_node("n1", unschedulable=True, taints=[CORDON])
    assert remedies(make_pod(), cordoned) == [Remedy("n1", ["kubectl uncordon n1"])]


def test_a_taint_is_tolerated() -> None:
    assert remedies(make_pod(), make_node("n1", taints=[GPU])) == [Remedy("n1", ["a toleration of gpu=yes:NoSchedule"])]


def test_all_taints_that_refuse_are_tolerated() -> None:
    found = remedies(make_pod(), make_node("n1", taints=[GPU, {"key": "dedicated", "effect": "NoExecute"}]))
    assert found == [Remedy("n1", ["a toleration of gpu=yes:NoSchedule and dedicated:NoExecute"])]


def test_a_tainted_node_that_is_cordoned_as_well_needs_both() -> None:
    found = remedies(make_pod(), make_node("n1", unschedulable=True, taints=[GPU, CORDON]))
    assert found == [Remedy("n1", ["kubectl uncordon n1 and a toleration of gpu=yes:NoSchedule"])]


def test_a_selector_that_no_node_matches_is_named() -> None:
    (found,) = remedies(make_pod(spec={"nodeSelector": {"disk": "ssd"}}), make_node())
    assert found.changes == ["a node selector and node affinity that it matches"]


def test_pods_that_must_be_apart_are_named() -> None:
    node, there = (
        make_node(labels={"kubernetes.io/hostname": "n1"}),
        make_pod("there", labels={"app": "web"}, node="n1"),
    )
    (found,) = remedies(make_pod(spec={"affinity": apart()}, labels={"app": "web"}), node, there)
    assert found.changes == ["no pod affinity or anti-affinity in the way"]


def test_a_spread_constraint_is_named() -> None:
    full = make_node("full", labels={"zone": "a"}, cpu=1)
    other = make_node("other", labels={"zone": "b"})
    taken = make_pod("taken", requests={"cpu": "1"}, node="full", spec={"priority": 5})
    there = make_pod("there", labels={"app": "web"}, node="other")
    spread = make_pod(requests={"cpu": "1"}, labels={"app": "web"}, spec={"topologySpreadConstraints": [SPREAD]})
    found = {each.node: each.changes for each in remedies(spread, full, other, taken, there)}
    assert found["other"] == ["no topology spread constraint in the way"]


def test_a_host_port_in_use_is_named() -> None:
    ports = [{"name": "c", "image": "app", "ports": [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}]}]
    there = make_pod("there", node="n1", spec={"containers": ports, "priority": 5})
    (found,) = remedies(make_pod(spec={"containers": ports}), make_node(), there)
    assert found.changes == ["its host ports free"]


def test_two_changes_are_named_where_one_is_not_enough() -> None:
    (found,) = remedies(make_pod(requests={"cpu": "5"}), make_node(taints=[GPU]))
    assert found.changes == ["a toleration of gpu=yes:NoSchedule", "1 more cpu (asks for 5, 4 of 4 free)"]


def test_only_the_smallest_changes_are_named_and_not_all_nodes() -> None:
    nodes = [make_node(f"n{number}", taints=[GPU]) for number in range(9)]
    selected = make_node("selected", taints=[GPU, {**GPU, "key": "other"}], cpu=1)
    found = remedies(make_pod(requests={"cpu": "2"}), *nodes, selected)
    assert len(found) == MOST
    assert all(each.changes == ["a toleration of gpu=yes:NoSchedule"] for each in found)


def test_nothing_is_said_where_preemption_makes_room() -> None:
    there = make_pod("there", requests={"cpu": "4"}, node="n1")
    assert remedies(make_pod(requests={"cpu": "4"}, priority=10), make_node(), there) == []


def test_a_node_is_as_it_was_after_a_remedy_was_tried() -> None:
    registry, node, pod = load_registry(), make_node("n1"), make_pod(requests={"cpu": "5"})
    config = default_config(registry)
    handle = handle_for_trial([node], pod, config)
    tried = find_remedies(ProfileRuntime(config.profiles[0], registry, handle), pod, Sampling())
    assert tried == [Remedy("n1", ["1 more cpu (asks for 5, 4 of 4 free)"])]
    assert handle.cluster.resources.allocatable_of("cpu").tolist() == [4000]
    assert handle.cluster.nodes == [node]
