"""Tabulates volumes: what there is, what is claimed, and what provides it."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

from podium.kube.json_object import JsonObject
from podium.kube.storage import BETA_CLASS_ANNOTATION, is_default_class
from podium_cluster.apiserver.presentation.tables.columns import (
    AGE,
    NAME,
    Cells,
    KindTable,
    TableColumn,
    Tables,
    boolean,
    integer,
    wide,
)
from podium_cluster.apiserver.presentation.tables.formats import NONE, UNSET, age, quantity

_CLASS: Final = TableColumn("StorageClass", "The class of storage.")
_ATTRIBUTES: Final = TableColumn("VolumeAttributesClass", "The class of volume attributes.")
_MODE: Final = wide("VolumeMode", "Whether the volume is a file system or a block device.")
_VOLUME: Final = (
    NAME,
    TableColumn("Capacity", "How much the volume holds."),
    TableColumn("Access Modes", "How the volume can be mounted."),
    TableColumn("Reclaim Policy", "What becomes of the volume after its claim is gone."),
    TableColumn("Status", "Whether the volume is free, bound or going."),
    TableColumn("Claim", "The claim it is bound to."),
    _CLASS,
    _ATTRIBUTES,
    TableColumn("Reason", "Why the volume failed."),
    AGE,
    _MODE,
)
_CLAIM: Final = (
    NAME,
    TableColumn("Status", "Whether the claim has its volume."),
    TableColumn("Volume", "The volume it is bound to."),
    TableColumn("Capacity", "How much that volume holds."),
    TableColumn("Access Modes", "How that volume can be mounted."),
    _CLASS,
    _ATTRIBUTES,
    AGE,
    _MODE,
)
_STORAGE_CLASS: Final = (
    NAME,
    TableColumn("Provisioner", "What makes volumes of the class."),
    TableColumn("ReclaimPolicy", "What becomes of its volumes after their claims are gone."),
    TableColumn("VolumeBindingMode", "Whether volumes wait for the first pod."),
    TableColumn("AllowVolumeExpansion", "Whether its volumes can grow."),
    AGE,
)
_ATTRIBUTES_CLASS: Final = (NAME, TableColumn("DriverName", "The driver whose attributes these are."), AGE)
_ATTACHMENT: Final = (
    NAME,
    TableColumn("Attacher", "The driver that attaches.", format="name"),
    TableColumn("PV", "The volume."),
    TableColumn("Node", "The node it is attached to."),
    boolean("Attached", "Whether it is attached."),
    AGE,
)
_CSI_NODE: Final = (NAME, integer("Drivers", "How many drivers the node has."), AGE)
_CSI_DRIVER: Final = (
    NAME,
    boolean("AttachRequired", "Whether volumes must be attached before they are mounted."),
    boolean("PodInfoOnMount", "Whether the driver is told about the pod."),
    boolean("StorageCapacity", "Whether free capacity counts when pods are placed."),
    TableColumn("TokenRequests", "For whom the driver needs tokens of the pod's account."),
    boolean("RequiresRepublish", "Whether the driver wants to be called from time to time."),
    TableColumn("Modes", "The kinds of volumes the driver offers."),
    AGE,
)
_SHORT_MODES: Final = (
    ("ReadWriteOnce", "RWO"),
    ("ReadOnlyMany", "ROX"),
    ("ReadWriteMany", "RWX"),
    ("ReadWriteOncePod", "RWOP"),
)


def _volume(obj: JsonObject, now: datetime) -> Cells:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    claim = spec.get("claimRef")
    return [
        obj["metadata"]["name"],
        quantity((spec.get("capacity") or {}).get("storage")),
        _modes(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy", ""),
        _phase(obj),
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim is not None else "",
        _class(obj),
        _given(spec, "volumeAttributesClassName"),
        status.get("reason", ""),
        age(obj, now),
        _given(spec, "volumeMode"),
    ]


def _claim(obj: JsonObject, now: datetime) -> Cells:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    volume = spec.get("volumeName", "")
    bound = [quantity((status.get("capacity") or {}).get("storage")), _modes(status.get("accessModes"))]
    return [
        obj["metadata"]["name"],
        _phase(obj),
        volume,
        *(bound if volume else ["", ""]),
        _class(obj),
        _given(spec, "volumeAttributesClassName"),
        age(obj, now),
        _given(spec, "volumeMode"),
    ]


def _phase(obj: JsonObject) -> str:
    return "Terminating" if obj["metadata"].get("deletionTimestamp") else (obj.get("status") or {}).get("phase", "")


def _modes(modes: Iterable[str] | None) -> str:
    given = set(modes or ())
    return ",".join(short for mode, short in _SHORT_MODES if mode in given)


def _class(obj: JsonObject) -> str:
    annotations = obj["metadata"].get("annotations") or {}
    return str(annotations.get(BETA_CLASS_ANNOTATION, (obj.get("spec") or {}).get("storageClassName") or ""))


def _given(spec: JsonObject, field: str) -> Any:
    return UNSET if spec.get(field) is None else spec[field]


def _storage_class(obj: JsonObject, now: datetime) -> Cells:
    annotations = obj["metadata"].get("annotations") or {}
    default = is_default_class(annotations)
    return [
        obj["metadata"]["name"] + " (default)" * default,
        obj.get("provisioner", ""),
        obj.get("reclaimPolicy", "Delete"),
        obj.get("volumeBindingMode", "Immediate"),
        bool(obj.get("allowVolumeExpansion")),
        age(obj, now),
    ]


def _attributes_class(obj: JsonObject, now: datetime) -> Cells:
    return [obj["metadata"]["name"], obj.get("driverName", ""), age(obj, now)]


def _attachment(obj: JsonObject, now: datetime) -> Cells:
    spec = obj.get("spec") or {}
    return [
        obj["metadata"]["name"],
        spec.get("attacher", ""),
        (spec.get("source") or {}).get("persistentVolumeName") or "",
        spec.get("nodeName", ""),
        bool((obj.get("status") or {}).get("attached")),
        age(obj, now),
    ]


def _csi_node(obj: JsonObject, now: datetime) -> Cells:
    return [obj["metadata"]["name"], len((obj.get("spec") or {}).get("drivers") or ()), age(obj, now)]


def _csi_driver(obj: JsonObject, now: datetime) -> Cells:
    spec = obj.get("spec") or {}
    tokens = spec.get("tokenRequests")
    return [
        obj["metadata"]["name"],
        spec.get("attachRequired") is not False,
        bool(spec.get("podInfoOnMount")),
        bool(spec.get("storageCapacity")),
        UNSET if tokens is None else ",".join(each.get("audience", "") for each in tokens),
        bool(spec.get("requiresRepublish")),
        ",".join(spec.get("volumeLifecycleModes") or ()) or NONE,
        age(obj, now),
    ]


TABLES: Final[Tables] = {
    ("", "PersistentVolume"): KindTable(_VOLUME, _volume),
    ("", "PersistentVolumeClaim"): KindTable(_CLAIM, _claim),
    ("storage.k8s.io", "StorageClass"): KindTable(_STORAGE_CLASS, _storage_class),
    ("storage.k8s.io", "VolumeAttributesClass"): KindTable(_ATTRIBUTES_CLASS, _attributes_class),
    ("storage.k8s.io", "VolumeAttachment"): KindTable(_ATTACHMENT, _attachment),
    ("storage.k8s.io", "CSINode"): KindTable(_CSI_NODE, _csi_node),
    ("storage.k8s.io", "CSIDriver"): KindTable(_CSI_DRIVER, _csi_driver),
}
