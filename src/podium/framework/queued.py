"""A pod in the scheduling queue, with what the queue remembers of it. QueueSort plugins compare these."""

from __future__ import annotations

from podium.kube import Pod


class QueuedPod:
    __slots__ = (
        "attempts",
        "backoff_expiration",
        "consecutive_errors",
        "flushed_at",
        "gating_plugin",
        "initial_attempt",
        "pending_plugins",
        "pod",
        "timestamp",
        "unschedulable_count",
        "unschedulable_plugins",
    )

    def __init__(self, pod: Pod, now: float) -> None:
        self.pod = pod
        self.timestamp = now
        self.attempts = 0
        self.unschedulable_count = 0
        self.consecutive_errors = 0
        self.backoff_expiration: float | None = None
        self.initial_attempt: float | None = None
        self.unschedulable_plugins: set[str] = set()
        self.pending_plugins: set[str] = set()
        self.gating_plugin = ""
        self.flushed_at = 0.0

    @property
    def gated(self) -> bool:
        return bool(self.gating_plugin)
