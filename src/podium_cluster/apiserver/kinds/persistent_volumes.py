"""PersistentVolumes and PersistentVolumeClaims: both begin as Pending, and a claim that names no class gets the default
one.

A claim that says "" wants none. Access modes and sizes are checked, and what stays as it was.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

from kubecel.quantity import canonical, parse, units
from podium.kube.decode import decode_json
from podium.kube.json_object import JsonObject
from podium.kube.storage import BETA_CLASS_ANNOTATION, StorageClass, default_class
from podium_cluster.apiserver.errors import field_forbidden, invalid_value, not_supported, required
from podium_cluster.apiserver.kind import STATUS, Defaults, built_in_kind
from podium_cluster.apiserver.kind_record import KindRecord, KindRules
from podium_cluster.apiserver.kinds.storage_classes import STORAGE_CLASS
from podium_cluster.apiserver.table_cells import (
    AGE,
    NAME,
    UNSET,
    Cells,
    KindTable,
    TableColumn,
    age,
    quantity_cell,
    wide,
)
from podium_cluster.apiserver.validation.placement import node_selector
from podium_cluster.apiserver.validation.volumes import host_path
from podium_cluster.apiserver.validation.wording import (
    NOT_POSITIVE,
    Causes,
    Obj,
    dns_subdomain,
    selector,
    sorted_map,
    unchanged,
)
from podium_cluster.apiserver.write_context import WriteContext

ACCESS_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
VOLUME_MODES: Final = ("Block", "Filesystem")
RECLAIM_POLICIES: Final = ("Delete", "Recycle", "Retain")
VOLUME_SOURCES: Final = (
    *("hostPath", "gcePersistentDisk", "awsElasticBlockStore", "glusterfs", "flocker", "nfs", "rbd", "quobyte"),
    *("cephfs", "iscsi", "cinder", "fc", "flexVolume", "azureFile", "vsphereVolume", "photonPersistentDisk"),
    *("portworxVolume", "azureDisk", "scaleIO", "local", "storageos", "csi"),
)
_CLAIM_FIXED: Final = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
)
_CLASS_COLUMN: Final = TableColumn("StorageClass", "The class of storage.")
_ATTRIBUTES_COLUMN: Final = TableColumn("VolumeAttributesClass", "The class of volume attributes.")
_MODE_COLUMN: Final = wide("VolumeMode", "Whether the volume is a file system or a block device.")
_VOLUME_COLUMNS: Final = (
    NAME,
    TableColumn("Capacity", "How much the volume holds."),
    TableColumn("Access Modes", "How the volume can be mounted."),
    TableColumn("Reclaim Policy", "What becomes of the volume after its claim is gone."),
    TableColumn("Status", "Whether the volume is free, bound or going."),
    TableColumn("Claim", "The claim it is bound to."),
    _CLASS_COLUMN,
    _ATTRIBUTES_COLUMN,
    TableColumn("Reason", "Why the volume failed."),
    AGE,
    _MODE_COLUMN,
)
_CLAIM_COLUMNS: Final = (
    NAME,
    TableColumn("Status", "Whether the claim has its volume."),
    TableColumn("Volume", "The volume it is bound to."),
    TableColumn("Capacity", "How much that volume holds."),
    TableColumn("Access Modes", "How that volume can be mounted."),
    _CLASS_COLUMN,
    _ATTRIBUTES_COLUMN,
    AGE,
    _MODE_COLUMN,
)
_SHORT_MODES: Final = (
    ("ReadWriteOnce", "RWO"),
    ("ReadOnlyMany", "ROX"),
    ("ReadWriteMany", "RWX"),
    ("ReadWriteOncePod", "RWOP"),
)
VOLUME_DEFAULTS: Final = Defaults(
    {
        "core.v1.PersistentVolumeSpec": {"persistentVolumeReclaimPolicy": "Retain", "volumeMode": "Filesystem"},
        "core.v1.PersistentVolumeStatus": {"phase": "Pending"},
        "core.v1.HostPathVolumeSource": {"type": ""},
    }
)
CLAIM_DEFAULTS: Final = Defaults(
    {
        "core.v1.PersistentVolumeClaimSpec": {"volumeMode": "Filesystem"},
        "core.v1.PersistentVolumeClaimStatus": {"phase": "Pending"},
    }
)


def _admit_claim(claim: JsonObject, context: WriteContext) -> None:
    spec = claim.setdefault("spec", {})
    if "storageClassName" in spec or BETA_CLASS_ANNOTATION in (claim["metadata"].get("annotations") or {}):
        return
    found = default_class(decode_json(StorageClass, stored.raw) for stored in context.store.items(STORAGE_CLASS))
    if found is not None:
        spec["storageClassName"] = found.name


def _prepare_volume(obj: JsonObject, context: WriteContext) -> None:
    obj["status"] = {"phase": "Pending", "lastPhaseTransitionTime": context.now()}


def _prepare_volume_status(new: JsonObject, old: JsonObject, context: WriteContext) -> None:
    """The time of the last change of phase is the server's to write."""
    status, before = new.get("status") or {}, old.get("status") or {}
    if status.get("phase") != before.get("phase"):
        status["lastPhaseTransitionTime"] = context.now()
    elif "lastPhaseTransitionTime" not in status and "lastPhaseTransitionTime" in before:
        status["lastPhaseTransitionTime"] = before["lastPhaseTransitionTime"]


