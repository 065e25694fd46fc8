"""Writes answers to kube-scheduler as bytes: capitalised keys, the shortest form that it reads.

Names and nodes that come back unchanged are the very bytes that came. The text of a host with a score is made once: it
is needed again with every pod.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from podium.cluster import Cluster, Rows
from podium.framework import Status
from podium.framework.status import Code

Body = bytes | list[bytes | memoryview]
"""One piece, or several to be sent one after the other."""

encode = msgspec.json.Encoder().encode
_NO_FAILURES = b',"FailedNodes":{},"FailedAndUnresolvableNodes":{},"Error":""}'
HIGHEST_SCORE: Final = 100
"""A plugin's."""
MOST_POINTS: Final = 10
"""An extender's."""

Points = NDArray[np.int64]


class HostTexts:
    """The entry of every node in an answer to prioritize, by its row and its points; made when first needed."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._version = -1
        self._names: list[str] = []
        self._texts: NDArray[np.object_] = np.empty((0, 0), dtype=object)

    def listed(self, rows: Rows, points: NDArray[np.int64]) -> bytes:
        """The answer to prioritize, in the order of the rows."""
        if not len(rows):
            return b"[]"
        most = int(points.max())
        if self._version != self._cluster.order.version or most >= self._texts.shape[1]:
            self._follow_nodes(most)
        texts = self._texts[rows, points].tolist()
        if None in texts:
            texts = self._make(rows.tolist(), points.tolist())
        return b"[" + b",".join(texts) + b"]"

    def _follow_nodes(self, most: int) -> None:
        """Forget the texts of rows that belong to other nodes now."""
        names, known = self._cluster.names, self._texts
        self._texts = np.full((len(names), max(most + 1, known.shape[1])), None, dtype=object)
        same = [row for row, (name, before) in enumerate(zip(names, self._names, strict=False)) if name == before]
        self._texts[same, : known.shape[1]] = known[same]
        self._names = names.copy()
        self._version = self._cluster.order.version

    def _make(self, rows: list[int], points: list[int]) -> list[bytes]:
        made = []
        for row, number in zip(rows, points, strict=True):
            text = self._texts[row, number]
            if text is None:
                text = self._texts[row, number] = b'{"Host":%b,"Score":%d}' % (encode(self._names[row]), number)
            made.append(text)
        return made


def all_names(names: bytes) -> bytes:
    """Filter's answer where all pass."""
    return b'{"Nodes":null,"NodeNames":' + names + _NO_FAILURES


def some_names(names: Sequence[str], refused: Mapping[str, Status]) -> bytes:
    return b'{"Nodes":null,"NodeNames":' + encode(names) + _failures(refused)


def all_nodes(items: memoryview) -> Body:
    return [b'{"Nodes":{"metadata":{},"items":', items, b'},"NodeNames":null' + _NO_FAILURES]


def some_nodes(items: Iterable[msgspec.Raw], refused: Mapping[str, Status]) -> Body:
    passed = b",".join(items)
    return [b'{"Nodes":{"metadata":{},"items":[', passed, b']},"NodeNames":null' + _failures(refused)]


def _failures(refused: Mapping[str, Status]) -> bytes:
    """The nodes that were refused: for good where evicting pods would not help."""
    for_good = {name: status.message for name, status in refused.items() if status.code == Code.UNRESOLVABLE}
    for_now = {name: status.message for name, status in refused.items() if name not in for_good}
    return b',"FailedNodes":%b,"FailedAndUnresolvableNodes":%b,"Error":""}' % (encode(for_now), encode(for_good))


def filter_error(message: str) -> bytes:
    fields = b'{"Nodes":null,"NodeNames":null,"FailedNodes":null,"FailedAndUnresolvableNodes":null,"Error":%b}'
    return fields % encode(message)


def error(message: str) -> bytes:
    return encode({"Error": message})


def meta_victims(victims: Mapping[str, tuple[Sequence[str], int]]) -> bytes:
    """The answer to preempt: for each node the uids of its victims, and how many budgets they violate."""
    by_node = {
        name: {"Pods": [{"UID": uid} for uid in uids], "NumPDBViolations": violations}
        for name, (uids, violations) in victims.items()
    }
    return encode({"NodeNameToMetaVictims": by_node})


def scaled_to_points(total: Points, weights: int, most_points: int = MOST_POINTS) -> Points:
    """The weighted mean of scores, whose weighted sum is `total`, as points from 0 to `most_points`, halves up.

    >>> scaled_to_points(np.array([0, 44, 45, 100, 200]), weights=2).tolist()
    [0, 2, 2, 5, 10]

    Scales plugins' scores (0 to 100 each) to the points of an extender (0 to 10, by the protocol).

    kube-scheduler multiplies each point of an extender by its weight and by ten, so that ten points count as much as a
    plugin's 100.
    """
    full = HIGHEST_SCORE * weights
    points: Points = (2 * most_points * total + full) // (2 * full)
    return points
