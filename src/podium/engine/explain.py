"""Explains why a pod is where it is, or nowhere: every node's answer, drawn from one real decision.

The pod is judged by the very code that schedules, on a cluster made from plain objects (a dump, or the live state),
with writes recorded instead of made. Nothing here runs unless it is asked for.
"""

from __future__ import annotations

import enum
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec.structs import replace

from podium.cluster import Cluster
from podium.config.load import default_config
from podium.config.registry import Registry
from podium.config.resolved import Profile, SchedulerConfig
from podium.engine.decide import NO_NODES, Decision, decide, make_room
from podium.engine.gangs.explain_gang import GangExplanation, explain_gang
from podium.engine.sampling import Sampling
from podium.engine.unblock import Remedy, remedies
from podium.errors import UserError
from podium.framework.clock import Clock, SystemClock
from podium.framework.cycle import Cycle
from podium.framework.diagnosis import Diagnosis
from podium.framework.handle import Driver, EngineState, Handle, Preemptor
from podium.framework.nominator import Nominator
from podium.framework.plugin_failures import OnPluginFailure, ignore_failure
from podium.framework.profile import ProfileRuntime
from podium.framework.protocols import AllocatingPlugin, ExplainingPlugin, ModelAnswer, ModelPlugin
from podium.framework.status import PluginError, Status
from podium.kube import CustomObject, Node, PersistentVolume, PersistentVolumeClaim, Pod, ResourceClaim
from podium.kube.devices import Allocation
from podium.kube.pod import ExtendedResourceRequestMapping
from podium.kube.versions import NEWEST, VersionRules
from podium.load.readings import LoadSource
from podium.plugins import load_registry
from podium.preemption.dry_runs import Candidate
from podium.preemption.evictions import CANDIDATES


@dataclass
class NodeAnswer:
    """What one node's plugins said: who refused it and why, or its weighted scores."""

    name: str
    feasible: bool
    plugin: str | None = None
    reasons: list[str] = field(default_factory=list)
    scores: dict[str, int] = field(default_factory=dict)
    total: int | None = None
    devices: list[dict[str, str]] | None = None
    """What the pod's claims have, or would get here: claim, request, driver, pool and device of each; None where it
    has no claims, or does not fit."""


@dataclass
class Eviction:
    """What preemption would do: the node, and the pods ("namespace/name") that would have to go."""

    node: str
    victims: list[str]


class Outcome(enum.Enum):
    """How the judging ended, which tells what `Explanation.message` means."""

    FITS = "a node was found"
    FITS_NOWHERE = "no node takes the pod as things are"
    HELD = "the pod may not enter the queue yet"
    WAITS = "the pod has a node, but a plugin holds it at Permit"
    GANG_WAITS = "the pod has a node, but too few of its gang have one"
    FAILED = "the decision ended in an error"


@dataclass
class Explanation:
    """The whole answer. `preemption_ties` are the evictions that rank equally well; chance decides between them."""

    pod: str
    profile: str
    selected: str | None
    message: str | None
    preemption: Eviction | None
    nodes: list[NodeAnswer]
    preemption_ties: list[Eviction] = field(default_factory=list)
    outcome: Outcome = Outcome.FITS
    remedies: list[Remedy] = field(default_factory=list)
    """What would have to change, where nothing can be evicted to make room."""
    gang: GangExplanation | None = None
    """How the pod's gang stands, where it belongs to one."""
    notes: list[str] = field(default_factory=list)
    """What plugins that rejected the pod add for people."""
    warnings: list[str] = field(default_factory=list)
    """Why the scheduler in charge may decide differently: what was not known here."""
    models: list[ModelAnswer] = field(default_factory=list)
    """Who decided where a plugin may ask a model: the model, or what stands in for it, and why."""
    nominated: str = ""
    """The node that is set aside for the pod, where it was judged alone because it takes the pod."""
    kubernetes_version: str = ""
    """The Kubernetes minor by whose rules the pod was judged."""

    def to_data(self) -> dict[str, Any]:
        """Plain data for JSON or YAML."""
        data: dict[str, Any] = msgspec.to_builtins(self)
        del data["preemption_ties"], data["outcome"], data["nominated"]
        data["kubernetesVersion"] = data.pop("kubernetes_version")
        if self.gang is None:
            del data["gang"]
        data["models"] = [
            {"plugin": plugin, "decidedBy": by, "reason": reason, "milliseconds": milliseconds}
            for plugin, by, reason, milliseconds in self.models
        ]
        for name in ("notes", "warnings", "models"):
            if not data[name]:
                del data[name]
        for node in data["nodes"]:
            if node["devices"] is None:
                del node["devices"]
        return data


