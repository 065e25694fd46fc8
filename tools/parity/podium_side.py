"""Asks Podium for its decision on a case. The only module here that knows Podium's names."""

import itertools
import random
from dataclasses import dataclass, field, replace
from functools import cache
from unittest.mock import patch

import msgspec
import yaml

from podium.config.load import load_config
from podium.config.resolved import SchedulerConfig
from podium.engine import explain as engine
from podium.engine.sampling import Sampling
from podium.framework.clock import SystemClock
from podium.framework.handle import Driver, EngineState, Handle
from podium.framework.nominator import Nominator
from podium.framework.profile import ProfileRuntime
from podium.kube import KINDS, KubeObject, Node, Pod, decode_json
from podium.kube.claim_status import claims_of_pod
from podium.kube.versions import KNOWN
from podium.placement.devices import allocate
from podium.placement.devices.inventory import DevicePool
from podium.placement.devices.uses import device_uses
from podium.plugins import load_registry
from tools.parity.case import Case, without_chance
from tools.parity.dice import Obj


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
    # What would be written to the claims without devices, where nothing else of the pod needs any.
    allocations: dict[str, Obj] = field(default_factory=dict)


def devices_by_chance(case: Case) -> bool:
    """Whether kube-scheduler looks at the pools and slices of devices for this pod in an order that nobody knows."""
    return not KNOWN[case.kubernetes].devices.pools_by_name and bool(case.pod["spec"].get("resourceClaims"))


def decide_in_other_order(case: Case, number: int) -> Answer:
    """Podium's decision with the pools and slices of devices in one of many orders."""

    def rank(*name: str) -> float:
        return random.Random(f"{number} {name}").random()

    def renamed(obj: Obj) -> Obj:
        name = obj["metadata"]["name"]
        return {**obj, "metadata": {**obj["metadata"], "name": f"{rank(name):.9f}-{name}"}}

    objects = [renamed(each) if each["kind"] == "ResourceSlice" else each for each in case.objects]
    with patch.object(DevicePool, "order", property(lambda pool: (False, (f"{rank(*pool.id):.9f}", *pool.id)))):
        return decide(replace(case, objects=objects))


def decide(case: Case) -> Answer:
    pod = decode_object(case.pod)
    assert isinstance(pod, Pod)
    config = _config(yaml.safe_dump(case.config), case.kubernetes)
    objects = [decode_object(each) for each in case.objects]
    explanation = (
        _explain_from(case.start_index, objects, pod, config)
        if case.start_index > 0
        else engine.explain(objects, pod, config, parity=True)
    )
    if case.start_index < 0:
        explanation = _same_start(case, objects, pod, config, explanation)
    ties = explanation.preemption_ties or ([explanation.preemption] if explanation.preemption else [])
    return Answer(
        node=explanation.selected or "",
        message=explanation.message or "",
        nodes={each.name: _node_answer(each) for each in explanation.nodes},
        preemption={each.node: each.victims for each in ties},
        devices=[
            _device(use) for each in explanation.nodes if each.name == case.decision.node for use in each.devices or ()
        ],
        allocations=_allocations(case, objects, pod, config) if case.decision.allocations else {},
    )


def _allocations(case: Case, objects: list[KubeObject], pod: Pod, config: SchedulerConfig) -> dict[str, Obj]:
    """What claims get on the node that kube-scheduler chose, asked of the allocator itself."""
    cluster = engine.build_cluster(objects, pod, set(), Nominator())
    uses = device_uses(cluster.objects, config.rules.devices)
    named = claims_of_pod(pod, cluster.objects.resource_claims.get)
    missing = [claim for claim in named if claim.status.allocation is None]
    (node,) = [each for each in objects if isinstance(each, Node) and each.name == case.decision.node]
    found = (
        allocate(node, uses.inventory.pools(node), missing, uses.classes, uses.tally, rules=uses.rules)
        if missing
        else []
    )
    written = [msgspec.json.decode(msgspec.json.encode(each)) for each in found or ()]
    return {claim.key: without_chance(each) for claim, each in zip(missing, written, strict=False)}


def _same_start(
    case: Case, objects: list[KubeObject], pod: Pod, config: SchedulerConfig, first: engine.Explanation
) -> engine.Explanation:
    """Of several nodes that would do, or that have errors, the first that is visited can decide: where it is unknown
    which that was, any may. The answer from a start that leads to kube-scheduler's; else the first one."""
    real = case.decision
    nodes = sum(each["kind"] == "Node" for each in case.objects)
    starts = (_explain_from(start, objects, pod, config) for start in range(1, nodes))
    for explanation in itertools.chain([first], starts):
        if real.outcome == "error" and explanation.message == real.message:
            return explanation
        if real.outcome == "bound" and explanation.selected == real.node:
            return explanation
        if real.outcome not in ("error", "bound"):
            break
    return first


def _explain_from(start: int, objects: list[KubeObject], pod: Pod, config: SchedulerConfig) -> engine.Explanation:
    """What `explain` does, for a search that does not begin at the first node."""
    profile = config.profile(pod.spec.scheduler_name)
    assert profile is not None
    nominator = Nominator()
    served = {each.scheduler_name for each in config.profiles}
    cluster = engine.build_cluster(objects, pod, served, nominator, config.rules)
    handle = Handle(
        Driver(clock=SystemClock(), writer=engine.Unwritten(), rng=random.Random(0)),
        EngineState(cluster=cluster, nominator=nominator),
        rules=config.rules,
    )
    sampling = Sampling(config.percentage_of_nodes_to_score, parity=True, next_start=start)
    return engine.explain_in(ProfileRuntime(profile, load_registry(), handle), pod, sampling)


def decode_object(obj: Obj) -> KubeObject:
    return decode_json(KINDS[obj["apiVersion"], obj["kind"]], msgspec.json.encode(obj))


@cache
def _config(text: str, kubernetes: str) -> SchedulerConfig:
    return load_config(text, "config.yaml", load_registry(), KNOWN[kubernetes]).config


def _device(use: dict[str, str]) -> str:
    return f"{use['claim']} {use['request']} {use['driver']}/{use['pool']}/{use['device']}"


def _node_answer(node: engine.NodeAnswer) -> NodeAnswer:
    return NodeAnswer(node.feasible, node.plugin or "", node.reasons, node.scores, node.total)
