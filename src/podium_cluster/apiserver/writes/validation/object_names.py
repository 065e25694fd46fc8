"""Validates metadata.name, metadata.generateName and metadata.namespace of every kind.

Most names are DNS subdomains; a kind with another rule for its names has it in its KindRules (`name_errors`).
"""

from collections.abc import Callable, Sequence
from typing import Final

from kubecel.names import dns_label_errors
from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.errors import Cause, field_forbidden, invalid_value, required
from podium_cluster.apiserver.kinds import Kind

_COUNTED_IN_BYTES: Final = ("deviceclasses.resource.k8s.io",)

NameErrors = Callable[[str], Sequence[str]]
"""What is wrong with a name by the rule of its kind, in sentences."""


def name_causes(metadata: JsonObject, kind: Kind, name_errors: NameErrors) -> list[Cause]:
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
