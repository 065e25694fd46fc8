"""Reads lines of a watch and items of a list, from bytes to objects with their identity.

The fast path decodes an event and its object in one pass, straight into the type. Whatever does not fit goes a second
way: bookmarks and errors, objects with nulls, and objects with a field of a wrong type, of which at least the name is
read, so that one bad object costs one object and not the watch.
"""

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar, cast

import msgspec

from podium.client.api_errors import ApiError, ClientError, refusal
from podium.client.resource import ApiResource
from podium.kube import DecodeError, decode_json

T = TypeVar("T")

ADDED, MODIFIED, DELETED, BOOKMARK, ERROR = "ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"

_CHANGES = frozenset((ADDED, MODIFIED, DELETED))
_EXPIRED = ("Expired", "Gone")
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
LONGEST_LINE = 16 << 20
"""No object comes near it: etcd refuses those over 1.5 MB. It keeps a stream without line ends out of memory."""


class ObjectIdentity(NamedTuple):
    """Which object, and which version of it: "namespace/name" or "name", UID, and resource version."""

    key: str
    uid: str
    version: str


class FoundObject(NamedTuple, Generic[T]):
    """An object as the server sent it; without `object`, `problem` says why that cannot be used."""

    identity: ObjectIdentity
    object: T | None = None
    raw: bytes | None = None
    problem: str = ""


class _Event(msgspec.Struct, Generic[T], gc=False):
    type: str
    object: T


class _Metadata(msgspec.Struct, rename="camel", gc=False):
    name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None


class _Named(msgspec.Struct, gc=False):
    metadata: _Metadata | None = None


class _Code(msgspec.Struct, gc=False):
    code: int | None = None
    reason: str | None = None


_decode_envelope = msgspec.json.Decoder(_Event[msgspec.Raw]).decode
_decode_named = msgspec.json.Decoder(_Named).decode
_decode_code = msgspec.json.Decoder(_Code).decode


class Reader(Generic[T]):
    """Reads events and objects of one resource, with their JSON if `keep_raw`."""

    def __init__(self, resource: ApiResource[T], *, keep_raw: bool = False) -> None:
        self._type = cast("type[T]", resource.type or dict[str, Any])
        self._keep_raw = keep_raw
        self.identify: Callable[[T], ObjectIdentity] = (
            _identity_of_dict if resource.type is None else _identity_of_struct
        )
        self._decode = msgspec.json.Decoder(_Event[self._type]).decode  # type: ignore[name-defined]

    def event(self, line: bytes) -> tuple[str, FoundObject[T]]:
        """What happened and to what. An event that reports an error is raised: ApiError; BrokenStream for garbage."""
        if not self._keep_raw:
            try:
                event = self._decode(line)
                if event.type in _CHANGES:
                    identity = self.identify(event.object)
                    if identity.key:
                        return event.type, FoundObject(identity, event.object)
            except _UNREADABLE:
                pass
        return self._event_in_two_steps(line)

    def object(self, data: msgspec.Raw) -> FoundObject[T]:
        """One object by itself; `problem` where it does not fit the type."""
        raw = bytes(data) if self._keep_raw else None
        if len(memoryview(data)) > LONGEST_LINE:
            return FoundObject(_identity_of_named(data), None, raw, f"it is larger than {LONGEST_LINE} bytes")
        try:
            found = decode_json(self._type, data)
            identity = self.identify(found)
        except (DecodeError, *_UNREADABLE) as error:
            return FoundObject(_identity_of_named(data), None, raw, str(error))
        if not identity.key:
            return FoundObject(identity, None, raw, "it has no name")
        return FoundObject(identity, found, raw)

    def _event_in_two_steps(self, line: bytes) -> tuple[str, FoundObject[T]]:
        try:
            event = _decode_envelope(line)
        except _UNREADABLE as error:
            raise BrokenStream(f"the server sent something that is not an event of a watch: {error}") from None
        if event.type == ERROR:
            raise _refusal(bytes(event.object))
        if event.type == BOOKMARK:
            return BOOKMARK, FoundObject(_identity_of_named(event.object))
        return event.type, self.object(event.object)


def _identity_of_struct(obj: Any) -> ObjectIdentity:
    metadata = obj.metadata
    name, namespace = metadata.name, metadata.namespace
    return ObjectIdentity(f"{namespace}/{name}" if namespace else name, metadata.uid, metadata.resource_version)


def _identity_of_dict(obj: Any) -> ObjectIdentity:
    metadata = obj.get("metadata")
    try:
        return _identity(msgspec.convert(metadata, _Metadata | None))
    except msgspec.ValidationError:
        return _identity(None)


def _identity_of_named(data: msgspec.Raw) -> ObjectIdentity:
    try:
        return _identity(_decode_named(data).metadata)
    except _UNREADABLE:
        return _identity(None)


def _identity(metadata: _Metadata | None) -> ObjectIdentity:
    if metadata is None:
        return ObjectIdentity("", "", "")
    key = "/".join(part for part in (metadata.namespace, metadata.name) if part)
    return ObjectIdentity(key, metadata.uid or "", metadata.resource_version or "")


def _refusal(status: bytes) -> ApiError:
    """The error in a watch, which comes as a Status after a 200 has long been sent."""
    try:
        decoded = _decode_code(status)
    except _UNREADABLE:
        decoded = _Code()
    return refusal(410 if decoded.reason in _EXPIRED else decoded.code or 500, status)


class BrokenStream(ClientError):  # noqa: N818  (it reads as what happened)
    """The server sent something that is not what was asked for."""


class LineSplitter:
    """Collects chunks into lines; what is left at the end of the stream is not a whole line, and is dropped."""

    def __init__(self, longest: int = LONGEST_LINE) -> None:
        self._longest = longest
        self._begun: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that this chunk ends, without their line ends; blank ones are left out."""
        lines = chunk.split(b"\n")
        self._begin(lines[0])
        if len(lines) == 1:
            return []
        lines[0] = b"".join(self._begun)
        self._begun.clear()
        self._size = 0
        self._begin(lines.pop())
        return [line for line in lines if line]

    def _begin(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > self._longest:
            raise BrokenStream(f"the server sent a line of more than {self._longest} bytes")
        if part:
            self._begun.append(part)
