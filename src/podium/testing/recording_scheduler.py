"""Schedules as the live scheduler does, and records what each decision was made of.

Where a plugin declares what its answers depend on, they are cached in production. Each decision is then made twice,
afresh and from the cache, and both must agree: a declaration that says too little shows itself in the test.
"""

from __future__ import annotations

from collections.abc import Sequence

from podium.engine.batching import Batch
from podium.engine.decide import NodeSearch, decide
from podium.engine.explain import NodeAnswer, answers_of
from podium.engine.scheduler import Scheduler
from podium.framework.cycle import Cycle
from podium.framework.depends_on import NodePart
from podium.framework.plugin import Plugin
from podium.framework.profile import ProfileRuntime
from podium.framework.status import PluginError


class DependsOnError(AssertionError):
    """A cached answer differs from a fresh one: a plugin declares too little."""


class RecordingScheduler(Scheduler):
    """A scheduler that keeps the answers about each node, by pod."""

    def record(self, tried: Sequence[type[Plugin]]) -> None:
        """To be called before the first pod; `tried` are the plugins of the test."""
        self.answers: dict[str, list[NodeAnswer]] = {}
        self.problem: Exception | None = None
        """What the last decision failed with, where the fault is a plugin's."""
        self._cached = [plugin.name for plugin in tried if _is_cached(plugin)]

    def search(self, runtime: ProfileRuntime, cycle: Cycle, batch: Batch | None = None) -> int | NodeSearch:
        """Each pod is decided by itself, whatever the scores of the one before."""
        start = self.sampling.next_start
        cycle.forget_notes()
        try:
            decision = decide(runtime, cycle, self.sampling)
        except PluginError as error:
            self.problem = error
            raise
        self.answers[cycle.pod.key] = answers_of(self.cluster, decision)
        if self._cached:
            self._compare(runtime, cycle, decision.row, start)
        return decision.search if decision.row is None else decision.row

    def _compare(self, runtime: ProfileRuntime, cycle: Cycle, row: int | None, start: int) -> None:
        after, self.sampling.next_start = self.sampling.next_start, start
        known = self.answer_cache.decide(runtime, Cycle(cycle.pod, self.cluster), self.sampling)
        self.sampling.next_start = after
        if known is None:
            return
        cached = known if isinstance(known, int) else None
        if cached != row:
            names = self.cluster.names
            fresh, cached_one = ("nowhere" if each is None else f"to {names[each]}" for each in (row, cached))
            self.problem = DependsOnError(
                f"{cycle.pod.key} goes {fresh}, but {cached_one} by cached answers: depends_on or answer_key of "
                f"{' or '.join(self._cached)} declares too little"
            )


def _is_cached(plugin: type[Plugin]) -> bool:
    return plugin.depends_on.node < NodePart.ANYTHING or hasattr(plugin, "answer_key")
