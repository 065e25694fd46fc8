"""Reads lists of node names as they come, and finds the rows of the cluster behind them.

kube-scheduler sends hundreds of names with every question, and the same list again with the next one about the pod; so
what a list stands for is found by its very bytes. A list is good for as long as no node came or went.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter

import msgspec
import numpy as np

from podium.cluster import Cluster, Rows
from podium.extender.request_parsing import BadRequestError, TextCache, read_value
from podium.kube.bounds import UNDECODABLE

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
        self.known, self.unknown = self.names, []
        try:
            self.rows = rows_of(self.names, cluster)
            present = bool(cluster.present[self.rows].all())
        except KeyError:
            present = False
        if not present:
            is_known = [
                cluster.present[cluster.row_of[name]] if name in cluster.row_of else False for name in self.names
            ]
            self.known = [name for name, known in zip(self.names, is_known, strict=True) if known]
            self.unknown = [name for name, known in zip(self.names, is_known, strict=True) if not known]
            self.rows = rows_of(self.known, cluster)
        self.version = cluster.order.version


def rows_of(names: Sequence[str], cluster: Cluster) -> Rows:
    """The rows of names, in their order; raises KeyError. One call for all names takes a fifth of the time."""
    found = itemgetter(*names)(cluster.row_of) if len(names) > 1 else [cluster.row_of[name] for name in names]
    return np.array(found, dtype=np.intp)


class NodeNameLists:
    """The lists of names that came last, by their text."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._known: TextCache[NamedNodes] = TextCache(MOST_LISTS)

    def read(self, text: bytes) -> NamedNodes:
        named = self._known.get(text)
        if named is None:
            named = self._known.add(text, NamedNodes(text, _names(text)))
        named.find(self._cluster)
        return named


def _names(text: bytes) -> list[str]:
    try:
        names = _decode(text)
    except UNDECODABLE:
        names = read_value(text, list[str], "NodeNames")
    if len(set(names)) != len(names):
        twice = next(name for number, name in enumerate(names) if name in names[:number])
        raise BadRequestError(f'NodeNames has "{twice}" twice')
    return names
