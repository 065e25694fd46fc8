"""Defines what the answers look like as JSON: `{"schema", "state", "question", "answer"}`, and the parts they share.

Within `/1` fields are added and never renamed. `json_schema` describes an answer as JSON Schema.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import UNSET, Struct, UnsetType, field

from podium.engine.unblock import Remedy
from podium.whatif.placements import PodPlacement

NOT_SIMULATED: Final = ("admission", "controllers", "image pulls", "kubelet admission")


class Record(Struct, rename="camel", kw_only=True):
    """A part of an answer."""


class StateRecord(Record, kw_only=True):
    """What the answer rests on."""

    source: str
    """live, dump, kss or kai."""
    at: str | None = None
    """The time of the state, where it is not now."""
    resource_version: str | None = None
    kubernetes_version: str | None = None
    """The version whose rules decide."""
    nodes: int = 0
    pods: int = 0
    missing_kinds: list[str] = field(default_factory=list)
    """Kinds that were not seen."""
    not_simulated: list[str] = field(default_factory=lambda: list(NOT_SIMULATED))


class PlacedRecord(Record, kw_only=True, omit_defaults=True):
    """Where a pod stands, or why it stands nowhere."""

    node: str | UnsetType | None = UNSET
    ties: list[str] | UnsetType = UNSET
    """All nodes of the best score, where there are several."""
    total: int | UnsetType | None = UNSET
    message: str | UnsetType | None = UNSET


class RefusalRecord(Record, kw_only=True):
    """Why some nodes refuse."""

    plugin: str
    reason: str
    nodes: int


class RemedyRecord(Record, kw_only=True):
    """A node, and what would have to change for it to take the pod."""

    node: str
    changes: list[str]


class EvictionRecord(Record, kw_only=True):
    """What preemption would do, or did."""

    node: str
    pods: list[str]


class BudgetRecord(Record, kw_only=True):
    """A budget that guards a pod, and how many of its pods may be evicted now."""

    name: str
    allowed: int


class PodRecord(Record, kw_only=True, omit_defaults=True):
    """What becomes of one pod."""

    pod: str
    origin: str
    """given, pending, running, victim (of preemption) or drained."""
    before: PlacedRecord | UnsetType = UNSET
    after: PlacedRecord
    verdict: str
    message: str | UnsetType = UNSET
    reasons: list[RefusalRecord] | UnsetType = UNSET
    remedies: list[RemedyRecord] | UnsetType = UNSET
    notes: list[str] | UnsetType = UNSET
    """Terms of the pod that no node can match."""
    victims: EvictionRecord | UnsetType = UNSET
    flag: str | UnsetType = UNSET
    """The option of `kubectl drain` that it needs."""
    budgets: list[BudgetRecord] | UnsetType = UNSET
    round: int | UnsetType = UNSET
    """After how many waits it is evicted."""


class DeadlockRecord(Record, kw_only=True):
    """A budget that can never allow an eviction, and its pods on the drained nodes."""

    budget: str
    message: str
    pods: list[str]


class CostRecord(Record, kw_only=True):
    """What added nodes cost."""

    per_hour: float
    currency: str


class AnswerDocument(Record, kw_only=True):
    """An answer as it is printed."""

    schema: str
    state: StateRecord
    question: Any
    answer: Any


def placed_record(placement: PodPlacement) -> PlacedRecord:
    """A placement as before and after show it."""
    if placement.node is not None:
        return PlacedRecord(node=placement.node, ties=placement.ties, total=placement.total)
    return PlacedRecord(node=None, message=placement.message)


def refusal_records(placement: PodPlacement) -> list[RefusalRecord]:
    return [RefusalRecord(plugin=each.plugin, reason=each.reason, nodes=each.nodes) for each in placement.reasons]


def remedy_records(remedies: list[Remedy]) -> list[RemedyRecord]:
    return [RemedyRecord(node=each.node, changes=each.changes) for each in remedies]


def document(command: str, state: StateRecord, question: Any, answer: Any) -> dict[str, Any]:
    """The whole answer as plain data."""
    found: dict[str, Any] = msgspec.to_builtins(
        AnswerDocument(schema=f"podium.{command}/1", state=state, question=question, answer=answer)
    )
    return found


def json_schema(command: str, question: Any, answer: Any) -> dict[str, Any]:
    """The JSON Schema of a command's answers; fields may be added within a version."""
    whole = msgspec.defstruct(
        "Answer",
        [("schema", str), ("state", StateRecord), ("question", question), ("answer", answer)],
        kw_only=True,
    )
    return json_schema_of(f"podium.{command}/1", whole)


def json_schema_of(name: str, document: Any) -> dict[str, Any]:
    """The JSON Schema of a document, under its name."""
    schema = msgspec.json.schema(document)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": name, **schema}
