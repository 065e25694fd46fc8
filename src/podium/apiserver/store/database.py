"""Saves everything that is stored in one SQLite file, so that a killed process comes back with all it acknowledged.

The file is a journal of the store, not another store: it is read once, at the start. Writes of one turn of the event
loop share a commit, and a request is answered only after the commit that holds its write. What the process had
committed survives its end, however sudden; like any database that does not wait for the disk at each commit it may
lose the last moments when the whole machine loses power. The file belongs to one process at a time.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from podium.apiserver.store.collection import ObjectChange
from podium.apiserver.store.object_store import ObjectStore

_FORMAT: Final = 1
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS objects (
    collection TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
    api_version TEXT NOT NULL, kind TEXT NOT NULL, raw BLOB NOT NULL,
    PRIMARY KEY (collection, namespace, name)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS counter (id INTEGER PRIMARY KEY CHECK (id = 1), revision INTEGER NOT NULL);
"""
_Key = tuple[str, str, str]


class DatabaseError(Exception):
    """The file cannot be used; one sentence says why."""


class Row(NamedTuple):
    api_version: str
    kind: str
    raw: bytes


class Database:
    """Opens the file, or makes it; raises DatabaseError. `follow` a store, `close` at the end."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection = _opened(path)
        self._changed: dict[_Key, Row | None] = {}
        self._revision = 0
        self._waiting: asyncio.Future[None] | None = None

    def revision(self) -> int:
        """The last revision that was written, 0 in a new file."""
        found = self._connection.execute("SELECT revision FROM counter").fetchone()
        return 0 if found is None else int(found[0])

    def rows(self) -> Iterator[Row]:
        """Every object that was stored."""
        for row in self._connection.execute("SELECT api_version, kind, raw FROM objects"):
            yield Row(*row)

    def follow(self, store: ObjectStore) -> None:
        """Write down every change from now on."""
        store.listen(self._on_change)

    async def committed(self) -> None:
        """Return when every change so far is in the file; DatabaseError where it cannot be written."""
        if self._waiting is not None:
            await asyncio.shield(self._waiting)

    def commit(self) -> None:
        """Put every change so far into the file now."""
        waiting, self._waiting = self._waiting, None
        try:
            self._write()
        except sqlite3.Error as error:
            failure = DatabaseError(f"{self._path} cannot be written: {error}")
            if waiting is None or waiting.done():
                raise failure from None
            waiting.set_exception(failure)
        else:
            if waiting is not None and not waiting.done():
                waiting.set_result(None)

    def close(self) -> None:
        self.commit()
        self._connection.close()

    def _on_change(self, change: ObjectChange) -> None:
        new = change.new
        key = (new.kind.stored_in, new.namespace, new.name)
        self._changed[key] = None if change.type == "DELETED" else Row(new.kind.api_version, new.kind.kind, new.raw)
        self._revision = new.revision
        if self._waiting is not None:
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # No event loop, no turn that ends: this write is on its own.
            self.commit()
            return
        self._waiting = loop.create_future()
        loop.call_soon(self.commit)

    def _write(self) -> None:
        if not self._changed:
            return
        # Kept until they are committed: after a failure the next commit tries them again.
        with self._connection:
            self._connection.execute("BEGIN")
            self._connection.executemany(
                "INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?, ?, ?)",
                [(*key, *row) for key, row in self._changed.items() if row is not None],
            )
            self._connection.executemany(
                "DELETE FROM objects WHERE collection = ? AND namespace = ? AND name = ?",
                [key for key, row in self._changed.items() if row is None],
            )
            self._connection.execute("INSERT OR REPLACE INTO counter VALUES (1, ?)", (self._revision,))
        self._changed.clear()


def _opened(path: Path) -> sqlite3.Connection:
    if not path.parent.is_dir():
        raise DatabaseError(f"{path} cannot be made: there is no folder {path.parent}")
    _make_private(path)
    connection = sqlite3.connect(path, isolation_level=None, timeout=0.5)
    try:
        # Held until the connection ends, so that no other process writes what this one would never read.
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version not in (0, _FORMAT):
            raise DatabaseError(f"{path} was written by another version of Podium: give another file")
        connection.execute("BEGIN EXCLUSIVE")
        connection.execute("COMMIT")
        connection.executescript(_SCHEMA)
        connection.execute(f"PRAGMA user_version = {_FORMAT}")
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
        path.touch(mode=0o600)
        for each in (path, *(path.with_name(f"{path.name}-{suffix}") for suffix in ("wal", "shm"))):
            if each.exists():
                each.chmod(0o600)
    except OSError as error:
        raise DatabaseError(f"{path} cannot be opened: {error.strerror}") from None
