"""Defines a pod or a pod group in the scheduling queue, with what the queue remembers. QueueSort compares these."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from podium.kube import Pod, PodGroup


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

    @property
    def priority(self) -> int:
        return self.pod.priority

    @property
    def group_size(self) -> int:
        """How many members of a pod group wait in it; 0 for a pod."""
        return 0

    @property
    def members(self) -> Sequence[QueuedPod]:
        """The pods that wait in it: itself, or the members of a pod group in the order in which they are tried."""
        return (self,)


class QueuedGroup(QueuedPod):
    """A pod group (scheduling.k8s.io) in the queue, with the members that wait. Timestamp, attempts and backoff are the
    group's; its `pod` is that of a member: of one that is gated, where one is."""

    __slots__ = ("_members", "group")

    def __init__(self, group: PodGroup, first: QueuedPod) -> None:
        super().__init__(first.pod, first.timestamp, first.sequence)
        self.key = group_entity_key(group.key)
        self.group = group
        """As it was seen last."""
        self.initial_attempt = first.initial_attempt
        self._members = {first.key: first}

    @property
    def priority(self) -> int:
        return self.group.priority

    @property
    def members(self) -> Sequence[QueuedPod]:
        return sorted(self._members.values(), key=_order_in_group)

    @property
    def group_size(self) -> int:
        return len(self._members)

    def set_members(self, members: Iterable[QueuedPod]) -> None:
        self._members = {member.key: member for member in members}

    def add(self, member: QueuedPod) -> None:
        self._members[member.key] = member

    def remove(self, key: str) -> None:
        self._members.pop(key, None)


def _order_in_group(member: QueuedPod) -> tuple[int, int, float, int]:
    return -member.pod.priority, -member.attempts, member.timestamp, member.sequence


def group_entity_key(group: str) -> str:
    """The key in the queue of the PodGroup "namespace/name", which no pod has."""
    return f"PodGroup/{group}"
