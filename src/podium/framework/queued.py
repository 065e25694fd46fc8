"""Defines a pod in the scheduling queue, with what the queue remembers of it. QueueSort plugins compare these."""

from __future__ import annotations

from podium.kube import Pod


class QueuedPod:
    """A pod in the queue, which QueueSort compares with others."""

    __slots__ = (
        "attempts",
        "backoff_expiration",
        "began",
        "consecutive_errors",
        "flushed",
        "flushed_at",
        "gating_plugin",
        "initial_attempt",
        "key",
        "pending_plugins",
        "pod",
        "queue",
        "sequence",
        "timestamp",
        "unschedulable_count",
        "unschedulable_plugins",
    )

    def __init__(self, pod: Pod, now: float, sequence: int = 0) -> None:
        self.pod = pod
        """The pod as it was seen last."""
        self.key = pod.key
        self.timestamp = now
        """When it entered the queue, or came back to it."""
        self.sequence = sequence
        """Taken with the timestamp: of two pods with the same one, the first to have got it is ahead."""
        self.queue = ""
        """The queue the pod is in (active, backoff, unschedulable); "" while it is being scheduled."""
        self.attempts = 0
        """How often it has been tried."""
        self.began = 0.0
        """When the attempt under way began, by the time of the scheduler's timer."""
        self.unschedulable_count = 0
        self.consecutive_errors = 0
        self.backoff_expiration: float | None = None
        self.initial_attempt: float | None = None
        self.unschedulable_plugins: set[str] = set()
        self.pending_plugins: set[str] = set()
        self.gating_plugin = ""
        self.flushed = False
        """Whether only waiting too long brought the pod back, and no event did."""
        self.flushed_at = 0.0

    @property
    def gated(self) -> bool:
        return bool(self.gating_plugin)
