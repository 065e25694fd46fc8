"""Reads and writes named content in a folder, or in an object store through pyarrow's file systems.

Writing is atomic: a reader sees all of a content or none of it. In a folder that takes a partial file beside it, which
a process that was killed leaves behind; `leftovers` finds those.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from podium.framework.clock import SystemClock
from podium_lab.units.unit import StoreError

PARTIAL = ".partial"
OLD = 86_400.0
"""Seconds after which a partial file of another machine counts as left behind: writing one takes moments."""
_numbers = count()


class Entry(NamedTuple):
    """A content that is there."""

    name: str
    size: int
    written: float
    """Seconds since 1970."""


class Place(Protocol):
    """Where the content of a store lies. Names have slashes."""

    url: str
    """How another process opens it."""

    def read(self, name: str) -> bytes | None: ...
    def write(self, name: str, content: bytes) -> None: ...
    def delete(self, name: str) -> None: ...
    def entries(self, folder: str) -> Iterator[Entry]: ...
    def leftovers(self) -> list[str]: ...


class FolderPlace:
    """A folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        self.url = str(self.folder)

    def read(self, name: str) -> bytes | None:
        try:
            return (self.folder / name).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StoreError(f"{self.folder / name}: cannot be read: {error.strerror}; give another --store") from None

    def write(self, name: str, content: bytes) -> None:
        path = self.folder / name
        partial = path.with_name(f"{path.name}.{_host()}.{os.getpid()}.{next(_numbers)}{PARTIAL}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                partial.write_bytes(content)
                partial.replace(path)
            except BaseException:  # also a signal that ends this process
                partial.unlink(missing_ok=True)
                raise
        except OSError as error:
            raise StoreError(f"{path}: cannot be written: {error.strerror}; give another --store") from None

    def delete(self, name: str) -> None:
        (self.folder / name).unlink(missing_ok=True)

    def entries(self, folder: str) -> Iterator[Entry]:
        for path in sorted((self.folder / folder).rglob("*")):
            if path.suffix == PARTIAL:
                continue
            try:
                state = path.stat()
            except FileNotFoundError:  # another process has just replaced it
                continue
            if path.is_file():
                yield Entry(path.relative_to(self.folder).as_posix(), state.st_size, state.st_mtime)

    def leftovers(self) -> list[str]:
        """Partial files whose writer no longer runs: its process of this machine has ended, or it is a day old."""
        return [
            path.relative_to(self.folder).as_posix()
            for path in sorted(self.folder.rglob(f"*{PARTIAL}"))
            if _abandoned(path)
        ]


def _abandoned(path: Path) -> bool:
    _name, host, pid, _number, _suffix = path.name.rsplit(".", 4)
    if host != _host():
        try:
            return SystemClock().now() - path.stat().st_mtime > OLD
        except FileNotFoundError:
            return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


def _host() -> str:
    return socket.gethostname().replace(".", "-")


class ObjectPlace:
    """A prefix of an object store: s3://, gs:// or another address that pyarrow knows."""

    def __init__(self, url: str) -> None:
        try:
            fs: Any = import_module("pyarrow.fs")
        except ImportError:
            raise StoreError(f"--store {url}: pyarrow is not installed; install podium[parquet]") from None
        try:
            self._files, prefix = fs.FileSystem.from_uri(url)
        except (OSError, ValueError) as error:
            raise StoreError(f"--store {url}: {_first_line(error)}") from None
        self._prefix = prefix.rstrip("/")
        self._selector, self._is_file = fs.FileSelector, fs.FileType.File
        self.url = url

    def read(self, name: str) -> bytes | None:
        try:
            with self._files.open_input_stream(f"{self._prefix}/{name}") as stream:
                content: bytes = stream.read()
                return content
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._failed(name, "read", error) from None

    def write(self, name: str, content: bytes) -> None:
        try:
            with self._files.open_output_stream(f"{self._prefix}/{name}") as stream:
                stream.write(content)
        except OSError as error:
            raise self._failed(name, "written", error) from None

    def delete(self, name: str) -> None:
        try:
            self._files.delete_file(f"{self._prefix}/{name}")
        except FileNotFoundError:
            pass
        except OSError as error:
            raise self._failed(name, "deleted", error) from None

    def entries(self, folder: str) -> Iterator[Entry]:
        selector = self._selector(f"{self._prefix}/{folder}", recursive=True, allow_not_found=True)
        try:
            found = self._files.get_file_info(selector)
        except OSError as error:
            raise self._failed(folder, "listed", error) from None
        for each in sorted(found, key=lambda info: str(info.path)):
            if each.type == self._is_file:
                yield Entry(each.path.removeprefix(f"{self._prefix}/"), each.size, (each.mtime_ns or 0) / 1e9)

    def leftovers(self) -> list[str]:
        return []  # an object is there when its last byte is

    def _failed(self, name: str, done: str, error: OSError) -> StoreError:
        return StoreError(f"{self.url}/{name}: cannot be {done}: {_first_line(error)}")


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def open_place(url: str) -> Place:
    """
    >>> type(open_place("results")).__name__
    'FolderPlace'
    """
    return ObjectPlace(url) if "://" in url else FolderPlace(Path(url))
