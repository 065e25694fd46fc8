"""Scores nodes that are marked as congested last (Congestion).

    points = round(10·(1 − cf/max)), halves up; score = 10·points

cf is the whole number in the node's annotation `congestion-factor`, at most `max` (argument `factorMax`, or environment
variable CONGESTION_FACTOR_MAX, or 100). A node without the annotation, or with one that is not a positive whole number,
is not congested. Podium does not write the annotation; what measures congestion does.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from podium import (
    Cycle,
    DependsOn,
    FieldError,
    FieldPath,
    Handle,
    NodePart,
    Plugin,
    RowNumbers,
    Scores,
    filled,
    read_whole,
    rounded,
)
from podium.cluster import Cluster, NodeInfo, Nodes

NAME = "Congestion"
ANNOTATION = "congestion-factor"
VARIABLES = {"factor_max": "CONGESTION_FACTOR_MAX"}
DEFAULT_MAX = 100
POINTS = 10
"""Points go from 0 to 10; each counts 10 in a score."""


class CongestionArgs(msgspec.Struct, rename="camel", kw_only=True, frozen=True, forbid_unknown_fields=True):
    factor_max: int | None = None
    """The congestion factor of a node that is as congested as can be."""

    def validate(self, path: FieldPath) -> Iterable[FieldError]:
        if self.factor_max is not None and self.factor_max < 1:
            yield FieldError.invalid(path.child("factorMax"), self.factor_max, "must be at least 1")


def points(text: str | None, factor_max: int) -> int:
    """The points of a node with this annotation.

    >>> [points(text, 100) for text in (None, "15", "55", "250", "-3", "5.5")]
    [10, 9, 5, 0, 10, 10]
    """
    factor = min(max(read_whole(text) or 0, 0), factor_max)
    return rounded(POINTS * (1 - factor / factor_max))


class Congestion(Plugin):
    name = NAME
    trusted = True
    Args = CongestionArgs
    depends_on = DependsOn(node=NodePart.OBJECT, claims=False)

    def __init__(self, args: CongestionArgs, handle: Handle) -> None:
        super().__init__(filled(args, VARIABLES), handle)
        self._scores = RowNumbers(1, self._of_row)

    def score(self, cycle: Cycle, nodes: Nodes) -> Scores:
        scores: Scores = nodes.pick(self._scores.over_rows(cycle.cluster)[0])
        return scores

    def score_node(self, cycle: Cycle, node: NodeInfo) -> int:
        return self._score_of(node.annotations.get(ANNOTATION))

    def _of_row(self, cluster: Cluster, row: int) -> tuple[int]:
        node = cluster.nodes[row]
        return (0 if node is None else self._score_of(node.annotations.get(ANNOTATION)),)

    def _score_of(self, text: str | None) -> int:
        return POINTS * points(text, self.args.factor_max or DEFAULT_MAX)
