"""NUMA zones on a real API server: an agent's reports steer Guaranteed pods, and turn away what fits no zone."""

from collections.abc import Iterator
from typing import Any

import pytest

from podium.controllers.catalog import definitions
from podium.kube import Pod
from podium_plugins.node_resource_topology_match.fingerprint import fingerprint
from tests.podium.run.crowd import until
from tests.together.zone_worlds import make_report
from tools.kit.builders import make_pod as pod_object
from tools.testbed import ControlPlane
from tools.testbed.apiclient import ApiError, Object
from tools.testbed.objects import make_node, make_pod

TOPOLOGY = "topology.node.k8s.io/v1alpha2/NodeResourceTopology"
POLICIES = ("none", "best-effort", "restricted", "single-numa-node")
NAME = "NodeResourceTopologyMatch"


def config(**args: Any) -> dict[str, Any]:
    plugins = {"multiPoint": {"enabled": [{"name": NAME}]}}
    return {"profiles": [{"plugins": plugins, "pluginConfig": [{"name": NAME, "args": args}]}]}


@pytest.fixture(scope="module")
def own_plane(testbed_programs: None) -> Iterator[ControlPlane]:
    with ControlPlane() as plane:
        plane.client.create(definitions()["noderesourcetopologies"])
        until(lambda: _serves(plane), "NodeResourceTopologies are served")
        yield plane


@pytest.fixture
def plane(own_plane: ControlPlane) -> Iterator[ControlPlane]:
    yield own_plane
    own_plane.stop_components()
    for report in own_plane.client.list(TOPOLOGY):
        own_plane.client.delete(TOPOLOGY, report["metadata"]["name"], "")
    own_plane.wipe()


def _serves(plane: ControlPlane) -> bool:
    try:
        plane.client.list(TOPOLOGY)
    except Exception:
        return False
    return True


def pod(name: str, cpu: str = "3", **spec: Any) -> Object:
    amounts = {"cpu": cpu, "memory": "64Mi"}
    container = {"name": "main", "image": "image", "resources": {"requests": amounts, "limits": amounts}}
    return make_pod(name, containers=[container], terminationGracePeriodSeconds=0, **spec)


def zones(*cpus: int) -> list[dict[str, str | int]]:
    return [{"cpu": cpu, "memory": "4Gi"} for cpu in cpus]


def write_report(plane: ControlPlane, report: Object) -> None:
    """What the agent on a node does."""
    try:
        known = plane.client.get(TOPOLOGY, report["metadata"]["name"], "")
    except ApiError:
        plane.client.create(report)
        return
    version = known["metadata"]["resourceVersion"]
    plane.client.replace({**report, "metadata": {**report["metadata"], "resourceVersion": version}})


def node_of(plane: ControlPlane, name: str) -> str:
    return str(plane.client.get("Pod", name)["spec"].get("nodeName", ""))


def message_of(plane: ControlPlane, name: str) -> str:
    conditions = plane.client.get("Pod", name)["status"].get("conditions", ())
    return next((str(each.get("message", "")) for each in conditions if each["type"] == "PodScheduled"), "")


def test_the_kubelets_four_policies_are_kept_apart(plane: ControlPlane) -> None:
    plane.client.create_all(make_node(policy, cpu="4", labels={"policy": policy}) for policy in POLICIES)
    for policy in POLICIES:
        write_report(plane, make_report(zones(2, 2), name=policy, policy=policy))
    podium = plane.start_podium(config())
    plane.client.create_all(pod(f"on-{policy}", nodeSelector={"policy": policy}) for policy in POLICIES)
    for policy in POLICIES[:-1]:
        until(lambda policy=policy: node_of(plane, f"on-{policy}") == policy, f"{policy} takes it", podium)  # type: ignore[misc]
    turned_away = "on-single-numa-node"
    until(lambda: "cannot align container" in message_of(plane, turned_away), "it fits the node but no zone", podium)
    assert node_of(plane, turned_away) == ""
    write_report(plane, make_report(zones(1, 3), name="single-numa-node"))
    until(lambda: node_of(plane, turned_away) == "single-numa-node", "a zone has room now", podium)


