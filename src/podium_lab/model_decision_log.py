"""Writes one JSON line per decision: who decided, and on trial how far model and fallback agree.

    {"pod": "default/a", "source": "model", "node": "n1"}
    {"pod": "default/a", "nodes": 12, "fallback": ["n3"], "model": ["n7"], "tau": 0.4, "seconds": 0.0004}

`fallback` and `model` name the first nodes with the highest score, at most three.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec
import numpy as np

from podium.framework import Scores
from podium.kube import Pod
from podium.kube.documents import DocumentError, read_json

MOST_PAIRS = 300
"""Nodes that the rank correlation is computed over."""


class ScoreComparison(msgspec.Struct, frozen=True):
    """Both scores of the nodes that fit, in short."""

    pod: str
    nodes: int
    fallback: list[str]
    model: list[str]
    tau: float
    seconds: float
    """That the model took."""

    @property
    def same(self) -> bool:
        """Whether a best node of the model is a best node of the fallback."""
        return not set(self.model).isdisjoint(self.fallback)


def compare(pod: Pod, names: list[str], fallback: Scores, model: Scores, seconds: float) -> ScoreComparison:
    """How far two scores of the same nodes agree."""
    best = _best(names, fallback), _best(names, model)
    return ScoreComparison(pod.key, len(names), *best, kendall(fallback, model), seconds)


class DecisionLog:
    """The file; what cannot be written is dropped, for no decision may wait for a disk."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)  # open as long as the process runs

    def decided(self, pod: Pod, node: str, reason: str) -> None:
        self._write({"pod": pod.key, "source": reason or "model", "node": node})

    def compared(self, comparison: ScoreComparison) -> None:
        self._write(comparison)

    def _write(self, line: dict[str, Any] | ScoreComparison) -> None:
        try:
            os.write(self._file, msgspec.json.encode(line) + b"\n")
        except OSError:
            return


class LogSummary(NamedTuple):
    """What a log says: who decided, and how far model and fallback agree."""

    decisions: dict[str, int]
    """By source: model, shadow, or why the fallback decided."""
    compared: int
    agreement: float
    """The share of comparisons in which a best node of the model is a best node of the fallback."""
    tau: float
    p50: float
    p99: float
    """Seconds that the model took."""

    @property
    def is_empty(self) -> bool:
        """Whether no line was of ours."""
        return not self.decisions and not self.compared

    @property
    def fallback_rate(self) -> float:
        """The share of decisions that the model was to make and the fallback made."""
        ours = {"model", "shadow", "canary", "off", "single", "demoted"}
        total = sum(self.decisions.values())
        return sum(number for source, number in self.decisions.items() if source not in ours) / total if total else 0.0

    def to_data(self) -> dict[str, Any]:
        return {
            "decisions": self.decisions,
            "fallbackRate": self.fallback_rate,
            "compared": self.compared,
            "sameBestNode": self.agreement,
            "rankCorrelation": self.tau,
            "p50Milliseconds": 1000 * self.p50,
            "p99Milliseconds": 1000 * self.p99,
        }


class _LogLine(msgspec.Struct):
    source: str | None = None
    model: list[str] | None = None
    fallback: list[str] | None = None
    tau: float = 0.0
    seconds: float = 0.0


def sum_up(lines: Iterable[bytes]) -> LogSummary:
    """The summary of a log; lines that are none of ours do not count."""
    decisions: Counter[str] = Counter()
    agreed: list[bool] = []
    taus, seconds = [], []
    for line in lines:
        try:
            found = msgspec.convert(read_json(line), _LogLine)
        except (DocumentError, msgspec.ValidationError):
            continue
        if found.source is not None:
            decisions[found.source] += 1
        elif found.model is not None and found.fallback is not None:
            agreed.append(not set(found.model).isdisjoint(found.fallback))
            taus.append(found.tau)
            seconds.append(found.seconds)
    p50, p99 = np.quantile(seconds, [0.5, 0.99]).tolist() if seconds else (0.0, 0.0)
    mean = float(np.mean(taus)) if taus else 0.0
    return LogSummary(dict(decisions), len(agreed), sum(agreed) / max(len(agreed), 1), mean, p50, p99)


def _best(names: list[str], scores: Scores) -> list[str]:
    return [names[i] for i in np.flatnonzero(scores == scores.max(initial=0))[:3].tolist()]


def kendall(first: Scores, second: Scores) -> float:
    """Kendall's rank correlation (tau-b) of two scores; 1 where either has all nodes equal.

    >>> round(kendall(np.array([1, 2, 3]), np.array([1, 3, 2])), 3)
    0.333
    """
    a, b = first[:MOST_PAIRS], second[:MOST_PAIRS]
    signs = np.sign(np.subtract.outer(a, a)), np.sign(np.subtract.outer(b, b))
    both = float(np.sqrt(np.count_nonzero(signs[0])) * np.sqrt(np.count_nonzero(signs[1])))
    return float((signs[0] * signs[1]).sum()) / both if both else 1.0
