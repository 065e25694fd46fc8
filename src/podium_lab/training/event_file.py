"""Writes figures as TensorBoard reads them: a file of framed records, one for each step.

    record   length (8 bytes), its masked checksum (4), the event, its masked checksum (4)
    event    a protobuf message: wall time (1), step (2), summary (5) with value (1): tag (1), simple value (2)

Checksums are CRC-32C. Only these fields are needed, so no library is.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Final

VERSION: Final = b"brain.Event:2"
POLYNOMIAL: Final = 0x82F63B78


def _table() -> tuple[int, ...]:
    found = []
    for number in range(256):
        rest = number
        for _ in range(8):
            rest = rest >> 1 ^ (POLYNOMIAL if rest & 1 else 0)
        found.append(rest)
    return tuple(found)


_TABLE: Final = _table()


def crc32c(data: bytes) -> int:
    """The Castagnoli checksum.

    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    """
    rest = 0xFFFFFFFF
    for byte in data:
        rest = rest >> 8 ^ _TABLE[(rest ^ byte) & 0xFF]
    return rest ^ 0xFFFFFFFF


def _masked(data: bytes) -> bytes:
    rest = crc32c(data)
    return struct.pack("<I", ((rest >> 15 | rest << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def _record(event: bytes) -> bytes:
    length = struct.pack("<Q", len(event))
    return length + _masked(length) + event + _masked(event)


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _field(number: int, content: bytes) -> bytes:
    """A field of bytes, text or another message."""
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def scalar_event(time: float, step: int, figures: Mapping[str, float]) -> bytes:
    """The record of one step's figures."""
    values = b"".join(
        _field(1, _field(1, tag.encode()) + b"\x15" + struct.pack("<f", value)) for tag, value in figures.items()
    )
    return _record(b"\x09" + struct.pack("<d", time) + b"\x10" + _varint(step) + _field(5, values))


class EventFile:
    """A file of figures; one that exists is continued."""

    def __init__(self, path: Path, time: float) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = not path.exists()
        self._file = path.open("ab")
        if fresh:
            self._file.write(_record(b"\x09" + struct.pack("<d", time) + _field(3, VERSION)))

    def write(self, time: float, step: int, figures: Mapping[str, float]) -> None:
        self._file.write(scalar_event(time, step, figures))
        self._file.flush()

    def close(self) -> None:
        self._file.close()
