"""What the manifests grant is enough and not too much: on a real API server, whose audit log has every request.

Each process runs as its service account, from the objects as they were applied. It is given something to do for each of
its rights. At the end nothing was forbidden, and no right was left unused.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from podium.controllers.catalog import definitions
from podium.manifests.objects import head
from podium.manifests.rights import RBAC, account_of, binding
from tests.podium.cli.command import podium
from tests.podium.manifests.deployed import Replica, Right, apply, granted, refused, used
from tests.podium.placement.devices import worlds
from tests.podium.placement.devices.worlds import device
from tests.podium.run.crowd import until
from tests.podium.run.test_devices import claim
from tests.together.controllers.test_on_a_cluster import (
    APP_GROUP,
    POD_GROUP,
    QUOTA,
    TOPOLOGY,
    custom,
    install,
    workload,
)
from tools.testbed import ControlPlane
from tools.testbed.apiclient import Object
from tools.testbed.connections import ConnectionPool
from tools.testbed.exporter import Exporter
from tools.testbed.http_faults import FaultProxy, Faults
from tools.testbed.monitoring import Job, PrometheusServer, Target
from tools.testbed.objects import make_node, make_pod

DEVICES = "resource.k8s.io"
ASKED_FOR_WITHIN = (DEVICES, "resourceclaims/binding", "patch")
"""The API server asks itself for this right when a claim's status is patched; without it, devices are not given."""
MOST_CARDS = 30
CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: podium
  plugins: {multiPoint: {enabled: [{name: GpuShare}, {name: CapacityScheduling}]}}
