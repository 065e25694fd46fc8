"""Keeps the members of pod groups (scheduling.k8s.io) that wait: one entity in the queue for each group.

A member whose PodGroup has not been seen waits outside of the queue (incomplete). So does one that comes, or comes
back, while its group is being tried (pending): the group returns with it when the attempt is over. kube-scheduler does
the same from 1.37 on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from podium.cluster.objects import Store
from podium.engine.queue.queueing_hints import Strategy
from podium.engine.queue.sub_queues import ACTIVE, BACKOFF, SubQueues
from podium.framework.queued import QueuedGroup, QueuedPod, group_entity_key
from podium.framework.status import Status
from podium.kube import Pod, PodGroup
from podium.kube.pod_group import pod_group_key

INCOMPLETE: Final = "incomplete"
PENDING: Final = "pending"


class GroupEntities:
    """The waiting members, by pod; `added` is the label of the event that brings them."""

    def __init__(self, queues: SubQueues, groups: Store[PodGroup], added: str) -> None:
        self._queues = queues
        self._groups = groups
        self._added = added
        self._members: dict[str, QueuedPod] = {}
        self._outside: dict[str, dict[str, QueuedPod]] = {}
        """Incomplete and pending members, by the key of their group's entity."""
        self._tried = ""
        """The key of the entity in flight."""
        groups.follow(self._group_changed)

    def add(self, member: QueuedPod) -> None:
        """A member came, or came back."""
        self._members[member.key] = member
        group = self._groups.get(pod_group_key(member.pod) or "")
        key = _entity_key(member.pod)
        entity = self.entity_of(member.pod)
        if group is None or key == self._tried:
            member.queue = INCOMPLETE if group is None else PENDING
            self._outside.setdefault(key, {})[member.key] = member
        elif entity is None:
            self._queues.to_active(QueuedGroup(group, member), self._added)
        else:
            self._change(entity, lambda: entity.add(member))

    def remove(self, pod: Pod) -> None:
        member = self._members.pop(pod.key, None)
        if member is None:
            return
        key, entity = _entity_key(pod), self.entity_of(pod)
        outside = self._outside.get(key, {})
        if outside.pop(pod.key, None) is not None:
            if not outside:
                del self._outside[key]
        elif entity is not None:
            self._change(entity, lambda: entity.remove(pod.key))

    def _change(self, entity: QueuedGroup, change: Callable[[], None]) -> None:
        """Change who belongs to an entity, which then stays in its queue if PreEnqueue plugins let it."""
        queue = entity.queue
        self._queues.take_out(entity)
        change()
        if entity.group_size:
            found = {ACTIVE: Strategy.IMMEDIATELY, BACKOFF: Strategy.AFTER_BACKOFF}
            self._queues.requeue(entity, found.get(queue, Strategy.SKIP), self._added)

    def get(self, key: str) -> QueuedPod | None:
        """The record of a member by "namespace/name"."""
        return self._members.get(key)

    def entity_of(self, pod: Pod) -> QueuedGroup | None:
        found = self._queues.get(_entity_key(pod))
        return found if isinstance(found, QueuedGroup) else None

    def begin(self, entity: QueuedGroup) -> None:
        """The entity was popped: its members are in flight."""
        self._tried = entity.key
        for member in entity.members:
            member.attempts += 1
            self._members.pop(member.key, None)

    def end(self, entity: QueuedGroup, status: Status | None, now: float, sequence: Callable[[], int]) -> None:
        """The attempt is over; the group comes back if it has members left. None: it was scheduled."""
        self._tried = ""
        left = self._outside.pop(entity.key, {})
        if not left:
            return
        failed = {member.key for member in entity.members} & left.keys()
        entity.set_members(left.values())
        if status is None:
            entity.consecutive_errors = entity.unschedulable_count = 0
        else:
            entity.backoff_expiration = None
            if status.rejected:
                entity.unschedulable_count += 1
                entity.consecutive_errors = 0
            else:
                entity.consecutive_errors += 1
        if status is not None or not failed:  # one that left members over goes on at once, to preempt for them
            entity.timestamp, entity.sequence = now, sequence()
        entity.flushed, entity.flushed_at = False, 0.0
        strategy = Strategy.IMMEDIATELY if status is None else Strategy.AFTER_BACKOFF
        self._queues.requeue(entity, strategy, ATTEMPT_FAILED)

    def outside(self) -> Iterator[QueuedPod]:
        """The incomplete and the pending members."""
        for members in self._outside.values():
            yield from members.values()

    def _group_changed(self, _key: str, before: PodGroup | None, after: PodGroup | None) -> None:
        group = after or before
        assert group is not None
        key = group_entity_key(group.key)
        entity = self._queues.get(key)
        if isinstance(entity, QueuedGroup) and after is not None:
            entity.group = after
        elif isinstance(entity, QueuedGroup):
            self._queues.take_out(entity)
            for member in entity.members:
                self.add(member)
        elif after is not None:
            for member in self._outside.pop(key, {}).values():
                self.add(member)


def _entity_key(pod: Pod) -> str:
    return group_entity_key(pod_group_key(pod) or "")


ATTEMPT_FAILED: Final = "ScheduleAttemptFailure"
