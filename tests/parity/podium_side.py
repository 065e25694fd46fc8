"""Asks Podium for its decision on a case. The only module here that knows Podium's names."""

import random
from dataclasses import dataclass, field
from functools import cache

import msgspec
import yaml

from podium.config.load import load_config
from podium.config.resolved import SchedulerConfig
from podium.engine import explain as engine
from podium.engine.sampling import Sampling
from podium.framework.clock import SystemClock
from podium.framework.handle import Handle
from podium.framework.nominator import Nominator
from podium.framework.profile import ProfileRuntime
from podium.framework.waiting import WaitingPods
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
    devices: list[str] = field(default_factory=list)


def decide(case: Case) -> Answer:
    pod = _decode(case.pod)
    assert isinstance(pod, Pod)
    config = _config(yaml.safe_dump(case.config))
    objects = [_decode(each) for each in case.objects]
    explanation = (
        _explain_from(case.start_index, objects, pod, config)
        if case.start_index > 0
        else engine.explain(objects, pod, config, parity=True)
    )
    message = explanation.message or ""
    if case.start_index < 0 and case.decision.outcome == "error":
        message = _same_error(case, objects, pod, config, message)
    ties = explanation.preemption_ties or ([explanation.preemption] if explanation.preemption else [])
    return Answer(
        node=explanation.selected or "",
        message=message,
        nodes={each.name: _node_answer(each) for each in explanation.nodes},
        preemption={each.node: each.victims for each in ties},
        devices=[
            _device(use) for each in explanation.nodes if each.name == case.decision.node for use in each.devices or ()
        ],
    )


def _same_error(case: Case, objects: list[KubeObject], pod: Pod, config: SchedulerConfig, message: str) -> str:
    """Of several nodes with errors the first that is visited decides: where it is unknown which that was, any may."""
    nodes = sum(each["kind"] == "Node" for each in case.objects)
    for start in range(1, nodes):
        if message == case.decision.message:
            break
        message = _explain_from(start, objects, pod, config).message or ""
    return message


def _explain_from(start: int, objects: list[KubeObject], pod: Pod, config: SchedulerConfig) -> engine.Explanation:
    """What `explain` does, for a search that does not begin at the first node."""
    profile = config.profile(pod.spec.scheduler_name)
    assert profile is not None
    nominator = Nominator()
    served = {each.scheduler_name for each in config.profiles}
    cluster = engine.build_cluster(objects, pod, served, nominator)
    handle = Handle(
        cluster,
        SystemClock(),
        random.Random(0),
        nominator,
        WaitingPods(),
        engine.Unwritten(),
        activate=lambda _pods: None,
    )
    sampling = Sampling(config.percentage_of_nodes_to_score, parity=True, next_start=start)
    return engine.explain_in(ProfileRuntime(profile, load_registry(), handle), pod, sampling)


def _decode(obj: Obj) -> KubeObject:
    return decode_json(KINDS[obj["apiVersion"], obj["kind"]], msgspec.json.encode(obj))


@cache
def _config(text: str) -> SchedulerConfig:
    return load_config(text, "config.yaml", load_registry()).config


def _device(use: dict[str, str]) -> str:
    return f"{use['claim']} {use['request']} {use['driver']}/{use['pool']}/{use['device']}"


def _node_answer(node: engine.NodeAnswer) -> NodeAnswer:
    return NodeAnswer(node.feasible, node.plugin or "", node.reasons, node.scores, node.total)
