"""Counts how many pods of a template fit: they are placed one after another until the first finds no node.

The engine caches the answers for pods of one signature, so that each further pod costs what its node's row costs. The
bound is proven for pods that only amounts keep away: Σ over the nodes that take one of min over resources ⌊free ÷
request⌋, and of the free pod slots.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from kubecel.quantity import MILLI, NANO, format_nano
from podium.engine.decide import find_feasible
from podium.engine.explain import Outcome, with_uid
from podium.engine.unblock import Remedy, remedies
from podium.framework.cycle import Cycle
from podium.framework.status import PluginError
from podium.kube import PersistentVolumeClaim, Pod, Volume
from podium.kube.admission import as_admitted, with_claims_made
from podium.kube.pod_group import pod_group_key
from podium.kube.requests import fit_requests
from podium.kube.versions import Gate
from podium.kube.volume import ClaimVolume
from podium.whatif.applying import NodeMaker, apply
from podium.whatif.changes import Change
from podium.whatif.fit import rules_of, shown_changes
from podium.whatif.placements import PodPlacement, SandboxPlacer
from podium.whatif.pod_names import FreePodNames
from podium.whatif.quotas import NamespaceRules
from podium.whatif.records import Record, RefusalRecord, RemedyRecord, refusal_records, remedy_records
from podium.whatif.sandbox import Sandbox
from podium.workloads import daemon_sets

FULL: Final = "full"
LIMIT: Final = "limit"
QUOTA: Final = "quota"
TOO_MANY_PODS: Final = "Too many pods"
INSUFFICIENT: Final = "Insufficient "
MOST: Final = 10_000_000
MOST_REMEDIES: Final = 10
SHOWN_REMEDIES: Final = 3


@dataclass(frozen=True)
class Template:
    """A pod to be multiplied, and how many of it come in a turn of the mix."""

    pod: Pod
    share: int = 1
    per_node: bool = False
    """Of a DaemonSet: one for each node that takes it."""

    @property
    def name(self) -> str:
        return self.pod.name


class TemplateRecord(Record, kw_only=True):
    name: str
    share: int = 1


class CapacityQuestion(Record, kw_only=True):
    """What was asked."""

    templates: list[TemplateRecord]
    limit: int | None
    changes: list[dict[str, Any]] = msgspec.field(default_factory=list)


class NodeShare(Record, kw_only=True):
    """How many pods a node took, and what it has left."""

    node: str
    replicas: int
    left_over: dict[str, str]


class TemplateShare(Record, kw_only=True):
    name: str
    share: int
    replicas: int


class StopRecord(Record, kw_only=True):
    """Why the next pod found no node; `first` is what binds first."""

    message: str | None
    reasons: list[RefusalRecord]
    first: str
    notes: list[str]
    """Terms of the pod that no node can match."""


class CapacityRecord(Record, kw_only=True):
    """The answer of `podium capacity`."""

    replicas: int
    bound: int | None
    reached: str
    nodes: list[NodeShare]
    templates: list[TemplateShare]
    stop: StopRecord | None
    one_more: list[RemedyRecord]


@dataclass
class CapacityAnswer:
    """How many fit, where, and what stops the next one."""

    templates: Sequence[Template]
    limit: int | None
    replicas: int
    bound: int | None
    reached: str
    on: Counter[str]
    of: list[int]
    """Replicas of each template."""
    left_over: dict[str, dict[str, str]]
    stop: PodPlacement | None = None
    one_more: list[Remedy] = field(default_factory=list)
    changes: list[dict[str, Any]] = field(default_factory=list)
    by_template: list[Counter[str]] = field(default_factory=list)

    @property
    def yes(self) -> bool:
        """Whether as many fit as were asked for, or any at all."""
        return self.replicas >= self.limit if self.limit is not None else self.replicas > 0

    def question(self) -> CapacityQuestion:
        templates = [TemplateRecord(name=each.name, share=each.share) for each in self.templates]
        return CapacityQuestion(templates=templates, limit=self.limit, changes=self.changes)

    def record(self) -> CapacityRecord:
        shares = sorted(self.on.items(), key=lambda item: (-item[1], item[0]))
        stop = self.stop
        return CapacityRecord(
            replicas=self.replicas,
            bound=self.bound,
            reached=self.reached,
            nodes=[NodeShare(node=name, replicas=n, left_over=self.left_over[name]) for name, n in shares],
            templates=[
                TemplateShare(name=each.name, share=each.share, replicas=number)
                for each, number in zip(self.templates, self.of, strict=True)
            ],
            stop=None
            if stop is None
            else StopRecord(
                message=stop.message,
                reasons=refusal_records(stop),
                first=QUOTA if self.reached == QUOTA else what_binds(stop),
                notes=stop.notes,
            ),
            one_more=remedy_records(self.one_more),
        )


def capacity(
    sandbox: Sandbox,
    templates: Sequence[Template],
    changes: Sequence[Change] = (),
    *,
    limit: int | None = None,
    others: Sequence[Any] = (),
    with_pending: bool = False,
    make: NodeMaker | None = None,
    progress: Callable[[int], None] | None = None,
) -> CapacityAnswer:
    """Place pods of the templates, in turn, until one finds no node or `limit` are placed; then take all back."""
    with sandbox.trying():
        applied = apply(sandbox, changes, make)
        claims = ReplicaClaims(sandbox, templates, others)
        for each in claims.others:
            sandbox.set(each)
        if with_pending:
            placer = SandboxPlacer(sandbox)
            placer.place_all(placer.in_queue_order([*sandbox.pending(), *applied.unplaced]))
        rules = rules_of(sandbox)
        templates = [Template(rules.with_defaults(each.pod), each.share, each.per_node) for each in templates]
        if templates[0].per_node:
            answer = _one_for_each_node(sandbox, templates[0], limit, rules)
        else:
            bound = upper_bound(sandbox, templates[0].pod) if len(templates) == 1 else None
            answer = _fill(sandbox, templates, limit, bound, rules, claims, progress)
        answer.changes = shown_changes(changes, applied)
        for name in answer.on:
            answer.left_over[name] = left_over(sandbox, name, [each.pod for each in templates])
    return answer


def _fill(
    sandbox: Sandbox,
    templates: Sequence[Template],
    limit: int | None,
    bound: int | None,
    rules: NamespaceRules,
    claims: ReplicaClaims,
    progress: Callable[[int], None] | None,
) -> CapacityAnswer:
    placer = SandboxPlacer(sandbox, closely=False)
    names = FreePodNames(sandbox)
    answer = CapacityAnswer(templates, limit, 0, bound, FULL, Counter(), [0] * len(templates), {})
    answer.by_template = [Counter() for _ in templates]
    ends = list(accumulate(each.share for each in templates))
    most = MOST if limit is None else limit
    while answer.replicas < most:
        number = bisect_right(ends, answer.replicas % ends[-1])
        pod = replica(templates[number].pod, names)
        if rules:
            refusal = rules.refusal(pod)
            if refusal is not None:
                answer.reached, answer.stop = QUOTA, PodPlacement(pod, message=refusal)
                return answer
        pod = claims.given_to(pod, templates[number].pod)
        placement = placer.place(pod)
        if not placement.fits:
            answer.stop = _stop(sandbox, pod, placement)
            answer.one_more = _one_more(sandbox, pod, placement)
            return answer
        assert placement.node is not None
        answer.on[placement.node] += 1
        answer.by_template[number][placement.node] += 1
        answer.of[number] += 1
        answer.replicas += 1
        if progress is not None and not answer.replicas % 500:
            progress(answer.replicas)
    answer.reached = LIMIT
    return answer


def _one_for_each_node(
    sandbox: Sandbox, template: Template, limit: int | None, rules: NamespaceRules
) -> CapacityAnswer:
    """The pods of a DaemonSet: on each node that takes one, as far as there is room."""
    pod = replace(template.pod, spec=daemon_sets.tolerant(template.pod.spec))
    nodes = [node.name for node in sandbox.nodes() if daemon_sets.runs_on(pod, node)]
    answer = CapacityAnswer([template], limit, 0, len(nodes), FULL, Counter(), [0], {})
    answer.by_template = [Counter()]
    placer, names = SandboxPlacer(sandbox, closely=True), FreePodNames(sandbox)
    for name in nodes:
        if limit is not None and answer.replicas >= limit:
            answer.reached = LIMIT
            break
        made = replica(pod, names)
        refusal = rules.refusal(made) if rules else None
        if refusal is not None:
            answer.reached, answer.stop = QUOTA, PodPlacement(made, message=refusal)
            break
        placement = placer.place(replace(made, spec=daemon_sets.pinned(made.spec, name)))
        if placement.node is None:
            answer.stop = answer.stop or placement
            continue
        answer.on[placement.node] += 1
        answer.by_template[0][placement.node] += 1
        answer.of[0] += 1
        answer.replicas += 1
    return answer


def replica(template: Pod, names: FreePodNames) -> Pod:
    """One more pod of a template."""
    name = names.take(template.namespace, template.name)
    metadata = replace(template.metadata, name=name, uid=f"{template.namespace}/{name}")
    return replace(template, metadata=metadata)


class ReplicaClaims:
    """Gives each replica the claims that controllers would make for it, from the templates of claims."""

    def __init__(self, sandbox: Sandbox, templates: Sequence[Template], others: Sequence[Any]) -> None:
        self._sandbox = sandbox
        self._known = [*sandbox.templates, *sandbox.cluster.objects.storage_classes, *others]
        claims = {each.key: each for each in others if isinstance(each, PersistentVolumeClaim)}
        owned = [
            (each.pod, volume, claims.get(_own_claim(each.pod, volume)))
            for each in templates
            if (owner := each.pod.metadata.controller) is not None and owner.kind == "StatefulSet"
            for volume in each.pod.spec.volumes
        ]
        self._own = {(pod.key, volume.name): claim for pod, volume, claim in owned if claim is not None}
        """A StatefulSet's claims for its first pod, by pod and volume."""
        first = {claim.key for claim in self._own.values()}
        self.others = [each for each in others if each.key not in first]

    def given_to(self, pod: Pod, template: Pod) -> Pod:
        """The replica with its own claims, which are there now."""
        spec = pod.spec
        if not spec.volumes and not spec.resource_claims:
            return pod
        volumes = {volume.name: volume for volume in spec.volumes}
        for volume in spec.volumes:
            own = self._own.get((template.key, volume.name))
            if own is not None:
                name = f"{volume.name}-{pod.name}"
                self._sandbox.set(replace(own, metadata=replace(own.metadata, name=name, uid=f"{pod.key}-{name}")))
                volumes[volume.name] = replace(volume, persistent_volume_claim=ClaimVolume(claim_name=name))
        unseen = replace(
            pod, metadata=replace(pod.metadata, uid=""), spec=replace(spec, volumes=tuple(volumes.values()))
        )
        made, *claims = with_claims_made([unseen], self._known)
        for each in as_admitted(claims, self._known):
            self._sandbox.set(each)
        assert isinstance(made, Pod)
        return with_uid(made)


