"""`podium controller` on a real API server, with the rights of its manifest and no others."""

from __future__ import annotations

import copy
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from podium.controllers.catalog import definitions
from tests.podium.cli.command import podium
from tests.podium.run.crowd import until
from tools.testbed import Component, ControlPlane
from tools.testbed.apiclient import ApiError, Object
from tools.testbed.connections import ConnectionPool
from tools.testbed.objects import make_node, make_pod
from tools.testbed.podium import podium_environment
from tools.testbed.ports import LOOPBACK, free_port

POD_GROUP = "scheduling.x-k8s.io/v1alpha1/PodGroup"
QUOTA = "scheduling.x-k8s.io/v1alpha1/ElasticQuota"
APP_GROUP = "appgroup.diktyo.x-k8s.io/v1alpha1/AppGroup"
TOPOLOGY = "networktopology.diktyo.x-k8s.io/v1alpha1/NetworkTopology"
KINDS = (POD_GROUP, QUOTA, APP_GROUP, TOPOLOGY)
RUNS = "controller networktopology runs"
QUICK = ("--leader-elect-lease-duration=4s", "--leader-elect-renew-deadline=3s", "--leader-elect-retry-period=500ms")


@pytest.fixture(scope="module")
def own_plane(testbed_programs: None) -> Iterator[ControlPlane]:
    with ControlPlane() as plane:
        install(plane, definitions())
        for obj in yaml.safe_load_all(podium("manifest", "controller").out):
            if obj["kind"] != "Deployment":
                plane.client.create(obj)
        yield plane


@pytest.fixture
def plane(own_plane: ControlPlane) -> Iterator[ControlPlane]:
    yield own_plane
    own_plane.stop_components()
    for kind in KINDS:
        own_plane.client.delete_all(kind)
    own_plane.wipe()


def install(plane: ControlPlane, crds: dict[str, Object]) -> None:
    plane.client.create_all(crds.values())
    until(lambda: all(_serves(plane, kind) for kind in KINDS), "all kinds are served")


def _serves(plane: ControlPlane, kind: str) -> bool:
    try:
        plane.client.list(kind)
    except (ApiError, LookupError):
        return False
    return True


def start(
    plane: ControlPlane, *flags: str, ready: str = RUNS, kubeconfig: Path | None = None, name: str = "podium-controller"
) -> Component:
    """The process, as the account of the manifest."""
    if kubeconfig is None:
        pair = plane.authority.issue("system:serviceaccount:kube-system:podium-controller")
        kubeconfig = plane.write_kubeconfig(plane.folder / "controller.kubeconfig", certificate=pair)
    port = free_port()
    serving = ["--bind-address", LOOPBACK, f"--secure-port={port}"]
    command: Sequence[str | Path] = [sys.executable, "-m", "podium", "controller", "--kubeconfig", kubeconfig]
    return plane.start_program(
        name,
        [*command, *serving, *flags],
        url=f"https://{LOOPBACK}:{port}",
        ready=ready,
        environment=podium_environment(),
    )


