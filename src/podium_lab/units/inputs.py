"""Gives a unit its inputs as files and contents, verified, wherever the unit runs."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path

from podium_lab.units.places import FolderPlace
from podium_lab.units.store import UnitStore
from podium_lab.units.unit import StoreError, content_hash


class UnitInputs:
    """The inputs of units, by their hash."""

    def __init__(self, read: Callable[[str], bytes], folder: Path | None = None) -> None:
        self._read = read
        self._folder = folder
        """Where the contents already lie as files named by their hash."""
        self._contents: dict[str, bytes] = {}
        self._paths: dict[tuple[str, str], Path] = {}
        self._copies: Path | None = None

    def content(self, digest: str) -> bytes:
        """A small input, which is kept: settings."""
        found = self._contents.get(digest)
        if found is None:
            found = self._contents[digest] = self._read(digest)
        return found

    def path(self, digest: str, name: str) -> Path:
        """An input as a file; `name` is what its last part is to be called where a copy is made."""
        key = digest, name
        found = self._paths.get(key)
        if found is None:
            content = self._read(digest)  # verified by whoever reads it
            if self._folder is not None:
                found = self._folder / digest
            else:
                found = self.copies / digest[:16] / Path(name).name
                found.parent.mkdir(exist_ok=True)
                found.write_bytes(content)
            self._paths[key] = found
        return found

    def copy(self, digest: str, name: str) -> Path:
        """A copy of an input, which its reader may change."""
        path = self.copies / f"{digest[:16]}-{Path(name).name}"
        path.write_bytes(self._read(digest))
        return path

    def folder(self, files: Mapping[str, str]) -> Path:
        """A folder of inputs: hashes by file name."""
        key = content_hash(repr(sorted(files.items())).encode())
        folder = self.copies / key[:16]
        if not folder.exists():
            folder.mkdir()
            for name, digest in files.items():
                (folder / name).write_bytes(self._read(digest))
        return folder

    def close(self) -> None:
        """Remove the copies; a process that is ended at once leaves them to the system's temporary folder."""
        if self._copies is not None:
            shutil.rmtree(self._copies, ignore_errors=True)
            self._copies = None

    @property
    def copies(self) -> Path:
        """Where copies are made; it goes with this object."""
        if self._copies is None:
            self._copies = Path(tempfile.mkdtemp(prefix="podium-inputs-"))
            weakref.finalize(self, shutil.rmtree, self._copies, ignore_errors=True)
        return self._copies


def inputs_of_store(store: UnitStore) -> UnitInputs:
    """Inputs that a store has."""
    folder = store.place.folder / "inputs" if isinstance(store.place, FolderPlace) else None
    return UnitInputs(store.input, folder)


def inputs_of_contents(contents: Mapping[str, bytes]) -> UnitInputs:
    """Inputs that came with the work."""

    def read(digest: str) -> bytes:
        found = contents.get(digest)
        if found is None or content_hash(found) != digest:
            raise StoreError(f"input {digest[:12]}: did not arrive whole; start the same command again")
        return found

    return UnitInputs(read)
