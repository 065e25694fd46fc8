"""Scores nodes by the number or the time in one label or annotation (NodeMetadata).

    raw = number without its fraction (Highest), the same negated (Lowest);
          seconds since the epoch (Newest), the same negated (Oldest)
    score = (raw − lowest)·99 ÷ (highest − lowest) + 1 among the nodes that have a value, 1 where all have the same

A node without a value, or with one that cannot be read, scores 0: the lowest that a value gives is 1. Ages of nodes
differ by as much as their times do, so the clock is not asked, and the scores hold until a node changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec
import numpy as np

from podium import (
    MAX_SCORE,
    Cycle,
    DependsOn,
    FieldError,
    FieldPath,
    Handle,
    NodePart,
    Plugin,
    RowNumbers,
    Scores,
    read_decimal,
)
from podium.cluster import Cluster, NodeInfo, Nodes
from podium_plugins.node_metadata.go_layout import RFC3339, LayoutError, reader_of

LABEL: Final = "Label"
ANNOTATION: Final = "Annotation"
NUMBER: Final = "Number"
TIMESTAMP: Final = "Timestamp"
HIGHEST, LOWEST = "Highest", "Lowest"
NEWEST, OLDEST = "Newest", "Oldest"

_ONLY_FOR: Final = {
    NUMBER: ((NEWEST, OLDEST), 'scoringStrategy "Newest" and "Oldest" are only valid for metadataType "Timestamp"'),
    TIMESTAMP: ((HIGHEST, LOWEST), 'scoringStrategy "Highest" and "Lowest" are only valid for metadataType "Number"'),
}
"""Strategies that do not go with a type, and how that is said."""


class NodeMetadataArgs(msgspec.Struct, rename="camel", kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Where the value stands, how it is read, and which end is better."""

    metadata_key: str = ""
    metadata_source: str = ""
    metadata_type: str = ""
    scoring_strategy: str = ""
    timestamp_format: str = ""
    """How times are written, as a Go layout; RFC 3339 where it is empty."""

    def __post_init__(self) -> None:
        if self.metadata_type == TIMESTAMP and not self.timestamp_format:
            msgspec.structs.force_setattr(self, "timestamp_format", RFC3339)

    def validate(self, path: FieldPath) -> Iterator[FieldError]:
        if not self.metadata_key:
            yield FieldError.required(path.child("metadataKey"), "metadataKey cannot be empty")
        strategy = self.scoring_strategy
        for name, value, allowed, detail in (
            ("metadataSource", self.metadata_source, (LABEL, ANNOTATION), 'must be either "Label" or "Annotation"'),
            ("metadataType", self.metadata_type, (NUMBER, TIMESTAMP), 'must be either "Number" or "Timestamp"'),
            (
                "scoringStrategy",
                strategy,
                (HIGHEST, LOWEST, NEWEST, OLDEST),
                'must be one of "Highest", "Lowest", "Newest", or "Oldest"',
            ),
        ):
            if value not in allowed:
                yield FieldError.invalid(path.child(name), value, f"{name} {detail}")
        wrong, detail = _ONLY_FOR.get(self.metadata_type, ((), ""))
        if strategy in wrong:
            yield FieldError.invalid(path.child("scoringStrategy"), strategy, detail)
        if self.metadata_type == TIMESTAMP:
            try:
                reader_of(self.timestamp_format)
            except LayoutError as error:
                yield FieldError.invalid(path.child("timestampFormat"), self.timestamp_format, str(error))


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
    depends_on = DependsOn(node=NodePart.OBJECT, claims=False)

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
    number = read_decimal(text)
    return int(number) if number is not None and abs(number) < HIGHEST_NUMBER else None