def custom(kind: str, name: str, spec: Any) -> Object:
    version, _, short = kind.rpartition("/")
    return {"apiVersion": version, "kind": short, "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def status_of(plane: ControlPlane, kind: str, name: str) -> dict[str, Any]:
    status: dict[str, Any] = plane.client.get(kind, name).get("status") or {}
    return status


def events_of(plane: ControlPlane, name: str) -> list[tuple[str, str, str]]:
    """Type, reason and note of what was said of an object."""
    events = plane.client.list("events.k8s.io/v1/Event", "default")
    return [(each["type"], each["reason"], each["note"]) for each in events if each["regarding"]["name"] == name]


def set_phase(plane: ControlPlane, name: str, phase: str) -> None:
    plane.client.patch("Pod", name, {"status": {"phase": phase}}, subresource="status")


def workload(name: str, *below: str) -> Object:
    dependencies = [{"workload": {"kind": "Deployment", "name": each, "selector": each}} for each in below]
    return {"workload": {"kind": "Deployment", "name": name, "selector": name}, "dependencies": dependencies}


def test_statuses_come_up_to_date_with_the_rights_of_the_manifest(plane: ControlPlane) -> None:
    controller = start(plane)
    plane.client.create(custom(POD_GROUP, "gang", {"minMember": 2}))
    plane.client.create(custom(QUOTA, "quota", {"min": {"cpu": 2}, "max": {"cpu": 4, "nvidia.com/gpu": 1}}))
    labels = {"scheduling.x-k8s.io/pod-group": "gang", "appgroup.diktyo.x-k8s.io": "shop"}
    until(lambda: status_of(plane, POD_GROUP, "gang").get("phase") == "Pending", "the group is Pending", controller)
    plane.client.create_all(make_pod(name, cpu="500m", labels=labels) for name in ("a", "b"))
    until(lambda: status_of(plane, POD_GROUP, "gang").get("phase") == "Scheduling", "it is Scheduling", controller)
    workloads = [workload("p1", "p2", "p3"), workload("p2", "p4"), workload("p3", "p4"), workload("p4")]
    spec = {"numMembers": 4, "topologySortingAlgorithm": "KahnSort", "workloads": workloads}
    plane.client.create(custom(APP_GROUP, "shop", spec))
    for name in ("a", "b"):
        set_phase(plane, name, "Running")
    until(lambda: status_of(plane, POD_GROUP, "gang").get("running") == 2, "the group runs", controller)
    assert status_of(plane, POD_GROUP, "gang")["phase"] == "Running"
    wanted = {"cpu": "1", "nvidia.com/gpu": "0"}
    until(lambda: status_of(plane, QUOTA, "quota").get("used") == wanted, "what is used is written", controller)
    synced = ("Normal", "Synced", "Elastic Quota default/quota synced successfully")
    until(lambda: synced in events_of(plane, "quota"), "the event says so", controller)
    until(lambda: status_of(plane, APP_GROUP, "shop").get("runningWorkloads") == 2, "two pods run", controller)
    order = {each["workload"]["name"]: each["index"] for each in status_of(plane, APP_GROUP, "shop")["topologyOrder"]}
    assert order == {"p1": 1, "p3": 2, "p2": 3, "p4": 4}
    set_phase(plane, "a", "Succeeded")
    plane.client.delete("Pod", "b")
    until(lambda: status_of(plane, POD_GROUP, "gang").get("phase") == "Pending", "a pod is missing", controller)
    until(lambda: status_of(plane, QUOTA, "quota").get("used", {}).get("cpu") == "0", "nothing is used", controller)
    assert "the role needs the rule" not in controller.log_text()
    assert "orbidden" not in controller.log_text()


def test_network_costs_are_computed_from_the_config_map(plane: ControlPlane) -> None:
    zone, region = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
    plane.client.create_all(make_node(f"n{i}", labels={zone: f"z{i}", region: "west"}) for i in (1, 2))
    data = {"netperf.p90.latency.milliseconds.origin.n1.destination.n2": "7"}
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "netperf", "namespace": "default"}}
    plane.client.create({**config_map, "data": data})
    controller = start(plane, "--controllers", "networktopology")
    plane.client.create(custom(TOPOLOGY, "nt", {"configmapName": "netperf"}))
    until(lambda: status_of(plane, TOPOLOGY, "nt").get("nodeCount") == 2, "nodes are counted", controller)
    weights = plane.client.get(TOPOLOGY, "nt")["spec"]["weights"]
    assert [each["name"] for each in weights] == ["UserDefined", "NetperfCosts"]
    [zones] = [each for each in weights[1]["topologyList"] if each["topologyKey"] == zone]
    assert [(each["origin"], each["costList"][0]["networkCost"]) for each in zones["originList"]] == [
        ("z1", 7), ("z2", 7),
    ]  # fmt: skip
    plane.client.delete("ConfigMap", "netperf")
    assert "the role needs the rule" not in controller.log_text()


def test_two_replicas_elect_one_leader_and_the_other_takes_over(plane: ControlPlane) -> None:
    first = start(plane, *QUICK, name="first")
    second = start(plane, *QUICK, ready="", name="second")
    plane.client.create(custom(POD_GROUP, "one", {"minMember": 1}))
    until(lambda: status_of(plane, POD_GROUP, "one").get("phase") == "Pending", "the leader works", first)
    until(lambda: _ready(second), "the second is ready, and waits", second)
    assert "leading" not in second.log_text()
    first.kill()
    plane.client.create(custom(POD_GROUP, "two", {"minMember": 1}))
    until(lambda: status_of(plane, POD_GROUP, "two").get("phase") == "Pending", "the second takes over", second)
    os.kill(second.pid, signal.SIGTERM)
    assert second.wait() == 0
    lease = plane.client.get("coordination.k8s.io/v1/Lease", "podium-controller", "kube-system")
    assert lease["spec"].get("holderIdentity", "") == ""


def test_a_leader_that_slept_through_its_lease_writes_nothing_and_ends_with_1(plane: ControlPlane) -> None:
    first = start(plane, *QUICK, name="first")
    first.pause()
    second = start(plane, *QUICK, name="second")
    first.resume()
    assert first.wait() == 1
    assert "this process was paused" in first.log_text()
    assert second.running


