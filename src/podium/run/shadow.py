"""Compares Podium's decisions with those of the scheduler in charge, without writing anything.

Every pending pod is decided for as usual, but the decision stays in memory: the pod counts as placed there until the
watch shows what the scheduler in charge did. The two are compared then, with one of six outcomes (`MEANINGS`).

Each difference is one log line, and each outcome is counted. A pod that was bound before Podium had looked at it says
nothing and is left out.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from logging import DEBUG, INFO
from typing import NamedTuple

import msgspec

from podium.cluster import Cluster
from podium.engine.decide import Decision, decide
from podium.engine.explain import Unwritten
from podium.engine.scheduler import Scheduler
from podium.framework import Nomination
from podium.framework.cycle import Cycle
from podium.framework.status import PluginError
from podium.kube import Condition, PersistentVolume, PersistentVolumeClaim, Pod, ResourceClaim
from podium.kube.bounds import MAX_DEPTH, UNDECODABLE, nested_too_deeply
from podium.kube.devices import Allocation
from podium.kube.pod import ExtendedResourceRequestMapping
from podium.placement.devices.uses import device_uses
from podium.serving.log import LOG

MOST_WAITING = 1000
"""Decisions that wait to be compared; each holds one score per node, so there is a bound, and the oldest goes first."""

MOST_RECENT = 1000
"""Differences that are remembered."""

MEANINGS = {
    "same": "the same node, or none for both",
    "tie": "another node that Podium rates equal",
    "differs": "another node that Podium rates lower",
    "refused": "a node that Podium's filters refuse",
    "only-podium": "Podium has a node, the scheduler in charge none",
    "only-other": "the scheduler in charge has a node, Podium none",
}


class Finding(msgspec.Struct, omit_defaults=True, rename="camel"):
    """One comparison."""

    outcome: str
    pod: str
    podium: str = ""
    """The node Podium chose; empty when it found none."""
    other: str = ""
    """The node the scheduler in charge chose; empty when it found none."""
    points: int = 0
    """How many points Podium rates its own node higher."""
    reason: str = ""
    """Why Podium would not place the pod there, or at all."""

    def __str__(self) -> str:
        here, there = self.podium or "no node", self.other or "no node"
        match self.outcome:
            case "same":
                return f"shadow: pod {self.pod}: both chose {here}"
            case "tie":
                return f"shadow: pod {self.pod}: Podium would choose {here}, which it rates equal to {there}"
            case "differs":
                return f"shadow: pod {self.pod}: Podium would choose {here}, by {self.points} points before {there}"
        why = f" ({self.reason})" if self.reason else ""
        return f"shadow: pod {self.pod}: Podium would choose {here}, the scheduler in charge chose {there}{why}"


def log_finding(finding: Finding) -> None:
    """One line for each comparison: agreement only for those who want every detail."""
    LOG.log(DEBUG if finding.outcome == "same" else INFO, "%s", finding, extra={"shadow": finding})


def read_findings(lines: Iterable[str]) -> Iterator[Finding]:
    """The findings in a log that was written with --log-format json; other lines are passed over."""
    for line in lines:
        if nested_too_deeply(line.encode(), MAX_DEPTH):
            continue
        try:
            finding = _decode_line(line).shadow
        except UNDECODABLE:
            continue
        if finding is not None and finding.outcome in MEANINGS:
            yield finding


class _Line(msgspec.Struct):
    shadow: Finding | None = None


_decode_line = msgspec.json.Decoder(_Line).decode


class ShadowWriter(Unwritten):
    """Writes nothing, and lets go of the volumes that would be written.

    What is assumed of a volume stands until the API server's next version of it, which may never come.
    """

    def __init__(self, shadow: Shadow) -> None:
        self._shadow = shadow

    def write_volumes(self, volumes: Iterable[PersistentVolume], claims: Iterable[PersistentVolumeClaim]) -> None:
        objects = self._shadow.cluster.objects
        for volume in volumes:
            objects.volumes.restore(volume.key)
        for claim in claims:
            objects.claims.restore(claim.key)

    def reserve_claim(self, claim: ResourceClaim, allocation: Allocation | None, pod: Pod) -> None:
        device_uses(self._shadow.cluster.objects).end(claim)

    def create_claim(
        self,
        claim: ResourceClaim,
        allocation: Allocation,
        pod: Pod,
        mappings: Sequence[ExtendedResourceRequestMapping],
    ) -> None:
        device_uses(self._shadow.cluster.objects).end(claim)


class UncomparedDecision(NamedTuple):
    """A decision of Podium's that waits for the one of the scheduler in charge."""

    pod: Pod
    decision: Decision
    node_name: str
    """The node Podium chose; empty when it found none."""


