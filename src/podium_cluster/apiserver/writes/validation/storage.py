"""Validates persistent volumes, claims and storage classes: access modes, sizes, and what stays as it was."""

from __future__ import annotations

from typing import Any, Final

from kubecel.names import qualified_name_errors
from kubecel.quantity import canonical, parse, units
from podium_cluster.apiserver.errors import field_forbidden, immutable, invalid_value, not_supported, required
from podium_cluster.apiserver.writes.validation.placement import node_selector
from podium_cluster.apiserver.writes.validation.volumes import host_path
from podium_cluster.apiserver.writes.validation.wording import (
    NOT_POSITIVE,
    Causes,
    Obj,
    dns_subdomain,
    each,
    selector,
    sorted_map,
)

ACCESS_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
VOLUME_MODES: Final = ("Block", "Filesystem")
RECLAIM_POLICIES: Final = ("Delete", "Recycle", "Retain")
BINDING_MODES: Final = ("Immediate", "WaitForFirstConsumer")
VOLUME_SOURCES: Final = (
    *("hostPath", "gcePersistentDisk", "awsElasticBlockStore", "glusterfs", "flocker", "nfs", "rbd", "quobyte"),
    *("cephfs", "iscsi", "cinder", "fc", "flexVolume", "azureFile", "vsphereVolume", "photonPersistentDisk"),
    *("portworxVolume", "azureDisk", "scaleIO", "local", "storageos", "csi"),
)
_CLAIM_FIXED: Final = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
)


def claim(obj: Obj) -> Causes:
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


def claim_update(new: Obj, old: Obj) -> Causes:
    yield from claim(new)
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
    yield from _unchanged("volumeMode", (new.get("spec") or {}).get("volumeMode"), before.get("volumeMode"))


def volume(obj: Obj) -> Causes:
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


def volume_update(new: Obj, old: Obj) -> Causes:
    yield from volume(new)
    after, before = new.get("spec") or {}, old.get("spec") or {}
    changed = [name for name in VOLUME_SOURCES if after.get(name) != before.get(name)]
    if changed:
        fields = ", ".join(f"spec.{name}" for name in changed)
        detail = f"spec.persistentvolumesource is immutable after creation\n{fields}"
        yield field_forbidden("spec.persistentvolumesource", detail)
    yield from _unchanged("volumeMode", after.get("volumeMode"), before.get("volumeMode"))


def storage_class(obj: Obj) -> Causes:
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


def storage_class_update(new: Obj, old: Obj) -> Causes:
    yield from _unchanged("parameters", sorted_map(new.get("parameters")), sorted_map(old.get("parameters")))
    for name in ("provisioner", "reclaimPolicy", "volumeBindingMode"):
        yield from _unchanged(name, new.get(name), old.get(name))


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


def _unchanged(field: str, after: Any, before: Any) -> Causes:
    if after != before:
        yield immutable(field, after)
