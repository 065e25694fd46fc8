"""Names what is measured of nodes for models: a PromQL query for each metric, the same for schedulers and trainings.

`metric_series` gives the series that a plugin follows; a simulation that measures writes to the same ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from podium.config.durations import SECOND, Duration
from podium.load.promql import rate, selector
from podium.load.series import Series
from podium.load.settings import SourceSettings
from podium_plugins.latency_aware import DEFAULT_QUERY

WINDOW: Final = Duration(300 * SECOND)
VIRTUAL: Final = "lo|veth.*|cali.*|cni.*|docker.*|flannel.*"
_BUSY: Final = rate('node_cpu_seconds_total{mode!="idle"}', WINDOW)
_RECEIVED, _SENT = (
    rate(selector(f"node_network_{way}_bytes_total", unlike={"device": VIRTUAL}), WINDOW)
    for way in ("receive", "transmit")
)
_LINK: Final = selector("node_network_speed_bytes", unlike={"device": VIRTUAL})

METRIC_QUERIES: Final[Mapping[str, str]] = {
    "cpu": f"1000 * sum by (instance, node) ({_BUSY})",
    "memory": "node_memory_MemTotal_bytes - node_memory_MemAvailable_bytes",
    "gpu": "10 * sum by (instance, node) (DCGM_FI_DEV_GPU_UTIL)",
    "connections": "node_netstat_Tcp_CurrEstab",
    "traffic": f"sum without (device) ({_RECEIVED} + {_SENT})",
    "link-speed": f"max by (instance, node) ({_LINK} > 0)",
    "latency": DEFAULT_QUERY,
}
"""Thousandths of a core, bytes, thousandths of a GPU, connections, bytes a second twice, milliseconds."""


def metric_series(source: SourceSettings, queries: Mapping[str, str] | None = None) -> dict[str, Series]:
    """The series of each metric; `queries` has those that are measured otherwise, "" for those that aren't."""
    wanted = {**METRIC_QUERIES, **(queries or {})}
    return {name: Series(source=source, query=query) for name, query in wanted.items() if query}
