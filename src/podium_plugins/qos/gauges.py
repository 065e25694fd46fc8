"""Shows what QosAware keeps account of: on the QoS page, and as gauges on /metrics.

Gauges are bounded in number: those of the hundred controllers that are nearest to breaking their SLO, or beyond.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from contextlib import AsyncExitStack
from typing import Final

from podium.engine.scheduler import Scheduler
from podium.framework.clock import Clock
from podium.run.metrics.registry import Metrics
from podium.serving import address
from podium.serving.families import Reading
from podium.serving.log import LOG
from podium_plugins.qos.page import QosPage, QosSource
from podium_plugins.qos.report import report_on
from podium_plugins.qos.table import QosRow, controller_rows, slot_rows
from podium_plugins.qos_aware import QosAware

MOST_GAUGES: Final = 100


def qos_plugins(engine: Scheduler) -> list[QosAware]:
    """The plugin of each profile that has it."""
    found = (runtime.plugins.get(QosAware.name) for runtime in engine.profiles.values())
    return [plugin for plugin in found if isinstance(plugin, QosAware)]


def qos_source(engine: Scheduler, clock: Clock) -> QosSource | None:
    """What the page shows; None where no profile has the plugin."""
    plugins = qos_plugins(engine)
    if not plugins:
        return None
    ledger = plugins[0].ledger  # every profile's ledger sees all pods

    def report() -> dict[str, float]:
        now = clock.now()
        preemptions = sum(plugin.preemptions for plugin in plugins)
        return report_on(ledger, now, preemptions=preemptions, makespan=ledger.makespan(now))._asdict()

    return QosSource(
        lambda: controller_rows(ledger, clock.now()),
        lambda: slot_rows(ledger, clock.now()),
        report,
    )


async def serve_qos(engine: Scheduler, clock: Clock, host: str, port: int, stack: AsyncExitStack) -> QosPage | None:
    """Serve the page until `stack` closes, where a profile has the plugin and a port is wanted."""
    source = qos_source(engine, clock)
    if source is None or not port:
        return None
    page = QosPage(source, host=host, port=port)
    problem = await page.start()
    if problem is not None:
        LOG.warning("%s; give another port with --qos-port", problem)
        return None
    stack.push_async_callback(page.stop)
    LOG.info("serving the QoS page on http://%s", address(host, page.port))
    return page


def show_qos(metrics: Metrics, engine: Scheduler, clock: Clock) -> None:
    """Put the controllers that are nearest to breaking their SLO on /metrics."""
    source = qos_source(engine, clock)
    if source is None:
        return

    def read(column: str) -> Reading:
        return {(row.controller,): getattr(row, column) for row in _most_urgent(source.controllers())}

    for name, text, column in (
        ("podium_qos", "The share of its time that a controller ran; the most urgent controllers only.", "qos"),
        ("podium_qos_slo", "The share that it was promised.", "slo"),
        ("podium_qos_metric_seconds", "Seconds until its SLO is violated, or (below 0) that it lacks.", "metric_s"),
    ):
        metrics.gauge(name, text, lambda column=column: read(column), ("controller",))  # type: ignore[misc]


def _most_urgent(rows: Iterable[QosRow]) -> list[QosRow]:
    known = (row for row in rows if not math.isnan(row.metric_s))
    return sorted(known, key=lambda row: (row.metric_s, row.controller))[:MOST_GAUGES]
