"""Serves the kinds of CustomResourceDefinitions: they come, change and go with their definition.

When a definition is stored its names are accepted, unless another of its group has one of them, its kinds are served
from then on, and a finalizer makes it wait, when it is deleted, until its objects are gone. All of that happens within
the write that caused it, so that a definition can be used as soon as it is created.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.kinds import built_in
from podium_cluster.apiserver.schema.custom import CustomKind, custom_kinds
from podium_cluster.apiserver.store.collection import ObjectChange, Stored
from podium_cluster.apiserver.write_context import DeleteOptions, WriteContext
from podium_cluster.apiserver.writes.delete import delete

DEFINITION: Final = built_in("apiextensions.k8s.io/v1", "CustomResourceDefinition")
FINALIZER: Final = "customresourcecleanup.apiextensions.k8s.io"


def follow(context: WriteContext) -> None:
    """Serve the kinds of every definition that is stored, from now on."""
    for stored in context.store.items(DEFINITION):
        serve(context, stored.decode())
    context.store.listen(lambda change: _definition_changed(context, change), DEFINITION)
    context.store.listen(lambda change: _object_changed(context, change))


def _definition_changed(context: WriteContext, change: ObjectChange) -> None:
    definition = change.new.decode()
    if change.type == "DELETED":
        _withdraw(context, definition)
        return
    current = context.store.get(DEFINITION, "", change.new.name)
    if current is None or current.revision != change.new.revision:
        return  # an older state: the newest is on its way
    if "deletionTimestamp" in definition["metadata"]:
        _clean_up(context, definition)
        return
    accepted = _accept_names(context, definition)
    if accepted:
        serve(context, definition)
    metadata = definition["metadata"]
    if FINALIZER not in metadata.get("finalizers", ()):
        metadata["finalizers"] = [*metadata.get("finalizers", ()), FINALIZER]
    if definition != change.new.decode():
        context.store.put(DEFINITION, definition)


def serve(context: WriteContext, definition: JsonObject) -> None:
    """Make the registry have exactly the definition's kinds for its group and plural. Who fills a store with what was
    stored before calls this first, because objects can be loaded only with their kinds."""
    wanted = {kind.version: kind for kind in custom_kinds(definition)}
    for kind in _kinds_of(context, definition):
        if wanted.get(kind.version) != kind:
            context.kinds.remove(kind)
    for kind in wanted.values():
        if context.kinds.by_path(kind.group, kind.version, kind.plural) != kind:
            context.kinds.add(kind)


def _withdraw(context: WriteContext, definition: JsonObject) -> None:
    for kind in _kinds_of(context, definition):
        for stored in context.store.items(kind):
            context.store.remove(kind, stored.namespace, stored.name)
        context.kinds.remove(kind)


def _clean_up(context: WriteContext, definition: JsonObject) -> None:
    """Delete the objects of a definition that is being deleted; once there are none, let it go."""
    for kind in _kinds_of(context, definition)[:1]:
        for stored in context.store.items(kind):
            if "deletionTimestamp" not in stored.decode()["metadata"]:
                delete(context, kind, stored.namespace, stored.name, DeleteOptions())
        if context.store.count(kind):
            _set_condition(context, definition, "Terminating", "True", "InstanceDeletionInProgress", _IN_PROGRESS)
            return
    metadata = definition["metadata"]
    metadata["finalizers"] = [each for each in metadata.get("finalizers", ()) if each != FINALIZER]
    if metadata["finalizers"]:
        if definition != _stored(context, definition).decode():
            context.store.put(DEFINITION, definition)
    else:
        context.store.remove(DEFINITION, "", metadata["name"])


_IN_PROGRESS: Final = "CustomResource deletion is in progress"


def _object_changed(context: WriteContext, change: ObjectChange) -> None:
    """The last object of a definition that is being deleted has gone."""
    if change.type != "DELETED" or not change.new.kind.custom:
        return
    stored = context.store.get(DEFINITION, "", change.new.kind.qualified)
    if stored is None:
        return
    definition = stored.decode()
    metadata = definition["metadata"]
    if "deletionTimestamp" in metadata and FINALIZER in metadata.get("finalizers", ()):
        _clean_up(context, definition)


def _accept_names(context: WriteContext, definition: JsonObject) -> bool:
    """Write down whether the names are free in the group, and that the kinds are therefore served."""
    conflict = next(_conflicts(context, definition), None)
    status = definition.setdefault("status", {})
    if conflict is None:
        status["acceptedNames"] = definition["spec"]["names"]
        _condition(context, definition, "NamesAccepted", "True", "NoConflicts", "no conflicts found")
        message = "the initial names have been accepted"
        _condition(context, definition, "Established", "True", "InitialNamesAccepted", message)
        return True
    reason, name = conflict
    _condition(context, definition, "NamesAccepted", "False", reason, f'"{name}" is already in use')
    if not _is_true(definition, "Established"):
        _condition(context, definition, "Established", "False", "NotAccepted", "not all names are accepted")
        return False
    return True


def _conflicts(context: WriteContext, definition: JsonObject) -> Iterator[tuple[str, str]]:
    """Names that another definition of the group has been given before."""
    spec, own = definition["spec"], definition["metadata"]["name"]
    resources: set[str] = set()
    kinds: set[str] = set()
    for stored in context.store.items(DEFINITION):
        other = stored.decode()
        names = other.get("status", {}).get("acceptedNames") or {}
        if other["spec"]["group"] == spec["group"] and stored.name != own and names.get("plural"):
            resources |= {names["plural"], names.get("singular", ""), *names.get("shortNames", ())}
            kinds |= {names["kind"], names.get("listKind", "")}
    names = spec["names"]
    for reason, name, taken in (
        ("PluralConflict", names["plural"], resources),
        ("SingularConflict", names.get("singular", ""), resources),
        *(("ShortNamesConflict", short, resources) for short in names.get("shortNames", ())),
        ("KindConflict", names["kind"], kinds),
        ("ListKindConflict", names.get("listKind", ""), kinds),
    ):
        if name and name in taken:
            yield reason, name


def _condition(
    context: WriteContext, definition: JsonObject, kind: str, status: str, reason: str, message: str
) -> None:
    conditions: list[JsonObject] = definition["status"].get("conditions") or []
    found = next((each for each in conditions if each["type"] == kind), None)
    if found is not None and found["status"] == status:
        found |= {"reason": reason, "message": message}
    else:
        conditions = [each for each in conditions if each["type"] != kind]
        at = context.now()
        conditions.append(
            {"type": kind, "status": status, "lastTransitionTime": at, "reason": reason, "message": message}
        )
    definition["status"]["conditions"] = conditions


def _set_condition(
    context: WriteContext, definition: JsonObject, kind: str, status: str, reason: str, message: str
) -> None:
    _condition(context, definition, kind, status, reason, message)
    if definition != _stored(context, definition).decode():
        context.store.put(DEFINITION, definition)


def _is_true(definition: JsonObject, kind: str) -> bool:
    conditions = definition["status"].get("conditions") or ()
    return any(each["type"] == kind and each["status"] == "True" for each in conditions)


def _kinds_of(context: WriteContext, definition: JsonObject) -> list[CustomKind]:
    spec = definition["spec"]
    return [
        kind
        for kind in context.kinds
        if isinstance(kind, CustomKind) and kind.group == spec["group"] and kind.plural == spec["names"]["plural"]
    ]


def _stored(context: WriteContext, definition: JsonObject) -> Stored:
    found = context.store.get(DEFINITION, "", definition["metadata"]["name"])
    assert found is not None
    return found
