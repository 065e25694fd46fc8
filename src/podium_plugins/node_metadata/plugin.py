"""Scores nodes by the number or the time in one label or annotation (NodeMetadata).

    raw = number without its fraction (Highest), the same negated (Lowest);
          seconds since the epoch (Newest), the same negated (Oldest)
    score = (raw − lowest)·99 ÷ (highest − lowest) + 1 among the nodes that have a value, 1 where all have the same

A node without a value, or with one that cannot be read, scores 0: the lowest that a value gives is 1. Ages of nodes
differ by as much as their times do, so the clock is not asked, and the scores hold until a node changes.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from podium.cluster import Cluster, NodeInfo, Nodes
from podium.framework import MAX_SCORE, Cycle, Handle, Plugin, Scope, Scores
from podium.framework.annotated import decimal
from podium.framework.row_numbers import RowNumbers
from podium_plugins.node_metadata.args import LABEL, LOWEST, NUMBER, OLDEST, NodeMetadataArgs
from podium_plugins.node_metadata.go_layout import reader_of

NAME: Final = "NodeMetadata"
NO_VALUE: Final = -(2**63)
"""The raw score of a node without a value: no value is so low."""
HIGHEST_NUMBER: Final = 2**62
"""Numbers from here on are not read: differences must fit into 64 bits."""
_ROOM: Final = (2**63 - 1) // MAX_SCORE


class NodeMetadata(Plugin):
    name = NAME
    trusted = True
    Args = NodeMetadataArgs
    score_scope = Scope.NODE
    sees_claims = False

    def __init__(self, args: NodeMetadataArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self.args: NodeMetadataArgs = args
        self._sign = -1 if args.scoring_strategy in (LOWEST, OLDEST) else 1
        self._read = read_number if args.metadata_type == NUMBER else reader_of(args.timestamp_format)
        self._raw = RowNumbers(1, self._of_row)

    def score(self, cycle: Cycle, nodes: Nodes) -> Scores:
        scores: Scores = nodes.pick(self._raw.over_rows(cycle.cluster)[0])
        return scores

    def score_node(self, cycle: Cycle, node: NodeInfo) -> int:
        return int(self._raw.on(cycle.cluster, node.row)[0])

    def _of_row(self, cluster: Cluster, row: int) -> tuple[int]:
        node = cluster.nodes[row]
        if node is None:
            return (NO_VALUE,)
        written = node.labels if self.args.metadata_source == LABEL else node.annotations
        text = written.get(self.args.metadata_key)
        value = None if text is None else self._read(text)
        return (NO_VALUE if value is None else self._sign * value,)

    def normalize(self, _cycle: Cycle, _nodes: Nodes, scores: Scores) -> Scores:
        valid = scores != NO_VALUE
        values = scores[valid]
        if not len(values):
            return np.zeros_like(scores)
        lowest = int(values.min())
        span = int(values.max()) - lowest
        points = np.zeros_like(scores)
        if not span:
            points[valid] = 1
        elif span <= _ROOM:
            points[valid] = (values - lowest) * (MAX_SCORE - 1) // span + 1
        else:
            points[valid] = [(each - lowest) * (MAX_SCORE - 1) // span + 1 for each in values.tolist()]
        return points


def read_number(text: str) -> int | None:
    """A number without its fraction; None where it is none.

    >>> read_number("2.9"), read_number("-2.9"), read_number("1e3"), read_number("NaN"), read_number("fast")
    (2, -2, 1000, None, None)
    """
    number = decimal(text)
    return int(number) if number is not None and abs(number) < HIGHEST_NUMBER else None
