"""Asks what `podium whatif` and `podium capacity` ask, on a copy of what the scheduler knows; the JSON is theirs.

A question has changes, as a document of `--change` has them, and for capacity or a fit the manifests of `-f`. It is
judged in a thread, and nothing is changed anywhere.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from podium.errors import UserError
from podium.kube import Node, Pod
from podium.kube.admission import as_admitted
from podium.kube.documents import DocumentError
from podium.whatif.capacity import Template, capacity
from podium.whatif.changes import AddNodes, Change, read_changes
from podium.whatif.fit import fit
from podium.whatif.manifests import Given, read_given, template_pod
from podium.whatif.records import StateRecord, document
from podium.whatif.sandbox import Sandbox
from podium.whatif.sources import missing_kinds
from podium_dashboard.access import RefusedError
from podium_dashboard.explaining import Known, load_of

ORIGIN: Final = "the cluster"
MOST_REPLICAS: Final = 10_000
"""Pods that a count stops at: it shall not keep a thread busy for long."""


class PanelQuestion(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """What the panel sends."""

    changes: list[Any] = []
    manifests: str = ""
    """Pods, or what makes pods, as YAML."""
    replicas: int | None = None
    preempt: bool = False


def read_question(body: bytes) -> PanelQuestion:
    """The question in a request; raises RefusedError."""
    try:
        return msgspec.json.decode(body, type=PanelQuestion)
    except (msgspec.DecodeError, RecursionError) as error:
        raise RefusedError(400, f"the question cannot be read: {error}") from None


def whatif_answer(known: Known, question: PanelQuestion, source: str) -> dict[str, Any]:
    """What `podium whatif -o json` prints; raises RefusedError. It takes a while, so call it in a thread."""
    try:
        changes, given = _changes(question), _given(question)
        answer = fit(
            _sandbox(known), changes, given, replicas=question.replicas, preempt=question.preempt, origin=ORIGIN
        )
    except (UserError, DocumentError) as error:
        raise RefusedError(400, str(error)) from None
    return document("whatif", _state(known, source), answer.question(), answer.record())


def capacity_answer(known: Known, question: PanelQuestion, source: str) -> dict[str, Any]:
    """What `podium capacity -o json` prints; raises RefusedError."""
    try:
        changes, given = _changes(question), _given(question)
        if given is None:
            raise RefusedError(400, "write a pod, or what makes pods, to be counted")
        pod, others = template_pod(given, known.objects, ORIGIN)
        limit = min(question.replicas or MOST_REPLICAS, MOST_REPLICAS)
        answer = capacity(_sandbox(known), [Template(pod)], changes, limit=limit, others=others)
    except (UserError, DocumentError) as error:
        raise RefusedError(400, str(error)) from None
    return document("capacity", _state(known, source), answer.question(), answer.record())


def _sandbox(known: Known) -> Sandbox:
    return Sandbox(as_admitted(known.objects, (), ORIGIN), known.config, known.registry, load=load_of(known))


def _changes(question: PanelQuestion) -> list[Change]:
    if not question.changes:
        return []
    changes = read_changes(msgspec.json.encode({"changes": question.changes}).decode(), "the question")
    for each in changes:
        if isinstance(each, AddNodes) and (each.file or each.type):
            raise RefusedError(400, "nodes are added like one that there is: write N=like:NODE")
    return changes


def _given(question: PanelQuestion) -> Given | None:
    return read_given([(question.manifests, "the manifests")]) if question.manifests.strip() else None


def _state(known: Known, source: str) -> StateRecord:
    return StateRecord(
        source="dump" if source == "dump" else "live",
        kubernetes_version=str(known.config.rules),
        nodes=sum(isinstance(each, Node) for each in known.objects),
        pods=sum(isinstance(each, Pod) and not each.finished for each in known.objects),
        missing_kinds=missing_kinds(known.objects),
    )
