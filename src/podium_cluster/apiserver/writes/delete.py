"""Deletes objects: at once, after a grace period, or when the last finalizer is gone.

An object with finalizers, or one whose kind ends gracefully, is only marked: it gets a deletionTimestamp and stays
until the owners of its finalizers have finished. How its dependents go is written down as a finalizer too, for
the garbage collector to read.
"""

from typing import Any, Final

import msgspec

from podium_cluster.apiserver.kind import Kind
from podium_cluster.apiserver.kind_record import KindRules
from podium_cluster.apiserver.kinds import NAMESPACE, rules_of
from podium_cluster.apiserver.store.collection import Stored
from podium_cluster.apiserver.store.object_store import encode
from podium_cluster.apiserver.write_context import DeleteOptions, WriteContext, seconds_of, timestamp
from podium_cluster.apiserver.writes.conflict import check_deletion

ORPHAN: Final = "orphan"
FOREGROUND: Final = "foregroundDeletion"


class Deleted(msgspec.Struct, frozen=True):
    """The object's last or marked state, and whether it is gone."""

    stored: Stored
    gone: bool


def delete(context: WriteContext, kind: Kind, namespace: str | None, name: str, options: DeleteOptions) -> Deleted:
    """Delete or mark what is stored; StatusError where there is nothing or preconditions do not hold."""
    store, stored = context.store, context.stored(kind, namespace, name)
    rules = rules_of(kind)
    check_deletion(kind, stored, options)
    rules.check_deletion(stored)
    obj = stored.decode()
    if not _mark_deletion(kind, rules, obj, options, context.clock.now()):
        if options.dry_run:
            return Deleted(stored, True)
        return Deleted(store.remove(kind, stored.namespace, stored.name), True)
    if options.dry_run:
        return Deleted(encode(stored.kind, obj, stored.revision), False)
    marked = stored if obj == stored.decode() else store.put(stored.kind, obj)
    if not obj["metadata"].get("deletionGracePeriodSeconds") and not _has_finalizers(obj):
        return Deleted(store.remove(kind, stored.namespace, stored.name), True)
    return Deleted(marked, False)


def finished(obj: dict[str, Any]) -> bool:
    """Whether an object marked for deletion has nothing left to wait for."""
    metadata = obj["metadata"]
    return (
        "deletionTimestamp" in metadata and not metadata.get("deletionGracePeriodSeconds") and not _has_finalizers(obj)
    )


def _mark_deletion(kind: Kind, rules: KindRules, obj: dict[str, Any], options: DeleteOptions, now: float) -> bool:
    """Write into `obj` what its deletion waits for; False when it waits for nothing and was not marked."""
    metadata = obj["metadata"]
    already = metadata.get("deletionTimestamp")
    _set_finalizers(kind, metadata, options)
    if kind == NAMESPACE:
        obj["status"] = {**(obj.get("status") or {}), "phase": "Terminating"}
    if already:
        requested, agreed = options.grace_seconds, metadata.get("deletionGracePeriodSeconds") or 0
        if rules.grace_seconds is not None and requested is not None and requested < agreed:
            shorter = max(requested, 1) if requested < 0 else requested
            began = seconds_of(already) - agreed
            metadata["deletionTimestamp"] = timestamp(began + shorter)
            metadata["deletionGracePeriodSeconds"] = shorter
        return True
    grace = 0 if rules.grace_seconds is None else rules.grace_seconds(obj, options.grace_seconds)
    graceful = rules.grace_seconds is not None
    if not graceful and not _has_finalizers(obj):
        return False
    metadata["deletionTimestamp"] = timestamp(now + grace)
    if kind != NAMESPACE:
        metadata["deletionGracePeriodSeconds"] = grace
    if metadata.get("generation"):
        metadata["generation"] += 1
    return True


def _has_finalizers(obj: dict[str, Any]) -> bool:
    """Whether finalizers keep the object: those of the metadata, and those a namespace has in its spec."""
    if obj["metadata"].get("finalizers"):
        return True
    return obj["kind"] == "Namespace" and obj["apiVersion"] == "v1" and bool((obj.get("spec") or {}).get("finalizers"))


def _set_finalizers(kind: Kind, metadata: dict[str, Any], options: DeleteOptions) -> None:
    present = metadata.get("finalizers") or []
    wanted = [finalizer for finalizer in present if finalizer not in (ORPHAN, FOREGROUND)]
    if _orphans(kind, present, options):
        wanted.append(ORPHAN)
    elif _in_foreground(present, options):
        wanted.append(FOREGROUND)
    if wanted:
        metadata["finalizers"] = wanted
    else:
        metadata.pop("finalizers", None)


def _orphans(kind: Kind, present: list[str], options: DeleteOptions) -> bool:
    if options.orphan_dependents is not None:
        return options.orphan_dependents
    if options.propagation:
        return options.propagation == "Orphan"
    # Controllers from before there was garbage collection leave their pods unless the request says otherwise.
    return ORPHAN in present or kind.stored_in in ("replicationcontrollers", "jobs.batch")


def _in_foreground(present: list[str], options: DeleteOptions) -> bool:
    if options.orphan_dependents is not None:
        return False
    if options.propagation:
        return options.propagation == "Foreground"
    return FOREGROUND in present
