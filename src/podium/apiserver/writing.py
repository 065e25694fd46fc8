"""Creating, replacing and patching objects: the order in which a write is checked, filled in and stored.

    create   fields → namespace → admission → metadata → prepare → validate → is the name free? → store
    update   fields → current state → version → prepare → validate → has anything changed? → store
    patch    current state → patch → update

A write that changes nothing stores nothing: its answer has the resourceVersion that was there. An update that takes
the last finalizer off an object marked for deletion removes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from podium.apiserver import checking, deleting, forms, metadata, patching
from podium.apiserver.errors import (
    Cause,
    StatusError,
    already_exists,
    bad_request,
    forbidden,
    immutable,
    invalid,
    invalid_value,
    modified,
    not_found,
)
from podium.apiserver.kinds import NAMESPACE, Kind
from podium.apiserver.patches.go_text import go_text
from podium.apiserver.rules import Rules, rules_of
from podium.apiserver.store import Stored, encode
from podium.apiserver.subresources import parts
from podium.kube.json_object import JsonObject

if TYPE_CHECKING:
    from podium.apiserver.api import Api


_GENERATED_NAME_ATTEMPTS = 8


class Options(msgspec.Struct, frozen=True):
    """How a request wants to write. `force` is server-side apply's; `is_patch` writes need not say a version. `raw` is
    the text of the body, where there is one; `warnings` collects what the answer should warn about."""

    dry_run: bool = False
    field_validation: str = ""
    manager: str = ""
    force: bool = False
    is_patch: bool = False
    raw: bytes | None = None
    warnings: list[str] = msgspec.field(default_factory=list)


def create(api: Api, kind: Kind, obj: JsonObject, namespace: str, options: Options) -> Stored:
    """Store a new object; `obj` becomes the store's."""
    rules = rules_of(kind)
    checking.check_and_default(kind, obj, options)
    meta = _metadata_of(obj)
    _check_namespace(kind, meta, namespace)
    if kind.namespaced:
        admit_namespace(api, kind, namespace, meta.get("name", ""))
    if meta.get("resourceVersion"):
        raise StatusError(500, "", "resourceVersion should not be set on objects to be created")
    options.warnings.extend(metadata.without_repeated_owners(meta))
    context = api.context(kind)
    rules.admit(obj, context)
    generated = not meta.get("name") and bool(meta.get("generateName"))
    metadata.fill_new(meta, kind, namespace, context.now, api.rng)
    for _ in range(_GENERATED_NAME_ATTEMPTS if generated else 0):
        if api.store.get(kind, namespace if kind.namespaced else "", meta["name"]) is None:
            break
        meta["name"] = metadata.generated_name(meta["generateName"], api.rng)
    obj = forms.to_storage(kind, obj)
    if rules.generation:
        meta["generation"] = 1
    if kind.has_status and not rules.status_on_create:
        obj.pop("status", None)
    rules.prepare_for_create(obj, context)
    if rules.empty_status is not None and not obj.get("status"):
        obj["status"] = dict(rules.empty_status)
    causes = [*metadata.metadata_causes(meta, kind, rules), *rules.validate(obj)]
    if causes:
        raise invalid(forms.storage_kind(kind), meta.get("name", ""), causes)
    present = api.store.get(kind, meta.get("namespace"), meta["name"])
    if present is not None:
        raise already_exists(kind, meta["name"], going=b'"deletionTimestamp":' in present.raw)
    stored_kind = forms.storage_kind(kind)
    return encode(stored_kind, obj, None) if options.dry_run else api.store.put(stored_kind, obj)


def update(
    api: Api, kind: Kind, namespace: str | None, name: str, obj: JsonObject, subresource: str, options: Options
) -> tuple[Stored, bool]:
    """Replace an object or one part of it; True where the update created it. `obj` becomes the store's."""
    rules = rules_of(kind)
    checking.check_and_default(kind, obj, options)
    meta = _metadata_of(obj)
    _check_address(kind, meta, namespace, name)
    old = api.store.get(kind, namespace, name)
    if old is None:
        if rules.update_creates and not subresource and not meta.get("resourceVersion") and not meta.get("uid"):
            return create(api, kind, obj, namespace or "", options), True
        raise not_found(kind, name)
    obj = patching.tracked(api, kind, old, obj, subresource, options)
    return replace(api, kind, rules, old, obj, subresource, options), False


