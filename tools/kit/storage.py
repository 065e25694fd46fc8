"""Short ways to write storage objects; anything unusual goes in as plain data in the API's own words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from podium.kube import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    StorageClass,
    VolumeAttachment,
)
from tools.kit.builders import build, make_pod

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"


def make_claim(
    name: str = "data",
    *,
    namespace: str = "default",
    volume: str = "",
    bound: bool | None = None,
    size: str | None = "1Gi",
    storage_class: str | None = "late",
    modes: Sequence[str] = ("ReadWriteOnce",),
    phase: str = "",
    annotations: Mapping[str, str] | None = None,
    metadata: Mapping[str, Any] | None = None,
    spec: Mapping[str, Any] | None = None,
) -> PersistentVolumeClaim:
    """A claim; one that names a volume is fully bound to it unless `bound` is false."""
    marks = dict(annotations or {})
    if bound if bound is not None else bool(volume):
        marks[BIND_COMPLETED] = "yes"
    return build(
        PersistentVolumeClaim,
        {
            "metadata": {
                "name": name,
                "namespace": namespace,
                "uid": f"claim-{namespace}-{name}",
                "annotations": marks,
                **(metadata or {}),
            },
            "spec": {
                "volumeName": volume,
                "accessModes": list(modes),
                "storageClassName": storage_class,
                "resources": {"requests": {} if size is None else {"storage": size}},
                **(spec or {}),
            },
            "status": {"phase": phase},
        },
    )


def make_volume(
    name: str = "volume",
    *,
    size: str = "1Gi",
    storage_class: str = "late",
    modes: Sequence[str] = ("ReadWriteOnce",),
    phase: str = "Available",
    labels: Mapping[str, str] | None = None,
    affinity: Mapping[str, Sequence[str]] | None = None,
    claim: PersistentVolumeClaim | None = None,
    driver: str = "",
    metadata: Mapping[str, Any] | None = None,
    spec: Mapping[str, Any] | None = None,
) -> PersistentVolume:
    """A volume; `affinity` is one term: label → allowed values. With a driver it is that driver's volume."""
    body: dict[str, Any] = {
        "capacity": {"storage": size},
        "accessModes": list(modes),
        "storageClassName": storage_class,
    }
    if affinity is not None:
        body["nodeAffinity"] = {"required": node_selector([affinity])}
    if claim is not None:
        body["claimRef"] = {"namespace": claim.namespace, "name": claim.name, "uid": claim.uid}
    if driver:
        body["csi"] = {"driver": driver, "volumeHandle": f"handle-{name}"}
    return build(
        PersistentVolume,
        {
            "metadata": {"name": name, "labels": dict(labels or {}), **(metadata or {})},
            "spec": {**body, **(spec or {})},
            "status": {"phase": phase},
        },
    )


def node_selector(terms: Sequence[Mapping[str, Sequence[str]]]) -> dict[str, Any]:
    return {
        "nodeSelectorTerms": [
            {
                "matchExpressions": [
                    {"key": key, "operator": "In", "values": list(values)} for key, values in term.items()
                ]
            }
            for term in terms
        ]
    }


def make_class(
    name: str = "late",
    *,
    provisioner: str = "csi.example.test",
    mode: str | None = "WaitForFirstConsumer",
    topologies: Sequence[Mapping[str, Sequence[str]]] = (),
) -> StorageClass:
    return build(
        StorageClass,
        {
            "metadata": {"name": name},
            "provisioner": provisioner,
            "volumeBindingMode": mode,
            "allowedTopologies": [
                {"matchLabelExpressions": [{"key": key, "values": list(values)} for key, values in term.items()]}
                for term in topologies
            ],
        },
    )


def make_csi_node(
    name: str = "n1", limits: Mapping[str, int | None] | None = None, *, migrated: Sequence[str] = ()
) -> CSINode:
    drivers = [
        {"name": driver, "nodeID": name, **({} if limit is None else {"allocatable": {"count": limit}})}
        for driver, limit in (limits or {}).items()
    ]
    annotations = {MIGRATED_PLUGINS: ",".join(migrated)} if migrated else {}
    return build(CSINode, {"metadata": {"name": name, "annotations": annotations}, "spec": {"drivers": drivers}})


def make_driver(name: str = "csi.example.test", *, capacity: bool | None = None) -> CSIDriver:
    return build(CSIDriver, {"metadata": {"name": name}, "spec": {"storageCapacity": capacity}})


def make_capacity(
    name: str = "pool",
    *,
    storage_class: str = "late",
    capacity: str | None = "10Gi",
    largest: str | None = None,
    topology: Mapping[str, Any] | None = None,
) -> CSIStorageCapacity:
    return build(
        CSIStorageCapacity,
        {
            "metadata": {"name": name, "namespace": "kube-system"},
            "storageClassName": storage_class,
            "capacity": capacity,
            "maximumVolumeSize": largest,
            "nodeTopology": topology,
        },
    )


def make_attachment(name: str, volume: str | None, node: str, attacher: str = "csi.example.test") -> VolumeAttachment:
    source = {} if volume is None else {"persistentVolumeName": volume}
    spec = {"attacher": attacher, "nodeName": node, "source": source}
    return build(VolumeAttachment, {"metadata": {"name": name}, "spec": spec})


def claim_volume(claim: str, name: str = "") -> dict[str, Any]:
    return {"name": name or f"v-{claim}", "persistentVolumeClaim": {"claimName": claim}}


def ephemeral_volume(name: str) -> dict[str, Any]:
    return {"name": name, "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}


def pod_with(*volumes: Mapping[str, Any], name: str = "p1", node: str = "", namespace: str = "default") -> Pod:
    """A pod with these volumes."""
    return make_pod(name, namespace=namespace, node=node, spec={"volumes": [dict(volume) for volume in volumes]})


def pod_using(*claims: str, name: str = "p1", node: str = "", namespace: str = "default") -> Pod:
    """A pod that uses these claims by name."""
    return pod_with(*map(claim_volume, claims), name=name, node=node, namespace=namespace)


def owned_by(pod: Pod) -> dict[str, Any]:
    """Metadata of a claim that was made for the pod."""
    owner = {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid, "controller": True}
    return {"ownerReferences": [owner]}
