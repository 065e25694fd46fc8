"""Holds the pods that wait for something to change.

There may be tens of thousands of them while thousands of events come every second, nearly all of which concern none
of them. So they are filed by what they wait for: a rejected pod under each plugin that rejected it, a gated pod under
the plugin that gates it, and an event looks only under the plugins that registered it. Pods with one signature that
wait for the same plugins are filed as one group, which most hints need to be asked about only once. They are also kept
by age, to find those that have waited too long.

Also decides when pods are flushed that nothing has woken: a hint may have missed something.

kube-scheduler looks every thirty seconds for pods that have been unschedulable for more than five minutes
(`--pod-max-in-unschedulable-pods-duration`) and gives them another chance.

Also keeps the times at which unschedulable pods are to be tried again because a plugin knows that time will help them.

A pod has one such time, the earliest it was given since it was last woken by one.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Collection, Hashable, Iterator, Mapping
from typing import Any, NamedTuple

from podium.cluster.facts import full_signature
from podium.engine.queue.heap import KeyedHeap
from podium.engine.queue.queueing_hints import Listeners
from podium.framework.events import Concerns
from podium.framework.queued import QueuedGroup, QueuedPod
from podium.kube import Pod


class WaitingSignature(NamedTuple):
    """What the pods of a group have in common."""

    pod: tuple[bytes, bytes]
    unschedulable_plugins: frozenset[str]
    pending_plugins: frozenset[str]
    gating_plugin: str


class SignatureGroup:
    """Pods with one signature that wait for the same plugins."""

    __slots__ = ("folders", "pods", "rejectors", "signature")

    def __init__(self, signature: WaitingSignature) -> None:
        self.signature = signature
        self.rejectors = signature.unschedulable_plugins | signature.pending_plugins
        self.folders: tuple[_Folder, ...] = ()
        self.pods: dict[str, QueuedPod] = {}


class _Filing(NamedTuple):
    """Where a pod was filed, and as what: it may change before it is taken out."""

    queued: QueuedPod
    pod: Pod
    group: SignatureGroup


class UnschedulablePods:
    def __init__(self, concerns: Mapping[str, Concerns] | None = None) -> None:
        """`concerns`: plugins that can tell what pods wait for."""
        self._concerns = concerns or {}
        self._filings: dict[str, _Filing] = {}
        self._groups: dict[WaitingSignature, SignatureGroup] = {}
        self._rejected_by: dict[str, _Folder] = {}
        self._gated_by: dict[str, _Folder] = {}
        self._by_age = KeyedHeap(last_tried)
        self.gated = 0
        """How many of the pods are gated."""

    def put(self, queued: QueuedPod) -> None:
        """File a pod; one that is here already is filed again."""
        known = self._filings.get(queued.key)
        signature = self._signature(queued, known)
        if known is None or known.group.signature != signature:
            self.remove(queued.key)
            group = self._groups.get(signature) or self._new_group(signature, queued.pod)
            self.gated += bool(signature.gating_plugin)
        else:
            group = known.group
        group.pods[queued.key] = queued
        self._filings[queued.key] = _Filing(queued, queued.pod, group)
        self._by_age.push(queued)

    def _signature(self, queued: QueuedPod, known: _Filing | None) -> WaitingSignature:
        pod = queued.pod
        if isinstance(queued, QueuedGroup):
            signature = (queued.key.encode(), b"")  # no two groups get equal answers
        elif known is not None and known.pod is pod:
            signature = known.group.signature.pod
        else:
            signature = full_signature(pod)
        return WaitingSignature(
            signature,
            frozenset(queued.unschedulable_plugins),
            frozenset(queued.pending_plugins),
            queued.gating_plugin,
        )

    def _new_group(self, signature: WaitingSignature, pod: Pod) -> SignatureGroup:
        group = self._groups[signature] = SignatureGroup(signature)
        if signature.gating_plugin:
            group.folders = (self._folder(self._gated_by, signature.gating_plugin),)
        else:
            group.folders = tuple(self._folder(self._rejected_by, plugin) for plugin in group.rejectors)
        for folder in group.folders:
            folder.add(group, pod)
        return group

    def _folder(self, folders: dict[str, _Folder], plugin: str) -> _Folder:
        folder = folders.get(plugin)
        if folder is None:
            folder = folders[plugin] = _Folder(self._concerns.get(plugin))
        return folder

    def remove(self, key: str) -> None:
        filing = self._filings.pop(key, None)
        if filing is None:
            return
        group = filing.group
        del group.pods[key]
        if not group.pods:
            del self._groups[group.signature]
            for folder in group.folders:
                folder.remove(group)
        self._by_age.remove(key)
        self.gated -= bool(group.signature.gating_plugin)

    def waiting_for(self, listeners: Listeners, before: Any, after: Any) -> list[Collection[QueuedPod]]:
        """The pods to show an event to, each once: those that a listening plugin rejected or gates, in groups for which
        one answer holds."""
        found: dict[SignatureGroup, object] = {}
        if self._filings:
            for plugin in listeners.plugins:
                for folder in filter(None, (self._rejected_by.get(plugin), self._gated_by.get(plugin))):
                    found.update(folder.concerned(before, after) if plugin in listeners.concerns else folder.groups)
        together: list[Collection[QueuedPod]] = []
        for group in found:
            if listeners.one_by_one.isdisjoint(group.rejectors):
                together.append(group.pods.values())
            else:
                together += [[queued] for queued in group.pods.values()]
        return together

    def older_than(self, seconds: float, now: float) -> list[QueuedPod]:
        """The pods last tried more than so many seconds ago, longest ago first; they stay."""
        found: list[QueuedPod] = []
        while (queued := self._by_age.peek()) is not None and now - last_tried(queued) > seconds:
            self._by_age.pop()
            found.append(queued)
        for queued in found:
            self._by_age.push(queued)
        return found

    def oldest(self) -> float | None:
        """When the pod that has waited longest was last tried."""
        queued = self._by_age.peek()
        return None if queued is None else last_tried(queued)

    def rejections(self) -> Iterator[tuple[QueuedPod, int]]:
        """A pod of each group, and how many there are that the same plugins turned away."""
        for group in self._groups.values():
            yield next(iter(group.pods.values())), len(group.pods)

    def __len__(self) -> int:
        return len(self._filings)

    def __iter__(self) -> Iterator[QueuedPod]:
        return iter([filing.queued for filing in self._filings.values()])


class _Folder:
    """Groups that wait for one plugin's sake; where it can tell what they wait for, also filed by that."""

    __slots__ = ("_by_concern", "_concerns", "groups")

    def __init__(self, concerns: Concerns | None) -> None:
        self._concerns = concerns
        self.groups: dict[SignatureGroup, Collection[Hashable]] = {}
        """With what each waits for."""
        self._by_concern: dict[Hashable, dict[SignatureGroup, None]] = {}

    def add(self, group: SignatureGroup, pod: Pod) -> None:
        waits_for = self.groups[group] = self._awaited(pod)
        for concern in waits_for:
            self._by_concern.setdefault(concern, {})[group] = None

    def remove(self, group: SignatureGroup) -> None:
        for concern in self.groups.pop(group):
            filed = self._by_concern[concern]
            del filed[group]
            if not filed:
                del self._by_concern[concern]

    def concerned(self, before: Any, after: Any) -> Mapping[SignatureGroup, object]:
        """The groups that a change may matter to."""
        try:
            about = None if self._concerns is None else self._concerns.of_event(before, after)
        except Exception:  # whatever the plugin raises, as with its hints: better wake a pod too many
            about = None
        if about is None:
            return self.groups
        found = dict(self._by_concern.get(ANYTHING, {}))
        for concern in about:
            found.update(self._by_concern.get(concern, {}))
        return found

    def _awaited(self, pod: Pod) -> Collection[Hashable]:
        if self._concerns is None:
            return ()
        try:
            awaited = self._concerns.of_pod(pod)
        except Exception:  # whatever the plugin raises, as with its hints: better wake a pod too many
            awaited = None
        return (ANYTHING,) if awaited is None else set(awaited)


