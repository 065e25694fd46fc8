"""Reads from the API server's own log when each pod was bound.

On a machine whose two cores the API server, etcd and the scheduler share, an observer that watches the pods takes part
in the race: a watch alone makes the API server encode every pod once more. So the observer only reads the API server's
audit log, which holds one line for each request to bind, with the time of the answer. Counting the new lines five times
a second costs nothing that could be measured, and the times are taken from the lines after the race.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import msgspec


class _Subject(msgspec.Struct):
    name: str


class _Entry(msgspec.Struct, rename="camel"):
    object_ref: _Subject
    stage_timestamp: str


class BindingLog:
    """The part of the log from now on."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = path.stat().st_size if path.exists() else 0
        self._lines: list[bytes] = []

    def count(self) -> int:
        """How many pods were bound so far."""
        if self._path.exists():
            with self._path.open("rb") as log:
                log.seek(self._offset)
                whole, newline, _ = log.read().rpartition(b"\n")
            self._offset += len(whole) + len(newline)
            self._lines += [line for line in whole.splitlines() if b'"code":201' in line and b'"binding"' in line]
        return len(self._lines)

    def bound(self) -> dict[str, float]:
        """The time at which each pod counted so far was bound, by its name, in seconds since 1970."""
        decode = msgspec.json.Decoder(_Entry).decode
        return {
            entry.object_ref.name: datetime.fromisoformat(entry.stage_timestamp).timestamp()
            for entry in map(decode, self._lines)
        }