class UnknownProfileError(UserError, ValueError):
    """The pod names a scheduler that the configuration does not have."""


def explain(
    objects: Iterable[Any],
    pod: Pod,
    config: SchedulerConfig | None = None,
    registry: Registry | None = None,
    *,
    clock: Clock | None = None,
    load: LoadSource | None = None,
    parity: bool = False,
    on_failure: OnPluginFailure = ignore_failure,
) -> Explanation:
    """Judge a pod on the cluster that the objects describe; if the pod is among them, as if it were not bound yet.

    Without a configuration the default one counts, without a registry all plugins that are installed.
    """
    registry = load_registry() if registry is None else registry
    config = default_config(registry) if config is None else config
    unbound = as_unbound(with_uid(pod))
    profile = profile_of(unbound, config)
    handle = handle_for_trial(objects, unbound, config, clock, load, on_failure)
    return _judge(ProfileRuntime(profile, registry, handle), unbound, config, parity=parity, closely=True)


def explain_waiting(
    objects: Sequence[Any],
    config: SchedulerConfig,
    registry: Registry,
    *,
    load: LoadSource | None = None,
    parity: bool = False,
    on_failure: OnPluginFailure = ignore_failure,
) -> list[Explanation]:
    """Judge every pod that waits for a node, each as if it were tried now; what would unblock it is not looked for.

    Pods of other schedulers are left out.
    """
    handle = handle_for_trial(objects, None, config, None, load, on_failure)
    runtimes = {each.scheduler_name: ProfileRuntime(each, registry, handle) for each in config.profiles}
    waiting = sorted(handle.cluster.objects.pending_pods, key=lambda pod: pod.key)
    return [
        _judge(runtimes[pod.spec.scheduler_name], pod, config, parity=parity, closely=False)
        for pod in waiting
        if pod.spec.scheduler_name in runtimes and not pod.terminating
    ]


def profile_of(pod: Pod, config: SchedulerConfig) -> Profile:
    """The profile that the pod asks for; raises UnknownProfileError."""
    profile = config.profile(pod.spec.scheduler_name)
    if profile is None:
        known = ", ".join(f'"{each.scheduler_name}"' for each in config.profiles)
        raise UnknownProfileError(
            f'pod {pod.key} asks for scheduler "{pod.spec.scheduler_name}", but the configuration only has {known}'
        )
    return profile


def handle_for_trial(
    objects: Iterable[Any],
    pod: Pod | None,
    config: SchedulerConfig,
    clock: Clock | None = None,
    load: LoadSource | None = None,
    on_failure: OnPluginFailure = ignore_failure,
) -> Handle:
    """What plugins need to judge pods of the cluster that the objects describe, with writes that do not happen."""
    nominator = Nominator()
    return Handle(
        Driver(
            clock=clock or SystemClock(), writer=Unwritten(), rng=random.Random(0), load=load, on_failure=on_failure
        ),
        EngineState(
            cluster=build_cluster(
                objects, pod, {each.scheduler_name for each in config.profiles}, nominator, config.rules
            ),
            nominator=nominator,
        ),
        rules=config.rules,
    )


def explain_in_trial(runtime: ProfileRuntime, pod: Pod, config: SchedulerConfig) -> Explanation:
    """Judge a pod that waits, and its gang, in a running profile whose writer writes nothing."""
    return _judge(runtime, pod, config, parity=False, closely=True)