class Shadow:
    """The engine's listener where its writer writes nothing: it remembers decisions, and compares."""

    def __init__(self, found: Callable[[Finding], None]) -> None:
        self._found = found
        self._waiting: dict[str, UncomparedDecision] = {}
        self._engine: Scheduler
        self.counts: Counter[str] = Counter()
        self.recent: deque[Finding] = deque(maxlen=MOST_RECENT)
        """The newest comparisons that found a difference, the oldest first."""

    def attach(self, engine: Scheduler) -> None:
        self._engine = engine

    @property
    def cluster(self) -> Cluster:
        return self._engine.cluster

    def preview(self, pod: Pod) -> None:
        """Decide for the pod on the state as it is, and remember it until the scheduler in charge has decided.

        The search starts where the engine's next one will, and leaves that start alone: the engine's own decision
        for the pod follows.
        """
        runtime = self._engine.profiles.get(pod.spec.scheduler_name)
        if runtime is None:
            return
        try:
            decision = decide(runtime, Cycle(pod, self._engine.cluster), replace(self._engine.sampling))
        except PluginError:
            return
        self._waiting.pop(pod.uid, None)
        node_name = "" if decision.row is None else self._engine.cluster.names[decision.row]
        self._waiting[pod.uid] = UncomparedDecision(pod, decision, node_name)
        LOG.debug("shadow: pod %s: decided", pod.key)
        if len(self._waiting) > MOST_WAITING:
            del self._waiting[next(iter(self._waiting))]

    # What the scheduler in charge did

    def observe(self, pod: Pod) -> None:
        """A pod as the API server now has it."""
        waiting = self._waiting.get(pod.uid)
        if waiting is None:
            return
        refusal = _refusal(pod)
        if pod.node_name:
            self._compare(waiting, pod.node_name)
        elif refusal is not None and refusal != _refusal(waiting.pod):  # not the one that stood there before
            self._compare(waiting, "")
            self._let_go(pod)
        else:
            return
        del self._waiting[pod.uid]

    def _let_go(self, pod: Pod) -> None:
        """The pod is not where Podium would have it, and will not be: it must not take room there."""
        placed = self._engine.cluster.pods.get(pod.uid)
        if placed is not None and placed.assumed:
            self._engine.cluster.forget(pod.uid)

    def gone(self, pod: Pod) -> None:
        self._waiting.pop(pod.uid, None)

    def _compare(self, waiting: UncomparedDecision, other: str) -> None:
        finding = self._finding(waiting, other)
        self.counts[finding.outcome] += 1
        if finding.outcome != "same":
            self.recent.append(finding)
        self._found(finding)

    def _finding(self, waiting: UncomparedDecision, other: str) -> Finding:
        decision, key, podium = waiting.decision, waiting.pod.key, waiting.node_name
        if podium == other:
            return Finding("same", key, podium, other)
        if not other:
            return Finding("only-podium", key, podium)
        if decision.row is None:
            return Finding("only-other", key, "", other, reason=decision.search.diagnosis().message)
        row = self._engine.cluster.row_of.get(other, -1)
        among = (decision.search.feasible == row).nonzero()[0]
        if not len(among):
            reason = decision.search.statuses().get(row).message if 0 <= row < decision.search.rows else ""
            return Finding("refused", key, podium, other, reason=reason or "not a node Podium knew")
        if decision.scores is None:
            return Finding("tie", key, podium, other)
        points = int(decision.scores.total.max() - decision.scores.total[among[0]])
        return Finding("differs" if points else "tie", key, podium, other, points)

    # The engine's listener

    def scheduled(self, pod: Pod, node_name: str) -> None:
        """The pod stays assumed where Podium wants it, until its real place is heard of; if it has none, not at all."""
        if _refusal(pod) is not None:
            self._let_go(pod)

    def failed(self, pod: Pod, reason: str, message: str, nomination: Nomination | None) -> None:
        """What the scheduler in charge makes of the pod will come."""


def _refusal(pod: Pod) -> Condition | None:
    """The condition by which the scheduler in charge says that it has no node for the pod."""
    condition = next((each for each in pod.status.conditions if each.type == "PodScheduled"), None)
    refused = condition is not None and condition.status == "False" and condition.reason == "Unschedulable"
    return condition if refused else None
