"""Knows which container images stand ready on which nodes, and how large they are.

An image name has one size for the whole cluster: the one the first node reported, until no node has the image.
A node has a hundred images, and most who look at nodes ask for none of them: what nodes report is noted, and worked in,
in the order it came, when it is asked for.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from podium.kube import ContainerImage


class ImageState:
    """One image: its size, and the rows that have it."""

    __slots__ = ("_array", "rows", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.rows: dict[int, None] = {}
        self._array: NDArray[np.intp] | None = None

    @property
    def row_array(self) -> NDArray[np.intp]:
        """The rows as an index into columns, made when asked for and kept until they change."""
        if self._array is None:
            self._array = np.fromiter(self.rows, dtype=np.intp, count=len(self.rows))
        return self._array

    def add(self, row: int) -> None:
        self.rows[row] = None
        self._array = None

    def discard(self, row: int) -> None:
        del self.rows[row]
        self._array = None


MOST_UNREAD = 20_000
"""Reports that are put off at most."""


class NodeImages:
    """Image name → size and rows."""

    def __init__(self) -> None:
        self._states: dict[str, ImageState] = {}
        self._names_of_row: dict[int, tuple[str, ...]] = {}
        self._unread: list[tuple[int, tuple[ContainerImage, ...]]] = []
        self._reporting: set[int] = set()
        """Rows that have images, as far as reports go."""

    def __bool__(self) -> bool:
        """Whether any node has an image."""
        if self._unread:
            self._read()
        return bool(self._states)

    def get(self, name: str) -> ImageState | None:
        if self._unread:
            self._read()
        return self._states.get(name)

    def set_row(self, row: int, images: tuple[ContainerImage, ...]) -> None:
        if not images and row not in self._reporting:
            return
        if images:
            self._reporting.add(row)
        else:
            self._reporting.discard(row)
        self._unread.append((row, images))
        if len(self._unread) > MOST_UNREAD:
            self._read()

    def clear_row(self, row: int) -> None:
        self.set_row(row, ())

    def _read(self) -> None:
        unread, self._unread = self._unread, []
        for row, images in unread:
            self._take_off(row)
            names = tuple(name for image in images for name in image.names)
            if names:
                self._names_of_row[row] = names
            for image in images:
                for name in image.names:
                    state = self._states.get(name)
                    if state is None:
                        state = self._states[name] = ImageState(image.size_bytes)
                    state.add(row)

    def _take_off(self, row: int) -> None:
        for name in dict.fromkeys(self._names_of_row.pop(row, ())):
            state = self._states[name]
            state.discard(row)
            if not state.rows:
                del self._states[name]
