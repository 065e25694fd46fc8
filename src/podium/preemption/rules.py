"""Defines by which rule a preemption plugin evicts: who may go, and who may stay after all.

The search asks the rule about one node at a time. All pods that may be evicted are taken off first; then each is put
back, the most important first, if the preemptor still fits beside it and the rule lets it stay.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from podium.cluster import PlacedPod
from podium.framework.cycle import Cycle
from podium.framework.status import Status
from podium.kube import Pod, parse_time

if TYPE_CHECKING:
    from podium.framework.profile import ProfileRuntime
    from podium.preemption.dry_runs import Candidate
    from podium.preemption.search import Budgets


class Ruling(Protocol):
    """What a rule says about one node, in a dry run."""

    evictable: Sequence[PlacedPod]
    """The pods that may be evicted."""

    def ranked(self, pods: Sequence[PlacedPod], /) -> list[PlacedPod]:
        """The pods, those that should stay rather than others first."""

    def objection(self) -> Status | None:
        """Why the preemptor may not come although all of these are gone."""

    def may_stay(self, placed: PlacedPod, /) -> bool:
        """Whether the preemptor may still come if this one is put back, after all that were put back already."""

    def put_back(self, placed: PlacedPod, /) -> None:
        """Count this one as staying."""


EvictionRule = Callable[[Collection[PlacedPod], Pod], Ruling]
"""(the pods of a node, the preemptor) → the ruling; raises PluginError where there can be none."""


@runtime_checkable
class NodeRule(Protocol):
    """A rule that finds the victims on a node by itself."""

    def victims_on(
        self, runtime: ProfileRuntime, cycle: Cycle, row: int, budgets: Budgets, /
    ) -> Candidate | Status: ...


class ByPriority:
    """The usual ruling: pods of lower priority may be evicted, and any of them may stay."""

    __slots__ = ("evictable",)

    def __init__(self, pods: Collection[PlacedPod], preemptor: Pod) -> None:
        priority = preemptor.priority
        self.evictable: Sequence[PlacedPod] = [placed for placed in pods if placed.pod.priority < priority]

    def ranked(self, pods: Sequence[PlacedPod]) -> list[PlacedPod]:
        return by_importance(pods)

    def objection(self) -> Status | None:
        return None

    def may_stay(self, _placed: PlacedPod) -> bool:
        return True

    def put_back(self, _placed: PlacedPod) -> None:
        return None


class ByPriorityInOrder(ByPriority):
    """The same where pods that have not started keep their order, as kube-scheduler has it from 1.37 on."""

    __slots__ = ()

    def ranked(self, pods: Sequence[PlacedPod]) -> list[PlacedPod]:
        return by_importance(pods, in_order=True)


def by_importance(pods: Sequence[PlacedPod], *, in_order: bool = False) -> list[PlacedPod]:
    """Higher priority first, then the one that started earlier; a pod that has not started counts as starting now.

    Pods of one priority that have not started come out in reverse order, because kube-scheduler compares each of them
    with a later "now"; `in_order`: as they were given.
    """
    started = [placed for placed in pods if placed.pod.status.start_time is not None]
    waiting = [placed for placed in pods if placed.pod.status.start_time is None]
    if not in_order:
        waiting.reverse()
    return sorted(started + waiting, key=lambda placed: (-placed.pod.priority, start_time(placed.pod)))


def start_time(pod: Pod) -> float:
    return float("inf") if pod.status.start_time is None else parse_time(pod.status.start_time)
