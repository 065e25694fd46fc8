"""Keeps the live pods of a simulation as the API server would show them, and counts what became of the others."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache

from msgspec.structs import replace

from podium.engine.intake import Intake
from podium.kube import Pod
from podium_lab.simulator.pod_classes import PodClasses, PodTallies
from podium_lab.simulator.pods import FOREVER, PodArrival
from podium_lab.simulator.qos_figures import QosFigures
from podium_lab.simulator.timeline import SimulatedClock
from podium_lab.simulator.usage import UsageMeter

_NODES = re.compile(r"^0/\d+ nodes are available: (.*)$", re.DOTALL)
_COUNTED = re.compile(r"(\d+) (.+)")
NO_REASON = "not tried yet"


class LivePod:
    """A pod that waits or runs, of any incarnation."""

    __slots__ = (
        "arrival",
        "began",
        "cell",
        "ends",
        "incarnation",
        "message",
        "node_name",
        "pod",
        "remaining",
        "since",
        "suspended",
        "traits",
    )

    def __init__(
        self, arrival: PodArrival, cell: PodTallies, pod: Pod, since: float, remaining: float, incarnation: int
    ) -> None:
        self.arrival = arrival
        self.cell = cell
        """Where the pod is counted with those of the same classes."""
        self.pod = pod
        self.since = since
        """When it came to the queue."""
        self.remaining = remaining
        """Seconds it still has to run, from `began` on."""
        self.incarnation = incarnation
        self.node_name = ""
        self.began = 0.0
        self.ends = FOREVER
        self.suspended = False
        """Whether its node is out of reach, so that it does nothing."""
        self.message = ""
        """Why it was not placed when it was last tried."""
        self.traits: tuple[float, ...] = ()
        """What the usage model drew for it."""


class LivePods:
    """Every live pod by uid, and counts of what became of all."""

    def __init__(self, clock: SimulatedClock, qos: QosFigures | None = None) -> None:
        """With `qos`, it keeps account of all pods."""
        self.intake: Intake
        self.by_uid: dict[str, LivePod] = {}
        self.counts = PodTallies()
        self.dropped: Counter[str] = Counter()
        """Pods that were given up, by reason."""
        self.classes = PodClasses()
        self.usage: UsageMeter | None = None
        self._clock = clock
        self._qos = qos

    @property
    def pending(self) -> int:
        return len(self.by_uid) - self.counts.running

    def hold(self, live: LivePod) -> bool:
        """Whether the pod is still there: acts that were planned for it may come too late."""
        return self.by_uid.get(live.pod.metadata.uid) is live

    def show(self, pod: Pod) -> None:
        """Show the scheduler a pod that came or changed."""
        if self._qos is not None:
            self._qos.observe(pod, self._clock.now())
        self.intake.set(pod)

    def annotate(self, pod: Pod, annotations: Mapping[str, str]) -> None:
        """The scheduler sees them with the next change of the pod."""
        live = self.by_uid.get(pod.metadata.uid)
        if live is not None:
            metadata = live.pod.metadata
            live.pod = replace(
                live.pod, metadata=replace(metadata, annotations={**metadata.annotations, **annotations})
            )

    def set_nomination(self, uid: str, node_name: str) -> None:
        live = self.by_uid.get(uid)
        if live is None or live.node_name or live.pod.status.nominated_node_name == node_name:
            return
        live.pod = replace(live.pod, status=replace(live.pod.status, nominated_node_name=node_name))
        self.show(live.pod)

    def remove(self, live: LivePod, *, succeeded: bool = False) -> None:
        """The pod is gone, and its node has the room again."""
        del self.by_uid[live.pod.metadata.uid]
        if live.node_name:
            self.counts.running -= 1
            if self.usage is not None:
                self.usage.pod_removed(live.pod.metadata.uid)
        if succeeded:
            live.pod = replace(live.pod, status=replace(live.pod.status, phase="Succeeded"))
        if self._qos is not None:
            self._qos.ended(live.pod, self._clock.now())
        if succeeded:
            self.intake.set(live.pod)
        else:
            self.intake.delete(live.pod)

    def give_up(self, live: LivePod) -> None:
        """The pod was not placed and does not wait any longer."""
        if self.hold(live) and not live.node_name:
            self.counts.dropped += 1
            self.dropped[main_reason(live.message)] += 1
            live.cell.dropped += 1
            self.remove(live)


@lru_cache(maxsize=4096)
def main_reason(message: str) -> str:
    """The reason that kept the most nodes away, in a scheduling failure's message.

    >>> main_reason("0/5 nodes are available: 2 Insufficient memory, 3 Insufficient cpu. No preemption victims found")
    'Insufficient cpu'
    """
    found = _NODES.match(message)
    if found is None:
        return message or NO_REASON
    text = found[1].split(". ", 1)[0].rstrip(".")
    counted = [_COUNTED.fullmatch(part) for part in text.split(", ")]
    reasons = sorted((-int(each[1]), each[2]) for each in counted if each is not None)
    return reasons[0][1] if reasons else text
