"""Encodes stored objects as answers: as they are, as a table, or only their metadata; one, or a list.

The Accept header lists which form the client can read, best first; the first of these that can be made is made.
Everything here is JSON: a client that insists on protobuf or YAML gets 406.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final, NamedTuple

import msgspec

from podium.framework.clock import Clock
from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.errors import StatusError
from podium_cluster.apiserver.errors import not_acceptable as no_such_form
from podium_cluster.apiserver.kind import Kind
from podium_cluster.apiserver.presentation.tables import table
from podium_cluster.apiserver.store import storage_form
from podium_cluster.apiserver.store.collection import Stored
from podium_cluster.apiserver.store.watcher import Show

_AVAILABLE: Final = "application/json, application/json;stream=watch"


class Form(NamedTuple):
    """`what` is "" for the object itself, or the kind that `as=` asks for; `version` is of meta.k8s.io."""

    what: str = ""
    version: str = "v1"


PLAIN: Final = Form()
_SHAPES: Final = {
    False: ("Table", "PartialObjectMetadata"),
    True: ("Table", "PartialObjectMetadataList"),
}


@lru_cache(maxsize=256)
def negotiate(accept: str, *, collection: bool, watch: bool = False) -> Form:
    """The form of an answer about one object or a collection; StatusError 406 where none will do."""
    if not accept:
        return PLAIN
    is_json = False
    for choice in accept.split(","):
        media, *parameters = [part.strip() for part in choice.split(";")]
        if media not in ("application/json", "*/*", "application/*"):
            continue
        options = dict(parameter.split("=", 1) for parameter in parameters if "=" in parameter)
        what = options.get("as", "")
        if not what:
            return PLAIN
        is_json = True
        if options.get("g") != "meta.k8s.io" or options.get("v") not in ("v1", "v1beta1"):
            continue
        shapes = ("Table", "PartialObjectMetadata") if watch else _SHAPES[collection]
        if what in shapes:
            return Form(what, options["v"])
    if is_json:
        raise no_such_form(("application/json",))
    raise not_acceptable(collection=collection)


@lru_cache(maxsize=256)
def wants_aggregated_discovery(accept: str) -> str:
    """The version of aggregated discovery that is wanted, "" for the old form."""
    for choice in accept.split(","):
        media, *parameters = [part.strip() for part in choice.split(";")]
        options = dict(parameter.split("=", 1) for parameter in parameters if "=" in parameter)
        if media not in ("application/json", "*/*", "application/*"):
            continue
        if options.get("g") == "apidiscovery.k8s.io" and options.get("as") == "APIGroupDiscoveryList":
            if options.get("v") in ("v2", "v2beta1"):
                return options["v"]
            continue
        if not options.get("as"):
            return ""
    return ""


def not_acceptable(*, collection: bool) -> StatusError:
    available = _AVAILABLE if collection else _AVAILABLE.partition(",")[0]
    message = f"406: Not Acceptable\n\nAvailable representations: {available}"
    return StatusError(406, "NotAcceptable", message, {})


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