"""


@pytest.fixture(scope="module")
def plane(testbed_programs: None) -> Iterator[ControlPlane]:
    with ControlPlane(audit_everything=True) as plane:
        until(lambda: "kube-system" in plane.kubectl("get", "namespaces", "-o", "name"), "namespaces are made")
        install(plane, definitions())
        yield plane


@pytest.fixture(autouse=True)
def emptied(plane: ControlPlane) -> Iterator[None]:
    yield
    plane.stop_components()
    plane.wipe()


def printed(*arguments: str) -> list[Object]:
    ran = podium("manifest", *arguments, "--image", "podium:test")
    assert (ran.code, ran.err) == (0, "")
    return list(yaml.safe_load_all(ran.out))


def scrape(plane: ControlPlane, url: str) -> None:
    """Metrics are shown to Prometheus, after the API server was asked who that is, and whether it may see them."""
    name = "prometheus"
    metrics = {"nonResourceURLs": ["/metrics"], "verbs": ["get"]}
    account = account_of(name, "kube-system")
    apply(
        plane,
        [
            head("v1", "ServiceAccount", name, "kube-system"),
            {**head(RBAC, "ClusterRole", name), "rules": [metrics]},
            binding(account, "ClusterRole", name, name),
        ],
    )
    token = plane.kubectl("create", "token", name, "-n", "kube-system").strip()
    pool = ConnectionPool(url, ca_path=None, headers={"Authorization": f"Bearer {token}"})
    until(lambda: pool.request("GET", "/metrics").status == 200, "metrics are shown")
    pool.close()


def node_of(plane: ControlPlane, name: str) -> str:
    return str(plane.client.get("v1/Pod", name)["spec"].get("nodeName", ""))


def ours(name: str, **spec: Any) -> Object:
    return make_pod(name, schedulerName="podium", terminationGracePeriodSeconds=0, **spec)


def volume_objects() -> list[Object]:
    """A volume that a claim waits for, and a claim whose volume is to be made on the node that is chosen."""
    meta = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "volumeBindingMode": "WaitForFirstConsumer"}
    classes = [
        {**meta, "metadata": {"name": "local"}, "provisioner": "kubernetes.io/no-provisioner"},
        {**meta, "metadata": {"name": "made"}, "provisioner": "example.com/disks"},
    ]
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "disk"},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "local",
            "hostPath": {"path": "/disk"},
        },
        "status": {"phase": "Available"},
    }
    claims = [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": name,
                "resources": {"requests": {"storage": "1Gi"}},
            },
        }
        for name in ("local", "made")
    ]
    return [*classes, volume, *claims]


def with_claim(name: str, claim_name: str) -> Object:
    return ours(name, volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": claim_name}}])


def with_card(name: str) -> Object:
    pod = ours(name, priority=2000)
    pod["spec"]["containers"][0]["resources"] = {"limits": {"example.com/card": "1"}}
    return pod


def test_a_scheduler_uses_every_right_and_needs_no_other(plane: ControlPlane, tmp_path: Path) -> None:
    file = tmp_path / "scheduler.yaml"
    file.write_text(CONFIG)
    objects = printed("run", "--config", str(file))
    apply(plane, objects)
    client = plane.client
    gpu = make_node("gpu", cpu="8", labels={"alibabacloud.com/gpu-card-model": "V100"})
    for part in ("allocatable", "capacity"):
        gpu["status"][part] |= {"alibabacloud.com/gpu-count": "1", "alibabacloud.com/gpu-milli": "1000"}
    client.create_all([make_node("n1"), gpu])
    devices = [device(f"d{number}") for number in range(2 + MOST_CARDS)]
    classes = [worlds.device_class(), worlds.device_class("named", extendedResourceName="example.com/card")]
    client.create_all([*classes, worlds.slice_("s", *devices), *volume_objects()])
    client.create_all([claim("first"), claim("second")])

    with FaultProxy(plane, Faults(conflict=0.0)) as proxy:
        replica = Replica(plane, "podium", tmp_path / "pod", server=proxy.url, ready="podium runs")
        scheduler = replica.start("podium")
        scrape(plane, replica.urls["podium"])

        def missing() -> set[Right]:
            return granted(objects) - used(plane, "podium") - {ASKED_FOR_WITHIN}

        # Pods with a share of a GPU (annotated), volumes and devices; one that fits nowhere; one to give way to.
        shared = ours("shared", nodeSelector={"alibabacloud.com/gpu-card-model": "V100"})
        shared["metadata"]["annotations"] = {"alibabacloud.com/gpu-milli": "500", "alibabacloud.com/gpu-count": "1"}
        client.create_all(
            [with_claim("on-disk", "local"), with_claim("on-made", "made"), shared, ours("huge", cpu="100")]
        )
        client.create(ours("devices", resourceClaims=[{"name": "first", "resourceClaimName": "first"}]))
        client.create_all(ours(f"small-{number}", cpu="3") for number in range(3))
        for name in ("shared", "devices", "small-0", "small-1", "small-2"):
            until(lambda name=name: bool(node_of(plane, name)), f"{name} is bound", scheduler)  # type: ignore[misc]
        client.create(ours("urgent", cpu="4", priority=1000))
        until(lambda: ("", "pods", "delete") not in missing(), "a pod gives way", scheduler)
        # Half of all writes are refused for a while: what became of them is read, and claims that were made go again.
        proxy.faults = Faults(conflict=0.5)
        client.create(ours("more-devices", resourceClaims=[{"name": "second", "resourceClaimName": "second"}]))
        after_conflicts = {
            ("", "pods", "get"),
            *((DEVICES, "resourceclaims", verb) for verb in ("get", "create", "delete")),
        }
        for number in range(MOST_CARDS):  # until chance has refused each kind of write
            client.create_all([ours(f"more-{number}", cpu="10m", priority=2000), with_card(f"card-{number}")])
            with contextlib.suppress(TimeoutError):
                until(lambda: not after_conflicts & missing(), "conflicts are looked into", scheduler, timeout=5)
                break
        assert not after_conflicts & missing()
        proxy.faults = Faults()
        for number in range(20):  # "huge" is tried again when another pod goes, and its event becomes a series
            if not missing():
                break
            client.create(ours(f"filler-{number}", cpu="10m", priority=2000))
            until(lambda n=number: bool(node_of(plane, f"filler-{n}")), "a filler is bound", scheduler)  # type: ignore[misc]
            client.delete("Pod", f"filler-{number}")
        assert missing() == set()
    assert refused(plane, "podium") == set()
    assert "needs the rule" not in scheduler.log_text()


def test_controllers_use_every_right_and_need_no_other(plane: ControlPlane, tmp_path: Path) -> None:
    objects = printed("controller")
    apply(plane, objects)
    client = plane.client
    client.create(make_node("n1", labels={f"topology.kubernetes.io/{part}": part for part in ("region", "zone")}))
    costs = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "costs", "namespace": "default"}, "data": {}}
    client.create(costs)

    def missing() -> set[Right]:
        return granted(objects) - used(plane, "podium-controller")

    def work(name: str) -> None:
        """Something to do for each controller; a gang whose event repeats is a series, which is a patch."""
        spec = {"numMembers": 1, "topologySortingAlgorithm": "KahnSort", "workloads": [workload("p1")]}
        client.create(custom(TOPOLOGY, name, {"weights": [], "configmapName": "costs"}))
        client.create(custom(APP_GROUP, name, spec))
        client.create(custom(POD_GROUP, name, {"minMember": 2}))
        client.create(custom(QUOTA, name, {"min": {"cpu": 2}, "max": {"cpu": 4}}))
        labels = {"scheduling.x-k8s.io/pod-group": name, "appgroup.diktyo.x-k8s.io": name}
        client.create(make_pod(name, cpu="100m", labels=labels, nodeName="n1"))
        client.patch("Pod", name, {"status": {"phase": "Running"}}, subresource="status")

    # A status is written apart from the rest where the definition of its kind says so, which other versions of it do.
    for turn, name in enumerate(("first", "second")):
        if turn:
            for definition in (
                "appgroups.appgroup.diktyo.x-k8s.io",
                "networktopologies.networktopology.diktyo.x-k8s.io",
            ):
                patch = [{"op": "add", "path": "/spec/versions/0/subresources", "value": {"status": {}}}]
                plane.kubectl("patch", "crd", definition, "--type=json", "-p", json.dumps(patch))
        replica = Replica(plane, "podium-controller", tmp_path / name, ready="controller networktopology runs")
        controller = replica.start("controller")
        scrape(plane, replica.urls["controller"])
        work(name)
        apart = {right for right in granted(objects) if right[1] in ("appgroups/status", "networktopologies/status")}
        allowed = set() if turn else apart
        used_all = lambda: missing() <= allowed  # noqa: B023, E731  (asked before the loop goes on)
        until(used_all, f"but {missing()} is used", controller)
        controller.stop()
    assert missing() == set()
    assert refused(plane, "podium-controller") == set()


@pytest.mark.parametrize("agents", ["safe,congestion", "pigeon"])
def test_agents_use_every_right_of_their_own_role(agents: str, plane: ControlPlane, tmp_path: Path) -> None:
    objects = printed("extender", "--agents", agents)
    name = f"podium-{agents.replace(',', '-')}"
    apply(plane, [each for each in objects if each["kind"] != "Pod"])
    replica = Replica(plane, name, tmp_path, ready="podium extender answers")
    for number in range(len(agents.split(","))):
        replica.start(f"extender-{number + 1}")
    role = granted(each for each in objects if each["kind"] == "ClusterRole")
    until(lambda: role <= used(plane, name), "every right is used")
    assert refused(plane, name) == set()


@pytest.mark.parametrize("kind", ["usage", "allocation"])
def test_annotators_use_every_right(kind: str, plane: ControlPlane, prometheus_programs: None, tmp_path: Path) -> None:
    plane.client.create_all([make_node("n1"), make_pod("p", cpu="1", nodeName="n1")])
    name = f"podium-annotate-{kind}"
    with Exporter() as exporter:
        for metric in ("node_memory_MemTotal_bytes", "node_memory_MemAvailable_bytes"):
            exporter.set(metric, 2**30, node="n1")
        with PrometheusServer([Job("nodes", [Target(exporter.address)], honor_labels=True)]) as prometheus:
            prometheus.poll("node_memory_MemTotal_bytes", bool)
            objects = printed("annotate", kind, "--prometheus", prometheus.url)
            apply(plane, objects)
            annotator = Replica(plane, name, tmp_path, variables={"ANNOTATE_FREQ": "1"}).start("annotate")
            until(lambda: granted(objects) <= used(plane, name), "every right is used", annotator)
            annotator.stop()
    assert refused(plane, name) == set()


def test_a_shadow_reads_and_writes_nothing(plane: ControlPlane, tmp_path: Path) -> None:
    file = tmp_path / "scheduler.yaml"
    file.write_text("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n")
    objects = printed("run", "--config", str(file), "--shadow", "--name", "podium-shadow")
    apply(plane, objects)
    replica = Replica(plane, "podium-shadow", tmp_path / "pod", ready="podium runs")
    shadow = replica.start("podium")
    scrape(plane, replica.urls["podium"])
    plane.client.create_all([make_node("n1"), make_node("n2"), make_pod("small", cpu="1"), make_pod("huge", cpu="100")])
    plane.client.bind("small", "n1")
    until(lambda: granted(objects) <= used(plane, "podium-shadow"), "every right is used", shadow)
    compared = ConnectionPool(replica.urls["podium"], ca_path=None, headers={"Authorization": f"Bearer {plane.token}"})
    counted = b'podium_shadow_comparisons_total{outcome="'
    until(lambda: counted in compared.request("GET", "/metrics").body, "a decision is compared", shadow)
    compared.close()
    assert refused(plane, "podium-shadow") == set()
    reading = {"list", "watch", "get"}
    reviews = {"tokenreviews", "subjectaccessreviews"}
    assert {each for each in used(plane, "podium-shadow") if each[2] not in reading and each[1] not in reviews} == set()
