"""StorageClasses and VolumeAttributesClasses: what makes volumes, and of which quality."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from kubecel.names import qualified_name_errors
from podium.kube.json_object import JsonObject
from podium.kube.storage import is_default_class
from podium_cluster.apiserver.errors import immutable, not_supported, required
from podium_cluster.apiserver.kind import Defaults, built_in_kind
from podium_cluster.apiserver.kind_record import KindRecord, KindRules
from podium_cluster.apiserver.table_cells import AGE, NAME, Cells, KindTable, TableColumn, age
from podium_cluster.apiserver.validation.wording import Causes, Obj, each, sorted_map

BINDING_MODES: Final = ("Immediate", "WaitForFirstConsumer")
_COLUMNS: Final = (
    NAME,
    TableColumn("Provisioner", "What makes volumes of the class."),
    TableColumn("ReclaimPolicy", "What becomes of its volumes after their claims are gone."),
    TableColumn("VolumeBindingMode", "Whether volumes wait for the first pod."),
    TableColumn("AllowVolumeExpansion", "Whether its volumes can grow."),
    AGE,
)
_ATTRIBUTES_COLUMNS: Final = (NAME, TableColumn("DriverName", "The driver whose attributes these are."), AGE)
STORAGE_CLASS: Final = built_in_kind(
    "storage.k8s.io/v1",
    "StorageClass storageclasses",
    short="sc",
    cluster=True,
    defaults=Defaults({"storage.v1.StorageClass": {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"}}),
)


def _check(obj: Obj) -> Causes:
    provisioner = obj.get("provisioner", "")
    if not provisioner:
        yield required("provisioner")
    else:
        yield from each("provisioner", provisioner.lower(), qualified_name_errors(provisioner.lower()))
    policy = obj.get("reclaimPolicy")
    if policy and policy not in ("Delete", "Retain"):
        yield not_supported("reclaimPolicy", policy, ("Delete", "Retain"))
    mode = obj.get("volumeBindingMode")
    if mode is None:
        yield required("volumeBindingMode")
    elif mode not in BINDING_MODES:
        yield not_supported("volumeBindingMode", mode, BINDING_MODES)


def _check_update(new: Obj, old: Obj) -> Causes:
    if sorted_map(new.get("parameters")) != sorted_map(old.get("parameters")):
        yield immutable("parameters", None)
    for name in ("provisioner", "reclaimPolicy", "volumeBindingMode"):
        if new.get(name) != old.get(name):
            yield immutable(name, None)


def _cells(obj: JsonObject, now: datetime) -> Cells:
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


def _attributes_cells(obj: JsonObject, now: datetime) -> Cells:
    return [obj["metadata"]["name"], obj.get("driverName", ""), age(obj, now)]


STORAGE_CLASS_RECORD: Final = KindRecord(
    STORAGE_CLASS,
    KindRules(validate=_check, validate_update=_check_update, returns_deleted=True),
    KindTable(_COLUMNS, _cells),
)
VOLUME_ATTRIBUTES_CLASS: Final = KindRecord(
    built_in_kind("storage.k8s.io/v1", "VolumeAttributesClass volumeattributesclasses", short="vac", cluster=True),
    KindRules(returns_deleted=True),
    KindTable(_ATTRIBUTES_COLUMNS, _attributes_cells),
)
