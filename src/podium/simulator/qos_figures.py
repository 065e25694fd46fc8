"""Keeps account of what controllers were promised and got in a simulated run, whichever profile decides.

It is the account that QosAware keeps (`podium.placement.qos`), fed by the simulated nodes; the figures are those of
`podium.placement.qos.report`.
"""

from __future__ import annotations

import math

from podium.kube import Pod
from podium.placement.qos.ledger import QosLedger
from podium.placement.qos.report import REPORT_COLUMNS, QosReport, report_on
from podium.simulator.pods import PodOwner

NO_FIGURES = (math.nan,) * len(REPORT_COLUMNS)


class QosFigures:
    """The account of one run."""

    def __init__(self) -> None:
        self.ledger = QosLedger(forget_after=math.inf)

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
