"""Decides whether the model may be asked: not while it is broken, late, or far from what it was trained on.

A running computation cannot be interrupted, so it is not begun when it is expected to take longer than the deadline:
the moving average per node times the nodes. Five answers in a row that were late or failed open the breaker, and so
does a p99 beyond the deadline: of the last 200 answers, from 100 on, more than one in a hundred was late. After 30 s
the model is tried again. Time comes from the scheduler's clock: in a simulation it stands still while a score is
computed, so that nothing is ever late there.
"""

from __future__ import annotations

from collections import Counter, deque

IN_A_ROW = 5
RECENT, FEWEST_RECENT, MOST_LATE = 200, 100, 0.01
"""Answers that p99 is judged by, from how many on, and the share of them that may be late."""
PAUSE = 30.0
SMOOTHING = 0.2
FORGETTING = 0.9


class ModelGuard:
    """The health of the model; `generation` moves whenever the answer to `reason` may."""

    def __init__(self, deadline: float) -> None:
        self._deadline = deadline
        self._per_node = 0.0
        self._bad_in_a_row = 0
        self._recent: deque[bool] = deque(maxlen=RECENT)
        """Whether each of the last answers was late."""
        self._closed_until = 0.0
        self._closed_for: str | None = None
        self.lasting: str | None = None
        """What is wrong until something else changes: the file, the pods, the cluster."""
        self.fallbacks: Counter[str] = Counter()
        """Decisions of the fallback, by reason; those of the model, under ""."""
        self.overruns = 0
        self.generation = 0

    def decisions(self) -> dict[tuple[str, ...], float]:
        """How many decisions there were, by who made them: the model, or the fallback and why."""
        return {(source or "model",): number for source, number in list(self.fallbacks.items())}

    def reason(self, now: float) -> str | None:
        """Why the model may not be asked now."""
        if self.lasting is not None:
            return self.lasting
        if self._closed_for is not None:
            if now < self._closed_until:
                return self._closed_for
            self._close(None, now)
            self._per_node = 0.0  # the try measures it
        return None

    def set_lasting(self, reason: str | None) -> None:
        if reason != self.lasting:
            self.lasting = reason
            self.generation += 1

    def too_slow(self, nodes: int) -> bool:
        """Whether scoring so many nodes is expected to miss the deadline; what is expected shrinks each time, so that a
        slow moment is not held against the model for ever."""
        if self._per_node * nodes <= self._deadline:
            return False
        self._per_node *= FORGETTING
        self.generation += 1  # what was cached beside it is of another source
        return True

    def took(self, nodes: int, seconds: float, now: float) -> None:
        """Learn from an answer about so many nodes."""
        each = seconds / max(nodes, 1)
        self._per_node = each if not self._per_node else (1 - SMOOTHING) * self._per_node + SMOOTHING * each
        self._recent.append(seconds > self._deadline)
        if seconds > self._deadline:
            self.overruns += 1
            self._bad(now)
        else:
            self._bad_in_a_row = 0

    def late(self, now: float) -> None:
        """No answer came within the deadline."""
        self._recent.append(True)
        self.overruns += 1
        self.failed(now)

    def failed(self, now: float) -> None:
        """The model raised, or gave something that is no number."""
        self.generation += 1  # what was cached beside it is of another source
        self._bad(now)

    def _bad(self, now: float) -> None:
        self._bad_in_a_row += 1
        recent = self._recent
        slow = len(recent) >= FEWEST_RECENT and sum(recent) > MOST_LATE * len(recent)
        if self._bad_in_a_row >= IN_A_ROW or slow:
            self._bad_in_a_row = 0
            recent.clear()
            self._close("breaker_open", now)

    def _close(self, reason: str | None, now: float) -> None:
        self._closed_for, self._closed_until = reason, now + PAUSE
        self.generation += 1
