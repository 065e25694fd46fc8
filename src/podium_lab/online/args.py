"""Declares the arguments of OnlineScore, and the metrics it looks at where none are given."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Literal

import msgspec

from podium.config.durations import SECOND, Duration
from podium.config.field import FieldError, FieldPath
from podium.load.promql import rate, selector
from podium.load.series import Series
from podium.load.settings import SourceSettings, at_address, source_errors

VARIABLES = {"prometheus_address": "PROMETHEUS_ADDRESS"}
NAMESPACE, CONFIG_MAP = "kube-system", "podium-online-state"
WINDOW = Duration(300 * SECOND)
MOST_METRICS = 8
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_VIRTUAL = "lo|veth.*|cali.*|cni.*|docker.*|flannel.*"


class LoadMetric(msgspec.Struct, rename="camel", kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Something that is measured of nodes: 0 is idle."""

    name: str = ""
    query: str = ""
    full: float | None = None
    """The value of a node that is fully loaded; left out: the highest of all nodes."""

    def validate(self, path: FieldPath) -> Iterator[FieldError]:
        if not self.name:
            yield FieldError.required(path.child("name"), "what is measured, in a word")
        if not self.query.strip():
            yield FieldError.required(path.child("query"), "what gives one number per node")
        if self.full is not None and not (math.isfinite(self.full) and self.full > 0):
            yield FieldError.invalid(path.child("full"), self.full, "must be greater than zero")

    def series(self, source: SourceSettings) -> Series:
        return Series(source=source, query=self.query)


_IDLE = rate(selector("node_cpu_seconds_total", mode="idle"), WINDOW)
_RECEIVED, _SENT = (
    rate(selector(f"node_network_{way}_bytes_total", unlike={"device": _VIRTUAL}), WINDOW)
    for way in ("receive", "transmit")
)
USUAL = (
    LoadMetric(name="cpu", query=f"100 * (1 - avg without (cpu, mode) ({_IDLE}))", full=100),
    LoadMetric(
        name="memory", query="100 * (1 - node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes)", full=100
    ),
    LoadMetric(name="network", query=f"sum without (device) ({_RECEIVED} + {_SENT})"),
)


class OnlineScoreArgs(msgspec.Struct, rename="camel", kw_only=True, frozen=True, forbid_unknown_fields=True):
    prometheus_address: str | None = None
    source: SourceSettings = SourceSettings()
    """How load is measured: where, with which credentials, how often."""
    metrics: tuple[LoadMetric, ...] = USUAL
    mode: Literal["active", "shadow"] = "active"
    """shadow: it learns, and the fallback decides."""
    rewards: Literal["annotation", "load"] = "annotation"
    """What pods are judged by: their annotation podium.dev/reward, or the load of their node a while later."""
    reward_after: Duration = Duration(120 * SECOND)
    """With rewards from load: how long after a pod got its node that is looked at."""
    reward_within: Duration = Duration(3600 * SECOND)
    """A reward that comes later than this is refused."""
    class_label: str = ""
    """A label of nodes whose values are learnt about one by one, such as node.kubernetes.io/instance-type."""
    type_label: str = ""
    """A label of pods: those with different values are learnt about apart. Empty: all pods together."""
    forgetting: float = 0.995
    """What is left of an example when the next one comes."""
    explore: float = 0.5
    """How many deviations a node is given the benefit of the doubt."""
    neighbours: float = 1.0
    """How much the pods that are on a node already count, which fare worse for one more."""
    few_rewards: int = 50
    """The number of rewards below which the fallback decides."""
    most_width: float = 0.2
    """The deviation of expected rewards, in the median over nodes, from which the fallback decides."""
    most_missing: float = 0.5
    """The share of nodes without a fresh measurement from which the fallback decides."""
    deadline: Duration = Duration(5 * SECOND // 1000)
    """How long scoring all nodes may take."""
    refresh: Duration = Duration(SECOND)
    """How often, at most, decisions get to see what was learnt."""
    namespace: str = NAMESPACE
    config_map: str = CONFIG_MAP
    """The ConfigMap, and its namespace, in which what was learnt outlives the process."""
    state_file: str = ""
    """A file in which it does so, too."""

    def validate(self, path: FieldPath) -> Iterator[FieldError]:
        if self.prometheus_address or self.source.address or self.source.kind != "prometheus":
            yield from source_errors(self.prometheus_address, self.source, path)
        if not 0 < len(self.metrics) <= MOST_METRICS:
            detail = f"must be between 1 and {MOST_METRICS} metrics"
            yield FieldError.invalid(path.child("metrics"), len(self.metrics), detail)
        for number, metric in enumerate(self.metrics):
            yield from metric.validate(path.child("metrics").index(number))
        for name, value, low in (
            ("forgetting", self.forgetting, 0.5),
            ("mostWidth", self.most_width, 0.0),
            ("mostMissing", self.most_missing, 0.0),
        ):
            if not low <= value <= 1:
                yield FieldError.invalid(path.child(name), value, f"must be between {low:g} and 1")
        for name, value in (("explore", self.explore), ("neighbours", self.neighbours)):
            if not 0 <= value <= 10:
                yield FieldError.invalid(path.child(name), value, "must be between 0 and 10")
        if self.few_rewards < 1:
            yield FieldError.invalid(path.child("fewRewards"), self.few_rewards, "must be at least 1")
        for name, duration in (("deadline", self.deadline), ("rewardWithin", self.reward_within)):
            if duration <= 0:
                yield FieldError.invalid(path.child(name), str(duration), "must be greater than zero")
        for name, given in (("namespace", self.namespace), ("configMap", self.config_map)):
            if not _NAME.fullmatch(given):
                yield FieldError.invalid(path.child(name), given, "must be a name as Kubernetes has them")

    @property
    def effective_source(self) -> SourceSettings:
        return at_address(self.prometheus_address, self.source)
