"""Bad quotas and groups on a real API server: said once on the object, nothing lost, with the least rights."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from podium.config.load import load_config
from podium.controllers.catalog import definitions
from podium.manifests.scheduler import RunSettings, rights
from podium.plugins import load_registry
from tests.podium.run.crowd import until
from tools.testbed import Component, ControlPlane
from tools.testbed.apiclient import ApiError, Object
from tools.testbed.objects import make_namespace, make_node, make_pod

GROUP = "scheduling.x-k8s.io/v1alpha1"
CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: true, resourceName: podium, resourceNamespace: kube-system}
profiles:
- plugins:
    multiPoint:
      enabled: [{name: Coscheduling}, {name: CapacityScheduling}, {name: PreemptionToleration}]
      disabled: [{name: PrioritySort}, {name: DefaultPreemption}]
"""
ACCOUNT = "system:serviceaccount:kube-system:podium"
LABEL = "scheduling.x-k8s.io/pod-group"


@pytest.fixture(scope="module")
def plane(testbed_programs: None) -> Iterator[ControlPlane]:
    groups = definitions()["podgroups"]
    fields = groups["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    fields["minMember"].pop("minimum")  # older definitions have none
    with ControlPlane() as found:
        found.client.create_all([definitions()["elasticquotas"], groups])
        until(lambda: _serves(found), "both kinds are served")
        yield found


def _serves(plane: ControlPlane) -> bool:
    try:
        return [plane.client.list(f"{GROUP}/{kind}") for kind in ("ElasticQuota", "PodGroup")] == [[], []]
    except Exception:
        return False


def start(plane: ControlPlane, folder: Path) -> Component:
    """Podium with exactly the rights that its manifest gives."""
    registry = load_registry()
    config = load_config(CONFIG, "config", registry).config
    for each in rights(config, registry, RunSettings()):
        plane.client.create(each)
    pair = plane.authority.issue(ACCOUNT)
    kubeconfig = plane.write_kubeconfig(folder / "kubeconfig", certificate=pair)
    return plane.start_podium(yaml.safe_load(CONFIG), kubeconfig=kubeconfig, flags=["--secure-port=0"])


def custom(kind: str, namespace: str, name: str, **spec: Any) -> Object:
    return {"apiVersion": GROUP, "kind": kind, "metadata": {"name": name, "namespace": namespace}, "spec": spec}


def events_on(plane: ControlPlane, kind: str) -> Counter[tuple[str, str, str]]:
    """(object, reason, the note's first words) of the events on objects of a kind."""
    return Counter(
        (each["regarding"]["name"], each["reason"], each["note"][:32])
        for each in plane.client.list("events.k8s.io/v1/Event")
        if each["regarding"]["kind"] == kind
    )


def bound(plane: ControlPlane) -> set[str]:
    return {each["metadata"]["name"] for each in plane.client.list("Pod") if each["spec"].get("nodeName")}


def message_of(plane: ControlPlane, namespace: str, name: str) -> str:
    conditions = plane.client.get("Pod", name, namespace)["status"].get("conditions", ())
    return next((str(each.get("message", "")) for each in conditions if each["type"] == "PodScheduled"), "")


def test_what_is_wrong_is_said_once_on_the_object_and_nothing_is_lost(plane: ControlPlane, tmp_path: Path) -> None:
    spaces = ("negative", "upside-down", "double", "groups")
    plane.client.create_all([*map(make_namespace, spaces), make_node("n1", cpu="32")], in_order=True)
    with pytest.raises(ApiError, match="should match"):
        plane.client.create(custom("ElasticQuota", "negative", "junk", min={"cpu": "a lot"}))
    plane.client.create(custom("ElasticQuota", "negative", "below-zero", min={"cpu": -1}))  # before Podium leads
    podium = start(plane, tmp_path)
    plane.client.create_all(
        [
            custom("ElasticQuota", "upside-down", "min-above-max", min={"cpu": 4}, max={"cpu": 2}),
            custom("ElasticQuota", "double", "a", min={"cpu": 4}, max={"cpu": 4}),
            custom("ElasticQuota", "double", "b", min={"cpu": 4}, max={"cpu": 4}),
            custom("PodGroup", "groups", "none", minMember=0),
            custom("PodGroup", "groups", "fewer", minMember=-2),
            custom("PodGroup", "groups", "goes", minMember=2),
        ],
        in_order=True,
    )
    plane.client.create_all(
        [
            *(make_pod(name, name, cpu="1") for name in spaces[:3]),
            *(make_pod(name, "groups", cpu="1", labels={LABEL: name}) for name in ("none", "fewer", "goes")),
        ]
    )
    expected = {
        ("below-zero", "InvalidElasticQuota", "spec.min.cpu must not be negative"[:32]): 1,
        ("min-above-max", "InvalidElasticQuota", "spec.min is more than spec.max for cpu"[:32]): 1,
        ("b", "IgnoredElasticQuota", "it is ignored: a namespace has one quota"[:32]): 1,
    }
    until(lambda: events_on(plane, "ElasticQuota") == expected, "every bad quota has its event", podium)
    bad_groups = {(name, "InvalidPodGroup", "spec.minMember must be at least 1"[:32]): 1 for name in ("none", "fewer")}
    until(lambda: events_on(plane, "PodGroup") == bad_groups, "every bad group has its event", podium)
    until(lambda: bound(plane) == {"upside-down", "double", "none", "fewer"}, "the others are bound", podium)
    until(lambda: "cannot be used" in message_of(plane, "negative", "negative"), "the pod says why", podium)

    patch = {"spec": {"min": {"cpu": 4}}}
    plane.client.patch(f"{GROUP}/ElasticQuota", "below-zero", patch, "negative")
    until(lambda: "negative" in bound(plane), "a quota that was corrected lets its pod go", podium)
    plane.client.delete(f"{GROUP}/ElasticQuota", "below-zero", "negative")
    plane.client.delete(f"{GROUP}/PodGroup", "goes", "groups")
    expected["below-zero", "ElasticQuotaDeleted", "it was deleted while 1 pods of its"[:32]] = 1
    bad_groups["goes", "PodGroupDeleted", "it was deleted while 1 of its pods"[:32]] = 1
    until(lambda: events_on(plane, "ElasticQuota") == expected, "a quota deleted under its pods is said", podium)
    until(lambda: events_on(plane, "PodGroup") == bad_groups, "a group deleted under its pods is said", podium)
    plane.client.create(custom("PodGroup", "groups", "goes", minMember=1))
    until(lambda: "goes" in bound(plane), "its pod starts when it is there again", podium)
    assert "forbidden" not in podium.log_text()
    assert "Traceback" not in podium.log_text()
    podium.stop()
