"""Prefers nodes with little network traffic, as Prometheus' node exporters count it (NetworkTraffic).

    score = 100 − 100·traffic / highest traffic of the feasible nodes, on integers, toward zero

Traffic is the rate of bytes over the time range, received and sent (`mode: rate`). `mode: sum` is what the original of
this plugin measured: the samples of the counter of received bytes added up, which tells how long a node has been up
rather than how busy it is.

One query serves all nodes, in the background. Several series of one node (interfaces, scrape jobs) are added up. A node
without a series gets the median of the others (`missing: neutral`), or counts as the busiest or as idle; when nothing
is known of any node, or nothing is sent, all get the same. So a lack of measurements never keeps a pod from a node.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

import msgspec
from msgspec.structs import replace

from podium import SECOND, Duration, FieldError, FieldPath, Handle, Normalizer
from podium.load import (
    GenerationCounter,
    Missing,
    NamedScorePlugin,
    NamedScores,
    NodeMatch,
    Series,
    SeriesPart,
    SourceSettings,
    at_address,
    by,
    follow,
    median,
    over_time,
    rate,
    selector,
    source_errors,
)

NAME = "NetworkTraffic"
DEFAULT_INTERFACE = "ens192"
RECEIVED, SENT = "node_network_receive_bytes_total", "node_network_transmit_bytes_total"
COUNTERS = {"rx": (RECEIVED,), "tx": (SENT,), "both": (RECEIVED, SENT)}
LARGEST = 2**53
"""More bytes a second than any node moves, and small enough to be multiplied by 100."""


class NetworkTrafficArgs(msgspec.Struct, rename="camel", kw_only=True, frozen=True, forbid_unknown_fields=True):
    prometheus_address: str = ""
    network_interface: str = DEFAULT_INTERFACE
    time_range_in_minutes: int = 5
    mode: Literal["rate", "sum"] = "rate"
    direction: Literal["rx", "tx", "both"] = "both"
    device_regex: str = ""
    """Interfaces by regular expression, instead of one by name."""
    node_label: str = ""
    """The label that names the node; empty: the first of several usual ones that does."""
    missing: Missing = "neutral"
    source: SourceSettings = SourceSettings()
    """How Prometheus is asked: credentials, TLS, intervals."""

    def validate(self, path: FieldPath) -> Iterable[FieldError]:
        if not self.prometheus_address and not self.source.address:
            yield FieldError.required(path.child("prometheusAddress"), "such as http://prometheus.monitoring:9090")
        else:
            yield from source_errors(self.prometheus_address, self.source, path)
        if self.source.kind != "prometheus":
            yield FieldError.invalid(path.child("source", "kind"), self.source.kind, "this plugin asks Prometheus")
        if self.time_range_in_minutes < 1:
            at = path.child("timeRangeInMinutes")
            yield FieldError.invalid(at, self.time_range_in_minutes, "must be at least 1")
        if self.mode == "sum" and (self.direction == "tx" or self.device_regex):
            at = path.child("mode")
            yield FieldError.invalid(at, self.mode, "the original only knew received bytes of one interface")
        try:
            re.compile(self.device_regex)
        except re.error as error:
            detail = f"is not a regular expression: {error}"
            yield FieldError.invalid(path.child("deviceRegex"), self.device_regex, detail)
        if self.node_label and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", self.node_label):
            yield FieldError.invalid(path.child("nodeLabel"), self.node_label, "must be the name of a label")

    @property
    def effective_source(self) -> SourceSettings:
        return at_address(self.prometheus_address, self.source)


def query_of(args: NetworkTrafficArgs) -> str:
    """The PromQL for all nodes at once.

    >>> query_of(NetworkTrafficArgs(network_interface="eth0", direction="rx"))
    'sum without (device) (rate(node_network_receive_bytes_total{device="eth0"}[5m]))'
    """

    def traffic(counter: str) -> str:
        if args.device_regex:
            return selector(counter, like={"device": args.device_regex})
        return selector(counter, device=args.network_interface or DEFAULT_INTERFACE)

    window = Duration(args.time_range_in_minutes * 60 * SECOND)
    if args.mode == "sum":
        return over_time("sum", traffic(RECEIVED), window)
    rates = " + ".join(rate(traffic(counter), window) for counter in COUNTERS[args.direction])
    return by("sum", args.node_label, rates) if args.node_label else f"sum without (device) ({rates})"


def parts_of(args: NetworkTrafficArgs) -> tuple[SeriesPart, ...]:
    """The two halves of the sum of both directions: some exporters count only one."""
    if args.mode != "rate" or args.direction != "both":
        return ()
    return tuple(
        SeriesPart(
            name=COUNTERS[one][0],
            query=query_of(replace(args, direction=one)),
            otherwise=f"set direction: {other} to go by {COUNTERS[other][0]} alone",
        )
        for one, other in (("rx", "tx"), ("tx", "rx"))
    )


class NetworkTraffic(NamedScorePlugin):
    name = NAME
    trusted = True
    Args = NetworkTrafficArgs
    normalizer = Normalizer.REVERSED

    def __init__(self, args: NetworkTrafficArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        series = Series(
            source=args.effective_source,
            query=query_of(args),
            match=NodeMatch(label=args.node_label),
            combine="sum",
            parts=parts_of(args),
        )
        generation = GenerationCounter()
        self._readings = follow(handle, series, generation)
        self.scores = NamedScores(generation, self._find)

    def _find(self) -> tuple[dict[str, int], int]:
        """Whole bytes, and what nodes are taken to have that nothing is known of."""
        traffic = {name: min(max(value, 0.0), LARGEST) for name, value in self._readings.values.items()}
        known, rule, missing = list(traffic.values()), self.args.missing, 0.0
        if known and rule != "best":
            missing = median(known) if rule == "neutral" else max(known)
        return {name: int(each) for name, each in traffic.items()}, int(missing)
