"""Encodes stored objects as answers: as they are, as a table, or only their metadata; one, or a list."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec

from podium.framework.clock import Clock
from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.kind import Kind
from podium_cluster.apiserver.presentation.negotiation import Form
from podium_cluster.apiserver.presentation.tables import table
from podium_cluster.apiserver.store import storage_form
from podium_cluster.apiserver.store.collection import Stored
from podium_cluster.apiserver.store.watcher import Show

_encode = msgspec.json.Encoder().encode


def one(clock: Clock, kind: Kind, stored: Stored, form: Form, include: str) -> bytes:
    if not form.what:
        return storage_form.presented(stored, kind)
    return _encode(one_object(clock, kind, storage_form.decoded(stored, kind), form, include))


def one_object(clock: Clock, kind: Kind, obj: JsonObject, form: Form, include: str) -> JsonObject:
    """An object that is not stored, such as a computed one, in the form wanted."""
    if form.what == "Table":
        metadata = {"resourceVersion": obj["metadata"].get("resourceVersion", "")}
        return _table(clock, kind, [obj], form, include, metadata)
    return _metadata_only(obj, form.version) if form.what else obj


def many(clock: Clock, kind: Kind, items: Sequence[Stored], metadata: JsonObject, form: Form, include: str) -> bytes:
    """A list. Items of built-in kinds leave out what the list's kind says already, as the API does."""
    if not form.what:
        head = _encode({"kind": f"{kind.kind}List", "apiVersion": kind.api_version, "metadata": metadata})
        return head[:-1] + b',"items":[' + _joined(kind, items) + b"]}"
    return _encode(
        many_objects(clock, kind, [storage_form.decoded(item, kind) for item in items], metadata, form, include)
    )


def many_objects(
    clock: Clock, kind: Kind, objects: Sequence[JsonObject], metadata: JsonObject, form: Form, include: str
) -> JsonObject:
    """A list of objects that are not stored."""
    if form.what == "Table":
        return _table(clock, kind, objects, form, include, metadata)
    if form.what:
        items = [_metadata_only(obj, form.version) for obj in objects]
        version = f"meta.k8s.io/{form.version}"
        return {"kind": "PartialObjectMetadataList", "apiVersion": version, "metadata": metadata, "items": items}
    return {"kind": f"{kind.kind}List", "apiVersion": kind.api_version, "metadata": metadata, "items": list(objects)}


def shower(clock: Clock, kind: Kind, form: Form, include: str) -> Show | None:
    """How a watch sends objects; None: as they are. Only the first table of a watch has headers."""
    if not form.what:
        return None
    headers = True

    def show(stored: Stored) -> bytes:
        nonlocal headers
        obj = storage_form.decoded(stored, kind)
        if form.what != "Table":
            return _encode(_metadata_only(obj, form.version))
        metadata = {"resourceVersion": obj["metadata"]["resourceVersion"]}
        made = _table(clock, kind, [obj], form, include, metadata, headers=headers)
        headers = False
        return _encode(made)

    return show


def _table(
    clock: Clock,
    kind: Kind,
    objects: Sequence[JsonObject],
    form: Form,
    include: str,
    metadata: JsonObject,
    *,
    headers: bool = True,
) -> JsonObject:
    return table(
        kind,
        objects,
        datetime.fromtimestamp(clock.now(), UTC),
        printer_columns=getattr(kind, "printer_columns", None),
        headers=headers,
        include=include or "Metadata",
        list_metadata=metadata,
        version=form.version,
    )


def _metadata_only(obj: JsonObject, version: str) -> JsonObject:
    return {"kind": "PartialObjectMetadata", "apiVersion": f"meta.k8s.io/{version}", "metadata": obj["metadata"]}


def _joined(kind: Kind, items: Sequence[Stored]) -> bytes:
    if not items:
        return b""
    if kind.custom:
        return b",".join([storage_form.presented(item, kind) for item in items])
    start = len(kind.head)
    if items[0].kind is kind:
        return b"{" + b",{".join([memoryview(item.raw)[start:] for item in items])
    return b"{" + b",{".join([memoryview(storage_form.presented(item, kind))[start:] for item in items])
