"""Writes an explanation as JSON: its fields at the top level, with the schema, state and question beside them."""

from __future__ import annotations

from typing import Any

import msgspec

from podium.engine.explain import Eviction, Explanation, NodeAnswer
from podium.engine.gangs.explain_gang import GangExplanation
from podium.engine.unblock import Remedy
from podium.whatif.records import StateRecord, json_schema_of

SCHEMA = "podium.explain/1"


class ExplainQuestion(msgspec.Struct, kw_only=True):
    """What was asked."""

    pod: str


class _ModelRecord(msgspec.Struct, rename="camel", kw_only=True):
    plugin: str
    decided_by: str
    reason: str
    milliseconds: float | None = None


class ExplainDocument(msgspec.Struct, kw_only=True):
    """The answer of `podium explain`."""

    schema: str
    state: StateRecord | None
    question: ExplainQuestion
    pod: str
    profile: str
    selected: str | None
    message: str | None
    preemption: Eviction | None
    nodes: list[NodeAnswer]
    remedies: list[Remedy]
    kubernetesVersion: str  # noqa: N815  the name in the document
    gang: GangExplanation | None = None
    notes: list[str] = msgspec.field(default_factory=list)
    warnings: list[str] = msgspec.field(default_factory=list)
    models: list[_ModelRecord] = msgspec.field(default_factory=list)


def explain_document(explanation: Explanation, state: StateRecord | None) -> dict[str, Any]:
    """The explanation as plain data."""
    question = {"pod": explanation.pod}
    beside = {"schema": SCHEMA, "state": msgspec.to_builtins(state), "question": question}
    return {**explanation.to_data(), **beside}


def explain_schema() -> dict[str, Any]:
    """The JSON Schema of explanations."""
    return json_schema_of(SCHEMA, ExplainDocument)
