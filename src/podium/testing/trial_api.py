"""Carries out what the scheduler of a trial writes, as an API server would, and remembers it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from podium.engine.intake import on_node
from podium.framework.clock import Clock
from podium.framework.diagnosis import Nomination
from podium.framework.handle import Effect, Preemptor
from podium.kube import Pod
from podium.testing.memory_writer import MemoryWriter


class TrialApi(MemoryWriter):
    """The writer and listener of the engine. What it writes comes back as a change, after the cycle."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.nodes: dict[str, str] = {}
        """By pod: the node that it is bound to."""
        self.gave_way: dict[str, list[str]] = {}
        """By pod: those that gave way to it."""
        self.failures: dict[str, tuple[str, str, str | None]] = {}
        """By pod: the reason, the message, and the node that it is nominated to."""

    def object_changes(self, change: Callable[[], None]) -> None:
        change()  # a plugin that is answered at once looks for its claim next

    def bind(self, pod: Pod, node_name: str) -> Effect:
        return None  # a plugin's own Bind may not come here; `scheduled` hears of both

    def evict(
        self, victims: Sequence[Pod], preemptor: Preemptor, node_name: str, done: Callable[[str | None], None]
    ) -> None:
        self.gave_way.setdefault(preemptor.key, []).extend(victim.key for victim in victims)
        for victim in victims:
            self.nodes.pop(victim.key, None)
        super().evict(victims, preemptor, node_name, done)

    def taken_back(self, victim: Pod, preemptor: Preemptor, node_name: str) -> None:
        self.gave_way.setdefault(preemptor.key, []).append(victim.key)

    def scheduled(self, pod: Pod, node_name: str) -> None:
        self.failures.pop(pod.key, None)
        self.nodes[pod.key] = node_name
        annotations = {**pod.metadata.annotations, **self.annotated.get(pod.key, {})}
        shown = replace(pod, metadata=replace(pod.metadata, annotations=annotations))
        self.change(lambda: self._show(on_node(shown, node_name)))

    def _show(self, pod: Pod) -> None:
        assert self.intake is not None, "the engine is made before it decides"
        self.intake.set(pod)

    def failed(self, pod: Pod, reason: str, message: str, nomination: Nomination | None) -> None:
        self.failures[pod.key] = (reason, message, nomination.node_name or None if nomination else None)
