"""Reads files that are replaced while Podium runs: tokens and certificates that something else rotates.

A look costs one `stat`. Kubernetes swaps a symbolic link when it rotates what it mounts, others write in place or
rename over; inode, size and time of change together tell all of these. Some file systems keep coarse times, so after a
minute the content is read again whatever `stat` says.
"""

from pathlib import Path

REREAD_AFTER = 60.0


class RotatedFile:
    """A file's content as of the last look."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._content: bytes | None = None
        self._stat: tuple[int, int, int] | None = None
        self._read_at = float("-inf")

    def read(self, now: float) -> bytes:
        """The content, from memory where the file has not changed; `now` is any clock in seconds. Raises OSError."""
        found = self.path.stat()
        stat = (found.st_ino, found.st_size, found.st_mtime_ns)
        if self._content is None or stat != self._stat or now - self._read_at >= REREAD_AFTER:
            self._content = self.path.read_bytes()
            self._stat = stat
            self._read_at = now
        return self._content

    def forget(self) -> None:
        """Read it again at the next look."""
        self._content = None
