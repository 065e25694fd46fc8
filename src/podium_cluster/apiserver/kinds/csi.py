"""CSIDrivers, CSINodes, CSIStorageCapacities and VolumeAttachments: objects that drivers of storage bring."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.kind import STATUS, Defaults, built_in_kind
from podium_cluster.apiserver.kind_record import KindRecord, KindRules
from podium_cluster.apiserver.kinds.persistent_volumes import VOLUME_DEFAULTS
from podium_cluster.apiserver.table_cells import (
    AGE,
    NAME,
    NONE,
    UNSET,
    Cells,
    KindTable,
    TableColumn,
    age,
    boolean,
    integer,
)

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


_RETURNED_AND_GUARDED: Final = KindRules(returns_deleted=True, update_needs_version=True)
CSI_DRIVER: Final = KindRecord(
    built_in_kind(
        "storage.k8s.io/v1",
        "CSIDriver csidrivers",
        cluster=True,
        defaults=Defaults(
            {
                "storage.v1.CSIDriverSpec": {
                    "attachRequired": True,
                    "podInfoOnMount": False,
                    "storageCapacity": False,
                    "fsGroupPolicy": "ReadWriteOnceWithFSType",
                    "volumeLifecycleModes": ["Persistent"],
                    "requiresRepublish": False,
                    "seLinuxMount": False,
                    "preventPodSchedulingIfMissing": False,
                }
            }
        ),
    ),
    _RETURNED_AND_GUARDED,
    KindTable(_CSI_DRIVER, _csi_driver),
)
CSI_NODE: Final = KindRecord(
    built_in_kind("storage.k8s.io/v1", "CSINode csinodes", STATUS, cluster=True),
    KindRules(returns_deleted=True, update_needs_version=True, empty_status={}),
    KindTable(_CSI_NODE, _csi_node),
)
CSI_STORAGE_CAPACITY: Final = KindRecord(
    built_in_kind("storage.k8s.io/v1", "CSIStorageCapacity csistoragecapacities"),
    KindRules(update_needs_version=True),
)
VOLUME_ATTACHMENT: Final = KindRecord(
    built_in_kind(
        "storage.k8s.io/v1", "VolumeAttachment volumeattachments", STATUS, cluster=True, defaults=VOLUME_DEFAULTS
    ),
    KindRules(
        returns_deleted=True, update_needs_version=True, metadata_with_status="none", empty_status={"attached": False}
    ),
    KindTable(_ATTACHMENT, _attachment),
)
