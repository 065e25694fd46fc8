"""Writes PromQL for plugins: one expression that speaks of all nodes.

Counters are rated by Prometheus, over a window of at least four scrapes: its `rate()` knows of restarts, where a
counter begins at zero again, and of gaps. What comes from a configuration is quoted, so that no name can end a string.

>>> received = selector("node_network_receive_bytes_total", device="eth0")
>>> by("sum", "instance", rate(received, Duration.parse("5m")))
'sum by (instance) (rate(node_network_receive_bytes_total{device="eth0"}[5m]))'
"""

from __future__ import annotations

from collections.abc import Mapping

from kubecel.strconv import quoted
from podium.config.durations import Duration

_UNITS = ((3600 * 10**9, "h"), (60 * 10**9, "m"), (10**9, "s"))


def selector(
    metric: str, like: Mapping[str, str] | None = None, unlike: Mapping[str, str] | None = None, **is_: str
) -> str:
    """A metric with conditions on its labels: `like` and `unlike` are regular expressions, the others exact."""
    conditions = [f"{label}={quoted(value)}" for label, value in is_.items()]
    conditions += [f"{label}=~{quoted(regex)}" for label, regex in (like or {}).items()]
    conditions += [f"{label}!~{quoted(regex)}" for label, regex in (unlike or {}).items()]
    return f"{metric}{{{','.join(conditions)}}}" if conditions else metric


def rate(selected: str, window: Duration) -> str:
    """By how much a counter grows in a second, over a window."""
    return f"rate({selected}[{duration(window)}])"


def over_time(function: str, selected: str, window: Duration) -> str:
    """`avg_over_time`, `stddev_over_time`, … of a gauge."""
    return f"{function}_over_time({selected}[{duration(window)}])"


def by(operation: str, label: str, expression: str) -> str:
    """One series for each value of a label: `sum`, `avg`, `max`, …"""
    return f"{operation} by ({label}) ({expression})"


def duration(window: Duration) -> str:
    """A length of time as PromQL writes it: in one whole unit, thousandths of a second at the finest.

    >>> [duration(Duration.parse(each)) for each in ("5m0s", "90s", "1500ms", "1h")]
    ['5m', '90s', '1500ms', '1h']
    """
    for size, unit in _UNITS:
        if window and window % size == 0:
            return f"{window // size}{unit}"
    return f"{max(1, window // 10**6)}ms"