def _check_claim(obj: Obj) -> Causes:
    spec = obj.get("spec") or {}
    if not spec.get("accessModes"):
        yield required("spec.accessModes", "at least 1 access mode is required")
    yield from selector("spec.selector", spec.get("selector"))
    yield from _access_modes(spec.get("accessModes") or [])
    size = _storage(spec)
    if size is None:
        yield required("spec.resources[storage]")
    elif parse(size) <= 0:
        yield invalid_value("spec.resources[storage]", canonical(size), NOT_POSITIVE)
    for name in ("storageClassName", "volumeAttributesClassName"):
        if spec.get(name):
            yield from dns_subdomain(f"spec.{name}", spec[name])
    if spec.get("volumeMode") is not None and spec["volumeMode"] not in VOLUME_MODES:
        yield not_supported("spec.volumeMode", spec["volumeMode"], VOLUME_MODES)


def _check_claim_update(new: Obj, old: Obj) -> Causes:
    yield from _check_claim(new)
    after, before = dict(new.get("spec") or {}), dict(old.get("spec") or {})
    if not before.get("volumeName") and after.get("volumeName"):
        before["volumeName"] = after["volumeName"]
    if before.get("storageClassName") is None and after.get("storageClassName"):
        after.pop("storageClassName")
    if (new.get("status") or {}).get("phase") == "Bound":
        after["resources"], before["resources"] = _without_storage(after), _without_storage(before)
        after.pop("volumeAttributesClassName", None)
        before.pop("volumeAttributesClassName", None)
    if after != before:
        fields = ", ".join(f"spec.{name}" for name in sorted({*after, *before}) if after.get(name) != before.get(name))
        yield field_forbidden("spec", f"{_CLAIM_FIXED}\n{fields}")
    mine, theirs = (parse(_storage(obj.get("spec") or {}) or "0") for obj in (new, old))
    held = ((old.get("status") or {}).get("capacity") or {}).get("storage", "0")
    if mine < theirs and mine <= parse(held):
        yield field_forbidden("spec.resources.requests.storage", "field can not be less than status.capacity")
    yield from unchanged("volumeMode", (new.get("spec") or {}).get("volumeMode"), before.get("volumeMode"))


def _check_volume(obj: Obj) -> Causes:
    spec = obj.get("spec") or {}
    if not spec.get("accessModes"):
        yield required("spec.accessModes")
    yield from _access_modes(spec.get("accessModes") or [])
    capacity = spec.get("capacity") or {}
    if not capacity:
        yield required("spec.capacity")
    if set(capacity) != {"storage"}:
        yield not_supported("spec.capacity", sorted_map(capacity) or {}, ("storage",))
    for name, size in capacity.items():
        if parse(size) < 0:
            yield invalid_value(f"spec.capacity[{name}]", units(size), "must be a valid resource quantity")
        if parse(size) <= 0:
            yield invalid_value(f"spec.capacity[{name}]", canonical(size), NOT_POSITIVE)
    policy = spec.get("persistentVolumeReclaimPolicy")
    if policy and policy not in RECLAIM_POLICIES:
        yield not_supported("spec.persistentVolumeReclaimPolicy", policy, RECLAIM_POLICIES)
    affinity = (spec.get("nodeAffinity") or {}).get("required")
    if affinity is not None:
        yield from node_selector("spec.nodeAffinity.required", affinity)
    elif spec.get("nodeAffinity") is not None:
        yield required("spec.nodeAffinity.required", "must specify required node constraints")
    yield from _one_source(spec)
    if spec.get("storageClassName"):
        yield from dns_subdomain("spec.storageClassName", spec["storageClassName"])
    if spec.get("volumeMode") is not None and spec["volumeMode"] not in VOLUME_MODES:
        yield not_supported("spec.volumeMode", spec["volumeMode"], VOLUME_MODES)


