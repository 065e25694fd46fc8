"""Asks Podium for its decision on a case. The only module here that knows Podium's names.

`explain` is looked up when it is needed, so that the rest of the harness runs without it.
"""

import importlib
import importlib.util
import inspect
from dataclasses import dataclass, field
from typing import Any

import msgspec
import yaml

from podium.kube import KINDS, KubeObject, decode_json
from tests.parity.case import Case
from tests.parity.dice import Obj


@dataclass
class NodeAnswer:
    feasible: bool
    plugin: str = ""  # the one that rejected the node
    reasons: list[str] = field(default_factory=list)
    scores: dict[str, int] = field(default_factory=dict)
    total: int | None = None


@dataclass
class Answer:
    """Podium's decision, in the words of Decision."""

    node: str
    message: str
    nodes: dict[str, NodeAnswer]
    # Every node that ranks best for preemption with its victims; kube-scheduler takes an arbitrary one of them.
    preemption: dict[str, list[str]]


def available() -> bool:
    return importlib.util.find_spec("podium.engine") is not None


def decide(case: Case) -> Answer:
    module = importlib.import_module("podium.engine.explain")
    objects = [_decode(each) for each in case.objects]
    options: dict[str, Any] = {}
    if "start_index" in inspect.signature(module.explain).parameters:
        options["start_index"] = max(case.start_index, 0)
    explanation = module.explain(objects, _decode(case.pod), _config(case.config), **options)
    return Answer(
        node=explanation.selected or "",
        message=explanation.message or "",
        nodes={each.name: _node_answer(each) for each in explanation.nodes},
        preemption=_preemption(explanation),
    )


def _decode(obj: Obj) -> KubeObject:
    return decode_json(KINDS[obj["apiVersion"], obj["kind"]], msgspec.json.encode(obj))


def _config(config: Obj) -> Any:
    module = importlib.import_module("podium.config")
    plugins = importlib.import_module("podium.plugins")
    return module.load_config(yaml.safe_dump(config), "config.yaml", plugins.registry()).config


def _node_answer(node: Any) -> NodeAnswer:
    return NodeAnswer(
        feasible=node.feasible,
        plugin=node.plugin or "",
        reasons=list(node.reasons or ()),
        scores=dict(node.scores or {}),
        total=node.total,
    )


def _preemption(explanation: Any) -> dict[str, list[str]]:
    if explanation.preemption is None:
        return {}
    ties = {each.node: list(each.victims) for each in explanation.preemption_ties or ()}
    return ties or {explanation.preemption.node: list(explanation.preemption.victims)}
