"""Makes a score of any PromQL expression that gives one number per node, without code (PrometheusScore).

    pluginConfig:
      - name: PrometheusScore
        args:
          source: {address: "http://prometheus.monitoring:9090"}
          query: 'avg by (instance) (rate(node_pressure_io_waiting_seconds_total[5m]))'
          better: lower

The expression is asked for in the background, for all nodes at once. `better` says which way is good, `scale` how
values become 0–100 (see `load.scaling`), `missing` what a node gets that the answer does not name. While nothing
is known of any node, all get the same, so that the other plugins decide.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import msgspec

from podium import FieldError, FieldPath, Handle
from podium.load import (
    Better,
    Combine,
    GenerationCounter,
    Missing,
    NamedScorePlugin,
    NamedScores,
    NodeMatch,
    Scale,
    Series,
    SourceSettings,
    follow,
    scaled,
    where_missing,
)

NAME = "PrometheusScore"


class PrometheusScoreArgs(msgspec.Struct, rename="camel", kw_only=True, frozen=True, forbid_unknown_fields=True):
    source: SourceSettings = SourceSettings()
    query: str = ""
    match: NodeMatch = NodeMatch()
    combine: Combine = "max"
    """What becomes of several samples for one node."""
    better: Better = "lower"
    scale: Scale = "minmax"
    low: float | None = None
    high: float | None = None
    """The ends of the scale `range`."""
    missing: Missing = "neutral"

    def validate(self, path: FieldPath) -> Iterable[FieldError]:
        yield from self.source.validate(path.child("source"))
        yield from self.match.validate(path.child("match"))
        if self.source.kind != "prometheus":
            detail = "this plugin asks Prometheus; leave kind out"
            yield FieldError.invalid(path.child("source", "kind"), self.source.kind, detail)
        if not self.query.strip():
            yield FieldError.required(path.child("query"), "the PromQL expression that gives one number per node")
        for name, end in (("low", self.low), ("high", self.high)):
            if self.scale == "range" and (end is None or not math.isfinite(end)):
                yield FieldError.required(path.child(name), "the scale range needs both ends")
            elif self.scale != "range" and end is not None:
                yield FieldError.forbidden(path.child(name), f"{self.scale} has no fixed ends; write scale: range")
        if self.low is not None and self.high is not None and self.scale == "range" and not self.low < self.high:
            yield FieldError.invalid(path.child("high"), self.high, "must be greater than low")


class PrometheusScore(NamedScorePlugin):
    name = NAME
    trusted = True
    Args = PrometheusScoreArgs

    def __init__(self, args: PrometheusScoreArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        series = Series(source=args.source, query=args.query, match=args.match, combine=args.combine)
        generation = GenerationCounter()
        self._readings = follow(handle, series, generation)
        self.scores = NamedScores(generation, self._find)

    def _find(self) -> tuple[dict[str, int], int]:
        args = self.args
        known = scaled(self._readings.values, args.better, args.scale, (args.low or 0.0, args.high or 0.0))
        return known, where_missing(known, args.missing)
