"""Validates the metadata of every kind: names, labels, annotations, owners, finalizers, and what may not change.

Most names are DNS subdomains; a kind with another rule for its names has it in its KindRules (`name_errors`).
"""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from kubecel.names import dns_label_errors, label_value_errors, qualified_name_errors
from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.errors import Cause, field_forbidden, immutable, invalid_value, required
from podium_cluster.apiserver.kind import Kind

_COUNTED_IN_BYTES: Final = ("deviceclasses.resource.k8s.io",)

NameErrors = Callable[[str], Sequence[str]]
"""What is wrong with a name by the rule of its kind, in sentences."""

_ANNOTATIONS_LIMIT: Final = 256 << 10
_FINALIZER_INDEX: Final = re.compile(r"metadata\.finalizers\[")
_STANDARD_FINALIZERS: Final = ("kubernetes", "orphan", "foregroundDeletion")


def metadata_causes(metadata: JsonObject, kind: Kind, name_errors: NameErrors) -> list[Cause]:
    """What is wrong with the metadata of a new object or of a new state."""
    causes = _name_causes(metadata, kind, name_errors)
    if labels := metadata.get("labels"):
        causes += label_causes(labels, "metadata.labels")
    if annotations := metadata.get("annotations"):
        causes += annotation_causes(annotations, "metadata.annotations")
    if owners := metadata.get("ownerReferences"):
        causes += _owner_causes(owners)
    if finalizers := metadata.get("finalizers"):
        causes += _finalizer_causes(finalizers)
        if not kind.custom and kind.group != "apiextensions.k8s.io":
            causes += _unqualified_finalizer_causes(finalizers)
    return causes


def update_causes(new: JsonObject, old: JsonObject, kind: Kind, name_errors: NameErrors) -> list[Cause]:
    """What is wrong with the metadata of a new state, after `carry_over`. Most of it comes twice, as from the API:
    once by what holds for all kinds and once by what each kind checks."""
    changed = _forbidden_changes(new, old)
    common = metadata_causes(new, kind, name_errors)
    if not changed and not common:
        return common
    owned = ("metadata.labels", "metadata.annotations", "metadata.ownerReferences")
    repeated = [*(cause for cause in common if cause.field.startswith(owned))]
    return (
        [cause for cause in common if not _FINALIZER_INDEX.match(cause.field)]
        + changed
        + repeated * 2
        + [cause for cause in common if _FINALIZER_INDEX.match(cause.field)]
    )


def _forbidden_changes(new: JsonObject, old: JsonObject) -> list[Cause]:
    """What the writer changed that may never change."""
    causes: list[Cause] = []
    if "deletionTimestamp" in old:
        extra = sorted(set(new.get("finalizers") or ()) - set(old.get("finalizers") or ()))
        if extra:
            words = ", ".join(f'"{finalizer}"' for finalizer in extra)
            why = "no new finalizers can be added if the object is being deleted, found new finalizers []string"
            causes.append(field_forbidden("metadata.finalizers", f"{why}{{{words}}}"))
    fields = ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")
    changed = [field for field in fields if new.get(field) != old.get(field)]
    return causes + [immutable(f"metadata.{field}", new.get(field)) for field in changed]


def _name_causes(metadata: JsonObject, kind: Kind, name_errors: NameErrors) -> list[Cause]:
    """What is wrong with the name, the prefix it was made from, or the namespace."""
    causes: list[Cause] = []
    worded = _in_bytes if kind.stored_in in _COUNTED_IN_BYTES else _in_characters
    name = metadata.get("name", "")
    if prefix := metadata.get("generateName"):
        whole = prefix[:-2] + "a" if len(prefix) > 1 and prefix.endswith("-") else prefix
        causes += worded("metadata.generateName", prefix, name_errors(whole))
    if not name:
        causes.append(required("metadata.name", "name or generateName is required"))
    else:
        causes += worded("metadata.name", name, name_errors(name))
    namespace = metadata.get("namespace", "")
    if not kind.namespaced:
        if namespace:
            causes.append(field_forbidden("metadata.namespace", "not allowed on this type"))
    elif not namespace:
        causes.append(required("metadata.namespace"))
    else:
        causes += _in_characters("metadata.namespace", namespace, dns_label_errors(namespace))
    return causes


def _in_bytes(field: str, name: str, errors: Sequence[str]) -> list[Cause]:
    return [invalid_value(field, name, error) for error in errors]


def _in_characters(field: str, name: str, errors: Sequence[str]) -> list[Cause]:
    """The API counts the characters of most names and the bytes of labels, or says so."""
    return [invalid_value(field, name, error.replace(" bytes", " characters")) for error in errors]


def label_causes(labels: dict[str, str], path: str) -> Iterable[Cause]:
    for key, value in sorted(labels.items()):
        for error in qualified_name_errors(key):
            yield invalid_value(path, key, error)
        for error in label_value_errors(value):
            yield invalid_value(path, value, error)


def annotation_causes(annotations: dict[str, str], path: str) -> Iterable[Cause]:
    size = 0
    for key, value in annotations.items():
        size += len(key.encode()) + len(value.encode())
        for error in qualified_name_errors(key.lower()):
            yield invalid_value(path, key, error)
    if size > _ANNOTATIONS_LIMIT:
        yield Cause("FieldValueTooLong", f"Too long: may not be more than {_ANNOTATIONS_LIMIT} bytes", path)


def _owner_causes(owners: list[dict[str, Any]]) -> Iterable[Cause]:
    path = "metadata.ownerReferences"
    controller = ""
    for at, owner in enumerate(owners):
        for field in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(field):
                yield required(f"{path}[{at}].{field}", "must not be empty")
        if owner.get("apiVersion") == "v1" and owner.get("kind") == "Event":
            yield invalid_value(path, owner, "/v1, Kind=Event is disallowed from being an owner")
        if owner.get("controller"):
            this = f"{owner.get('kind')}/{owner.get('name')}"
            if controller:
                why = 'Only one reference can have Controller set to true. Found "true" in references for'
                yield invalid_value(path, owners, f"{why} {controller} and {this}")
            controller = controller or this


def _finalizer_causes(finalizers: list[str]) -> Iterable[Cause]:
    for finalizer in finalizers:
        for error in qualified_name_errors(finalizer):
            yield invalid_value("metadata.finalizers", finalizer, error)
    if "orphan" in finalizers and "foregroundDeletion" in finalizers:
        why = "finalizer orphan and foregroundDeletion cannot be both set"
        yield invalid_value("metadata.finalizers", finalizers, why)


def _unqualified_finalizer_causes(finalizers: list[str]) -> Iterable[Cause]:
    """A finalizer that is not a standard one has a domain in front."""
    for index, finalizer in enumerate(finalizers):
        if "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS:
            why = "name is neither a standard finalizer name nor is it fully qualified"
            yield invalid_value(f"metadata.finalizers[{index}]", finalizer, why)
