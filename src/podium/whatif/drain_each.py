"""Says of every node alone whether it could be drained, all others being as they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from podium.whatif.applying import apply, cordoned
from podium.whatif.changes import Change, Drain
from podium.whatif.drain import DRAIN_DEFAULTS, GONE, MOVES, STOPS, DrainAnswer, DrainRules, Leaving, drain
from podium.whatif.fit import shown_changes
from podium.whatif.records import Record
from podium.whatif.sandbox import Sandbox


class BlockerRecord(Record, kw_only=True):
    """A pod that stops the drain, and why."""

    pod: str
    verdict: str
    message: str


class NodeDrainRecord(Record, kw_only=True):
    """One node alone: its pods, how many of them move, and what blocks the others."""

    node: str
    pods: int
    movable: int
    drained: bool
    rounds: int
    blocked_by: list[BlockerRecord]
    summary: dict[str, int]


class EachRecord(Record, kw_only=True):
    """The answer of `podium whatif --each`."""

    nodes: list[NodeDrainRecord]


class EachQuestion(Record, kw_only=True):
    """What was asked."""

    changes: list[dict[str, Any]]
    each: bool = True


@dataclass
class EachAnswer:
    """An answer for each node."""

    answers: list[DrainAnswer]
    changes: list[dict[str, Any]]

    @property
    def yes(self) -> bool:
        """Whether every node could be drained alone."""
        return all(each.yes for each in self.answers)

    def record(self) -> EachRecord:
        return EachRecord(nodes=[_node_record(each) for each in self.answers])


def drain_each(sandbox: Sandbox, changes: Sequence[Change] = (), rules: DrainRules = DRAIN_DEFAULTS) -> EachAnswer:
    """Drain each node alone after the changes: those that `drain` names among them, or all."""
    drains = [each for each in changes if isinstance(each, Drain)]
    others = [each for each in changes if not isinstance(each, Drain)]
    answers = []
    with sandbox.trying():
        applied = apply(sandbox, others)
        named = list(sandbox.nodes())
        if drains:
            with sandbox.trying():
                wanted = set(apply(sandbox, drains).drained)
            named = [node for node in named if node.name in wanted]
        for node in sorted(named, key=lambda each: each.name):
            with sandbox.trying():
                sandbox.set(cordoned(node))
                answers.append(drain(sandbox, [node.name], rules, with_remedies=False))
    return EachAnswer(answers, shown_changes(others, applied))


def _node_record(answer: DrainAnswer) -> NodeDrainRecord:
    blockers = [
        BlockerRecord(pod=each.pod.key, verdict=each.verdict, message=_why(each))
        for each in answer.pods
        if each.verdict in STOPS
    ]
    return NodeDrainRecord(
        node=answer.nodes[0],
        pods=len(answer.pods),
        movable=sum(each.verdict in (MOVES, GONE) for each in answer.pods),
        drained=answer.yes,
        rounds=answer.rounds,
        blocked_by=blockers,
        summary=dict(Counter(each.verdict for each in answer.pods)),
    )


def _why(each: Leaving) -> str:
    if each.placement is not None and each.placement.message:
        return each.placement.message
    return each.message + (f" (use {each.flag} to override)" if each.flag else "")