def _ready(component: Component, path: str = "/readyz") -> bool:
    pool = ConnectionPool(component.url, ca_path=None, timeout=5.0)
    try:
        return pool.request("GET", path).status == 200
    except OSError:
        return False
    finally:
        pool.close()


def test_health_and_metrics_are_served(plane: ControlPlane) -> None:
    controller = start(plane)
    plane.client.create(custom(POD_GROUP, "gang", {"minMember": 2}))
    until(lambda: status_of(plane, POD_GROUP, "gang").get("phase") == "Pending", "the group is Pending", controller)
    assert _ready(controller)
    assert _ready(controller, "/healthz")
    assert not _ready(controller, "/metrics")  # not for strangers
    headers = {"Authorization": f"Bearer {plane.token}"}
    pool = ConnectionPool(controller.url, ca_path=None, timeout=5.0, headers=headers)
    text = pool.request("GET", "/metrics").body.decode()
    shown = msgspec.json.decode(pool.request("GET", "/configz").body)
    pool.close()
    assert 'podium_controller_reconciles_total{controller="podgroup",result="written"} 1.0' in text
    assert 'leader_election_master_status{name="podium-controller"} 1.0' in text
    assert 'podium_watched_objects{resource="podgroups.scheduling.x-k8s.io"} 1.0' in text
    assert "the role needs the rule" not in controller.log_text()
    assert shown["componentconfig"]["controllers"][0] == "podgroup"


def loose() -> dict[str, Object]:
    """The definitions without limits on numbers and quantities, as someone else may have installed them."""

    def loosened(schema: Any) -> Any:
        if isinstance(schema, dict):
            return {key: loosened(each) for key, each in schema.items() if key not in ("minimum", "pattern")}
        return [loosened(each) for each in schema] if isinstance(schema, list) else schema

    found = copy.deepcopy(definitions())
    for each in found.values():
        for version in each["spec"]["versions"]:
            version["schema"] = loosened(version["schema"])
    return found


def test_bad_objects_get_an_event_each_and_nothing_else_suffers(fresh_control_plane: ControlPlane) -> None:
    plane = fresh_control_plane
    install(plane, loose())
    controller = start(plane, kubeconfig=plane.kubeconfig_path)
    circle = [workload("a", "b"), workload("b", "a")]
    spec = {"numMembers": -1, "topologySortingAlgorithm": "KahnSort", "workloads": circle}
    bad = {
        "zero": (custom(POD_GROUP, "zero", {"minMember": 0}), "spec.minMember must be at least 1, got 0"),
        "negative": (custom(POD_GROUP, "negative", {"minMember": -3}), "spec.minMember must be at least 1, got -3"),
        "junk": (custom(QUOTA, "junk", {"min": {"cpu": "lots"}}), 'spec.min.cpu: quantity "lots"'),
        "second": (custom(QUOTA, "second", {"min": {"cpu": 1}}), "it is ignored: ElasticQuota junk is older"),
        "circle": (custom(APP_GROUP, "circle", spec), "in a circle (a → b → a)"),
        "unmeasured": (custom(TOPOLOGY, "unmeasured", {"configmapName": "gone"}), "ConfigMap gone is not there"),
    }
    for name, (obj, _) in bad.items():
        plane.client.create(obj)
        if name == "junk":
            time.sleep(1.1)  # ages are whole seconds
    for name, (_, note) in bad.items():
        until(
            lambda name=name, note=note: any(
                type_ == "Warning" and note in text for type_, _, text in events_of(plane, name)
            ),  # type: ignore[misc]
            f"an event says what is wrong with {name}",
            controller,
        )
        assert note in controller.log_text()
    plane.client.create(custom(POD_GROUP, "good", {"minMember": 1}))
    until(lambda: status_of(plane, POD_GROUP, "good").get("phase") == "Pending", "good ones are kept", controller)
    assert "Traceback" not in controller.log_text()


def test_definitions_that_are_not_installed_are_waited_for(fresh_control_plane: ControlPlane) -> None:
    plane = fresh_control_plane
    waits = "podgroups.scheduling.x-k8s.io is not installed, and is waited for: podium crds podgroups | kubectl apply"
    controller = start(plane, ready=waits, kubeconfig=plane.kubeconfig_path)
    until(lambda: _ready(controller), "what is not installed keeps nothing from being ready", controller)
    install(plane, definitions())
    plane.client.create(custom(POD_GROUP, "late", {"minMember": 1}))
    until(lambda: status_of(plane, POD_GROUP, "late").get("phase") == "Pending", "it works when installed", controller)
    assert "podgroups.scheduling.x-k8s.io is served now" in controller.log_text()
