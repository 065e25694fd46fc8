"""Offers a pod the next best node of the pod before it (OpportunisticBatching).

kube-scheduler keeps the scores of the last pod for half a second. If the next pod has the same signature, and the node
that the last one took refuses it, it is offered the node that comes next in the heap of these scores, and takes it if
filters let it. If that node has room for one more, it is scored again and joins the others in a new heap (before
Kubernetes 1.37, the batch ends). Which of several equal nodes comes next differs from what a fresh heap gives.

A signature is what `podium.engine.pod_signatures` says for all plugins. Default spread constraints, extenders, and
plugins that do not sign keep a profile from ever batching, so that with the default profile nothing but the counters
moves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from typing import Final

import numpy as np

from podium.cluster import Nodes, Rows
from podium.config.points import Point
from podium.engine.choice import ScoreHeap
from podium.engine.pod_signatures import signature_of
from podium.framework.clock import Clock
from podium.framework.cycle import Cycle
from podium.framework.normalize import Scores
from podium.framework.profile import ProfileRuntime
from podium.framework.status import PluginError

LONGEST = 0.5
"""Seconds for which scores are good."""

Scored = Callable[[], tuple[Rows, Scores]]
"""The feasible rows in visiting order, and their total scores."""


# What became of a hint, and why scores are of no use any more, in kube-scheduler's words for metrics.
NO_HINT: Final = "no_hint"
HINT_USED: Final = "hint_used"
HINT_NOT_USED: Final = "hint_not_used"
POD_SKIPPED: Final = "pod_skipped"
POD_INCOMPATIBLE: Final = "pod_incompatible"
POD_NOT_BATCHABLE: Final = "pod_not_batchable"
EXPIRED: Final = "expired"
NODE_MISSING: Final = "node_missing"
NODE_NOT_FULL: Final = "node_not_full"
POD_NOMINATED: Final = "pod_nominated"
FILTER_ERROR: Final = "filter_error"
RESCORE_ERROR: Final = "rescore_error"
EMPTY_LIST: Final = "empty_list"


class Batch:
    """The scores of the last pod of one profile, for pods like it."""

    def __init__(self, runtime: ProfileRuntime, clock: Clock, *, extenders: bool) -> None:
        self._runtime = runtime
        self._clock = clock
        points = (Point.PRE_FILTER, Point.FILTER, Point.PRE_SCORE, Point.SCORE)
        signatures = [
            signature_of(each) for each in dict.fromkeys(each for point in points for each in runtime.at(point))
        ]
        self._signatures = [each for each in signatures if each is not None]
        self.signs = not extenders and len(self._signatures) == len(signatures)
        """Whether it can ever be of use."""
        self._signature: Hashable = None
        self._heap: ScoreHeap | None = None
        self._since = 0.0
        self._last_cycle = -1
        self._last_node = ""
        self.attempts: Counter[str] = Counter()
        self.flushes: Counter[str] = Counter()
        self.rescores = 0
        """How often the last node was scored again."""

    def hint(self, cycle: Cycle, number: int) -> str:
        """The node to try first in the scheduling cycle of this number; empty: none in particular."""
        return self._runtime.timer.time_node_hint(self._hint, cycle, number)

    def _hint(self, cycle: Cycle, number: int) -> str:
        hint = self._next_best(cycle, number) if self._heap else ""
        if not hint:
            self.attempts[NO_HINT] += 1
        return hint

    def _next_best(self, cycle: Cycle, number: int) -> str:
        assert self._heap is not None
        row = cycle.cluster.row_of.get(self._last_node)
        rescores = self._runtime.handle.rules.batches_score_the_last_node_again
        if number != self._last_cycle + 1:
            flush = POD_SKIPPED
        elif rescores and cycle.pod.status.nominated_node_name:
            flush = POD_NOMINATED
        elif self._signature != self._sign(cycle):
            flush = POD_INCOMPATIBLE
        elif self._clock.now() > self._since + LONGEST:
            flush = EXPIRED
        elif row is None or cycle.cluster.nodes[row] is None:
            flush = NODE_MISSING
        else:
            flush = self._look_again(cycle, row, rescores=rescores)
            if not flush:
                return cycle.cluster.names[self._heap.pop()]
        self.flushes[flush] += 1
        return ""

    def _look_again(self, cycle: Cycle, row: int, *, rescores: bool) -> str:
        """Look at the node that the last pod took, whoever is nominated to it; why there can be no hint, or nothing."""
        try:
            if self._runtime.run_pre_filter_untimed(cycle).status is not None:
                return NODE_NOT_FULL
            if self._runtime.run_filters_on(cycle, row) is not None:
                return ""
            return self._rescore(cycle, row) if rescores else NODE_NOT_FULL
        except PluginError:
            return FILTER_ERROR if rescores else NODE_NOT_FULL
        finally:
            cycle.forget_notes()

    def _rescore(self, cycle: Cycle, row: int) -> str:
        """Have a node compete again. The others are scored as well: they get what they had, unless they changed."""
        assert self._heap is not None
        self.rescores += 1
        rows = np.array([*self._heap.rows, row], dtype=np.intp)
        nodes = Nodes(cycle.cluster, rows)
        if any(cycle.cluster.nodes[each] is None for each in rows.tolist()):
            return NODE_MISSING
        try:
            self._runtime.run_pre_score(cycle, nodes)
            self._heap = ScoreHeap(rows, self._runtime.run_scores(cycle, nodes).total, top_is_taken=False)
        except PluginError:
            return RESCORE_ERROR
        return ""

    def store(self, cycle: Cycle, number: int, row: int, feasible: int, scored: Scored) -> None:
        """Note the node that was chosen, and the scores of all that were feasible, where there are several."""
        self._runtime.timer.time_store(self._store, cycle, number, row, feasible, scored)

    def _store(self, cycle: Cycle, number: int, row: int, feasible: int, scored: Scored) -> None:
        if not self.signs:
            self.flushes[POD_NOT_BATCHABLE if feasible > 1 else EMPTY_LIST] += 1
            return
        hint, chosen = cycle.hinted_node, cycle.cluster.names[row]
        self._last_cycle, self._last_node = number, chosen
        if hint == chosen:
            self.attempts[HINT_USED] += 1
            return
        if hint:
            self.attempts[HINT_NOT_USED] += 1
        self._heap = None
        if feasible <= 1:
            self.flushes[EMPTY_LIST] += 1
        elif (signature := self._sign(cycle)) is None:
            self.flushes[POD_NOT_BATCHABLE] += 1
        else:
            self._signature, self._heap, self._since = signature, ScoreHeap(*scored()), self._clock.now()

    def _sign(self, cycle: Cycle) -> Hashable:
        """What all plugins say of a pod, kept while it cannot change; None where one cannot say."""
        facts = cycle.facts
        if facts.claims or facts.scalar:  # the notes are shared by pods with other claims; and classes come and go
            return self._signed(cycle)
        if self not in facts.notes:
            facts.notes[self] = self._signed(cycle)
        signature: Hashable = facts.notes[self]
        return signature

    def _signed(self, cycle: Cycle) -> Hashable:
        parts = [sign(cycle.pod) for sign in self._signatures]
        return None if None in parts else tuple(parts)
