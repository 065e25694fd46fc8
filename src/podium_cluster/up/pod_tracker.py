"""Follows the pods in the API server's store: how many are in each phase, which wait and why, what was decided last.

A pod that gets a node is a decision. So is a pod whose condition says that no node takes it or that a plugin failed,
once for each reason. The store hands over every write at once, so nothing is polled and nothing is missed.
"""

import enum
from collections import Counter, deque
from collections.abc import Callable
from typing import Final, NamedTuple

import msgspec

from podium_cluster.apiserver.kinds import POD
from podium_cluster.apiserver.store.collection import ObjectChange, Stored
from podium_cluster.apiserver.store.object_store import ObjectStore

MOST_DECISIONS: Final = 200


class PodVerdict(enum.Enum):
    """How a pod stands with its scheduler, in the words of the live view; the most urgent first."""

    FAILED = "error"
    HELD = "held"
    REFUSED = "no node"
    GATED = "gated"
    UNTRIED = "to be tried"
    PLACED = "placed"


class PodDecision(NamedTuple):
    """`node` is empty where the pod has none; then `why` says so in its scheduler's words."""

    pod: str
    verdict: PodVerdict
    node: str = ""
    why: str = ""


class _Condition(msgspec.Struct):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class _Spec(msgspec.Struct, rename="camel"):
    node_name: str = ""


class _Status(msgspec.Struct):
    phase: str = ""
    conditions: list[_Condition] = []


class _Pod(msgspec.Struct):
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)


class _TrackedPod(NamedTuple):
    key: str
    node: str
    phase: str
    verdict: PodVerdict
    why: str

    @property
    def waits(self) -> bool:
        return not self.node and self.phase in ("", "Pending")


_UNKNOWN: Final = _TrackedPod("", "", "", PodVerdict.UNTRIED, "")
_SAID: Final = (PodVerdict.REFUSED, PodVerdict.FAILED)
"""The verdicts that are decisions; the API itself says that a pod is gated."""
_VERDICTS: Final = {
    "Unschedulable": PodVerdict.REFUSED,
    "SchedulerError": PodVerdict.FAILED,
    "SchedulingGated": PodVerdict.GATED,
}
"""By the reason of the condition PodScheduled."""
_decoder: Final = msgspec.json.Decoder(_Pod)


class PodTracker:
    """The pods of a store; `now` is the time of decisions, and `on_decision` is called with each of them."""

    def __init__(
        self, store: ObjectStore, now: Callable[[], float], on_decision: Callable[[PodDecision], None]
    ) -> None:
        self.decisions: deque[PodDecision] = deque(maxlen=MOST_DECISIONS)
        self.phases: Counter[str] = Counter()
        self.placed = 0
        """Pods that got a node since the start."""
        self.first_placed: float | None = None
        self._now = now
        self._on_decision = on_decision
        self._pods: dict[str, _TrackedPod] = {}
        for stored in store.items(POD):
            self._take(stored.uid, _tracked(stored))
        self.stop = store.listen(self._changed, POD)

    @property
    def undecided(self) -> int:
        """Pods without a node and without a reason for that yet."""
        return sum(each.waits and each.verdict is PodVerdict.UNTRIED for each in self._pods.values())

    @property
    def pods(self) -> int:
        return len(self._pods)

    def waiting(self) -> list[PodDecision]:
        """How each pod stands that has no node, by name."""
        return sorted(
            (PodDecision(each.key, each.verdict, why=each.why) for each in self._pods.values() if each.waits),
            key=lambda decision: decision.pod,
        )

    def refused(self) -> list[PodDecision]:
        """The pods that no node takes, by name."""
        return [each for each in self.waiting() if each.verdict is PodVerdict.REFUSED]

    def _changed(self, change: ObjectChange) -> None:
        stored = change.new
        if change.type == "DELETED":
            self.phases[self._pods.pop(stored.uid, _UNKNOWN).phase] -= 1
            return
        pod = _tracked(stored)
        before = self._take(stored.uid, pod)
        if pod.node and not before.node and change.type == "MODIFIED":
            self.placed += 1
            if self.first_placed is None:
                self.first_placed = self._now()
            self._decided(PodDecision(pod.key, PodVerdict.PLACED, pod.node))
        elif pod.waits and pod.verdict in _SAID and (pod.verdict, pod.why) != (before.verdict, before.why):
            self._decided(PodDecision(pod.key, pod.verdict, why=pod.why))

    def _take(self, uid: str, pod: _TrackedPod) -> _TrackedPod:
        before = self._pods.get(uid, _UNKNOWN)
        self._pods[uid] = pod
        self.phases[before.phase] -= before is not _UNKNOWN
        self.phases[pod.phase] += 1
        return before

    def _decided(self, decision: PodDecision) -> None:
        self.decisions.append(decision)
        self._on_decision(decision)


def _tracked(stored: Stored) -> _TrackedPod:
    decoded = _decoder.decode(stored.raw)
    verdict, why = PodVerdict.UNTRIED, ""
    for condition in decoded.status.conditions:
        if condition.type == "PodScheduled" and condition.status == "False":
            verdict, why = _VERDICTS.get(condition.reason, PodVerdict.UNTRIED), condition.message
    return _TrackedPod(f"{stored.namespace}/{stored.name}", decoded.spec.node_name, decoded.status.phase, verdict, why)