def _judge(runtime: ProfileRuntime, pod: Pod, config: SchedulerConfig, *, parity: bool, closely: bool) -> Explanation:
    sampling = Sampling(config.percentage_of_nodes_to_score, parity)
    explanation = explain_in(runtime, pod, sampling, closely=closely)
    explained = (Outcome.FITS, Outcome.FITS_NOWHERE, *((Outcome.HELD,) if pod.spec.scheduling_group else ()))
    if explanation.outcome in explained and len(runtime.handle.cluster.order.rows):
        explanation.gang = gang = explain_gang(runtime, pod, sampling)
        if gang is not None and not gang.starts and explanation.outcome is Outcome.FITS:
            explanation.outcome = Outcome.GANG_WAITS
    return explanation


def explain_in(runtime: ProfileRuntime, pod: Pod, sampling: Sampling, *, closely: bool = True) -> Explanation:
    """Judge a pod in a running profile whose writer writes nothing; `closely` looks for what would unblock it."""
    cluster = runtime.handle.cluster

    def verdict(outcome: Outcome, message: str | None = None, nodes: Sequence[NodeAnswer] = ()) -> Explanation:
        version = str(runtime.handle.rules)
        return Explanation(
            pod.key, runtime.name, None, message, None, list(nodes), outcome=outcome, kubernetes_version=version
        )

    try:
        held = runtime.run_pre_enqueue(pod, "")
        if held is not None:
            return verdict(Outcome.HELD, held.message)
        if not len(cluster.order.rows):
            return verdict(Outcome.FITS_NOWHERE, NO_NODES)
        cycle = Cycle(pod, cluster)
        decision = decide(runtime, cycle, sampling)
    except PluginError as error:
        return verdict(Outcome.FAILED, str(error))
    answers = answers_of(cluster, decision)
    _add_devices(runtime, cycle, answers)
    if decision.row is not None:
        explanation = verdict(Outcome.FITS, nodes=answers)
        explanation.models = _model_answers(runtime, cycle)
        explanation.selected = cluster.names[decision.row]
        if explanation.selected == pod.status.nominated_node_name and decision.search.refusals is None:
            explanation.nominated = explanation.selected
        return explanation
    diagnosis = decision.search.diagnosis()
    notes = _notes(runtime, pod, diagnosis)
    make_room(runtime, cycle, diagnosis)
    explanation = verdict(Outcome.FITS_NOWHERE, diagnosis.message, answers)
    explanation.notes = notes
    evictions = [_eviction(candidate) for candidate in cycle.data.get(CANDIDATES, ())]
    if evictions:
        explanation.preemption = evictions[0]
        explanation.preemption_ties = evictions
    elif closely:
        explanation.remedies = remedies(runtime, pod, sampling)
    return explanation


def _notes(runtime: ProfileRuntime, pod: Pod, diagnosis: Diagnosis) -> list[str]:
    notes: list[str] = []
    for name in sorted(diagnosis.unschedulable_plugins):
        plugin = runtime.plugins.get(name)
        if isinstance(plugin, ExplainingPlugin):
            notes += plugin.explain(pod)
    return notes


def _model_answers(runtime: ProfileRuntime, cycle: Cycle) -> list[ModelAnswer]:
    plugins = [plugin for plugin in runtime.plugins.values() if isinstance(plugin, ModelPlugin)]
    return [answer for plugin in plugins if (answer := plugin.model_answer(cycle)) is not None]


def as_unbound(pod: Pod) -> Pod:
    """The pod as it was before a node was chosen."""
    if not pod.node_name:
        return pod
    return replace(pod, spec=replace(pod.spec, node_name=""), status=replace(pod.status, nominated_node_name=""))


def build_cluster(
    objects: Iterable[Any], pod: Pod | None, served: set[str], nominator: Nominator, rules: VersionRules = NEWEST
) -> Cluster:
    """A cluster with everything in the objects, the pod without a node; nodes keep the order they come in."""
    cluster = Cluster(resize_by_sums=rules.resize_by_sums)
    fill_cluster(cluster, objects, pod, served, nominator)
    return cluster


