"""Extenders: programs beside the scheduler that have a say in its decisions.

An extender may leave out nodes that the filters found, add to their scores, change which pods preemption evicts, and
bind in the scheduler's stead. The engine knows what it asks and what the answers mean; how they travel is the
extender's business (a driver brings HTTP clients, a test plain objects). A call that fails raises `ExtenderError`: that
skips an extender which is `ignorable` and fails the pod's decision otherwise.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from podium.kube import Node, Pod

EXTENDER = "Extender"
"""The name under which extenders reject pods."""
POINTS_PER_SCORE = 10
"""Extenders score from 0 to 10, plugins from 0 to 100."""


class ExtenderError(Exception):
    """An extender did not answer, or answered nonsense; the text is what the pod's owner gets to read."""


class Filtered(NamedTuple):
    """What an extender's filter leaves of the nodes it was asked about, in its own order."""

    names: Sequence[str]
    refused: Mapping[str, str] = {}
    """Node → why not; preemption may help."""
    unresolvable: Mapping[str, str] = {}
    """Node → why not, and preemption would not help; goes before `refused`."""
    bare: bool = False
    """The extender gave back whole nodes: as in kube-scheduler, score plugins then see them without any pods."""


class Victims(NamedTuple):
    """The pods to be evicted from one node, and how many disruption budgets that breaks."""

    pods: Sequence[Pod]
    violations: int


class ChosenVictims(NamedTuple):
    """An extender's word on one node: the uids of the pods to evict there, and the budgets broken."""

    uids: Sequence[str]
    violations: int = 0


HostScores = Iterable[tuple[str, int]]
"""Node names with scores from 0 to 10 (more is not prevented); a node named twice gets both."""


class Extender(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def ignorable(self) -> bool:
        """Whether scheduling goes on without it when it fails."""

    @property
    def weight(self) -> int:
        """What its scores are multiplied with."""

    @property
    def is_filter(self) -> bool: ...

    @property
    def is_prioritizer(self) -> bool: ...

    @property
    def is_binder(self) -> bool: ...

    @property
    def supports_preemption(self) -> bool: ...

    def is_interested(self, pod: Pod) -> bool:
        """Whether it wants to be asked about this pod at all."""

    def filter(self, pod: Pod, nodes: Sequence[Node]) -> Filtered: ...

    def prioritize(self, pod: Pod, nodes: Sequence[Node]) -> Callable[[], HostScores]:
        """Ask for scores and return at once; what comes back waits for them, so that several can be asked together."""

    def bind(self, pod: Pod, node_name: str) -> Awaitable[None] | None: ...

    def process_preemption(self, pod: Pod, victims: Mapping[str, Victims]) -> Mapping[str, ChosenVictims]:
        """Of the nodes that could be freed those that it agrees to, with the victims it prefers."""


def interested(extenders: Iterable[Extender], pod: Pod) -> list[Extender]:
    return [extender for extender in extenders if extender.is_interested(pod)]