def _own_claim(pod: Pod, volume: Volume) -> str:
    """The key of the claim that a StatefulSet makes for the volume."""
    return f"{pod.namespace}/{volume.name}-{pod.name}"


def _stop(sandbox: Sandbox, pod: Pod, placement: PodPlacement) -> PodPlacement:
    """The same failure, with the reasons."""
    if placement.outcome is not Outcome.FITS_NOWHERE:
        return placement
    return SandboxPlacer(sandbox, closely=True).place(pod)


def _one_more(sandbox: Sandbox, pod: Pod, placement: PodPlacement) -> list[Remedy]:
    runtime = sandbox.engine.profiles.get(pod.spec.scheduler_name)
    if runtime is None or placement.outcome is not Outcome.FITS_NOWHERE:
        return []
    return [
        Remedy(each.node, [change.partition(" (asks for")[0] for change in each.changes])
        for each in remedies(runtime, pod, sandbox.engine.sampling, MOST_REMEDIES)
    ]


def what_binds(stop: PodPlacement) -> str:
    """The resource that most nodes lack, else the plugin that refuses most nodes."""
    short: Counter[str] = Counter()
    for each in stop.reasons:
        if each.reason.startswith(INSUFFICIENT):
            short[each.reason.removeprefix(INSUFFICIENT)] += each.nodes
        elif each.reason == TOO_MANY_PODS:
            short["pods"] += each.nodes
    others = Counter({each.plugin: 0 for each in stop.reasons if each.plugin})
    for each in stop.reasons:
        if each.plugin and each.plugin not in _STANDING and not each.reason.startswith((INSUFFICIENT, TOO_MANY_PODS)):
            others[each.plugin] += each.nodes
    if short and short.most_common(1)[0][1] >= max(others.values(), default=0):
        return short.most_common(1)[0][0]
    if any(others.values()):
        return others.most_common(1)[0][0]
    return next(iter(short or others), "")


