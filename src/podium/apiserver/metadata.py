"""What holds for the metadata of every kind: what the server fills in, what may never change, and what is refused."""

import random
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from podium.apiserver.errors import Cause, field_forbidden, immutable, invalid_value, required
from podium.apiserver.kinds import Kind
from podium.apiserver.rules import Rules
from podium.kube.json_object import JsonObject
from podium.kube.validation import dns_label_errors, label_value_errors, qualified_name_errors

_SUFFIX_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
_LONGEST_GENERATED: Final = 63 - 5
_REPEATED_OWNERS: Final = (
    ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject "
    "such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: "
)
_ANNOTATIONS_LIMIT: Final = 256 << 10
_FINALIZER_INDEX: Final = re.compile(r"metadata\.finalizers\[")
_STANDARD_FINALIZERS: Final = ("kubernetes", "orphan", "foregroundDeletion")
_SERVER_ONLY: Final = ("selfLink", "deletionTimestamp", "deletionGracePeriodSeconds", "resourceVersion")


def fill_new(metadata: JsonObject, kind: Kind, namespace: str, now: str, rng: random.Random) -> None:
    """A new object's name where it is to be made up, namespace, uid and birth; what only the server says is dropped."""
    if not metadata.get("name") and (prefix := metadata.get("generateName")):
        metadata["name"] = generated_name(prefix, rng)
    for field in _SERVER_ONLY:
        metadata.pop(field, None)
    if kind.namespaced:
        metadata["namespace"] = namespace
    metadata["uid"] = new_uid(rng)
    metadata["creationTimestamp"] = now


def generated_name(prefix: str, rng: random.Random) -> str:
    """The prefix, shortened where it must be, and five characters that spell nothing."""
    return prefix[:_LONGEST_GENERATED] + "".join(rng.choices(_SUFFIX_ALPHABET, k=5))


def new_uid(rng: random.Random) -> str:
    """A random UUID of version 4."""
    digits = f"{rng.getrandbits(128):032x}"
    variant = "89ab"[int(digits[16], 16) & 3]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"


def carry_over(new: JsonObject, old: JsonObject) -> None:
    """What a writer cannot change about an object that exists, taken from what is stored."""
    for field in ("creationTimestamp", "deletionTimestamp"):
        if field in old:
            new[field] = old[field]
    for field in ("uid", "deletionGracePeriodSeconds", "namespace"):
        if not new.get(field) and field in old:
            new[field] = old[field]
    if "generation" in old:
        new["generation"] = old["generation"]
    else:
        new.pop("generation", None)
    new.pop("selfLink", None)


def without_repeated_owners(metadata: JsonObject) -> list[str]:
    """Drop owners that are named twice; what to warn about."""
    owners = metadata.get("ownerReferences")
    if not owners or len(owners) < 2:
        return []
    kept: list[dict[str, Any]] = []
    repeated = []
    for owner in owners:
        if owner in kept:
            repeated.append(owner.get("uid", ""))
        else:
            kept.append(owner)
    metadata["ownerReferences"] = kept
    return [f"{_REPEATED_OWNERS}{', '.join(repeated)}"] if repeated else []


def metadata_causes(metadata: JsonObject, kind: Kind, rules: Rules) -> list[Cause]:
    """What is wrong with the metadata of a new object or of a new state."""
    causes: list[Cause] = []
    name = metadata.get("name", "")
    if prefix := metadata.get("generateName"):
        whole = prefix[:-2] + "a" if len(prefix) > 1 and prefix.endswith("-") else prefix
        causes += _name_causes("metadata.generateName", prefix, rules.name_errors(whole))
    if not name:
        causes.append(required("metadata.name", "name or generateName is required"))
    else:
        causes += _name_causes("metadata.name", name, rules.name_errors(name))
    namespace = metadata.get("namespace", "")
    if not kind.namespaced:
        if namespace:
            causes.append(field_forbidden("metadata.namespace", "not allowed on this type"))
    elif not namespace:
        causes.append(required("metadata.namespace"))
    else:
        causes += _name_causes("metadata.namespace", namespace, dns_label_errors(namespace))
    if labels := metadata.get("labels"):
        causes += label_causes(labels, "metadata.labels")
    if annotations := metadata.get("annotations"):
        causes += _annotation_causes(annotations)
    if owners := metadata.get("ownerReferences"):
        causes += _owner_causes(owners)
    if finalizers := metadata.get("finalizers"):
        causes += _finalizer_causes(finalizers)
        if not kind.custom and kind.group != "apiextensions.k8s.io":
            causes += _unqualified_finalizer_causes(finalizers)
    return causes