def patch(
    api: Api,
    kind: Kind,
    namespace: str | None,
    name: str,
    body: Any,
    content_type: str,
    subresource: str,
    options: Options,
) -> tuple[Stored, bool]:
    """Apply a patch to what is stored; True where a server-side apply created it."""
    rules = rules_of(kind)
    old = api.store.get(kind, namespace, name)
    applies = content_type == patching.APPLY
    if applies:  # What is applied may be YAML, and fields that are missing from it are not missing.
        options = msgspec.structs.replace(options, raw=None)
    if old is None:
        if applies and not subresource:
            obj = patching.applied(api, kind, None, body, subresource, options)
            _check_address(kind, _metadata_of(obj), namespace, name)
            return create(api, kind, obj, namespace or "", options), True
        raise not_found(kind, name)
    obj = patching.patched(api, kind, old, body, content_type, subresource, options)
    checking.check_patched(kind, obj, go_text(body) if content_type == patching.STRATEGIC else "", options)
    _check_address(kind, _metadata_of(obj), namespace, name)
    if not applies:
        obj = patching.tracked(api, kind, old, obj, subresource, options)
    return replace(api, kind, rules, old, obj, subresource, options), False


def replace(
    api: Api, kind: Kind, rules: Rules, old: Stored, obj: JsonObject, subresource: str, options: Options
) -> Stored:
    """Store the next state of an object that exists, after all checks."""
    meta = obj["metadata"]
    _check_version(kind, rules, old, meta, options)
    before = old.decode()
    obj = forms.to_storage(kind, obj)
    metadata.carry_over(meta, before["metadata"])
    obj = parts.merged(kind, obj, before, subresource)
    meta = obj["metadata"]
    context = api.context(kind)
    if subresource == "status":
        rules.prepare_for_status(obj, before, context)
        metadata.carry_over(meta, before["metadata"])
    elif not subresource:
        rules.prepare_for_update(obj, before, context)
        if rules.generation and parts.spec_changed(kind, obj, before):
            meta["generation"] = before["metadata"].get("generation", 0) + 1
    causes = metadata.update_causes(meta, before["metadata"], kind, rules)
    causes += rules.validate_status(obj, before) if subresource == "status" else rules.validate_update(obj, before)
    if causes:
        raise invalid(kind, old.name, causes)
    obj["kind"], obj["apiVersion"] = old.kind.kind, old.kind.api_version
    meta["resourceVersion"] = str(old.revision)
    if obj == before:
        return old
    if options.dry_run:
        return encode(old.kind, obj, old.revision)
    stored = api.store.put(old.kind, obj)
    return api.store.remove(kind, old.namespace, old.name) if deleting.finished(obj) else stored


def _metadata_of(obj: JsonObject) -> JsonObject:
    meta: JsonObject | None = obj.get("metadata")
    if meta is None:
        meta = obj["metadata"] = {}
    return meta


def admit_namespace(api: Api, kind: Kind, namespace: str, name: str) -> None:
    """Nothing is created where there is no namespace, or where one is about to go."""
    space = api.store.get(NAMESPACE, "", namespace)
    if space is None:
        raise not_found(NAMESPACE, namespace)
    if space.fields[0] == "Terminating":
        cause = Cause("NamespaceTerminating", f"namespace {namespace} is being terminated", "metadata.namespace")
        why = f"unable to create new content in namespace {namespace} because it is being terminated"
        raise forbidden(kind, name, why, [cause])


def _check_address(kind: Kind, meta: JsonObject, namespace: str | None, name: str) -> None:
    given = meta.get("name")
    if given and given != name:
        raise bad_request(f"the name of the object ({given}) does not match the name on the URL ({name})")
    if not given:
        raise bad_request(f"the name of the object ({name} based on URL) was undeterminable: name must be provided")
    _check_namespace(kind, meta, namespace or "")


def _check_namespace(kind: Kind, meta: JsonObject, namespace: str) -> None:
    """An object is where its path says; one that is in no namespace need not know that it is not."""
    if not kind.namespaced:
        meta.pop("namespace", None)
    elif meta.get("namespace") and meta["namespace"] != namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    else:
        meta["namespace"] = namespace


def _check_version(kind: Kind, rules: Rules, old: Stored, meta: JsonObject, options: Options) -> None:
    if (uid := meta.get("uid")) and uid != old.uid:
        if options.is_patch:
            raise invalid(kind, old.name, 2 * [immutable("metadata.uid", uid)])
        raise deleting.precondition_failed(kind, old, uid, "")
    version = meta.get("resourceVersion")
    if version and version != "0":
        if not (version.isascii() and version.isdigit()):
            raise StatusError(500, "", f'strconv.ParseUint: parsing "{version}": invalid syntax')
        if version != str(old.revision):
            raise modified(kind, old.name)
    elif rules.update_needs_version and not options.is_patch:
        cause = invalid_value("metadata.resourceVersion", 0, "must be specified for an update")
        # Here, and only here, the API names the resource where it names the kind elsewhere.
        raise invalid(msgspec.structs.replace(kind, kind=kind.plural), old.name, [cause])
