"""Remembers the past of the map in bounded memory: columns once in a while, and in between only what changed.

A frame is at most one a second. A whole frame holds all numbers, and the frames after it those of the nodes that
changed; both are packed. When the frames take more than MOST_BYTES, or are older than LONGEST, the oldest whole frame
goes with those that follow it. The points of the timeline are small and kept as long as the frames are.
"""

from __future__ import annotations

import zlib
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from podium_dashboard.columns import Amounts, ChangedNodes, NodeColumns
from podium_dashboard.records import QueueCounts

MOST_BYTES: Final = 64 << 20
LONGEST: Final = 3600.0
WHOLE_EVERY: Final = 120.0
"""Seconds between two whole frames of the same nodes."""
_SMALL: Final = 200
"""Bytes that a frame takes beside its numbers."""


class PastPoint(NamedTuple):
    """What was counted at a time."""

    time: float
    counts: QueueCounts
    placed: int
    bound: int
    failed: int


class _Frame(NamedTuple):
    time: float
    columns: NodeColumns | None
    """Of a whole frame: the nodes, without their numbers."""
    packed: bytes

    @property
    def size(self) -> int:
        own = 0 if self.columns is None else 100 * len(self.columns.names)
        return len(self.packed) + _SMALL + own


class TimeRing:
    """The frames and points of the past."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self.most_bytes = most_bytes
        self._frames: deque[_Frame] = deque()
        self._points: deque[PastPoint] = deque()
        self._whole_at = 0.0
        self.bytes_used = 0

    def add_whole(self, time: float, columns: NodeColumns) -> None:
        """Remember all numbers."""
        empty = np.empty((0, 0), dtype=np.int64)
        known = columns._replace(nodes=list(columns.nodes), requested=empty, pods=empty, measured=[])
        self._whole_at = time
        self._append(_Frame(time, known, _packed(columns.requested, columns.pods)))

    def add_changes(self, time: float, changed: ChangedNodes, columns: NodeColumns) -> None:
        """Remember what changed since the last frame; `columns` are as they are now."""
        if time - self._whole_at >= WHOLE_EVERY or not self._frames:
            self.add_whole(time, columns)
        elif len(changed.places):
            places = changed.places.astype(np.int64)[np.newaxis]
            self._append(_Frame(time, None, _packed(changed.requested, changed.pods, places)))

    def add_point(self, point: PastPoint) -> None:
        self._points.append(point)
        while self._points and self._points[0].time < point.time - LONGEST:
            self._points.popleft()

    def at(self, time: float) -> tuple[float, NodeColumns] | None:
        """The columns as they were, and since when they were so; None where nothing that old is remembered."""
        frames = [frame for frame in self._frames if frame.time <= time]
        first = next((n for n in range(len(frames) - 1, -1, -1) if frames[n].columns is not None), None)
        if first is None:
            return None
        known = frames[first].columns
        assert known is not None
        lines = len(known.resources) + 1
        numbers = _unpacked(frames[first].packed, lines).copy()
        for frame in frames[first + 1 :]:
            changes = _unpacked(frame.packed, lines + 1)
            numbers[:, changes[-1]] = changes[:-1]
        return frames[-1].time, known._replace(requested=numbers[:-1], pods=numbers[-1])

    def points(self, begin: float, end: float) -> Iterator[PastPoint]:
        return (point for point in self._points if begin <= point.time <= end)

    def point_at(self, time: float) -> PastPoint | None:
        number = bisect_right(self._points, time, key=lambda point: point.time)
        return self._points[number - 1] if number else None

    @property
    def begins(self) -> float | None:
        return self._frames[0].time if self._frames else None

    @property
    def ends(self) -> float | None:
        return self._points[-1].time if self._points else None

    def _append(self, frame: _Frame) -> None:
        self._frames.append(frame)
        self.bytes_used += frame.size
        while self.bytes_used > self.most_bytes or self._frames[0].time < frame.time - LONGEST - WHOLE_EVERY:
            if not self._drop_oldest():
                break

    def _drop_oldest(self) -> bool:
        """Drop a whole frame and those that build on it, unless it is the last one."""
        if not any(frame.columns is not None for frame in list(self._frames)[1:]):
            return False
        self.bytes_used -= self._frames.popleft().size
        while self._frames[0].columns is None:
            self.bytes_used -= self._frames.popleft().size
        return True


def _packed(requested: Amounts, pods: Amounts, *more: Amounts) -> bytes:
    lines = np.concatenate([requested, pods[np.newaxis], *more])
    return zlib.compress(np.ascontiguousarray(lines, dtype=np.int64).tobytes(), 1)


def _unpacked(packed: bytes, lines: int) -> Amounts:
    return np.frombuffer(zlib.decompress(packed), dtype=np.int64).reshape(lines, -1)
