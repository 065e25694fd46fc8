"""Makes many objects: a template is one object as the API server would hand it out, with blanks for what differs.

Blanks are words in angle brackets. Every template knows `<index>`, `<count>` and `<namespace>`; others are given as
functions of index and count. Each object is decoded from text of its own, as a live scheduler decodes it, so that
nothing is shared between objects that would not be shared in production and memory is counted honestly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from podium.kube import CSINode, Node, PersistentVolume, PersistentVolumeClaim, Pod, Service

T = TypeVar("T")
Made_co = TypeVar("Made_co", covariant=True)
Blank = Callable[[int, int], object]
"""(index, count) → what stands in the blank."""

CREATED = "2026-01-01T00:00:00Z"
IMAGE = "registry.k8s.io/pause:3.10"
SMALL = {"cpu": "100m", "memory": "500Mi"}
ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"
EBS = "ebs.csi.aws.com"

ADMITTED: tuple[Mapping[str, Any], ...] = tuple(
    {"key": f"node.kubernetes.io/{state}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    for state in ("not-ready", "unreachable")
)
"""The tolerations the API server adds to every pod."""


class Maker(Protocol[Made_co]):
    def make(self, index: int = 0, count: int = 1, namespace: str = "") -> Made_co: ...


class ObjectTemplate(Generic[T]):
    def __init__(self, kind: type[T], data: Mapping[str, Any], **blanks: Blank) -> None:
        # Blanks for numbers are text until they are filled, hence not strict.
        self._decode = msgspec.json.Decoder(kind, strict=False).decode
        self._text = msgspec.json.encode(data)
        known: dict[str, Blank] = {"index": lambda index, _: index, "count": lambda _, count: count, **blanks}
        self._blanks = [
            (f"<{word}>".encode(), fill) for word, fill in known.items() if f"<{word}>".encode() in self._text
        ]

    def make(self, index: int = 0, count: int = 1, namespace: str = "") -> T:
        return self._decode(self.text(index, count, namespace))

    def text(self, index: int = 0, count: int = 1, namespace: str = "") -> bytes:
        """The object as JSON."""
        text = self._text.replace(b"<namespace>", namespace.encode())
        for blank, fill in self._blanks:
            text = text.replace(blank, str(fill(index, count)).encode())
        return text


class Rotating(Generic[T]):
    """Several templates in turn."""

    def __init__(self, *templates: Maker[T]) -> None:
        self._templates = templates

    def make(self, index: int = 0, count: int = 1, namespace: str = "") -> T:
        return self._templates[index % len(self._templates)].make(index, count, namespace)


def pod_template(
    name: str = "pod-<index>",
    *,
    requests: Mapping[str, Any] | None = None,
    limits: Mapping[str, Any] | None = None,
    labels: Mapping[str, str] | None = None,
    ports: Sequence[Mapping[str, Any]] = (),
    tolerations: Sequence[Mapping[str, Any]] = (),
    metadata: Mapping[str, Any] | None = None,
    container: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
    **rest: Any,
) -> ObjectTemplate[Pod]:
    """A pod of one container. Further arguments are fields of its spec, or, where they are functions, blanks."""
    blanks = {key: value for key, value in rest.items() if callable(value)}
    spec = {key: value for key, value in rest.items() if not callable(value)}
    only = {
        "name": "pause",
        "image": IMAGE,
        "ports": ports,
        "resources": {"requests": requests or {}, "limits": limits or {}},
        **(container or {}),
    }
    data = {
        "metadata": {
            "name": name,
            "namespace": "<namespace>",
            "uid": f"uid-<namespace>-{name}",
            "creationTimestamp": CREATED,
            "labels": labels or {},
            **(metadata or {}),
        },
        "spec": {
            "containers": [only],
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "tolerations": [*tolerations, *ADMITTED],
            **spec,
        },
        "status": {"phase": "Pending", **(status or {})},
    }
    return ObjectTemplate(Pod, data, **blanks)


def small_pod(name: str = "pod-<index>", **rest: Any) -> ObjectTemplate[Pod]:
    """The pod most workloads are made of: 100m and 500Mi."""
    return pod_template(name, requests=SMALL, limits=SMALL, ports=[{"containerPort": 80}], **rest)


def node_template(
    name: str = "scheduler-perf-<index>",
    *,
    pods: int = 110,
    cpu: str = "4",
    memory: str = "32Gi",
    resources: Mapping[str, Any] | None = None,
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Mapping[str, str]] = (),
    unschedulable: bool = False,
    features: Sequence[str] = (),
    **blanks: Blank,
) -> ObjectTemplate[Node]:
    offered = {"pods": str(pods), "cpu": cpu, "memory": memory, **(resources or {})}
    data = {
        "metadata": {
            "name": name,
            "uid": f"uid-{name}",
            "creationTimestamp": CREATED,
            "labels": {HOSTNAME: name, **(labels or {})},
        },
        "spec": {"taints": list(taints), "unschedulable": unschedulable},
        "status": {
            "capacity": offered,
            "allocatable": offered,
            "conditions": [{"type": "Ready", "status": "True"}],
            "declaredFeatures": list(features),
        },
    }
    return ObjectTemplate(Node, data, **blanks)


def in_zones(*zones: str) -> ObjectTemplate[Node]:
    """Default nodes, zone after zone."""
    return node_template(labels={ZONE: "<zone>"}, zone=lambda index, _: zones[index % len(zones)])


def csi_node(limit: int, *, migrated: bool = False, node: str = "scheduler-perf-<index>") -> ObjectTemplate[CSINode]:
    annotations = {"storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/aws-ebs"} if migrated else {}
    driver = {"name": EBS, "nodeID": node, "allocatable": {"count": limit}}
    return ObjectTemplate(
        CSINode, {"metadata": {"name": node, "annotations": annotations}, "spec": {"drivers": [driver]}}
    )


def volume(source: Mapping[str, Any]) -> ObjectTemplate[PersistentVolume]:
    """A volume bound to the claim of the same number in the pod's namespace."""
    data = {
        "metadata": {"name": "<namespace>-vol-<index>", "creationTimestamp": CREATED},
        "spec": {
            "accessModes": ["ReadOnlyMany"],
            "capacity": {"storage": "1Gi"},
            "persistentVolumeReclaimPolicy": "Retain",
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "namespace": "<namespace>",
                "name": "pvc-<index>",
                "uid": "uid-<namespace>-pvc-<index>",
            },
            **source,
        },
        "status": {"phase": "Bound"},
    }
    return ObjectTemplate(PersistentVolume, data)


