"""Figures for TensorBoard: framed records, read back by the format's own description."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from podium_lab.training.event_file import EventFile, crc32c


def unmasked(masked: int) -> int:
    rest = (masked - 0xA282EAD8) & 0xFFFFFFFF
    return (rest >> 17 | rest << 15) & 0xFFFFFFFF


def records(content: bytes) -> list[bytes]:
    """The events of a file; checks every checksum."""
    found = []
    while content:
        (length,) = struct.unpack("<Q", content[:8])
        assert crc32c(content[:8]) == unmasked(struct.unpack("<I", content[8:12])[0])
        event, rest = content[12 : 12 + length], content[12 + length :]
        assert crc32c(event) == unmasked(struct.unpack("<I", rest[:4])[0])
        found.append(event)
        content = rest[4:]
    return found


def test_the_checksum_is_that_of_the_standard() -> None:
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(bytes(32)) == 0x8A9136AA


def test_a_file_has_its_version_and_one_record_for_each_step(tmp_path: Path) -> None:
    path = tmp_path / "events.tfevents"
    for step in (1, 300):
        file = EventFile(path, 5.0)
        file.write(6.0, step, {"ppo/reward": 0.5})
        file.close()
    version, first, second = records(path.read_bytes())
    assert version == b"\x09" + struct.pack("<d", 5.0) + b"\x1a\x0dbrain.Event:2"
    value = b"\x0a\x0appo/reward\x15" + struct.pack("<f", 0.5)
    summary = b"\x2a" + bytes([len(value) + 2]) + b"\x0a" + bytes([len(value)]) + value
    assert first == b"\x09" + struct.pack("<d", 6.0) + b"\x10\x01" + summary
    assert second == b"\x09" + struct.pack("<d", 6.0) + b"\x10\xac\x02" + summary


def test_tensorboard_reads_it_where_it_is_installed(tmp_path: Path) -> None:
    loading = pytest.importorskip("tensorboard.backend.event_processing.event_file_loader")
    path = tmp_path / "events.tfevents"
    EventFile(path, 5.0).write(6.0, 7, {"a": 1.5})
    assert [event.step for event in loading.EventFileLoader(str(path)).Load()] == [0, 7]
