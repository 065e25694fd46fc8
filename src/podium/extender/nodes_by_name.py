"""Lists of node names as they come, with the rows of the cluster behind them.

kube-scheduler sends hundreds of names with every question, and the same list again with the next one about the pod; so
what a list stands for is found by its very bytes. A list is good for as long as no node came or went.
"""

from __future__ import annotations

import msgspec
import numpy as np

from podium.cluster import Cluster, Rows
from podium.extender.asked import BadRequestError, Remembered, read_value

MOST_LISTS = 64
_decode = msgspec.json.Decoder(list[str]).decode


class NamedNodes:
    """The nodes of one list, in its order. `rows` are those of the known ones; `unknown` the names of the others."""

    __slots__ = ("known", "names", "rows", "text", "unknown", "version")

    def __init__(self, text: bytes, names: list[str]) -> None:
        self.text = text
        self.names = names
        self.known = names
        self.rows: Rows = np.zeros(0, dtype=np.intp)
        self.unknown: list[str] = []
        self.version = -1

    def find(self, cluster: Cluster) -> None:
        """Look up the rows, unless they are still good."""
        if self.version == cluster.order.version:
            return
        row_of, nodes = cluster.row_of, cluster.nodes
        rows = [row_of.get(name, -1) for name in self.names]
        self.known, self.unknown = self.names, []
        if -1 in rows or any(nodes[row] is None for row in rows):
            missing = [row < 0 or nodes[row] is None for row in rows]
            self.unknown = [name for name, gone in zip(self.names, missing, strict=True) if gone]
            self.known = [name for name, gone in zip(self.names, missing, strict=True) if not gone]
            rows = [row for row, gone in zip(rows, missing, strict=True) if not gone]
        self.rows = np.array(rows, dtype=np.intp)
        self.version = cluster.order.version


class NameLists:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._known: Remembered[NamedNodes] = Remembered(MOST_LISTS)

    def read(self, text: bytes) -> NamedNodes:
        named = self._known.get(text)
        if named is None:
            named = self._known.keep(text, NamedNodes(text, _names(text)))
        named.find(self._cluster)
        return named


def _names(text: bytes) -> list[str]:
    try:
        names = _decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        names = read_value(text, list[str], "NodeNames")
    if len(set(names)) != len(names):
        twice = next(name for number, name in enumerate(names) if name in names[:number])
        raise BadRequestError(f'NodeNames has "{twice}" twice')
    return names
