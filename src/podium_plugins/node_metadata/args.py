"""Types how NodeMetadata is configured: where the value stands, how it is read, and which end is better."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from podium.config.field import FieldError, FieldPath
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
