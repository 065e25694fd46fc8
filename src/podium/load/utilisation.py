"""Reads utilisation of nodes in percent, from the sources that load-watcher knows, with its arguments and queries.

    watcherAddress: http://load-watcher.loadwatcher.svc:2020    # a running load-watcher, or one of its providers:
    metricProvider: {type: Prometheus, address: http://prometheus-k8s:9090}

`KubernetesMetricsServer` is the default. It has the latest use and no deviation. `Prometheus` is asked for mean and
deviation over 15 minutes of the recording rules that load-watcher reads. A load-watcher may have both an average and
the latest value of a resource; the average counts, wherever in its list it stands.

Differences from load-watcher in the scheduler's process: values older than five minutes are given up, an
`insecureSkipVerify` counts with or without a token, any number of plugins and profiles may read the same source, and no
port is opened.

Also gives the cpu that nodes have as a whole, in thousandths: what utilisation is a share of.

Scheduling counts with allocatable, which is less by what is set aside for the system; measurements of a node are about
all of it. A node that states no capacity has what it offers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from kubecel.quantity import milli
from podium.cluster import Cluster
from podium.config.durations import SECOND, Duration
from podium.config.field import FieldError, FieldPath
from podium.framework.row_numbers import RowNumbers
from podium.load.readings import GenerationCounter, Readings, follow
from podium.load.scaling import Floats
from podium.load.series import NodeMatch, Series
from podium.load.settings import SourceSettings, Tls

if TYPE_CHECKING:
    from podium.framework.handle import Handle


METRICS_SERVER: Final = "KubernetesMetricsServer"
PROMETHEUS: Final = "Prometheus"
PROMETHEUS_ADDRESS: Final = "http://prometheus-k8s:9090"
WATCHER_TIMEOUT: Final = Duration(55 * SECOND)

_RULES: Final = {"CPU": "instance:node_cpu:ratio", "Memory": "instance:node_memory_utilisation:ratio"}
_OVER_TIME: Final = {"AVG": "avg_over_time", "STD": "stddev_over_time"}
_WINDOW: Final = "15m"


class MetricProvider(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    type: str = ""
    address: str = ""
    token: str = ""
    insecure_skip_verify: bool | None = None
    """Unset: true for Prometheus."""

    def __repr__(self) -> str:
        return f"MetricProvider({self.type!r}, {self.address!r})"


class UtilisationArgs(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The arguments that every plugin which reads utilisation has beside its own."""

    watcher_address: str | None = None
    metric_provider: MetricProvider = MetricProvider()

    def source(self) -> SourceSettings | None:
        """Where utilisation comes from; None when the arguments name a provider that there is not."""
        provider = self.metric_provider
        if self.watcher_address:
            return watcher(self.watcher_address)
        if provider.type == METRICS_SERVER or (not provider.type and self.watcher_address is None):
            return SourceSettings(kind="metrics-server")
        if provider.type == PROMETHEUS:
            skip = provider.insecure_skip_verify is not False
            address = provider.address or PROMETHEUS_ADDRESS
            return SourceSettings(address=address, token=provider.token, tls=Tls(insecure_skip_verify=skip))
        return None

    def checked_source(self) -> SourceSettings:
        """The same for arguments that nothing is wrong with; a ValueError tells what is."""
        source = self.source()
        if source is None:
            raise ValueError("; ".join(str(error) for error in self.validate(FieldPath())))
        return source

    def validate(self, path: FieldPath) -> Iterator[FieldError]:
        source = self.source()
        if source is None:
            yield no_such_provider(path.child("metricProvider", "type"), self.metric_provider.type)
        elif self.watcher_address:
            yield from address_errors(path.child("watcherAddress"), source)
        else:
            yield from source.validate(path.child("metricProvider"))


def watcher(address: str) -> SourceSettings:
    """A load-watcher that listens at an address."""
    return SourceSettings(kind="load-watcher", address=address, timeout=WATCHER_TIMEOUT)


def address_errors(path: FieldPath, source: SourceSettings) -> Iterator[FieldError]:
    """What is wrong with a source that is given by nothing but its address, which stands at `path`."""
    for error in source.validate(path):
        yield FieldError(path, error.body)


def no_such_provider(path: FieldPath, given: str) -> FieldError:
    instead = f"write {METRICS_SERVER} or {PROMETHEUS}, or set watcherAddress"
    return FieldError(path, f"invalid MetricProvider.Type, got {given}; {instead}")


def query_of(source: SourceSettings, resource: str, operator: str) -> str | None:
    """How a source is asked for percent of a resource ("CPU", "Memory"); None where it does not tell that."""
    if source.kind == "prometheus":
        over_time = _OVER_TIME.get(operator)
        return None if over_time is None else f"100 * {over_time}({_RULES[resource]}[{_WINDOW}])"
    if source.kind == "metrics-server" and operator != "Latest":
        return None
    return f"{resource}/{operator}"


class Utilisation:
    """What is known of one resource. `operators`: what may stand for the mean, the first that is known counts.
    `deviation`: whether that is asked for, too. `generation` counts whatever changes."""

    def __init__(
        self,
        handle: Handle,
        source: SourceSettings,
        resource: str,
        generation: GenerationCounter,
        operators: tuple[str, ...] = ("AVG", "Latest"),
        *,
        deviation: bool = False,
    ) -> None:
        followed = [_followed(handle, source, resource, operator, generation) for operator in operators]
        self._means = [readings for readings in followed if readings is not None] or [Readings()]
        self._deviation = (_followed(handle, source, resource, "STD", generation) if deviation else None) or Readings()

    def mean(self, cluster: Cluster) -> Floats:
        """float64[rows] in percent, NaN where nothing is known; to be read only."""
        first, *others = self._means
        mean = first.column(cluster)
        for readings in others:
            if readings.values:
                mean = np.where(np.isnan(mean), readings.column(cluster), mean)
        return mean

    def deviation(self, cluster: Cluster) -> Floats:
        """The same for the standard deviation."""
        return self._deviation.column(cluster)

    def mean_on(self, node_name: str) -> float | None:
        for readings in self._means:
            value = readings.values.get(node_name)
            if value is not None:
                return value
        return None

    def deviation_on(self, node_name: str) -> float | None:
        return self._deviation.values.get(node_name)

    def measured_until(self, node_name: str) -> float:
        """Until when the mean of a node was measured; 0.0 where nothing is known."""
        for readings in self._means:
            if node_name in readings.values:
                return readings.time_of(node_name)
        return 0.0


def _followed(
    handle: Handle, source: SourceSettings, resource: str, operator: str, generation: GenerationCounter
) -> Readings | None:
    query = query_of(source, resource, operator)
    if query is None:
        return None
    match = NodeMatch(label="instance") if source.kind == "prometheus" else NodeMatch()
    return follow(handle, Series(source=source, query=query, match=match), generation)


def cpu_capacity() -> RowNumbers:
    """One line: the capacity of each row; 0 where there is no node."""
    return RowNumbers(1, _of_row)


def _of_row(cluster: Cluster, row: int) -> list[int]:
    node = cluster.nodes[row]
    if node is None:
        return [0]
    status = node.status
    return [max(0, milli(status.capacity.get("cpu", status.allocatable.get("cpu", 0))))]
