"""A plugin that prefers nodes with little measured load: the smallest one there can be."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

import msgspec
import numpy as np

from podium import Cycle, Handle, Nodes, Plugin, Pod
from podium.config.field import FieldError, FieldPath
from podium.framework import Scores
from podium.load.readings import follow
from podium.load.series import NodeMatch, Series
from podium.load.settings import SourceSettings


class QuietArgs(msgspec.Struct, rename="camel", frozen=True, kw_only=True, forbid_unknown_fields=True):
    source: SourceSettings = SourceSettings()
    query: str = "load"
    match: NodeMatch = NodeMatch()

    def validate(self, path: FieldPath) -> Iterator[FieldError]:
        yield from self.source.validate(path.child("source"))
        yield from self.match.validate(path.child("match"))


class Quiet(Plugin):
    Args = QuietArgs

    def __init__(self, args: Any, handle: Handle) -> None:
        super().__init__(args, handle)
        self.readings = follow(handle, Series(source=args.source, query=args.query, match=args.match))

    def answer_key(self, pod: Pod) -> Hashable:
        return self.readings.generation

    def score(self, cycle: Cycle, nodes: Nodes) -> Scores:
        load = nodes.pick(self.readings.column(nodes.cluster))
        scores: Scores = np.where(np.isnan(load), 0, 100 - np.clip(load, 0, 100)).astype(np.int64)
        return scores
