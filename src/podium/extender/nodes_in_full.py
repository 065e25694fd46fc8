"""Puts nodes that come whole with the question into the cluster for as long as it takes to answer.

What they say counts, not what a watch may have said of them; the pods on them are known from the watch alone. A node is
read once for each text it comes in, and set only where it differs from what the cluster has. With a watch everything is
undone after the answer; without one the nodes stay for the next question, and those that it does not name go, if any
plugin looks beyond the node it judges. Images, most of a node's text, are read where a plugin sees them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import msgspec
from msgspec import field

from podium.cluster import Cluster, Rows
from podium.extender.nodes_by_name import rows_of
from podium.extender.request_parsing import BadRequestError, Text, read_object, read_value
from podium.kube import Condition, Node
from podium.kube.bounds import UNDECODABLE
from podium.kube.meta import ClusterObject, Model, Resources
from podium.kube.node import NodeAddress, NodeSpec, NodeStatus

MOST_NODE_TEXT = 256 << 20
"""Bytes of text by which nodes are recognised."""

_decode = msgspec.json.Decoder(list[msgspec.Raw]).decode


class _Status(Model, frozen=True, kw_only=True):
    allocatable: Resources = field(default_factory=dict)
    capacity: Resources = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()
    addresses: tuple[NodeAddress, ...] = ()
    declared_features: tuple[str, ...] = ()


class _Node(ClusterObject, frozen=True, kw_only=True):
    """A node without its images."""

    spec: NodeSpec = NodeSpec()
    status: _Status = _Status()


def _whole(text: bytes, what: str) -> Node:
    return read_object(Node, text, what)


def _without_images(text: bytes, what: str) -> Node:
    read = read_object(_Node, text, what)
    status = NodeStatus(**{name: getattr(read.status, name) for name in _Status.__struct_fields__})
    return Node(metadata=read.metadata, spec=read.spec, status=status)


class GivenNodes(NamedTuple):
    """The nodes of one request, in its order."""

    names: list[str]
    rows: Rows
    texts: Sequence[msgspec.Raw]


class NodesInFull:
    """The nodes that came in full, by their text, and what the cluster had before them."""

    def __init__(self, cluster: Cluster, *, watched: bool, beyond_rows: bool, images: bool) -> None:
        self._read_node = _whole if images else _without_images
        self._cluster = cluster
        self._watched = watched
        self._beyond_rows = beyond_rows
        self._known: dict[bytes, Node] = {}
        self._bytes = 0
        self._same: dict[str, tuple[Node, Node]] = {}
        """By name, a node as given and as watched that were found to be equal."""

    @contextmanager
    def placed(self, items: Text) -> Iterator[GivenNodes]:
        """The nodes of a JSON list, in the cluster."""
        texts = _texts(items)
        nodes = [self._read(text, number) for number, text in enumerate(texts)]
        names = [node.metadata.name for node in nodes]
        _check_names(names)
        before = self._put(nodes)
        try:
            yield GivenNodes(names, rows_of(names, self._cluster), texts)
        finally:
            self._put_back(before)

    def _read(self, raw: msgspec.Raw, number: int) -> Node:
        text = bytes(raw)
        node = self._known.get(text)
        if node is None:
            node = self._read_node(text, f"Nodes.items[{number}]")
            self._known[text] = node
            self._bytes += len(text)
            while self._bytes > MOST_NODE_TEXT and len(self._known) > 1:
                oldest = next(iter(self._known))
                del self._known[oldest]
                self._bytes -= len(oldest)
        return node

    def _put(self, nodes: Sequence[Node]) -> list[tuple[str, Node | None]]:
        """Set what differs; returns the names that did, with what was there."""
        cluster, before = self._cluster, []
        for node in nodes:
            name = node.metadata.name
            row = cluster.row_of.get(name)
            there = None if row is None else cluster.nodes[row]
            if there is node or (there is not None and self._equal(name, there, node)):
                continue
            before.append((name, there))
            cluster.set_node(node)
        if not self._watched and self._beyond_rows:
            given = {node.metadata.name for node in nodes}
            for name in [name for name, row in cluster.row_of.items() if name not in given and cluster.nodes[row]]:
                cluster.remove_node(name)
        return before

    def _equal(self, name: str, there: Node, given: Node) -> bool:
        if not self._watched:
            return False
        known = self._same.get(name)
        if known is not None and known[0] is given and known[1] is there:
            return True
        if there != given:
            return False
        self._same[name] = (given, there)
        return True

    def _put_back(self, before: list[tuple[str, Node | None]]) -> None:
        if not self._watched:
            return
        for name, node in before:
            if node is None:
                self._cluster.remove_node(name)
            else:
                self._cluster.set_node(node)


def _texts(items: Text) -> list[msgspec.Raw]:
    try:
        return _decode(items)
    except UNDECODABLE:
        read: list[msgspec.Raw] = read_value(items, list[msgspec.Raw], "Nodes.items")
        return read


def _check_names(names: list[str]) -> None:
    if len(set(names)) != len(names):
        twice = next(name for number, name in enumerate(names) if name in names[:number])
        raise BadRequestError(f'Nodes has "{twice}" twice')
    if "" in names:
        raise BadRequestError(f"Nodes.items[{names.index('')}] has no metadata.name")