@pytest.mark.parametrize("scope", ["pod", "container"])
def test_reports_steer_pods(plane: ControlPlane, scope: str) -> None:
    plane.client.create_all([make_node("n1", cpu="8"), make_node("n2", cpu="8")])
    write_report(plane, make_report(zones(1, 2), name="n1", scope=scope))
    write_report(plane, make_report(zones(4, 1), name="n2", scope=scope))
    podium = plane.start_podium(config())
    plane.client.create(pod("first"))
    until(lambda: node_of(plane, "first") == "n2", "n2 has a zone of 4", podium)
    write_report(plane, make_report(zones(1, 1), name="n2", scope=scope))
    write_report(plane, make_report(zones(1, 4), name="n1", scope=scope))
    plane.client.create(pod("second", "2"))
    until(lambda: node_of(plane, "second") == "n1", "now n1 has", podium)


def test_over_reserve_counts_pods_until_a_report_covers_them(plane: ControlPlane) -> None:
    plane.client.create(make_node("n1", cpu="8"))
    write_report(plane, make_report(zones(4, 4), pods=[]))
    podium = plane.start_podium(config(cacheResyncPeriodSeconds=5))
    plane.client.create(pod("first"))
    until(lambda: node_of(plane, "first") == "n1", "there is room", podium)
    plane.client.create(pod("second"))
    until(lambda: "cannot align container" in message_of(plane, "second"), "which zone is taken is not known", podium)
    running = plane.client.get("Pod", "first")
    running["status"]["phase"] = "Running"
    plane.client.set_status(running)
    covered: list[Pod] = [pod_object("first")]
    write_report(plane, make_report(zones(1, 4), pods=covered))
    until(lambda: node_of(plane, "second") == "n1", "the report says where the first is", podium)
    plane.client.create(pod("third", "1"))
    until(lambda: node_of(plane, "third") == "n1", "1 is left in a zone", podium)
    podium.stop()
    again = plane.start_podium(config(cacheResyncPeriodSeconds=5))
    plane.client.create(pod("fourth", "1"))
    until(lambda: "cannot align container" in message_of(plane, "fourth"), "a restart forgets nobody", again)
    report = plane.client.get(TOPOLOGY, "n1", "")
    values = {each["name"]: each["value"] for each in report["attributes"]}
    assert values["nodeTopologyPodsFingerprint"] == fingerprint(covered)


def test_a_bad_report_gets_an_event_and_its_pods_follow_the_rule(plane: ControlPlane) -> None:
    plane.client.create_all([make_node("n1", cpu="8", labels={"n": "1"}), make_node("n2", cpu="8", labels={"n": "2"})])
    write_report(plane, make_report(zones(1), name="n1", policy="strictest"))
    write_report(plane, make_report([{"name": "node-0", "type": "Node"}], name="n2"))
    podium = plane.start_podium(config())
    plane.client.create_all(pod(f"p{number}", nodeSelector={"n": str(number)}) for number in (1, 2))
    until(lambda: node_of(plane, "p1") == "n1", "an unknown policy is none", podium)
    until(lambda: "cannot align container" in message_of(plane, "p2"), "zones without resources fit nothing", podium)

    def notes() -> dict[str, str]:
        events = plane.client.list("events.k8s.io/v1/Event")
        return {
            each["regarding"]["name"]: each["note"]
            for each in events
            if each["regarding"]["kind"] == "NodeResourceTopology"
        }

    until(lambda: len(notes()) == 2, "both are said on the object", podium)
    assert '"strictest" is ignored; it must be one of none, best-effort, restricted' in notes()["n1"]
    assert notes()["n2"] == "zone node-0 has no resources"
