"""Temporary folders that are removed even when their owner was killed.

An orderly exit removes its folder. After a SIGKILL it stays, so each folder holds a lock file that its living owner
keeps locked, and the owner of the next folder removes those whose lock is free.
"""

import fcntl
import shutil
import tempfile
import time
from pathlib import Path

_PREFIX = "podium-testbed-"
_GRACE = 60.0  # a folder younger than this may belong to a process that has not locked it yet


class OwnedFolder:
    """A fresh folder at `path`, removed by `remove()`."""

    def __init__(self) -> None:
        _remove_abandoned()
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        self._lock = (self.path / "lock").open("w")
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def remove(self) -> None:
        self._lock.close()
        shutil.rmtree(self.path, ignore_errors=True)


def _remove_abandoned() -> None:
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        try:
            if time.time() - folder.stat().st_mtime < _GRACE:
                continue
            with (folder / "lock").open("r") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:  # locked by its owner, of another user, or gone already
            continue
