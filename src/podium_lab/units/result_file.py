"""Writes and verifies result files: the payload of a unit beside what says whose it is.

A file is MessagePack: the unit, the payload, and the payload's SHA-256. A file that is cut off, changed, or the result
of another unit does not count.
"""

from __future__ import annotations

import msgspec

from podium_lab.units.errors import DamagedError
from podium_lab.units.unit import Unit, content_hash


class ResultFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of a result file."""

    unit: Unit
    sha256: str
    payload: bytes


def encode_result(unit: Unit, payload: bytes) -> bytes:
    return msgspec.msgpack.encode(ResultFile(unit, content_hash(payload), payload), order="sorted")


def verified_payload(content: bytes, unit: Unit) -> bytes:
    """The payload of a unit; raises DamagedError where the content is no such thing."""
    try:
        found = _DECODER.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        why = "is cut off" if "truncated" in str(error) else "is no result of a unit"
        raise DamagedError(why) from None
    if found.unit != unit:
        if found.unit.version != unit.version:
            raise DamagedError(f"was made by Podium {found.unit.version}, not {unit.version}")
        raise DamagedError(f"is the result of another unit ({found.unit.label})")
    if content_hash(found.payload) != found.sha256 or content != encode_result(unit, found.payload):
        raise DamagedError("was changed after it was written")
    return found.payload


_DECODER = msgspec.msgpack.Decoder(ResultFile)