def update_causes(new: JsonObject, old: JsonObject, kind: Kind, rules: Rules) -> list[Cause]:
    """What is wrong with the metadata of a new state, after `carry_over`. Most of it is told twice, as the API does:
    once by what holds for all kinds and once by what each kind checks."""
    changed = _forbidden_changes(new, old)
    common = metadata_causes(new, kind, rules)
    if not changed and not common:
        return common
    owned = ("metadata.labels", "metadata.annotations", "metadata.ownerReferences")
    again = [*changed, *(cause for cause in common if cause.field.startswith(owned))]
    return (
        [cause for cause in common if not _FINALIZER_INDEX.match(cause.field)]
        + again * 2
        + [cause for cause in common if _FINALIZER_INDEX.match(cause.field)]
    )


def _forbidden_changes(new: JsonObject, old: JsonObject) -> list[Cause]:
    """What the writer changed that nobody may change."""
    causes: list[Cause] = []
    if "deletionTimestamp" in old:
        extra = sorted(set(new.get("finalizers") or ()) - set(old.get("finalizers") or ()))
        if extra:
            words = ", ".join(f'"{finalizer}"' for finalizer in extra)
            why = "no new finalizers can be added if the object is being deleted, found new finalizers []string"
            causes.append(field_forbidden("metadata.finalizers", f"{why}{{{words}}}"))
    for field in ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"):
        if new.get(field) != old.get(field):
            causes.append(immutable(f"metadata.{field}", new.get(field)))
    return causes


def _name_causes(field: str, name: str, errors: Sequence[str]) -> list[Cause]:
    """The API counts the characters of names and the bytes of labels, or says so."""
    return [invalid_value(field, name, error.replace(" bytes", " characters")) for error in errors]


def label_causes(labels: dict[str, str], path: str) -> Iterable[Cause]:
    for key, value in sorted(labels.items()):
        for error in qualified_name_errors(key):
            yield invalid_value(path, key, error)
        for error in label_value_errors(value):
            yield invalid_value(path, value, error)


def _annotation_causes(annotations: dict[str, str]) -> Iterable[Cause]:
    size = 0
    for key, value in annotations.items():
        size += len(key.encode()) + len(value.encode())
        for error in qualified_name_errors(key.lower()):
            yield invalid_value("metadata.annotations", key, error)
    if size > _ANNOTATIONS_LIMIT:
        yield Cause(
            "FieldValueTooLong", f"Too long: may not be more than {_ANNOTATIONS_LIMIT} bytes", "metadata.annotations"
        )


def _owner_causes(owners: list[dict[str, Any]]) -> Iterable[Cause]:
    path = "metadata.ownerReferences"
    controller = ""
    for owner in owners:
        if not owner.get("apiVersion"):
            yield invalid_value(f"{path}.apiVersion", "", "version must not be empty")
        for field in ("kind", "name", "uid"):
            if not owner.get(field):
                yield invalid_value(f"{path}.{field}", "", "must not be empty")
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
    """Whoever has a finalizer of his own puts his domain in front."""
    for index, finalizer in enumerate(finalizers):
        if "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS:
            why = "name is neither a standard finalizer name nor is it fully qualified"
            yield invalid_value(f"metadata.finalizers[{index}]", finalizer, why)
