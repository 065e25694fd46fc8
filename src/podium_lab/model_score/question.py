"""Holds one question to a model and its answer, the same for every protocol."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from podium.kube import Node, Pod
from podium_lab.models.features import Features
from podium_lab.models.node_arrays import Situation


class ModelError(Exception):
    """Why a model gave no usable answer; `reason` is one of those that fallbacks are counted by."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class ModelQuestion(NamedTuple):
    """Which of the feasible nodes a pod should go to."""

    decision: str
    """Names the decision; a question that is repeated keeps it."""
    pod: Pod
    names: Sequence[str]
    """The feasible nodes."""
    nodes: Callable[[], Sequence[Node]]
    """The same as objects."""
    situation: Situation
    features: Callable[[], Features]
    """What `situation` comes to; computed when it's asked for."""


class ModelNumbers(NamedTuple):
    """What a model says of each node, in the question's order."""

    numbers: NDArray[np.float64]
    final: bool = False
    """Whether they are scores from 0 to 100 already."""


class ScoringModel(Protocol):
    """A model that can be asked, in this process or behind a server."""

    name: str
    """How messages call it."""

    def ask(self, question: ModelQuestion, deadline: float) -> ModelNumbers:
        """The answer, before `deadline` of the monotonic clock has passed; raises ModelError."""

    def prepare(self) -> None:
        """Begin to connect and check in the background, where there is something to do; returns at once."""

    def close(self) -> None:
        """Let go of connections."""


def checked_numbers(numbers: NDArray[np.float64], nodes: int, source: str) -> NDArray[np.float64]:
    """One finite number for each node; raises ModelError."""
    if numbers.shape != (nodes,):
        raise ModelError("schema", f"{source} scored {numbers.size} nodes, and was asked about {nodes}")
    if not np.isfinite(numbers).all():
        raise ModelError("nan", f"{source} gave a score that is not a finite number")
    return numbers
