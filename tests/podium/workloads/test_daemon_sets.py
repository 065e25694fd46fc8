"""DaemonSets: which nodes their pods run on, and what a new node gets."""

from podium.workloads.daemon_sets import one_of_each, pinned, pods_for, runs_on, tolerant, unpinned
from tools.kit.builders import make_node, make_pod


def daemon_pod(node: str = "n1", **spec: object) -> object:
    from msgspec.structs import replace

    from podium.kube import OwnerReference

    pod = make_pod(f"agent-{node}", requests={"cpu": "100m"}, node=node, spec=dict(spec))
    owner = OwnerReference(api_version="apps/v1", kind="DaemonSet", name="agent", uid="d", controller=True)
    return replace(
        pod,
        metadata=replace(pod.metadata, owner_references=(owner,)),
        spec=replace(pinned(tolerant(pod.spec), node), node_name=node),
    )


def test_a_pin_comes_off_and_goes_on_again() -> None:
    spec = make_pod(spec={"nodeSelector": {"disk": "ssd"}}).spec
    assert unpinned(pinned(spec, "n1")).node_selector == {"disk": "ssd"}
    terms = pinned(pinned(spec, "n1"), "n2").affinity.node_affinity.required.node_selector_terms  # type: ignore[union-attr]
    assert [field.values for term in terms for field in term.match_fields] == [("n2",)]


def test_a_new_node_gets_the_pods_of_each_daemon_set_that_takes_it() -> None:
    (template,) = one_of_each([daemon_pod("n1"), daemon_pod("n2"), make_pod("web")])  # type: ignore[list-item]
    tainted = make_node("n4", taints=[{"key": "gpu", "effect": "NoSchedule"}])
    cordoned = make_node(
        "n5", unschedulable=True, taints=[{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]
    )
    assert [runs_on(template, node) for node in (make_node("n3"), tainted, cordoned)] == [True, False, True]
    (pod,) = pods_for(make_node("n3"), [template])
    assert (pod.name, pod.node_name) == ("agent-n3", "n3")
    assert pods_for(tainted, [template]) == []
