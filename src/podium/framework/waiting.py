"""Holds pods at Permit: placed in memory, not yet bound, until every plugin that holds them lets go.

Each holding plugin has its own time limit; the first limit to pass rejects the pod. The answer reaches the binding
through `on_settled`.

Also lets a driver hear of pods that wait for their devices to be attached before they are bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from podium.config.durations import SECOND, Duration
from podium.framework.status import Code, Status
from podium.kube import Pod

LONGEST_WAIT = 15 * 60.0


class WaitingPod:
    """A pod with the plugins that hold it and when each gives up."""

    def __init__(self, pod: Pod, node_name: str, since: float, waits: dict[str, float]) -> None:
        self.pod = pod
        """The pod that is held."""
        self.node_name = node_name
        """The node that is reserved for it."""
        self.since = since
        """When its wait began."""
        self.pending = {plugin: since + wait for plugin, wait in waits.items()}
        """The plugins that hold it, each with the time at which it gives up."""
        self._waits = waits
        self.outcome: Status | None = None
        self.settled = False
        self.on_settled: Callable[[], None] | None = None

    @property
    def deadline(self) -> float:
        return min(self.pending.values())

    def allow(self, plugin: str) -> None:
        """One plugin lets go; the pod is free when the last one does."""
        self.pending.pop(plugin, None)
        if not self.pending:
            self._settle(None)

    def reject(self, plugin: str, message: str) -> bool:
        """Turn the pod away; False when its wait is over already."""
        return self._settle(Status(Code.UNSCHEDULABLE, (message,), plugin))

    def preempt(self, plugin: str, message: str) -> bool:
        """Take the pod's place; it is tried again later. False when its wait is over already."""
        return self._settle(Status(Code.ERROR, (message,), plugin))

    def expire(self, now: float) -> None:
        """Reject the pod if a holding plugin's time is over."""
        if self.settled or now < self.deadline:
            return
        plugin = min(self.pending, key=lambda name: self.pending[name])
        waited = Duration(round(self._waits[plugin] * SECOND))
        self.reject(plugin, f"rejected due to timeout after waiting {waited} at plugin {plugin}")

    def _settle(self, outcome: Status | None) -> bool:
        if self.settled:
            return False
        self.settled = True
        self.outcome = outcome
        if self.on_settled is not None:
            self.on_settled()
        return True


class WaitingPods:
    """The pods that wait, by uid; `on_wait` is called with each that begins to."""

    def __init__(self) -> None:
        self._pods: dict[str, WaitingPod] = {}
        self.on_wait: Callable[[WaitingPod], None] = lambda _waiting: None

    def __iter__(self) -> Iterator[WaitingPod]:
        return iter(list(self._pods.values()))

    def __len__(self) -> int:
        return len(self._pods)

    def get(self, uid: str) -> WaitingPod | None:
        """The pod that waits by this uid, if there is one."""
        return self._pods.get(uid)

    def add(self, pod: Pod, node_name: str, waits: dict[str, float], now: float) -> WaitingPod:
        capped = {plugin: min(wait, LONGEST_WAIT) for plugin, wait in waits.items()}
        waiting = self._pods[pod.uid] = WaitingPod(pod, node_name, now, capped)
        self.on_wait(waiting)
        return waiting

    def remove(self, uid: str) -> None:
        self._pods.pop(uid, None)

    def expire(self, now: float) -> None:
        for waiting in self:
            waiting.expire(now)


class DeviceWait(NamedTuple):
    """A wait that is over."""

    profile: str
    drivers: Sequence[str]
    """The driver of each device that the pod's claims have."""
    awaited: Sequence[str]
    """The driver of each device that had to be attached."""
    status: str
    """success, failed, timeout or error."""
    seconds: float


class DeviceWaits:
    """What is called when such a wait begins (with the pod and its node) and when it is over."""

    def __init__(self) -> None:
        self.on_begin: Callable[[Pod, str], None] = lambda _pod, _node_name: None
        self.on_end: Callable[[DeviceWait], None] = lambda _wait: None
