"""Replaces and patches objects: checks, fills in and stores the next state of what exists.

    update   fields → current state → version → prepare → validate → has anything changed? → store
    patch    current state → patch → update

A write that changes nothing stores nothing: its answer has the resourceVersion that was there. An update that takes
the last finalizer off an object marked for deletion removes it.

A status update of most kinds may change labels and annotations too, because kubelets and old controllers do; newer
kinds let it change nothing else.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from kubecel.structured_values import same_json
from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.errors import invalid, not_found
from podium_cluster.apiserver.kind import Kind
from podium_cluster.apiserver.kind_record import KindRules
from podium_cluster.apiserver.kinds import rules_of
from podium_cluster.apiserver.store import storage_form
from podium_cluster.apiserver.store.collection import Stored
from podium_cluster.apiserver.store.object_store import encode
from podium_cluster.apiserver.validation.metadata import update_causes
from podium_cluster.apiserver.write_context import WriteContext, WriteOptions
from podium_cluster.apiserver.writes import field_validation, metadata, patch
from podium_cluster.apiserver.writes.conflict import check_update
from podium_cluster.apiserver.writes.create import create
from podium_cluster.apiserver.writes.delete import finished
from podium_cluster.apiserver.writes.metadata import check_address, metadata_of

_MANAGED: Final = ("managedFields", "resourceVersion")


def update(
    context: WriteContext,
    kind: Kind,
    namespace: str | None,
    name: str,
    obj: JsonObject,
    subresource: str,
    options: WriteOptions,
) -> tuple[Stored, bool]:
    """Replace an object or one part of it; True where the update created it. `obj` becomes the store's."""
    rules = rules_of(kind)
    field_validation.check_and_default(kind, obj, options)
    meta = metadata_of(obj)
    check_address(kind, meta, namespace, name)
    old = context.store.get(kind, namespace, name)
    if old is None:
        if rules.update_creates and not subresource and not meta.get("resourceVersion") and not meta.get("uid"):
            return create(context, kind, obj, namespace or "", options), True
        raise not_found(kind, name)
    obj = patch.tracked(context.clock, kind, old, obj, subresource, options)
    return replace(context, kind, rules, old, obj, subresource, options), False


def patch_object(
    context: WriteContext,
    kind: Kind,
    namespace: str | None,
    name: str,
    body: Any,
    content_type: str,
    subresource: str,
    options: WriteOptions,
) -> tuple[Stored, bool]:
    """Apply a patch to what is stored; True where a server-side apply created it."""
    rules = rules_of(kind)
    old = context.store.get(kind, namespace, name)
    applies = content_type == patch.APPLY
    if applies:  # What is applied may be YAML, and fields that are missing from it are not missing.
        options = msgspec.structs.replace(options, raw=None)
    if old is None:
        if applies and not subresource:
            obj = patch.applied(context.clock, kind, None, body, subresource, options)
            check_address(kind, metadata_of(obj), namespace, name)
            return create(context, kind, obj, namespace or "", options), True
        raise not_found(kind, name)
    obj = patch.patched(context.clock, kind, old, body, content_type, subresource, options)
    field_validation.check_patched(kind, obj, options)
    check_address(kind, metadata_of(obj), namespace, name)
    if not applies:
        obj = patch.tracked(context.clock, kind, old, obj, subresource, options)
    return replace(context, kind, rules, old, obj, subresource, options), False


def replace(
    context: WriteContext,
    kind: Kind,
    rules: KindRules,
    old: Stored,
    obj: JsonObject,
    subresource: str,
    options: WriteOptions,
) -> Stored:
    """Store the next state of an object that exists, after all checks."""
    meta = obj["metadata"]
    check_update(kind, rules, old, meta, options)
    before = old.decode()
    obj = storage_form.to_storage(kind, obj)
    metadata.carry_over(meta, before["metadata"])
    obj = _with_written_part(kind, rules, obj, before, subresource)
    meta = obj["metadata"]
    if subresource == "status":
        rules.prepare_for_status(obj, before, context)
        metadata.carry_over(meta, before["metadata"])
    elif not subresource:
        rules.prepare_for_update(obj, before, context)
    causes = update_causes(meta, before["metadata"], kind, rules.name_errors)
    causes += rules.validate_status(obj, before) if subresource == "status" else rules.validate_update(obj, before)
    options.warnings.extend(f"{cause.field}: {cause.message}" for cause in causes if cause.ratcheted)
    if refused := [cause for cause in causes if not cause.ratcheted]:
        raise invalid(kind, old.name, refused)
    if rules.generation and not subresource and _counts(rules, obj, before):
        meta["generation"] = before["metadata"].get("generation", 0) + 1
    obj["kind"], obj["apiVersion"] = old.kind.kind, old.kind.api_version
    meta["resourceVersion"] = str(old.revision)
    if obj == before and same_json(obj, before):
        return old
    if options.dry_run:
        return encode(old.kind, obj, old.revision)
    stored = context.store.put(old.kind, obj)
    return context.store.remove(kind, old.namespace, old.name) if finished(obj) else stored


def _with_written_part(kind: Kind, rules: KindRules, new: JsonObject, old: JsonObject, subresource: str) -> JsonObject:
    """The next state: what was written where it may be, what is stored elsewhere."""
    if subresource == "status":
        metadata = new["metadata"]
        if rules.metadata_with_status == "none":
            metadata = {**old["metadata"], **{key: metadata[key] for key in _MANAGED if key in metadata}}
        elif rules.metadata_with_status == "all but labels":
            metadata = {key: value for key, value in metadata.items() if key != "labels"}
            if "labels" in old["metadata"]:
                metadata["labels"] = old["metadata"]["labels"]
        found = {**old, "metadata": metadata}
        return _with_status(found, new)
    if subresource == "finalize":
        finalizers = (new.get("spec") or {}).get("finalizers")
        spec = {**(old.get("spec") or {}), "finalizers": finalizers}
        if not finalizers:
            del spec["finalizers"]
        return {**old, "metadata": new["metadata"], "spec": spec}
    if kind.has_status:
        return _with_status(new, old)
    return new


def _counts(rules: KindRules, new: JsonObject, old: JsonObject) -> bool:
    """Whether the change counts in metadata.generation."""
    if rules.generation == "whole object":
        return _differ(_without(new), _without(old))
    return _differ(new.get("spec"), old.get("spec"))


def _differ(new: Any, old: Any) -> bool:
    return new != old or not same_json(new, old)


def _with_status(obj: JsonObject, source: JsonObject) -> JsonObject:
    if "status" in source:
        obj["status"] = source["status"]
    else:
        obj.pop("status", None)
    return obj


def _without(obj: JsonObject) -> JsonObject:
    return {key: value for key, value in obj.items() if key not in ("metadata", "status", "kind", "apiVersion")}
