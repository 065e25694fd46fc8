"""Reads the protobuf that typed Go clients send: kubectl's own objects come in it.

Only reading; answers are JSON, which these clients accept. An object is an envelope (four magic bytes, then a message
with the type's name and the bytes) around messages whose fields are numbered (schema/wire_numbers.json). What comes out
is the dictionary that the same object would be in JSON, with the zero values in it that protobuf writes and JSON leaves
out; the schema drops these when it takes the object.
"""

import base64
import struct
from collections.abc import Iterator
from functools import lru_cache
from importlib.resources import files
from typing import Any, Final

import msgspec

from podium_cluster.apiserver.write_context import micro_timestamp, timestamp

MEDIA_TYPE: Final = "application/vnd.kubernetes.protobuf"
_MAGIC: Final = b"k8s\x00"
_META: Final = "k8s.io.apimachinery.pkg.apis.meta.v1."
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_ENVELOPE: Final = {1: ("typeMeta", "TypeMeta"), 2: ("raw", "raw"), 3: ("contentEncoding", "string")}
_TYPE_META: Final = {1: ("apiVersion", "string"), 2: ("kind", "string")}

Fields = dict[int, tuple[str, str]]

_BROKEN = (IndexError, TypeError, ValueError, OverflowError, struct.error, msgspec.DecodeError, RecursionError)


class ProtobufError(ValueError):
    """Bytes that are not the message they should be."""


def decode(data: bytes) -> dict[str, Any]:
    """The object in an envelope, kind and apiVersion included."""
    if not data.startswith(_MAGIC):
        raise ProtobufError("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
    envelope = _read(memoryview(data)[4:], "Unknown")
    type_meta = envelope.get("typeMeta", {})
    api_version, kind = type_meta.get("apiVersion", ""), type_meta.get("kind", "")
    name = message_name(api_version, kind)
    if name is None:
        raise ProtobufError(f'no kind "{kind}" is registered for version "{api_version}"')
    return {"kind": kind, "apiVersion": api_version, **_read(envelope.get("raw", memoryview(b"")), name)}


def _read(data: memoryview, name: str) -> Any:
    """A message; whatever it is that a field does not hold what its type says, the message is broken."""
    try:
        return _message(data, name)
    except _BROKEN as error:
        raise ProtobufError(f"the message is broken: {error}") from None


def message_name(api_version: str, kind: str) -> str | None:
    """The message of a kind: "k8s.io.api.apps.v1.Deployment"."""
    group, _, version = api_version.rpartition("/")
    if kind == "DeleteOptions":
        return _META + kind
    name = f"k8s.io.api.{group.partition('.')[0] or 'core'}.{version}.{kind}"
    return name if name in _messages() else None


@lru_cache(maxsize=1)
def _messages() -> dict[str, Fields]:
    text = (files("podium_cluster.apiserver.schema") / "wire_numbers.json").read_bytes()
    found: dict[str, Fields] = msgspec.json.decode(text, type=_Numbers).messages
    return {**found, "Unknown": _ENVELOPE, "TypeMeta": _TYPE_META}


class _Numbers(msgspec.Struct):
    version: str
    messages: dict[str, Fields]


def _message(data: memoryview, name: str) -> Any:
    special = _SPECIAL.get(name)
    if special is not None:
        return special({number: value for number, _, value in _fields(data)})
    numbers = _messages()[name]
    found: dict[str, Any] = {}
    for number, wire, value in _fields(data):
        known = numbers.get(number)
        if known is None:
            continue
        field, type_ = known
        if type_.startswith("[]"):
            found.setdefault(field, []).append(_value(value, wire, type_[2:]))
        elif type_.startswith("{}"):
            entry = {key: inner for key, _, inner in _fields(value)}
            key = str(entry.get(1, b""), "utf-8")
            empty: Any = memoryview(b"") if type_ not in ("{}int", "{}bool") else 0
            found.setdefault(field, {})[key] = _value(entry.get(2, empty), _BYTES, type_[2:])
        elif field:
            found[field] = _value(value, wire, type_)
        else:
            found.update(_message(value, type_))
    return found


def _value(value: Any, wire: int, type_: str) -> Any:
    match type_:
        case "string":
            return str(value, "utf-8")
        case "bool":
            return bool(value)
        case "int":
            return value - (1 << 64) if value >= 1 << 63 else value
        case "bytes":
            return base64.b64encode(value).decode()
        case "double":
            return struct.unpack("<d", struct.pack("<Q", value))[0]
        case "raw":
            return value
    return _message(value, type_)


def _fields(data: memoryview) -> Iterator[tuple[int, int, Any]]:
    """Number, wire type and value of each field: a number, or the bytes."""
    at, end = 0, len(data)
    while at < end:
        tag, at = _varint(data, at)
        wire = tag & 7
        if wire == _VARINT:
            value, at = _varint(data, at)
            yield tag >> 3, wire, value
        elif wire == _BYTES:
            size, at = _varint(data, at)
            if at + size > end:
                raise IndexError("a field is longer than its message")
            yield tag >> 3, wire, data[at : at + size]
            at += size
        elif wire in (_FIXED64, _FIXED32):
            size = 8 if wire == _FIXED64 else 4
            yield tag >> 3, wire, int.from_bytes(data[at : at + size], "little")
            at += size
        else:
            raise IndexError(f"unknown wire type {wire}")


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise IndexError("a number has too many bytes")


def _time(fields: dict[int, Any]) -> str | None:
    return timestamp(_signed(fields.get(1, 0))) if fields else None


def _micro_time(fields: dict[int, Any]) -> str | None:
    if not fields:
        return None
    return micro_timestamp(_signed(fields.get(1, 0)) + fields.get(2, 0) / 1e9)


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


def _int_or_string(fields: dict[int, Any]) -> int | str:
    return str(fields.get(3, b""), "utf-8") if fields.get(1) else _signed(fields.get(2, 0))


def _quantity(fields: dict[int, Any]) -> str:
    return str(fields.get(1, b"0"), "utf-8") or "0"


def _json(fields: dict[int, Any]) -> Any:
    raw = fields.get(1, b"")
    return msgspec.json.decode(raw) if len(raw) else None


def _duration(fields: dict[int, Any]) -> str:
    return f"{_signed(fields.get(1, 0)) / 1e9:g}s"


_SPECIAL: Final = {
    f"{_META}Time": _time,
    f"{_META}MicroTime": _micro_time,
    f"{_META}Duration": _duration,
    f"{_META}FieldsV1": _json,
    "k8s.io.apimachinery.pkg.api.resource.Quantity": _quantity,
    "k8s.io.apimachinery.pkg.util.intstr.IntOrString": _int_or_string,
    "k8s.io.apimachinery.pkg.runtime.RawExtension": _json,
}
