"""Creates objects: checks, fills in and stores what is new.

fields → namespace → admission → metadata → prepare → validate → is the name free? → store
"""

from __future__ import annotations

from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.errors import StatusError, already_exists, invalid
from podium_cluster.apiserver.kind import Kind
from podium_cluster.apiserver.kinds import rules_of
from podium_cluster.apiserver.store import storage_form
from podium_cluster.apiserver.store.collection import Stored
from podium_cluster.apiserver.store.object_store import encode
from podium_cluster.apiserver.validation.metadata import metadata_causes
from podium_cluster.apiserver.write_context import WriteContext, WriteOptions
from podium_cluster.apiserver.writes import field_validation, metadata
from podium_cluster.apiserver.writes.metadata import admit_namespace, check_namespace, metadata_of

_GENERATED_NAME_ATTEMPTS = 8


def create(context: WriteContext, kind: Kind, obj: JsonObject, namespace: str, options: WriteOptions) -> Stored:
    """Store a new object; `obj` becomes the store's."""
    rules = rules_of(kind)
    field_validation.check_and_default(kind, obj, options)
    meta = metadata_of(obj)
    check_namespace(kind, meta, namespace)
    if kind.namespaced:
        admit_namespace(context.store, kind, namespace, meta.get("name", ""))
    if meta.get("resourceVersion"):
        raise StatusError(500, "", "resourceVersion should not be set on objects to be created")
    options.warnings.extend(metadata.without_repeated_owners(meta))
    rules.admit(obj, context)
    generated = not meta.get("name") and bool(meta.get("generateName"))
    metadata.fill_new(meta, kind, namespace, context.now(), context.rng)
    for _ in range(_GENERATED_NAME_ATTEMPTS if generated else 0):
        if context.store.get(kind, namespace if kind.namespaced else "", meta["name"]) is None:
            break
        meta["name"] = metadata.generated_name(meta["generateName"], context.rng)
    obj = storage_form.to_storage(kind, obj)
    if rules.generation:
        meta["generation"] = 1
    if kind.has_status and not rules.status_on_create:
        obj.pop("status", None)
    rules.prepare_for_create(obj, context)
    if rules.empty_status is not None and not obj.get("status"):
        obj["status"] = dict(rules.empty_status)
    causes = [*metadata_causes(meta, kind, rules.name_errors), *rules.validate(obj)]
    if causes:
        raise invalid(storage_form.storage_kind(kind), meta.get("name", ""), causes)
    present = context.store.get(kind, meta.get("namespace"), meta["name"])
    if present is not None:
        raise already_exists(kind, meta["name"], going=b'"deletionTimestamp":' in present.raw)
    if kind.inert:
        options.warnings.append(f"{kind.kind}: stored, but nothing in this cluster acts on it")
    stored_kind = storage_form.storage_kind(kind)
    return encode(stored_kind, obj, None) if options.dry_run else context.store.put(stored_kind, obj)
