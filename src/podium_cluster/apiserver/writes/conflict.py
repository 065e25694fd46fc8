"""Refuses writes that are meant for another state of an object, or for another object of its name (409 Conflict).

Optimistic concurrency: a writer may name the resourceVersion or the uid that it has read. Each kind of write words its
refusal differently, as kube-apiserver does.
"""

from __future__ import annotations

import msgspec

from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.errors import StatusError, conflict, immutable, invalid, invalid_value
from podium_cluster.apiserver.kind import Kind
from podium_cluster.apiserver.kind_record import KindRules
from podium_cluster.apiserver.kinds import NAMESPACE, POD
from podium_cluster.apiserver.store.collection import Stored
from podium_cluster.apiserver.write_context import DeleteOptions, WriteOptions


def check_update(kind: Kind, rules: KindRules, old: Stored, metadata: JsonObject, options: WriteOptions) -> None:
    """For an update or a patch: the uid and the resourceVersion of the new metadata are those stored."""
    if (uid := metadata.get("uid")) and uid != old.uid:
        if options.is_patch:
            raise invalid(kind, old.name, [immutable("metadata.uid", uid)])
        raise precondition_failed(kind, old, uid, "")
    version = metadata.get("resourceVersion")
    if version and version != "0":
        if not (version.isascii() and version.isdigit()):
            raise StatusError(500, "", f'strconv.ParseUint: parsing "{version}": invalid syntax')
        if version != str(old.revision):
            raise modified(kind, old.name)
    elif rules.update_needs_version and not options.is_patch:
        cause = invalid_value("metadata.resourceVersion", 0, "must be specified for an update")
        # Here, and only here, the API names the resource where it names the kind elsewhere.
        raise invalid(msgspec.structs.replace(kind, kind=kind.plural), old.name, [cause])


def check_binding(stored: Stored, uid: str, version: str) -> None:
    """For a binding: the pod is the one that the scheduler has seen."""
    if (uid and uid != stored.uid) or (version and version != str(stored.revision)):
        raise precondition_failed(POD, stored, uid if uid != stored.uid else "", version)


def check_deletion(kind: Kind, stored: Stored, options: DeleteOptions) -> None:
    """For a deletion: the preconditions hold."""
    if kind == NAMESPACE and options.uid and options.uid != stored.uid:
        why = f"Precondition failed: UID in precondition: {options.uid}, UID in object meta: {stored.uid}"
        raise conflict(kind, stored.name, why)
    check_preconditions(kind, stored, options.uid, options.resource_version)


def check_preconditions(kind: Kind, stored: Stored, uid: str | None, version: str | None) -> None:
    """For a deletion or an eviction, which name the kind where other conflicts name the resource."""
    if uid and uid != stored.uid:
        why = f"the UID in the precondition ({uid}) does not match the UID in record ({stored.uid})."
        why += " The object might have been deleted and then recreated"
    elif version and version != str(stored.revision):
        why = f"the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record"
        why += f" ({stored.revision}). The object might have been modified"
    else:
        return
    raise conflict(msgspec.structs.replace(kind, plural=kind.kind), stored.name, why)


def precondition_failed(kind: Kind, stored: Stored, uid: str, version: str) -> StatusError:
    """The conflict as the storage layer of kube-apiserver words it."""
    field, found = ("UID", stored.uid) if uid else ("ResourceVersion", str(stored.revision))
    key = "/".join(filter(None, ("/registry", kind.plural, stored.namespace, stored.name)))
    failed = f"Precondition failed: {field} in precondition: {uid or version}, {field} in object meta: {found}"
    error = f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: {failed}"
    return conflict(kind, stored.name, error)


def modified(kind: Kind, name: str) -> StatusError:
    """The conflict of a writer that has not read the latest state."""
    why = "the object has been modified; please apply your changes to the latest version and try again"
    return conflict(kind, name, why)
