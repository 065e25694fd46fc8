"""Which container images stand ready on which nodes, and how large they are.

An image name has one size for the whole cluster: the one the first node reported, kept until no node has the image.
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


class NodeImages:
    """Image name → size and rows. `version` moves with every change."""

    def __init__(self) -> None:
        self._states: dict[str, ImageState] = {}
        self._names_of_row: dict[int, tuple[str, ...]] = {}
        self.version = 0

    def __bool__(self) -> bool:
        """Whether any node has an image."""
        return bool(self._states)

    def get(self, name: str) -> ImageState | None:
        return self._states.get(name)

    def set_row(self, row: int, images: tuple[ContainerImage, ...]) -> None:
        if not images and row not in self._names_of_row:
            return
        self.clear_row(row)
        for image in images:
            for name in image.names:
                state = self._states.get(name)
                if state is None:
                    state = self._states[name] = ImageState(image.size_bytes)
                state.add(row)
        self._names_of_row[row] = tuple(name for image in images for name in image.names)
        self.version += 1

    def clear_row(self, row: int) -> None:
        names = self._names_of_row.pop(row, ())
        for name in dict.fromkeys(names):
            state = self._states[name]
            state.discard(row)
            if not state.rows:
                del self._states[name]
        if names:
            self.version += 1
