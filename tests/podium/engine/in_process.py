"""An extender without a network: it answers with whatever a test gives it, and remembers what it was asked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from podium.framework.extender import ChosenVictims, Filtered, HostScores, Victims
from podium.kube import Node, Pod

Names = list[str]


@dataclass
class InProcess:
    """`filters` and `scores` get the names of nodes, `preempts` the victims by node; what is None is not offered."""

    name: str = "http://extender"
    ignorable: bool = False
    weight: int = 1
    filters: Callable[[Names], Filtered] | None = None
    scores: Callable[[Names], HostScores] | None = None
    binds: Callable[[Pod, str], Awaitable[None] | None] | None = None
    preempts: Callable[[Mapping[str, Victims]], Mapping[str, ChosenVictims]] | None = None
    cares_for: Callable[[Pod], bool] = lambda _pod: True
    asked: list[tuple[str, str, Names]] = field(default_factory=list)

    @property
    def is_filter(self) -> bool:
        return self.filters is not None

    @property
    def is_prioritizer(self) -> bool:
        return self.scores is not None

    @property
    def is_binder(self) -> bool:
        return self.binds is not None

    @property
    def supports_preemption(self) -> bool:
        return self.preempts is not None

    def is_interested(self, pod: Pod) -> bool:
        return self.cares_for(pod)

    def filter(self, pod: Pod, nodes: Sequence[Node]) -> Filtered:
        assert self.filters is not None
        return self.filters(self._noted("filter", pod, nodes))

    def prioritize(self, pod: Pod, nodes: Sequence[Node]) -> Callable[[], HostScores]:
        names = self._noted("prioritize", pod, nodes)

        def wait() -> HostScores:
            assert self.scores is not None
            self.asked.append(("wait", pod.name, names))
            return self.scores(names)

        return wait

    def bind(self, pod: Pod, node_name: str) -> Awaitable[None] | None:
        assert self.binds is not None
        self.asked.append(("bind", pod.name, [node_name]))
        return self.binds(pod, node_name)

    def process_preemption(self, pod: Pod, victims: Mapping[str, Victims]) -> Mapping[str, ChosenVictims]:
        assert self.preempts is not None
        self.asked.append(("preempt", pod.name, list(victims)))
        return self.preempts(victims)

    def _noted(self, verb: str, pod: Pod, nodes: Sequence[Node]) -> Names:
        names = [node.name for node in nodes]
        self.asked.append((verb, pod.name, names))
        return names


def keeping(*kept: str, **refused: str) -> Callable[[Names], Filtered]:
    """A filter that keeps these nodes where it is asked about them, and says why not of others."""
    return lambda names: Filtered([name for name in names if name in kept], refused)


def favouring(**scores: int) -> Callable[[Names], HostScores]:
    return lambda _names: list(scores.items())
