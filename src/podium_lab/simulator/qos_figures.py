"""Keeps account of what controllers were promised and got in a simulated run, whichever profile decides.

It is the account that QosAware keeps (`podium_plugins.qos`), fed by the simulated nodes; the figures are those of
`podium_plugins.qos.report`. Beside them stands the mean deficit that no scheduler could have been below: where more
is promised than the nodes have room for, some promise must be broken. Room is counted in slots where all pods are of
one size, else in cores; that pods must start, and come one after the other, is left out. Slots that replicas which must
run together cannot fill are no room: no more count than whole controllers, and pods that count alone, add up to.

`SimulatedQosPage` serves the QoS page in virtual time. A run puts down how controllers stand a few times a second, and
a thread serves what was put down last: no request waits for a run, or reads what it is changing. Runs that are done one
after the other take turns on the page.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Event, Thread
from time import monotonic
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium.kube import Pod
from podium.serving.plugin_pages import PageServer
from podium_lab.simulator.pods import PodOwner, PodTemplate
from podium_plugins.qos.formulas import CONCURRENT
from podium_plugins.qos.ledger import QosLedger
from podium_plugins.qos.page import QosRow, QosSource, controller_rows, qos_page, slot_rows
from podium_plugins.qos.report import REPORT_COLUMNS, QosReport, least_mean_deficit, report_on

EVERY: Final = 0.25
"""Seconds, of the reader's time, between two tables."""
QOS_COLUMNS = (*REPORT_COLUMNS, "least_deficit")
NO_FIGURES = (math.nan,) * len(QOS_COLUMNS)


class QosFigures:
    """The account of one run."""

    def __init__(self) -> None:
        self.ledger = QosLedger(forget_after=math.inf)
        self._size: dict[str, tuple[int, int]] = {}
        """By controller: CPU and memory of its pods."""

    def arrived(self, template: PodTemplate) -> None:
        """Pods of a controller come."""
        self._size[template.annotations.get("controller", "")] = template.cpu, template.memory

    def set_owner(self, owner: PodOwner) -> None:
        """A ReplicaSet or Job is there."""
        self.ledger.set_owner(owner.reference.uid, next(iter(owner.value["spec"].values())))

    def observe(self, pod: Pod, now: float) -> None:
        self.ledger.observe(None, pod, now)

    def ended(self, pod: Pod, now: float) -> None:
        self.ledger.observe(pod, None, now)

    def report(self, now: float, preemptions: int) -> QosReport:
        """The figures by now."""
        return report_on(self.ledger, now, preemptions=preemptions, makespan=self.ledger.makespan(now))

    def least_deficit(self, now: float, offered: NDArray[np.int64]) -> float:
        """The mean deficit that could not have been avoided by now, since the first pod came.

        `offered` is the CPU and memory of the nodes: int64[2, nodes].
        """
        sizes = set(self._size.values())
        one_size = len(sizes) == 1
        if one_size:
            size = np.maximum(np.array(sizes.pop(), dtype=np.int64), 1)
            slots = int((offered // size[:, None]).min(axis=0).sum())
            room = float(most_filled(self._groups(), slots))
        else:
            room = float(offered[0].sum())
        time = max(0.0, now - self.ledger.first)
        promises = []
        for each in self.ledger.accounts.values():
            size_of_pod = 1 if one_size else self._size.get(each.key, (0, 0))[0]
            whole = min(each.sums(None, now).total, each.replicas * time)  # creation times are rounded to seconds
            promises.append((each.slo, size_of_pod * whole))
        return least_mean_deficit(promises, room * time)

    def _groups(self) -> list[int]:
        """The numbers of pods that are worth something only together: one by one where replicas count alone."""
        groups: list[int] = []
        for each in self.ledger.accounts.values():
            groups += [each.replicas] if each.approach == CONCURRENT else [1] * each.replicas
        return groups


def most_filled(groups: Sequence[int], slots: int) -> int:
    """How many of the slots whole groups can fill at most; all of them where there is room for every group.

    >>> most_filled([8, 8, 9], 24), most_filled([8, 8, 9], 30), most_filled([8, 8, 1, 1], 17)
    (17, 30, 17)
    """
    if sum(groups) <= slots:
        return slots
    reachable = 1  # bit n: n slots can be filled
    for group in groups:
        reachable |= reachable << group
    return (reachable & ((1 << slots + 1) - 1)).bit_length() - 1


# The page


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
