"""Reads the state of a cluster from files: dumps, the export of kube-scheduler-simulator, and KAI's snapshot.

A file is recognised by what it holds, never by its name:

    Kubernetes objects        what kubectl get -o json|yaml prints, lists and several documents (dump)
    one JSON object with the  an export of kube-scheduler-simulator (kss); its schedulerConfig counts
      keys pods, nodes, …
    a ZIP                     KAI Scheduler's /get-snapshot (kai)
"""

from __future__ import annotations

import io
import zipfile
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from podium.errors import UserError
from podium.kube import Pod
from podium.kube.bounds import FILE, UNDECODABLE
from podium.kube.decode import KINDS, decode_documents

ZIP: Final = b"PK\x03\x04"
KSS_KINDS: Final = {
    "pods": ("v1", "Pod"),
    "nodes": ("v1", "Node"),
    "pvs": ("v1", "PersistentVolume"),
    "pvcs": ("v1", "PersistentVolumeClaim"),
    "storageClasses": ("storage.k8s.io/v1", "StorageClass"),
    "priorityClasses": ("scheduling.k8s.io/v1", "PriorityClass"),
    "namespaces": ("v1", "Namespace"),
}
"""The keys of kube-scheduler-simulator's export, and what stands in each."""
KSS_CONFIG: Final = "schedulerConfig"
FORMS: Final = (
    "write what kubectl get -o json|yaml printed, an export of kube-scheduler-simulator, or a snapshot of KAI Scheduler"
)


class StateSourceError(UserError, ValueError):
    """A file that holds no state of a cluster: one sentence says what it should be."""


@dataclass
class KnownState:
    """The objects of a cluster, and where they are from."""

    source: str
    objects: list[Any] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    """How many objects of other kinds were passed over."""
    config: str | None = None
    """The configuration of the scheduler, where the source has one (YAML or JSON)."""
    missing: list[str] = field(default_factory=list)
    """Kinds that were not seen."""
    resource_version: str | None = None
    server_version: str = ""
    """The version that the API server had, where the source says it."""


def live_state(objects: Iterable[Any], missing: list[str]) -> KnownState:
    """The objects of a live cluster, with the newest resourceVersion among them."""
    found = list(objects)
    versions = (each.metadata.resource_version for each in found)
    newest = max((int(each) for each in versions if each.isdecimal()), default=None)
    return KnownState("live", found, missing=missing, resource_version=None if newest is None else str(newest))


def read_state(files: Iterable[tuple[bytes, str]]) -> KnownState:
    """The state in these files, each with its name; raises StateSourceError, DecodeError and DocumentError."""
    whole: KnownState | None = None
    for data, source in files:
        found = _read_one(data, source)
        if whole is None:
            whole = found
            continue
        whole.objects += found.objects
        whole.skipped += found.skipped
        whole.config = whole.config or found.config
        whole.server_version = found.server_version or whole.server_version
    if whole is None:
        raise StateSourceError(f"no file is given: {FORMS}")
    whole.missing = missing_kinds(whole.objects)
    return whole


def _read_one(data: bytes, source: str) -> KnownState:
    if data.startswith(ZIP):
        return _kai_snapshot(data, source)
    text = _text(data, source)
    if text.lstrip().startswith("{"):
        export = _kss_export(text, source)
        if export is not None:
            return export
    decoded = decode_documents(text, source)
    return KnownState("dump", list(decoded.objects), decoded.skipped, server_version=decoded.server_version)


def _text(data: bytes, source: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise StateSourceError(f"{source}:{line}: not UTF-8 text; save the file as UTF-8") from None


def _kss_export(text: str, source: str) -> KnownState | None:
    """The export's objects; None where the text is something else."""
    if '"apiVersion"' in text[:4096].partition("[")[0]:
        return None
    try:
        whole = msgspec.json.decode(text.encode(), type=dict[str, msgspec.Raw])
    except UNDECODABLE:
        return None
    if "kind" in whole or not (whole.keys() & {"nodes", "pods"}) or not whole.keys() <= {*KSS_KINDS, KSS_CONFIG}:
        return None
    state = KnownState("kss")
    for key, (version, kind) in KSS_KINDS.items():
        items = whole.get(key)
        if items is None or bytes(items) == b"null":
            continue
        wrapped = b'{"apiVersion":"%s","kind":"%sList","items":%s}' % (version.encode(), kind.encode(), bytes(items))
        state.objects += decode_documents(wrapped, f"{source} ({key})").objects
    config = whole.get(KSS_CONFIG)
    if config is not None and bytes(config) not in (b"null", b"{}"):
        state.config = bytes(config).decode()
    return state


def _kai_snapshot(data: bytes, source: str) -> KnownState:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            parts = [each for each in archive.infolist() if not each.is_dir()]
            if sum(each.file_size for each in parts) > FILE.size:
                raise StateSourceError(f"{source}: larger than {FILE.size >> 20} MiB when unpacked")
            for part in parts:
                found = _raw_objects(archive.read(part), f"{source} ({part.filename})")
                if found is not None:
                    return found
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
        raise StateSourceError(f"{source}: the ZIP is broken: {error}") from None
    raise StateSourceError(f"{source}: no snapshot of KAI Scheduler in the ZIP: {FORMS}")


def _raw_objects(data: bytes, source: str) -> KnownState | None:
    try:
        whole = msgspec.json.decode(data)
    except UNDECODABLE:
        return None
    raw = whole.get("rawObjects") if isinstance(whole, dict) else None
    if not isinstance(raw, Mapping):
        return None
    state = KnownState("kai")
    by_kind = {kind.lower(): (version, kind) for version, kind in KINDS}
    for key, items in raw.items():
        if not isinstance(items, list) or not items:
            continue
        name = key.lower()
        singular = name[:-3] + "y" if name.endswith("ies") else name[:-2] if name.endswith("sses") else name[:-1]
        known = by_kind.get(singular)
        if known is None:
            state.skipped[key] += len(items)
            continue
        version, kind = known
        wrapped = msgspec.json.encode({"apiVersion": version, "kind": f"{kind}List", "items": items})
        state.objects += decode_documents(wrapped, f"{source}.{key}").objects
    return state


def missing_kinds(objects: Iterable[Any]) -> list[str]:
    """Kinds that pods speak of and of which there is nothing."""
    kinds, wanted = set(), set()
    for each in objects:
        kinds.add(type(each).__name__)
        if isinstance(each, Pod):
            if any(volume.persistent_volume_claim is not None for volume in each.spec.volumes):
                wanted.add("PersistentVolumeClaim")
            if each.spec.resource_claims:
                wanted.add("ResourceClaim")
    return sorted(wanted - kinds)