ANYTHING = object()
"""The concern of pods that may wait for anything."""


def last_tried(queued: QueuedPod) -> float:
    """A pod that was given another chance for waiting too long waits again from then."""
    return max(queued.timestamp, queued.flushed_at)


FLUSH_EVERY = 30.0
"""Seconds between looks for such pods."""


class UnschedulableFlush:
    """The times at which unschedulable pods are looked through."""

    def __init__(self, now: float, longest: float) -> None:
        self.longest = longest
        self._due = now + FLUSH_EVERY

    def last_due(self, now: float) -> float | None:
        """The last look that is due by now, which counts as done; None when none is.

        A scheduler that is late for several looks makes one: what counts is who had waited too long at the last.
        """
        periods = math.floor((now - self._due) / FLUSH_EVERY)
        if periods < 0:
            return None
        last = self._due + periods * FLUSH_EVERY
        self._due = last + FLUSH_EVERY
        return last

    def first_that_flushes(self, waiting_since: float) -> float:
        """The first look that finds a pod to have waited too long."""
        late = waiting_since + self.longest - self._due
        return self._due + FLUSH_EVERY * max(0, math.floor(late / FLUSH_EVERY) + 1)


class WakeTimes:
    """Pods, by "namespace/name", in the order of their times."""

    def __init__(self) -> None:
        self._times: dict[str, float] = {}
        self._heap: list[tuple[float, str]] = []

    def set(self, key: str, when: float) -> None:
        if when < self._times.get(key, float("inf")):
            self._times[key] = when
            heapq.heappush(self._heap, (when, key))

    def of(self, key: str) -> float | None:
        """The time of a pod."""
        return self._times.get(key)

    def first(self) -> float | None:
        """The first of the times."""
        while self._heap and self._times.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def due(self, now: float) -> Iterator[str]:
        """The pods whose time has come; they have none afterwards."""
        while (first := self.first()) is not None and first <= now:
            _when, key = heapq.heappop(self._heap)
            del self._times[key]
            yield key

    def drop(self, key: str) -> None:
        self._times.pop(key, None)