def claim(mode: str = "ReadOnlyMany") -> ObjectTemplate[PersistentVolumeClaim]:
    data = {
        "metadata": {
            "name": "pvc-<index>",
            "namespace": "<namespace>",
            "uid": "uid-<namespace>-pvc-<index>",
            "creationTimestamp": CREATED,
            "annotations": {"pv.kubernetes.io/bind-completed": "true"},
        },
        "spec": {
            "accessModes": [mode],
            "resources": {"requests": {"storage": "1Gi"}},
            "volumeName": "<namespace>-vol-<index>",
        },
        "status": {"phase": "Bound"},
    }
    return ObjectTemplate(PersistentVolumeClaim, data)


def service(name: str, app: str) -> ObjectTemplate[Service]:
    data = {"metadata": {"name": name, "namespace": "<namespace>"}, "spec": {"selector": {"app": app}}}
    return ObjectTemplate(Service, data)


CLAIM_VOLUMES = [{"name": "vol", "persistentVolumeClaim": {"claimName": "pvc-<index>"}}]
"""What a pod mounts that has a volume and a claim of its own."""

CSI_VOLUME = volume({"csi": {"driver": EBS, "volumeHandle": "<namespace>-vol-<index>"}})
AWS_VOLUME = volume({"awsElasticBlockStore": {"volumeID": "<namespace>-vol-<index>"}})

NODE = node_template()
NAMED_NODE = node_template("scheduler-perf-node", pods=90_000)
"""The one node of workloads that need no more."""

POD = small_pod()
LIGHT_POD = pod_template("light-pod-<index>", terminationGracePeriodSeconds=0)
LABELLED_POD = pod_template(labels={"app": "scheduler-perf"})
LOW_PRIORITY = pod_template(
    requests={"cpu": "900m", "memory": "500Mi"},
    limits={"cpu": "900m", "memory": "500Mi"},
    ports=[{"containerPort": 80}],
    terminationGracePeriodSeconds=0,
)
HIGH_PRIORITY_NAME = "pod-high-priority-<index>"
THREE_CPUS = {"cpu": "3000m", "memory": "500Mi"}
HIGH_PRIORITY = pod_template(
    HIGH_PRIORITY_NAME, requests=THREE_CPUS, limits=THREE_CPUS, ports=[{"containerPort": 80}], priority=10
)
NEVER_FITTING = pod_template("pod-h-<index>", requests={"cpu": "9", "memory": "500Mi"}, priority=10)
"""Nine CPUs on nodes of four."""