def _check_volume_update(new: Obj, old: Obj) -> Causes:
    yield from _check_volume(new)
    after, before = new.get("spec") or {}, old.get("spec") or {}
    changed = [name for name in VOLUME_SOURCES if after.get(name) != before.get(name)]
    if changed:
        fields = ", ".join(f"spec.{name}" for name in changed)
        detail = f"spec.persistentvolumesource is immutable after creation\n{fields}"
        yield field_forbidden("spec.persistentvolumesource", detail)
    yield from unchanged("volumeMode", after.get("volumeMode"), before.get("volumeMode"))


def _access_modes(modes: list[str]) -> Causes:
    for mode in modes:
        if mode not in ACCESS_MODES:
            yield not_supported("spec.accessModes", mode, ACCESS_MODES)
    if "ReadWriteOncePod" in modes and {*modes} & {*ACCESS_MODES[:3]}:
        yield field_forbidden("spec.accessModes", "may not use ReadWriteOncePod with other access modes")


def _one_source(spec: Obj) -> Causes:
    given = [name for name in VOLUME_SOURCES if name in spec]
    if given and given[0] == "hostPath":
        yield from host_path("spec.hostPath", spec["hostPath"])
    if given and given[0] == "local" and spec.get("nodeAffinity") is None:
        yield required("spec.nodeAffinity", "Local volume requires node affinity")
    for other in given[1:]:
        yield field_forbidden(f"spec.{other}", "may not specify more than 1 volume type")
    if not given:
        yield required("spec", "must specify a volume type")


def _storage(spec: Obj) -> Any:
    return ((spec.get("resources") or {}).get("requests") or {}).get("storage")


def _without_storage(spec: Obj) -> dict[str, Any]:
    resources = dict(spec.get("resources") or {})
    requests = {name: value for name, value in (resources.pop("requests", None) or {}).items() if name != "storage"}
    return {**resources, "requests": requests}


def _volume_cells(obj: JsonObject, now: datetime) -> Cells:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    claim = spec.get("claimRef")
    return [
        obj["metadata"]["name"],
        quantity_cell((spec.get("capacity") or {}).get("storage")),
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


def _claim_cells(obj: JsonObject, now: datetime) -> Cells:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    volume = spec.get("volumeName", "")
    bound = [quantity_cell((status.get("capacity") or {}).get("storage")), _modes(status.get("accessModes"))]
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


PERSISTENT_VOLUME: Final = KindRecord(
    built_in_kind(
        "v1", "PersistentVolume persistentvolumes", STATUS, short="pv", cluster=True, defaults=VOLUME_DEFAULTS
    ),
    KindRules(
        prepare_for_create=_prepare_volume,
        prepare_for_status=_prepare_volume_status,
        validate=_check_volume,
        validate_update=_check_volume_update,
        returns_deleted=True,
    ),
    KindTable(_VOLUME_COLUMNS, _volume_cells),
)
PERSISTENT_VOLUME_CLAIM: Final = KindRecord(
    built_in_kind("v1", "PersistentVolumeClaim persistentvolumeclaims", STATUS, short="pvc", defaults=CLAIM_DEFAULTS),
    KindRules(
        admit=_admit_claim,
        validate=_check_claim,
        validate_update=_check_claim_update,
        returns_deleted=True,
        empty_status={"phase": "Pending"},
    ),
    KindTable(_CLAIM_COLUMNS, _claim_cells),
)
