"""Validates the volumes of a pod: a name each, one source each, and what the usual sources need."""

from __future__ import annotations

from typing import Any, Final

from kubecel.names import dns_subdomain_errors
from kubecel.quantity import parse
from podium_cluster.apiserver.errors import duplicate, field_forbidden, invalid_value, not_supported, required
from podium_cluster.apiserver.validation.wording import Causes, Obj, config_key, dns_label

SOURCES: Final = (
    *("emptyDir", "hostPath", "gitRepo", "gcePersistentDisk", "awsElasticBlockStore", "secret", "nfs", "iscsi"),
    *("glusterfs", "persistentVolumeClaim", "rbd", "cinder", "cephfs", "quobyte", "downwardAPI", "fc", "flexVolume"),
    *("flocker", "configMap", "azureFile", "vsphereVolume", "photonPersistentDisk", "portworxVolume", "azureDisk"),
    *("storageos", "projected", "scaleIO", "csi", "ephemeral", "image"),
)
HOST_PATH_TYPES: Final = (
    *("", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"),
)
_MODE: Final = "must be a number between 0 and 0777 (octal), both inclusive"


def volumes(path: str, given: list[dict[str, Any]], pod_name: str, good: dict[str, Obj]) -> Causes:
    """Fills `good` with the volumes that mounts may refer to."""
    created = {f"{pod_name}-{volume.get('name', '')}" for volume in given if pod_name and "ephemeral" in volume}
    for at, volume in enumerate(given):
        field, name = f"{path}[{at}]", volume.get("name", "")
        found = [*_source(field, volume, pod_name), *(dns_label(f"{field}.name", name) if name else ())]
        if not name:
            found.append(required(f"{field}.name"))
        if name in good:
            found.append(duplicate(f"{field}.name", name))
        if not found:
            good[name] = volume
        yield from found
        claim = (volume.get("persistentVolumeClaim") or {}).get("claimName", "")
        if claim in created:
            detail = "must not reference a PVC that gets created for an ephemeral volume"
            yield invalid_value(f"{field}.persistentVolumeClaim.claimName", claim, detail)


def _source(field: str, volume: Obj, pod_name: str) -> Causes:
    given = [name for name in SOURCES if name in volume]
    if not given:
        yield required(field, "must specify a volume type")
        return
    first, *others = given
    check = _CHECKS.get(first)
    if check is not None:
        yield from check(f"{field}.{first}", volume[first])
    if first == "ephemeral" and pod_name and volume.get("name"):
        name = f"{pod_name}-{volume['name']}"
        for complaint in dns_subdomain_errors(name):
            yield invalid_value(f"{field}.name", volume["name"], f'PVC name "{name}": {complaint}')
    for other in others:
        yield field_forbidden(f"{field}.{other}", "may not specify more than 1 volume type")


def _empty_dir(field: str, source: Obj) -> Causes:
    if source.get("sizeLimit") is not None and parse(source["sizeLimit"]) < 0:
        yield field_forbidden(f"{field}.sizeLimit", "SizeLimit field must be a valid resource quantity")


def host_path(field: str, source: Obj) -> Causes:
    path = source.get("path", "")
    if not path:
        yield required(f"{field}.path")
        return
    yield from no_backsteps(f"{field}.path", path)
    if source.get("type", "") not in HOST_PATH_TYPES:
        yield not_supported(f"{field}.type", source["type"], HOST_PATH_TYPES)


def _secret(field: str, source: Obj) -> Causes:
    if not source.get("secretName"):
        yield required(f"{field}.secretName")
    yield from _files(field, source)


def _config_map(field: str, source: Obj) -> Causes:
    if not source.get("name"):
        yield required(f"{field}.name")
    yield from _files(field, source)


def _files(field: str, source: Obj) -> Causes:
    mode = source.get("defaultMode")
    if mode is not None and not 0 <= mode <= 0o777:
        yield invalid_value(f"{field}.defaultMode", mode, _MODE)
    for at, item in enumerate(source.get("items") or ()):
        path = f"{field}.items[{at}]"
        if not item.get("key"):
            yield required(f"{path}.key")
        if not item.get("path"):
            yield required(f"{path}.path")
        else:
            yield from descending(f"{path}.path", item["path"])
        mode = item.get("mode")
        if mode is not None and not 0 <= mode <= 0o777:
            yield invalid_value(f"{path}.mode", mode, _MODE)


def _claim(field: str, source: Obj) -> Causes:
    if not source.get("claimName"):
        yield required(f"{field}.claimName")


def descending(field: str, path: str) -> Causes:
    if path.startswith("/"):
        yield invalid_value(field, path, "must be a relative path")
    yield from no_backsteps(field, path)


def no_backsteps(field: str, path: str) -> Causes:
    if ".." in path.split("/"):
        yield invalid_value(field, path, "must not contain '..'")


def key_reference(field: str, reference: Obj) -> Causes:
    name, key = reference.get("name", ""), reference.get("key", "")
    for complaint in dns_subdomain_errors(name):
        yield invalid_value(f"{field}.name", name, complaint)
    if not key:
        yield required(f"{field}.key")
    else:
        yield from config_key(f"{field}.key", key)


_CHECKS: Final = {
    "emptyDir": _empty_dir,
    "hostPath": host_path,
    "secret": _secret,
    "configMap": _config_map,
    "persistentVolumeClaim": _claim,
}
