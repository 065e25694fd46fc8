"""Counts what becomes of resource claims: those that the scheduler creates, and waits for devices to be attached."""

from __future__ import annotations

from podium.framework.waiting import DeviceWait
from podium.serving.families import Counters, Histograms, MetricFamily, exponential


class ClaimMetrics:
    """kube-scheduler's metrics of claims."""

    def __init__(self) -> None:
        self.creates = Counters(
            "scheduler_resourceclaim_creates_total", "Claims that the scheduler created, or could not.", ("status",)
        )
        self._allocations = Counters(
            "scheduler_dra_bindingconditions_allocations_total",
            "Devices that had to be attached before a pod was bound, by how that ended.",
            ("profile", "driver", "status"),
        )
        self._seconds = Histograms(
            "scheduler_dra_bindingconditions_wait_duration_seconds",
            "How long pods waited for devices to be attached.",
            exponential(0.1, 2, 14),
            ("profile", "driver", "status"),
        )
        self.families: list[MetricFamily] = [self.creates, self._allocations, self._seconds]

    def created(self, *, success: bool) -> None:
        self.creates.add("success" if success else "failure")

    def waited(self, wait: DeviceWait) -> None:
        for driver in wait.drivers:
            self._seconds.of(wait.profile, driver, wait.status).observe(wait.seconds)
        for driver in wait.awaited:
            self._allocations.add(wait.profile, driver, wait.status)