def fill_cluster(
    cluster: Cluster, objects: Iterable[Any], pod: Pod | None, served: set[str], nominator: Nominator
) -> None:
    """Put everything in the objects into an empty cluster."""
    pods: list[Pod] = []
    for each in objects:
        if isinstance(each, Node):
            cluster.set_node(each)
        elif isinstance(each, Pod):
            if not each.finished and (pod is None or each.key != pod.key):
                pods.append(with_uid(each))
        elif isinstance(each, CustomObject):
            cluster.objects.custom_store(each.resource).set(each.key, each.data)
        else:
            store = cluster.objects.store_of(type(each))
            if store is not None:
                store.set(each.key, each)
    if pod is not None:
        cluster.objects.pending_pods.set(pod.key, pod)
    for each in pods:
        if each.node_name:
            cluster.set_pod(each)
        else:
            cluster.objects.pending_pods.set(each.key, each)
            if each.spec.scheduler_name in served:
                nominator.nominate(each)


def with_uid(pod: Pod) -> Pod:
    """Pods go by uid; one that no API server has seen goes by its name."""
    return pod if pod.uid else replace(pod, metadata=replace(pod.metadata, uid=pod.key))


def answers_of(cluster: Cluster, decision: Decision) -> list[NodeAnswer]:
    """What each node's plugins said in a decision, in visiting order."""
    answers = {row: NodeAnswer(cluster.names[row], False) for row in cluster.order.rows.tolist()}
    statuses = decision.search.statuses()
    refused: dict[int, Status] = dict.fromkeys(answers, statuses.absent)
    for status, rows in statuses.groups():
        refused.update(dict.fromkeys(rows.tolist(), status))
    scores = decision.scores
    by_plugin = {} if scores is None else {name: each.tolist() for name, each in scores.by_plugin.items()}
    totals = [] if scores is None else scores.total.tolist()
    for position, row in enumerate(decision.search.feasible.tolist()):
        answer = answers[row]
        answer.feasible = True
        refused.pop(row)
        if scores is not None:
            answer.scores = {name: int(each[position]) for name, each in by_plugin.items()}
            answer.total = int(totals[position])
    for row, status in refused.items():
        answers[row].plugin = status.plugin or None
        answers[row].reasons = list(status.reasons)
    return list(answers.values())


def _add_devices(runtime: ProfileRuntime, cycle: Cycle, answers: Iterable[NodeAnswer]) -> None:
    for plugin in runtime.plugins.values():
        if isinstance(plugin, AllocatingPlugin):
            for answer in answers:
                given = plugin.devices_on(cycle, answer.name) if answer.feasible else None
                if given is not None:
                    answer.devices = [*(answer.devices or ()), *(each._asdict() for each in given)]


def _eviction(candidate: Candidate) -> Eviction:
    return Eviction(candidate.node_name, [victim.key for victim in candidate.victims])


class Unwritten:
    """A writer for looking only: every write succeeds and none happens."""

    def bind(self, pod: Pod, node_name: str) -> None:
        return None

    def evict(
        self, victims: Sequence[Pod], preemptor: Preemptor, node_name: str, done: Callable[[str | None], None]
    ) -> None:
        done(None)

    def taken_back(self, victim: Pod, preemptor: Preemptor, node_name: str) -> None:
        return None

    def nominate(self, pod: Pod, node_name: str) -> None:
        return None

    def clear_nomination(self, pod: Pod) -> None:
        return None

    def annotate(self, pod: Pod, annotations: Mapping[str, str]) -> None:
        return None

    def write_volumes(self, volumes: Iterable[PersistentVolume], claims: Iterable[PersistentVolumeClaim]) -> None:
        return None

    def reserve_claim(self, claim: ResourceClaim, allocation: Allocation | None, pod: Pod) -> None:
        return None

    def create_claim(
        self,
        claim: ResourceClaim,
        allocation: Allocation,
        pod: Pod,
        mappings: Sequence[ExtendedResourceRequestMapping],
    ) -> None:
        return None

    def delete_claim(self, claim: ResourceClaim) -> None:
        return None

    def release_claim(self, claim: ResourceClaim, pod: Pod) -> None:
        return None

    def deallocate_claim(self, claim: ResourceClaim) -> None:
        return None
