"""Keeps account of what controllers were promised and got in a simulated run, whichever profile decides.

It is the account that QosAware keeps (`podium.placement.qos`), fed by the simulated nodes; the figures are those of
`podium.placement.qos.report`. Beside them stands the mean deficit that no scheduler could have been below: where more
is promised than the nodes have room for, some promise must be broken. Room is counted in slots where all pods are of
one size, else in cores; that pods must start, and come one after the other, is left out.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from podium.kube import Pod
from podium.placement.qos.ledger import QosLedger
from podium.placement.qos.report import REPORT_COLUMNS, QosReport, least_mean_deficit, report_on
from podium.simulator.pods import PodOwner, PodTemplate

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
            room = float((offered // size[:, None]).min(axis=0).sum())
        else:
            room = float(offered[0].sum())
        promises = [
            (each.slo, (1 if one_size else self._size.get(each.key, (0, 0))[0]) * each.sums(None, now).total)
            for each in self.ledger.accounts.values()
        ]
        return least_mean_deficit(promises, room * max(0.0, now - self.ledger.first))