_STANDING: Final = frozenset({"TaintToleration", "NodeUnschedulable", "NodeAffinity", "NodeName"})
"""What they refuse, they refuse from the first pod on."""


def upper_bound(sandbox: Sandbox, pod: Pod) -> int | None:
    """How many can fit at most; None for a pod that more than amounts may keep away."""
    spec, runtime = pod.spec, sandbox.engine.profiles.get(pod.spec.scheduler_name)
    affinity = spec.affinity
    by_pods = affinity is not None and (affinity.pod_affinity is not None or affinity.pod_anti_affinity is not None)
    ports = any(port.host_port for each in (*spec.containers, *spec.init_containers) for port in each.ports)
    grouped = pod_group_key(pod) is not None and Gate.GENERIC_WORKLOAD in sandbox.config.gates
    if runtime is None or by_pods or ports or spec.topology_spread_constraints or spec.volumes or grouped:
        return None
    if spec.resource_claims or not len(sandbox.cluster.order.rows):
        return None if spec.resource_claims else 0
    cluster = sandbox.cluster
    sampling = replace_sampling(sandbox)
    try:
        feasible = find_feasible(runtime, Cycle(pod, cluster), sampling).feasible
    except PluginError:
        return None
    resources = cluster.resources
    room = resources.allowed_pods[feasible] - resources.pod_count[feasible]
    for name, wanted in fit_requests(pod).items():
        if wanted:
            free = resources.allocatable_of(name)[feasible] - resources.requested_of(name)[feasible]
            room = room.clip(max=free // wanted)
    return int(room.clip(min=0).sum())


def replace_sampling(sandbox: Sandbox) -> Any:
    """A sampling of all nodes that leaves the engine's own where it is."""
    from podium.engine.sampling import Sampling

    return Sampling(100, next_start=sandbox.engine.sampling.next_start)


def left_over(sandbox: Sandbox, name: str, pods: Sequence[Pod]) -> dict[str, str]:
    """What is free on a node: cpu, memory, pod slots, and what else the pods ask for."""
    cluster = sandbox.cluster
    row, resources = cluster.row_of[name], cluster.resources
    requested = {resource: None for pod in pods for resource, amount in fit_requests(pod).items() if amount}
    found = {}
    for resource in dict.fromkeys(("cpu", "memory", *requested)):
        free = int(resources.allocatable_of(resource)[row] - resources.requested_of(resource)[row])
        found[resource] = amount_text(resource, free)
    found["pods"] = str(int(resources.allowed_pods[row] - resources.pod_count[row]))
    return found


def amount_text(resource: str, amount: int) -> str:
    """An amount of a resource as Kubernetes writes it."""
    if resource == "cpu":
        return format_nano(amount * MILLI)
    return format_nano(amount * NANO, binary=abs(amount) >= 1 << 10)
