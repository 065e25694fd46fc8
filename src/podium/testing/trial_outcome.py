"""Says what became of one pod in a trial: its node, the nodes that were filtered, the scores of the others."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from podium.engine.explain import NodeAnswer


class TrialState(enum.StrEnum):
    """How far a pod has come."""

    BOUND = "bound"
    WAITING = "waiting"
    """It has a node, and a plugin holds it at Permit."""
    UNSCHEDULABLE = "unschedulable"
    """A plugin rejected it, or every node."""
    GATED = "gated"
    """A plugin does not let it enter the queue (PreEnqueue)."""
    ERROR = "error"
    """Something broke; it is tried again after a while."""
    QUEUED = "queued"
    """It has not been tried yet, or waits in the queue to be tried again."""


@dataclass(frozen=True)
class TrialOutcome:
    """What is known of a pod after it was tried."""

    pod: str
    """ "namespace/name"."""
    state: TrialState
    node: str | None
    """The node that it is bound to, or held for."""
    message: str = ""
    """Why it is not bound, in the words of its condition and event."""
    nodes: Mapping[str, NodeAnswer] = field(default_factory=dict)
    """The last decision: what was answered about each node."""
    waits: Mapping[str, float] = field(default_factory=dict)
    """The plugins that hold it at Permit, and how many seconds each has left."""
    nominated: str | None = None
    """The node that preemption makes room on."""
    evicted: tuple[str, ...] = ()
    """The pods that had to go for it."""
    annotations: Mapping[str, str] = field(default_factory=dict)
    """What plugins wrote into its annotations."""
    reports: tuple[str, ...] = ()
    """What plugins have reported so far (`handle.report`)."""

    @property
    def bound(self) -> bool:
        return self.state is TrialState.BOUND

    @property
    def waiting(self) -> bool:
        return self.state is TrialState.WAITING

    @property
    def feasible(self) -> list[str]:
        """The nodes that passed all filters."""
        return [name for name, answer in self.nodes.items() if answer.feasible]

    def filtered(self, plugin: str | None = None) -> dict[str, str]:
        """The nodes that were rejected, each with the reason; those that one plugin rejected, if it is named."""
        return {
            name: ", ".join(answer.reasons)
            for name, answer in self.nodes.items()
            if not answer.feasible and plugin in (None, answer.plugin)
        }

    def scores(self, plugin: str) -> dict[str, int]:
        """What a plugin gave each feasible node, normalised and multiplied by its weight."""
        scored = {name: answer for name, answer in self.nodes.items() if answer.scores}
        if not scored:
            found = f"{len(self.feasible)} feasible node{'' if len(self.feasible) == 1 else 's'}"
            raise LookupError(f"{self.pod}: no node was scored, for there was {found}; scoring takes two at least")
        known = next(iter(scored.values())).scores
        if plugin not in known:
            raise LookupError(f"{self.pod}: {plugin} gave no scores; those that did: {', '.join(known)}")
        return {name: answer.scores[plugin] for name, answer in scored.items()}

    def __str__(self) -> str:
        where = f" on {self.node}" if self.node else ""
        lines = [f"{self.pod}: {self.state}{where}{f': {self.message}' if self.message else ''}"]
        for name, answer in self.nodes.items():
            if not answer.feasible:
                lines.append(f"  {name}: filtered by {answer.plugin}: {', '.join(answer.reasons)}")
            elif answer.total is None:
                lines.append(f"  {name}: feasible")
            else:
                points = ", ".join(f"{plugin} {score}" for plugin, score in answer.scores.items() if score)
                lines.append(f"  {name}: {answer.total} ({points})")
        lines += [f"  {plugin} holds it for {seconds:g} s" for plugin, seconds in self.waits.items()]
        lines += [f"  evicted {victim}" for victim in self.evicted]
        lines += [f"  reported: {sentence}" for sentence in self.reports]
        return "\n".join(lines)
