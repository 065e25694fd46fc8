"""Writes every change to a SQLite file before it counts, so that a killed process comes back with all that was seen.

The file is a copy of the store, not another store: it is read once, at the start. A change is committed to the file
first and made in the store then; what cannot be written has not happened. What the process had committed
survives its end, however sudden; like any database that does not wait for the disk at each commit it may lose the last
moments when the whole machine loses power. Each row has a checksum, so that a damaged file is refused at the start. The
file belongs to one process at a time.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple
from zlib import crc32

import msgspec

from podium_cluster.apiserver.errors import StorageError
from podium_cluster.apiserver.store.collection import Stored

_FORMAT: Final = 2
_NEW: Final = (
    """CREATE TABLE objects (
        collection TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
        api_version TEXT NOT NULL, kind TEXT NOT NULL, raw BLOB NOT NULL, checksum INTEGER,
        PRIMARY KEY (collection, namespace, name)
    ) WITHOUT ROWID""",
    "CREATE TABLE counter (id INTEGER PRIMARY KEY CHECK (id = 1), revision INTEGER NOT NULL)",
)
_UPGRADES: Final = {0: _NEW, 1: ("ALTER TABLE objects ADD COLUMN checksum INTEGER",)}
"""What makes a file of an earlier format, 0 a new one, a file of this format."""
_PUT: Final = "INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?, ?, ?, ?)"
_REMOVE: Final = "DELETE FROM objects WHERE collection = ? AND namespace = ? AND name = ?"
_COUNT: Final = "INSERT OR REPLACE INTO counter VALUES (1, ?)"
_PROBE: Final = ("", "", "probe")
"""A row that is no object: written to see whether anything can be written."""
_PROBE_BYTES: Final = 4096
_SMALLEST: Final = 512
_WAL_PAGES: Final = 4000


class DatabaseError(Exception):
    """The file cannot be used; one sentence says why."""


class Row(NamedTuple):
    api_version: str
    kind: str
    raw: bytes


class _Metadata(msgspec.Struct, rename="camel"):
    name: str
    resource_version: str


class _Object(msgspec.Struct):
    metadata: _Metadata


_decoder: Final = msgspec.json.Decoder(_Object)


class Database:
    """Opens the file, or makes it; raises DatabaseError. It is the write-ahead log of a store; `close` at the end."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection = _opened(path)
        self._needs = _PROBE_BYTES
        """The largest row that could not be written since one last could."""
        try:
            self.revision = _checked(self._connection)
        except (sqlite3.Error, msgspec.MsgspecError, ValueError, TypeError) as error:
            self._connection.close()
            raise DatabaseError(
                f"{path} is damaged ({error}): give another file, or a copy of it that is whole"
            ) from None

    def rows(self) -> Iterator[Row]:
        """Every object that was stored."""
        for row in self._connection.execute("SELECT api_version, kind, raw FROM objects WHERE collection != ''"):
            yield Row(*row)

    def put(self, stored: Stored) -> None:
        """Write the object down; StorageError where that fails, and then nothing has changed."""
        kind = stored.kind
        try:
            self._put((kind.stored_in, stored.namespace, stored.name), Row(kind.api_version, kind.kind, stored.raw))
        except sqlite3.Error as error:
            self._needs = max(self._needs, len(stored.raw))
            raise self._failure(error) from None

    def remove(self, last: Stored) -> None:
        """Write down that the object is gone, at the revision of its last state; StorageError where that fails."""
        try:
            with self._connection:
                self._connection.execute("BEGIN")
                self._connection.execute(_REMOVE, (last.kind.stored_in, last.namespace, last.name))
                self._connection.execute(_COUNT, (last.revision,))
        except sqlite3.Error as error:
            raise self._failure(error) from None

    def writable(self) -> bool:
        """Whether an object as large as the last that failed can be written now, found out by writing one."""
        try:
            self._put(_PROBE, Row("", "", bytes(self._needs)))
            self._connection.execute(_REMOVE, _PROBE)
        except sqlite3.Error:
            return False
        self._needs = _PROBE_BYTES
        return True

    def close(self) -> None:
        self._connection.close()

    def _put(self, key: tuple[str, str, str], row: Row) -> None:
        self._connection.execute(_PUT, (*key, *row, _checksum(key, row)))

    def _failure(self, error: sqlite3.Error) -> StorageError:
        return StorageError(f"{self._path} cannot be written: {error}")


def _checksum(key: tuple[str, str, str], row: Row) -> int:
    return crc32("/".join((*key, row.api_version, row.kind)).encode(), crc32(row.raw))


def _checked(connection: sqlite3.Connection) -> int:
    """The last revision that was written, 0 in a new file. Raises an error for a file that is not as it was written."""
    problem = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if problem != "ok":
        raise ValueError(problem.splitlines()[-1])
    found = connection.execute("SELECT revision FROM counter").fetchone()
    revision = 0 if found is None else int(found[0])
    for *key, api_version, kind, raw, checksum in connection.execute("SELECT * FROM objects WHERE collection != ''"):
        if checksum not in (None, _checksum((key[0], key[1], key[2]), Row(api_version, kind, raw))):
            raise ValueError(f"{kind} {key[2]} is not as it was written")
        revision = max(revision, int(_decoder.decode(raw).metadata.resource_version))
    return revision


def _opened(path: Path) -> sqlite3.Connection:
    if not path.parent.is_dir():
        raise DatabaseError(f"{path} cannot be made: there is no folder {path.parent}")
    _make_private(path)
    connection = sqlite3.connect(path, isolation_level=None, timeout=0.5)
    try:
        # Held until the connection ends, so that no other process writes what this one would never read.
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version == 0 and connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            raise DatabaseError(f"{path} is not a database of Podium: it holds another program's tables")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(f"PRAGMA wal_autocheckpoint = {_WAL_PAGES}")
        if not 0 <= version <= _FORMAT:
            raise DatabaseError(f"{path} was written by another version of Podium: give another file")
        connection.execute("BEGIN EXCLUSIVE")
        for statement in _UPGRADES.get(version, ()):
            connection.execute(statement)
        if version != _FORMAT:
            connection.execute(f"PRAGMA user_version = {_FORMAT}")
        connection.execute("COMMIT")
    except sqlite3.OperationalError as error:
        connection.close()
        if "locked" in str(error):
            raise DatabaseError(f"{path} is in use by another process: stop it, or give another file") from None
        raise DatabaseError(f"{path} cannot be opened: {error}") from None
    except sqlite3.DatabaseError as error:
        connection.close()
        raise DatabaseError(f"{path} is not a database of Podium: {error}") from None
    except DatabaseError:
        connection.close()
        raise
    return connection


def _make_private(path: Path) -> None:
    """The file holds Secrets: only its owner reads it and those that SQLite puts beside it."""
    try:
        if path.exists() and not path.is_file():
            raise DatabaseError(f"{path} cannot be opened: it is not a file")
        path.touch(mode=0o600)
        if 0 < path.stat().st_size < _SMALLEST:  # SQLite would begin a new one in it
            raise DatabaseError(f"{path} is not a database of Podium: it is too short")
        for each in (path, *(path.with_name(f"{path.name}-{suffix}") for suffix in ("wal", "shm"))):
            if each.exists():
                each.chmod(0o600)
    except OSError as error:
        raise DatabaseError(f"{path} cannot be opened: {error.strerror}") from None
