"""The life of a CustomResourceDefinition in the cluster: its kinds come, change and go with it.

When a definition is stored its names are accepted, unless another of its group has one of them, its kinds are served
from then on, and a finalizer makes it wait, when it is deleted, until its objects are gone. All of that happens within
the write that caused it, so that whoever has created a definition can use it at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Final, Protocol

from podium.apiserver.kinds import Kind, Kinds, built_in
from podium.apiserver.rules.rule import Context, Rules
from podium.apiserver.schema.custom import CustomKind, custom_kinds
from podium.apiserver.schema.definitions import definition_causes, definition_update_causes
from podium.apiserver.store import Change, Store, Stored
from podium.kube.json_object import JsonObject

DEFINITION: Final = built_in("apiextensions.k8s.io/v1", "CustomResourceDefinition")
FINALIZER: Final = "customresourcecleanup.apiextensions.k8s.io"


class Cluster(Protocol):
    """What is asked of the API here."""

    store: Store
    kinds: Kinds

    def now(self) -> str: ...

    def delete(self, kind: Kind, namespace: str | None, name: str) -> JsonObject: ...


def follow(api: Cluster) -> None:
    """Serve the kinds of every definition that is stored, from now on."""
    for stored in api.store.items(DEFINITION):
        serve(api, stored.decode())
    api.store.listen(lambda change: _definition_changed(api, change), DEFINITION)
    api.store.listen(lambda change: _object_changed(api, change))


def _definition_changed(api: Cluster, change: Change) -> None:
    definition = change.new.decode()
    if change.type == "DELETED":
        _withdraw(api, definition)
        return
    current = api.store.get(DEFINITION, "", change.new.name)
    if current is None or current.revision != change.new.revision:
        return  # an older state: the newest is on its way
    if "deletionTimestamp" in definition["metadata"]:
        _clean_up(api, definition)
        return
    accepted = _accept_names(api, definition)
    if accepted:
        serve(api, definition)
    metadata = definition["metadata"]
    if FINALIZER not in metadata.get("finalizers", ()):
        metadata["finalizers"] = [*metadata.get("finalizers", ()), FINALIZER]
    if definition != change.new.decode():
        api.store.put(DEFINITION, definition)


def serve(api: Cluster, definition: JsonObject) -> None:
    """Make the registry have exactly the definition's kinds for its group and plural. Who fills a store with what was
    stored before calls this first, because objects can be loaded only with their kinds."""
    wanted = list(custom_kinds(definition))
    for kind in _kinds_of(api, definition):
        if kind not in wanted:
            api.kinds.remove(kind)
    for kind in wanted:
        if api.kinds.by_path(kind.group, kind.version, kind.plural) != kind:
            api.kinds.add(kind)


def _withdraw(api: Cluster, definition: JsonObject) -> None:
    for kind in _kinds_of(api, definition):
        for stored in api.store.items(kind):
            api.store.remove(kind, stored.namespace, stored.name)
        api.kinds.remove(kind)


def _clean_up(api: Cluster, definition: JsonObject) -> None:
    """Delete the objects of a definition that is being deleted; once there are none, let it go."""
    for kind in _kinds_of(api, definition)[:1]:
        for stored in api.store.items(kind):
            if "deletionTimestamp" not in stored.decode()["metadata"]:
                api.delete(kind, stored.namespace, stored.name)
        if api.store.count(kind):
            _set_condition(api, definition, "Terminating", "True", "InstanceDeletionInProgress", _IN_PROGRESS)
            return
    metadata = definition["metadata"]
    metadata["finalizers"] = [each for each in metadata.get("finalizers", ()) if each != FINALIZER]
    if metadata["finalizers"]:
        if definition != _stored(api, definition).decode():
            api.store.put(DEFINITION, definition)
    else:
        api.store.remove(DEFINITION, "", metadata["name"])


_IN_PROGRESS: Final = "CustomResource deletion is in progress"


def _object_changed(api: Cluster, change: Change) -> None:
    """The last object of a definition that is being deleted has gone."""
    if change.type != "DELETED" or not change.new.kind.custom:
        return
    stored = api.store.get(DEFINITION, "", change.new.kind.qualified)
    if stored is None:
        return
    definition = stored.decode()
    metadata = definition["metadata"]
    if "deletionTimestamp" in metadata and FINALIZER in metadata.get("finalizers", ()):
        _clean_up(api, definition)


def _accept_names(api: Cluster, definition: JsonObject) -> bool:
    """Write down whether the names are free in the group, and that the kinds are therefore served."""
    conflict = next(_conflicts(api, definition), None)
    status = definition.setdefault("status", {})
    if conflict is None:
        status["acceptedNames"] = definition["spec"]["names"]
        _condition(api, definition, "NamesAccepted", "True", "NoConflicts", "no conflicts found")
        told = "the initial names have been accepted"
        _condition(api, definition, "Established", "True", "InitialNamesAccepted", told)
        return True
    reason, name = conflict
    _condition(api, definition, "NamesAccepted", "False", reason, f'"{name}" is already in use')
    if not _is_true(definition, "Established"):
        _condition(api, definition, "Established", "False", "NotAccepted", "not all names are accepted")
        return False
    return True


def _conflicts(api: Cluster, definition: JsonObject) -> Iterator[tuple[str, str]]:
    """Names that another definition of the group has been given before."""
    spec, own = definition["spec"], definition["metadata"]["name"]
    resources: set[str] = set()
    kinds: set[str] = set()
    for stored in api.store.items(DEFINITION):
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


def _condition(api: Cluster, definition: JsonObject, kind: str, status: str, reason: str, message: str) -> None:
    conditions: list[JsonObject] = definition["status"].get("conditions") or []
    found = next((each for each in conditions if each["type"] == kind), None)
    if found is not None and found["status"] == status:
        found |= {"reason": reason, "message": message}
    else:
        conditions = [each for each in conditions if each["type"] != kind]
        at = api.now()
        conditions.append(
            {"type": kind, "status": status, "lastTransitionTime": at, "reason": reason, "message": message}
        )
    definition["status"]["conditions"] = conditions


def _set_condition(api: Cluster, definition: JsonObject, kind: str, status: str, reason: str, message: str) -> None:
    _condition(api, definition, kind, status, reason, message)
    if definition != _stored(api, definition).decode():
        api.store.put(DEFINITION, definition)


def _is_true(definition: JsonObject, kind: str) -> bool:
    conditions = definition["status"].get("conditions") or ()
    return any(each["type"] == kind and each["status"] == "True" for each in conditions)


def _kinds_of(api: Cluster, definition: JsonObject) -> list[CustomKind]:
    spec = definition["spec"]
    return [
        kind
        for kind in api.kinds
        if isinstance(kind, CustomKind) and kind.group == spec["group"] and kind.plural == spec["names"]["plural"]
    ]


def _stored(api: Cluster, definition: JsonObject) -> Stored:
    found = api.store.get(DEFINITION, "", definition["metadata"]["name"])
    assert found is not None
    return found


def _new_definition(definition: JsonObject, context: Context) -> None:
    versions = definition["spec"].get("versions") or ()
    stored = [version["name"] for version in versions if version.get("storage")][:1]
    definition["status"] = {"conditions": [], "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": stored}


def _next_definition(new: JsonObject, old: JsonObject, context: Context) -> None:
    """A version that becomes the one for storage counts as stored in from now on."""
    status = new.setdefault("status", {})
    for version in new["spec"].get("versions") or ():
        if version.get("storage") and version["name"] not in status.setdefault("storedVersions", []):
            status["storedVersions"] = [*status["storedVersions"], version["name"]]


DEFINITION_RULES: Final = Rules(
    prepare_for_create=_new_definition,
    prepare_for_update=_next_definition,
    validate=definition_causes,
    validate_update=definition_update_causes,
    validate_status=definition_update_causes,
    generation=True,
    update_needs_version=True,
)


@lru_cache(maxsize=256)
def rules_of_custom(kind: CustomKind) -> Rules:
    """The rules of a custom kind are its schema's."""
    return Rules(
        validate=kind.schema.validate,
        validate_update=kind.schema.validate_update,
        validate_status=kind.schema.validate_status,
        generation=True,
        update_needs_version=True,
    )
