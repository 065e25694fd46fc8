"""Asks Podium for its decision on a case. The only module here that knows Podium's names."""

from dataclasses import dataclass, field
from functools import cache

import msgspec
import yaml

from podium.config.load import load_config
from podium.config.resolved import SchedulerConfig
from podium.engine import explain as engine
from podium.kube import KINDS, KubeObject, Pod, decode_json
from podium.plugins import load_registry
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


def decide(case: Case) -> Answer:
    pod = _decode(case.pod)
    assert isinstance(pod, Pod)
    config = _config(yaml.safe_dump(case.config))
    explanation = engine.explain([_decode(each) for each in case.objects], pod, config)
    ties = explanation.preemption_ties or ([explanation.preemption] if explanation.preemption else [])
    return Answer(
        node=explanation.selected or "",
        message=explanation.message or "",
        nodes={each.name: _node_answer(each) for each in explanation.nodes},
        preemption={each.node: each.victims for each in ties},
    )


def _decode(obj: Obj) -> KubeObject:
    return decode_json(KINDS[obj["apiVersion"], obj["kind"]], msgspec.json.encode(obj))


@cache
def _config(text: str) -> SchedulerConfig:
    return load_config(text, "config.yaml", load_registry()).config


def _node_answer(node: engine.NodeAnswer) -> NodeAnswer:
    return NodeAnswer(node.feasible, node.plugin or "", node.reasons, node.scores, node.total)
