"""Serves the QoS page of simulated runs, in virtual time.

A run puts down how controllers stand a few times a second, and a thread serves what was put down last: no request waits
for a run, or reads what it is changing. Runs that are done one after the other take turns on the page.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from time import monotonic
from typing import Any, Final, NamedTuple

from podium.serving.plugin_pages import PageServer
from podium_lab.simulator.qos_figures import QosFigures
from podium_plugins.qos.page import QosSource, qos_page
from podium_plugins.qos.table import QosRow, controller_rows, slot_rows

EVERY: Final = 0.25
"""Seconds, of the reader's time, between two tables."""


class _Shown(NamedTuple):
    controllers: list[QosRow]
    slots: list[QosRow]
    report: dict[str, Any]


class SimulatedQosPage:
    """The page of the runs in this process."""

    def __init__(self, port: int) -> None:
        self._shown = _Shown([], [], {})
        self._due = 0.0
        source = QosSource(lambda: self._shown.controllers, lambda: self._shown.slots, lambda: {**self._shown.report})
        self._page = PageServer(qos_page(source), port=port)
        self._loop = asyncio.new_event_loop()
        self._settled = Event()
        self.problem: str | None = None
        """Why the page is not served."""
        self._thread = Thread(target=self._serve, name="qos-page", daemon=True)

    @property
    def port(self) -> int:
        return self._page.port

    def show(self, qos: QosFigures, now: float, preemptions: int) -> None:
        """Put down how controllers stand, if that is due."""
        if monotonic() >= self._due:
            report = qos.report(now, preemptions)._asdict()
            self._shown = _Shown(controller_rows(qos.ledger, now), slot_rows(qos.ledger, now), report)
            self._due = monotonic() + EVERY

    def start(self) -> None:
        self._thread.start()
        self._settled.wait()

    def stop(self) -> None:
        if self.problem is None:
            self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _serve(self) -> None:
        try:
            self.problem = self._loop.run_until_complete(self._page.start())
            self._settled.set()
            if self.problem is None:
                self._loop.run_forever()
                self._loop.run_until_complete(self._page.stop())
        finally:
            self._settled.set()
            self._loop.close()


@contextmanager
def served_qos_page(port: int) -> Iterator[SimulatedQosPage]:
    """Serve the page while the runs last."""
    page = SimulatedQosPage(port)
    page.start()
    try:
        yield page
    finally:
        page.stop()
