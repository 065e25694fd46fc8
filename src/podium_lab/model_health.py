"""Keeps account of how the model does, and takes the decisions from it when it does badly.

Every decision for which the model is asked is good or bad: bad where the answer was late, failed, or was not begun
because it would have been late. Of the last 1,000, from 200 on, no more than a share may be bad; beyond it the model is
demoted: it is asked as in shadow mode, and the fallback decides. It stays so until a policy is loaded again: promotion
is for people (`podium policy report`). A file that is gone or broken is not the model's fault and does not count.
"""

from __future__ import annotations

from collections import Counter, deque

import numpy as np

WINDOW, FEWEST = 1000, 200
MOST_TIMES = 10_000


class ModelHealth:
    """The last decisions, and what came of comparing the model with the fallback."""

    def __init__(self, most_bad: float) -> None:
        self._most_bad = most_bad
        self._window: deque[bool] = deque()
        self._bad = 0
        self.demoted = False
        self.demotions = 0
        self.comparisons: Counter[str] = Counter()
        """`same` where a best node of the model is a best node of the fallback, else `differs`."""
        self.correlations = 0.0
        """The sum of the rank correlations of all comparisons."""
        self._seconds: deque[float] = deque(maxlen=MOST_TIMES)

    def begin(self) -> None:
        """Another policy is loaded: it has a past of its own."""
        self._window.clear()
        self._bad = 0
        self.demoted = False

    def decided(self) -> None:
        """Count a decision as good, until `was_bad` says otherwise."""
        self._window.append(False)
        if len(self._window) > WINDOW:
            self._bad -= self._window.popleft()

    def was_bad(self) -> bool:
        """The last decision was a bad one; whether the model is demoted for it."""
        if self._window and not self._window[-1]:
            self._window[-1] = True
            self._bad += 1
        if self.demoted or len(self._window) < FEWEST or self._bad <= self._most_bad * len(self._window):
            return False
        self.demoted = True
        self.demotions += 1
        return True

    @property
    def bad_share(self) -> float:
        """The share of bad ones among the last decisions."""
        return self._bad / len(self._window) if self._window else 0.0

    def compared(self, same: bool, correlation: float) -> None:
        self.comparisons["same" if same else "differs"] += 1
        self.correlations += correlation

    def took(self, seconds: float) -> None:
        self._seconds.append(seconds)

    @property
    def last_seconds(self) -> float:
        """How long the last answer of the model took; 0 where there was none."""
        return self._seconds[-1] if self._seconds else 0.0

    def seconds(self, *quantiles: float) -> list[float]:
        """Quantiles of the time that the last answers of the model took; empty where there was none."""
        found: list[float] = np.quantile(list(self._seconds), quantiles).tolist() if self._seconds else []
        return found
