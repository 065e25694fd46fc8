"""Decodes bytes into objects: single objects off the wire, and whole files as `kubectl get … -o json|yaml` prints them.

Objects from the API server are decoded straight into their types. Files are also checked (quantities, selectors), may
hold lists, several documents and kinds that scheduling has no use for, and whatever is wrong in them is said in one
sentence with file, line, object and field.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
from msgspec.structs import replace

from podium.errors import UserError
from podium.kube.check import problems
from podium.kube.custom_object import CUSTOM_KINDS, CustomObject
from podium.kube.devices import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceClaimTemplate, ResourceSlice
from podium.kube.documents import FILE, Document, DocumentError, read_documents, read_json
from podium.kube.json_object import without_nulls
from podium.kube.kinds_around_pods import (
    Namespace,
    PodDisruptionBudget,
    PriorityClass,
    ReplicaSet,
    ReplicationController,
    RuntimeClass,
    Service,
    StatefulSet,
)
from podium.kube.node import Node
from podium.kube.pod import Pod
from podium.kube.pod_group import PodGroup
from podium.kube.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from podium.kube.versions import version_in

KubeObject = (
    Pod
    | Node
    | Namespace
    | Service
    | ReplicationController
    | ReplicaSet
    | StatefulSet
    | PersistentVolume
    | PersistentVolumeClaim
    | StorageClass
    | CSINode
    | CSIDriver
    | CSIStorageCapacity
    | VolumeAttachment
    | PodDisruptionBudget
    | PriorityClass
    | RuntimeClass
    | PodGroup
    | DeviceClass
    | DeviceTaintRule
    | ResourceSlice
    | ResourceClaim
    | ResourceClaimTemplate
    | CustomObject
)

KINDS: Final[dict[tuple[str, str], type[KubeObject]]] = {
    ("v1", "Pod"): Pod,
    ("v1", "Node"): Node,
    ("v1", "Namespace"): Namespace,
    ("v1", "Service"): Service,
    ("v1", "ReplicationController"): ReplicationController,
    ("v1", "PersistentVolume"): PersistentVolume,
    ("v1", "PersistentVolumeClaim"): PersistentVolumeClaim,
    ("apps/v1", "ReplicaSet"): ReplicaSet,
    ("apps/v1", "StatefulSet"): StatefulSet,
    ("storage.k8s.io/v1", "StorageClass"): StorageClass,
    ("storage.k8s.io/v1", "CSINode"): CSINode,
    ("storage.k8s.io/v1", "CSIDriver"): CSIDriver,
    ("storage.k8s.io/v1", "CSIStorageCapacity"): CSIStorageCapacity,
    ("storage.k8s.io/v1", "VolumeAttachment"): VolumeAttachment,
    ("policy/v1", "PodDisruptionBudget"): PodDisruptionBudget,
    ("scheduling.k8s.io/v1", "PriorityClass"): PriorityClass,
    ("node.k8s.io/v1", "RuntimeClass"): RuntimeClass,
    ("scheduling.k8s.io/v1beta1", "PodGroup"): PodGroup,
    ("scheduling.k8s.io/v1alpha2", "PodGroup"): PodGroup,
    ("resource.k8s.io/v1", "DeviceClass"): DeviceClass,
    ("resource.k8s.io/v1", "DeviceTaintRule"): DeviceTaintRule,
    ("resource.k8s.io/v1", "ResourceSlice"): ResourceSlice,
    ("resource.k8s.io/v1", "ResourceClaim"): ResourceClaim,
    ("resource.k8s.io/v1", "ResourceClaimTemplate"): ResourceClaimTemplate,
    **dict.fromkeys(CUSTOM_KINDS, CustomObject),
}
"""The types by apiVersion and kind."""
SAME_FIELDS: Final = {"resource.k8s.io/v1beta2": "resource.k8s.io/v1"}
"""Versions that differ from one above in name alone."""

T = TypeVar("T")

_DECODERS: Final[dict[Any, msgspec.json.Decoder[Any]]] = {}
"""One decoder per type that has been asked for: making one takes a thousand times as long as using it."""


class DecodeError(UserError, ValueError):
    """Something that is not the object it should be; the text says what, where, and in which object."""


class Decoded(NamedTuple):
    """The objects of a file, how many of which other kinds ("apps/v1 Deployment") were passed over, and the version
    of the API server where the file says it: `serverVersion`, as `kubectl version -o json` has it."""

    objects: list[KubeObject]
    skipped: Counter[str]
    server_version: str = ""


def readable_version(kind: str) -> str | None:
    """The version in which objects of a kind would be read that were passed over; None where there is none.

    >>> readable_version("resource.k8s.io/v1beta1 ResourceClaim"), readable_version("apps/v1 Deployment")
    ('resource.k8s.io/v1', None)
    """
    version, _, name = kind.rpartition(" ")
    group = version.rpartition("/")[0]
    return next((known for known, each in KINDS if each == name and known.rpartition("/")[0] == group), None)


def decode_json(type_: type[T], data: bytes | str | msgspec.Raw) -> T:
    """One object of a known type; raises DecodeError with the path of the field that does not fit.

    >>> decode_json(Pod, b'{"metadata": {"name": "web", "labels": null}}').key
    'default/web'
    """
    decoder: msgspec.json.Decoder[T] = _DECODERS.get(type_) or _DECODERS.setdefault(type_, msgspec.json.Decoder(type_))
    try:
        return decoder.decode(data)
    except msgspec.ValidationError:
        return _decode_with_nulls(type_, data)
    except msgspec.DecodeError as error:
        raise DecodeError(f"the JSON is broken: {str(error).removeprefix('JSON is malformed: ')}") from None
    except UnicodeDecodeError:
        raise DecodeError("the JSON is broken: not UTF-8 text") from None
    except RecursionError:
        raise DecodeError("nested too deeply to be a Kubernetes object") from None


def _decode_with_nulls(type_: type[T], data: bytes | str | msgspec.Raw) -> T:
    try:
        value = without_nulls(read_json(data if isinstance(data, str) else bytes(data), bounds=FILE), type_)
    except DocumentError as error:
        raise DecodeError(f"the JSON is broken: {error.problem}" if error.language else error.problem) from None
    try:
        return msgspec.convert(value, type_)
    except msgspec.ValidationError as error:
        path, problem = _explained(error)
        raise DecodeError(f"{_with_key(path, value)}: {problem}") from None


def decode_documents(text: str | bytes, source: str, kinds: Mapping[tuple[str, str], type[Any]] = KINDS) -> Decoded:
    """All objects in the text of a file called `source`, checked; raises DecodeError at the first that is wrong.

    `kinds` has the types by apiVersion and kind; objects of others are passed over.
    """
    objects: list[KubeObject] = []
    skipped: Counter[str] = Counter()
    server_version = ""
    try:
        for document in read_documents(text, source):
            header = _header(document.data, document, "$", source)
            server_version = version_in(header.server_version) or server_version
            if server_version and header.kind is None and header.api_version is None:
                continue  # what `kubectl version` printed
            for part in _parts(header, document, source, kinds):
                if part.type is None:
                    skipped[part.kind] += 1
                else:
                    objects.append(_object(part, part.type, source))
    except DocumentError as error:
        raise DecodeError(str(error)) from None
    return Decoded(objects, skipped, server_version)


class _Header(msgspec.Struct, rename="camel"):
    api_version: str | None = None
    kind: str | None = None
    items: msgspec.Raw = msgspec.Raw(b"null")
    server_version: Any = None


_HEADER: Final = msgspec.json.Decoder(_Header)
_ITEMS: Final = msgspec.json.Decoder(list[msgspec.Raw] | None)


class _Name(msgspec.Struct):
    namespace: str | None = None
    name: str | None = None


class _Named(msgspec.Struct):
    metadata: _Name | None = None


class _Part(NamedTuple):
    """One object inside a document: the document itself, or the item of a list at `prefix`."""

    document: Document
    prefix: str
    data: bytes | msgspec.Raw
    type: type[KubeObject] | None
    kind: str

    def line_of(self, path: str) -> int:
        if self.prefix == "$" or self.document.node is not None:
            return self.document.line_of(self.prefix + path[1:])
        # A JSON list may be huge, so only this item is searched for the field.
        data = bytes(self.data)
        line = self.document.line + self.document.data.count(b"\n", 0, max(0, self.document.data.find(data)))
        return Document(data, None, line).line_of(path)


def _parts(
    header: _Header, document: Document, source: str, kinds: Mapping[tuple[str, str], type[Any]]
) -> Iterator[_Part]:
    if header.kind is None or header.api_version is None:
        if document.json_fault is not None:
            raise document.json_fault
        missing = "kind" if header.kind is None else "apiVersion"
        line = document.line_of("$")
        raise DecodeError(f"{source}:{line}: the document has no {missing}; is it a Kubernetes object?")
    if not header.kind.endswith("List"):
        yield _part(document, "$", document.data, header.api_version, header.kind, kinds)
        return
    try:
        items = _ITEMS.decode(header.items)
    except msgspec.ValidationError:
        raise DecodeError(f"{source}:{document.line_of('$.items')}: $.items: expected a list") from None
    of_kind = header.kind.removesuffix("List")
    for index, item in enumerate(items or ()):
        prefix = f"$.items[{index}]"
        inner = _header(item, document, prefix, source)
        version = inner.api_version or header.api_version
        yield _part(document, prefix, item, version, inner.kind or of_kind, kinds)


def _header(data: bytes | msgspec.Raw, document: Document, prefix: str, source: str) -> _Header:
    try:
        return _HEADER.decode(data)
    except msgspec.ValidationError as error:
        path, problem = _explained(error)
        path = prefix + path[1:]
        raise DecodeError(f"{source}:{document.line_of(path)}: {path}: {problem}") from None


def _part(
    document: Document,
    prefix: str,
    data: bytes | msgspec.Raw,
    api_version: str,
    kind: str,
    kinds: Mapping[tuple[str, str], type[Any]],
) -> _Part:
    type_ = kinds.get((SAME_FIELDS.get(api_version, api_version), kind))
    return _Part(document, prefix, data, type_, f"{api_version} {kind}")


def _object(part: _Part, type_: type[KubeObject], source: str) -> KubeObject:
    try:
        obj = decode_json(type_, part.data)
    except DecodeError as error:
        path, _, problem = str(error).partition(": ")
        raise _error(part, source, path, problem) from None
    for wrong in problems(obj):
        raise _error(part, source, wrong.path, wrong.message)
    if getattr(obj, "kind", None) == "" and hasattr(obj, "api_version"):  # the item of a list of its kind
        version, _, kind = part.kind.rpartition(" ")
        changed: KubeObject = replace(obj, api_version=version, kind=kind)
        return changed
    return obj


def _error(part: _Part, source: str, path: str, problem: str) -> DecodeError:
    kind = part.kind.rpartition(" ")[2]
    try:
        metadata = decode_json(_Named, part.data).metadata or _Name()
    except DecodeError:
        metadata = _Name()
    name = "/".join(word for word in (metadata.namespace, metadata.name) if word)
    which = f'{kind} "{name}"' if name else kind
    return DecodeError(f"{source}:{part.line_of(path)}: {which}: {path}: {problem}")


_WORDS: Final = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "a map",
}
_EXPECTED: Final = re.compile(r"Expected `([^`]*)`, got `([^`]*)`")


def _explained(error: msgspec.ValidationError) -> tuple[str, str]:
    """Path and problem of a decoding failure, in words of people who write manifests."""
    problem, _, path = str(error).partition(" - at `")
    found = _EXPECTED.fullmatch(problem)
    if found is not None:
        options = [word for word in found[1].split(" | ") if word != "null"]
        wanted = "a quantity" if set(options) == {"int", "float", "str"} else " or ".join(map(_word, options))
        problem = f"expected {wanted}, got {_word(found[2])}"
    return path.removesuffix("`") or "$", problem


def _word(type_name: str) -> str:
    return _WORDS.get(type_name, type_name)


def _with_key(path: str, value: Any) -> str:
    """The path with the key of the map entry that is not text, which the decoder leaves out ("labels[...]")."""
    if not path.endswith("[...]"):
        return path
    for name in path.removesuffix("[...]").removeprefix("$.").split("."):
        if not isinstance(value, dict):
            return path
        value = value.get(name)
    wrong = [key for key, item in value.items() if not isinstance(item, str)] if isinstance(value, dict) else []
    return path.replace("[...]", f'["{wrong[0]}"]') if wrong else path


def read_types() -> None:
    """Make msgspec read the fields of all types there are; to be called before a second thread decodes objects.

    msgspec reads a type's fields when it decodes the type for the first time. A second thread that comes to the same
    type at that moment finds it half read, and the process crashes.
    """
    for each in _below(msgspec.Struct):
        try:
            msgspec.json.Decoder(each)
        except Exception:  # noqa: S112  whatever the author of a type wrote: what cannot be read is decoded by no thread
            continue


def _below(type_: type[msgspec.Struct]) -> Iterator[type[msgspec.Struct]]:
    for each in type_.__subclasses__():
        yield each
        yield from _below(each)
