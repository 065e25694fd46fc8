"""Defines a scenario, field by field, as it is written in a YAML file.

    nodes:     {count: 100, allocatable: {cpu: 8, memory: 32Gi}}
    workload:  {generate: {count: 5000, interval: {exponential: 2s}, lifetime: {exponential: 10m}}}
    profiles:  [{name: default}, {name: packed, file: packed.yaml}]
    seeds:     42-51

Amounts that vary are drawn: a number or a text ("5m", "500m", "1Gi") is constant, a mapping names a distribution. Times
are durations, resources are quantities. Every draw comes from the run's seed, in an order that no profile changes, so
that profiles are compared on the same pods at the same times.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, field

from podium.config.durations import Duration
from podium.errors import UserError
from podium.kube.meta import Amount


class ScenarioError(UserError):
    """The input of a simulation cannot be used: what is wrong, with the file, the line and the column where it stands.

    Each line of the text is one mistake.
    """

    def __init__(self, mistakes: str | Iterable[str]) -> None:
        self.mistakes = [mistakes] if isinstance(mistakes, str) else list(mistakes)
        super().__init__("\n".join(self.mistakes))


Positive = Annotated[int, Meta(ge=1)]
Count = Annotated[int, Meta(ge=0)]
Share = Annotated[float, Meta(ge=0, le=1)]


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Common to all parts of a scenario: camelCase in the file, nothing unknown, never changed."""


def as_written(value: Any) -> Any:
    """A scenario, or a part of one, as plain values without what is as it is by default."""
    if isinstance(value, _Part):
        fields = ((each, getattr(value, each.name)) for each in msgspec.structs.fields(value))
        return {each.encode_name: as_written(found) for each, found in fields if found != default_of(each)}
    if isinstance(value, (list, tuple)):
        return [as_written(each) for each in value]
    if isinstance(value, dict):
        return {name: as_written(each) for name, each in value.items()}
    return str(value) if isinstance(value, Duration) else value


def default_of(field: msgspec.structs.FieldInfo) -> Any:
    """What a field is where it is left out; NODEFAULT where it must be there."""
    factory: Any = field.default_factory
    return field.default if factory is msgspec.NODEFAULT else factory()


class Distribution(_Part, frozen=True):
    """How an amount varies; exactly one field is set."""

    uniform: tuple[Amount, Amount] | None = None
    """From the first to the second."""
    exponential: Amount | None = None
    """With this mean."""
    normal: tuple[Amount, Amount] | None = None
    """Mean and deviation; what falls below zero is zero."""
    lognormal: tuple[Amount, float] | None = None
    """Median, and the deviation of the logarithm."""
    choice: dict[str, float] | None = None
    """Amounts with weights."""


Varying = Amount | Distribution


class NodeGroup(_Part, frozen=True):
    """Nodes of one origin: so many of a kind, the nodes in a kubectl dump, or those of a trace."""

    count: Positive | None = None
    """How many nodes of this kind."""
    name: str = "node-{index}"
    """Their names; `{index}` stands for the number of the node."""
    allocatable: dict[str, Amount] = field(default_factory=dict)
    """What each offers: resource → quantity. 110 pods unless it says otherwise."""
    labels: dict[str, str] = field(default_factory=dict)
    """`{index}` stands for the node's number, `{zone}` for its number in turn below `zones`."""
    zones: Positive = 1
    """How many zones. Without `labels`, nodes are labelled `topology.kubernetes.io/zone` with them in turn."""
    taints: list[dict[str, str]] = field(default_factory=list)
    """As in the spec of a node: `key`, `value`, `effect`."""
    latency: Varying | None = None
    """Milliseconds from each node to the users, drawn once for each node; with `usage` it's measured."""
    file: str | None = None
    """What `kubectl get nodes -o yaml` prints."""
    openb: str | None = None
    """A node list of the openb trace."""
    hosts: str | None = None
    """A host list of the QoS experiments: host, cpu, ram."""
    vmr2l: str | None = None
    """An instance of VMR2L: its machines."""


class PodShape(_Part, frozen=True):
    """One sort of generated pod."""

    name: str = ""
    """What results call it; else `shapes[0]`, `shapes[1]`, …"""
    weight: Annotated[float, Meta(ge=0)] = 1.0
    """How often it is drawn, against the weights of the other shapes."""
    requests: dict[str, Varying] = field(default_factory=dict)
    """Resource → what a pod asks for."""
    limits: dict[str, Varying] = field(default_factory=dict)
    """Resource → limit."""
    priority: int = 0
    """As in the spec of a pod."""
    labels: dict[str, str] = field(default_factory=dict)
    """Of its pods."""
    annotations: dict[str, str] = field(default_factory=dict)
    """Of its pods."""
    spec: dict[str, Any] = field(default_factory=dict)
    """Further fields of a pod's spec."""


class Generated(_Part, frozen=True):
    """Pods that are drawn."""

    count: Positive
    """How many pods arrive in all."""
    start: Duration = field(default_factory=lambda: Duration.parse("0s"))
    """When the first arrives."""
    interval: Varying = 0
    """Between one arrival and the next."""
    batch: Varying = 1
    """Pods that arrive together."""
    lifetime: Varying | None = None
    """How long a pod runs; for ever where it is left out."""
    name: str = "pod"
    """What names of pods begin with."""
    namespace: str = "default"
    """Of the pods."""
    shapes: list[PodShape] = field(default_factory=lambda: [PodShape()])
    """The shapes that pods are drawn from."""


class OpenbPods(_Part, frozen=True):
    """A pod list of the openb trace, as the published experiments use it: shuffled, grown to a target, never ending."""

    list: str
    """The CSV file."""
    target: Annotated[float, Meta(gt=0)] = 1.3
    """GPU demand to reach, as a share of the nodes' GPUs."""
    times: bool = False
    """Take creation and deletion times from the list instead, and neither shuffle nor grow it."""


class AzurePods(_Part, frozen=True):
    """Virtual machines of the Azure 2017 trace: one pod each."""

    file: str | None = None
    """A CSV with arrival_s, batch, cpu_milli, memory_mib, min_life_s, max_life_s, still_running."""
    folder: str | None = None
    """Or the four upstream files: v1.dev.txt, v1.dev.c2100000.txt, flav_map.txt, v1.interval_map.txt."""
    lifetime: Literal["uniform", "min", "max"] = "uniform"
    """Where in its bin a lifetime lies: anywhere, at the shortest, or at the longest."""
    spread: bool = True
    """Batches arrive at a drawn moment of their five minutes; else all at its end."""


class BrokerPods(_Part, frozen=True):
    """A workload of the QoS broker: 12, 17 or 18 columns without a header."""

    file: str
    """The CSV file."""
    priorities: dict[str, int] = field(
        default_factory=lambda: {"prod": 1000, "batch": 500, "free": 100, "lower": 50, "opportunistic": 0}
    )
    """Class → priority of its pods."""


class DumpedPods(_Part, frozen=True):
    """Pods of a kubectl dump. Those that have a node start there; others arrive."""

    file: str
    """What `kubectl get pods -A -o yaml` prints."""
    lifetime: Varying | None = None
    """How long a pod runs; for ever where it is left out."""
    arrive: Literal["together", "created"] = "together"
    """All at the start (`together`), or as far apart as they were created (`created`)."""


class Vmr2lPods(_Part, frozen=True):
    """The VMs of an instance of VMR2L: one pod each."""

    file: str
    """The JSON file."""
    arrive: Literal["shuffled", "placed"] = "shuffled"
    """One by one in an order drawn from the seed (`shuffled`), or all at the start, where the file has them
    (`placed`)."""
    sets: bool = True
    """Keep the VMs of a deployment set on different machines, or in different racks."""


class PodSource(_Part, frozen=True):
    """Where pods come from; exactly one field is set."""

    generate: Generated | None = None
    """Pods that are drawn."""
    openb: OpenbPods | None = None
    """A pod list of the openb trace."""
    azure: AzurePods | None = None
    """Virtual machines of the Azure trace."""
    broker: BrokerPods | None = None
    """A workload of the QoS broker."""
    dump: DumpedPods | None = None
    """Pods of a cluster."""
    vmr2l: Vmr2lPods | None = None
    """VMs of an instance of VMR2L."""


class Fault(_Part, frozen=True):
    """Something that happens to nodes.

    - `fail`: the node is out of reach; its pods are replaced after `evictAfter`, or go on if it is back before.
    - `drain`: the node takes no new pods, and those on it are evicted.
    - `leave`: the same, and the node does not come back.
    - `join`: new nodes come.
    """

    kind: Literal["fail", "drain", "leave", "join"]
    """What happens, as above."""
    nodes: str = "*"
    """Names, as a pattern with * and ?."""
    count: Positive = 1
    """How many at a time."""
    at: Varying | None = None
    """When it happens first; at once where only `every` is left out."""
    every: Varying | None = None
    """Between one time and the next; once where it is left out."""
    lasts: Varying = "10m"
    """Until the node is back, with `fail` and `drain`."""
    evict_after: Duration = field(default_factory=lambda: Duration.parse("5m"))
    """With `fail`: how long pods stay on a node that is out of reach."""
    group: NodeGroup | None = None
    """The nodes that join."""


class UsageModel(_Part, frozen=True):
    """What pods really use, so that there is something to measure.

        use(t) = request · level · (1 + swing·(⅔·sin(2π(t/period + a)) + ⅓·sin(2π(4.7·t/period + b))))

    within 0 and `burst` times the request. Level, a and b are drawn for each pod, the same for every profile. Memory
    goes by the level alone. Traffic is `network` bytes a second for each core that is used.
    """

    level: Varying = field(default_factory=lambda: Distribution(normal=(0.6, 0.25)))
    """Share of its request that a pod uses in the mean."""
    swing: Varying = 0.4
    """How far use goes up and down, as a share of the level."""
    period: Duration = field(default_factory=lambda: Duration.parse("1h"))
    """Of the longer of the two waves."""
    burst: Annotated[float, Meta(gt=0)] = 2.0
    """Most that a pod uses, as a multiple of its request."""
    unrequested: dict[str, Amount] = field(default_factory=lambda: {"cpu": "100m", "memory": "200Mi"})
    """What a pod counts as that requests nothing of a resource."""
    network: Varying = field(default_factory=lambda: Distribution(lognormal=(1_000_000, 1.0)))
    """Bytes a second for each core that is used."""
    interval: Duration = field(default_factory=lambda: Duration.parse("1m"))
    """Between measurements."""
    window: Duration = field(default_factory=lambda: Duration.parse("15m"))
    """Over which mean and deviation are taken."""
    connections: Varying = 0
    """Established connections that a pod holds."""
    late: Duration = field(default_factory=lambda: Duration.parse("0s"))
    """From a measurement until it's known; at most `interval`."""
    missing: Share = 0.0
    """The share of nodes that a measurement misses, drawn each time."""
    overload: Annotated[float, Meta(gt=0)] = 0.9
    """A node is overloaded above this share of its CPU."""


class RewardPhase(_Part, frozen=True):
    """What rewards lose from a time on."""

    at: Duration = field(default_factory=lambda: Duration.parse("0s"))
    """When it begins."""
    cpu: Share = 0.0
    """On a node whose CPU is full; on others by the square of its load."""
    memory: Share = 0.0
    """On a node whose memory is full; on others by the square of its load."""
    network: Share = 0.0
    """On a node that is full; on others by the square of its load."""
    labels: dict[str, Share] = field(default_factory=dict)
    """On nodes with a label, written `key=value`."""


class RewardRules(_Part, frozen=True):
    """How pods fare on their nodes; each says so in its annotation podium.dev/reward, from which OnlineScore learns.

        reward = 1 − Σ cost · load² − cost of the node's labels + noise, within 0–1

    Load is that of the last measurement.
    """

    after: Varying = "1m"
    """From binding to the reward; a pod that ends before has none."""
    noise: Share = 0.05
    """The deviation of what nothing explains."""
    network_full: Annotated[float, Meta(gt=0)] = 1e8
    """Bytes a second of a node whose network is full."""
    phases: list[RewardPhase] = field(default_factory=list)
    """In the order of their times: the last that has begun counts."""


class Contender(_Part, frozen=True):
    """One profile to compare: kube-scheduler's default, the fields of a profile, or a whole configuration file."""

    name: str
    """What results call it."""
    profile: dict[str, Any] | None = None
    """The fields of a profile. `typicalPods: workload` in the arguments of GpuFGD stands for the typical pods of the
    workload, `knowledge: workload` in those of LearnedScore for all of its pods."""
    file: str | None = None
    """A KubeSchedulerConfiguration."""


class Checkpoints(_Part, frozen=True):
    """When figures are taken: by time, or by the GPU demand that has arrived."""

    every: Duration | None = None
    """Virtual time between one row of figures and the next; five minutes where neither is given."""
    arrived_pct: Positive | None = None
    """At every so many whole percent, each the mean over the pods that arrived at that percent."""


class Scenario(_Part, frozen=True):
    """A cluster, what happens to it, and the profiles that are compared on it."""

    nodes: NodeGroup | list[NodeGroup]
    """The nodes at the start: one group, or several."""
    workload: str | PodSource | list[PodSource]
    """Where pods come from: one source or several. A text is the path of a CSV, whose columns tell the format."""
    name: str = ""
    """What the report is called."""
    description: str = ""
    """A text for the report."""
    seeds: int | str | list[int] = 1
    """One (7), a range ("42-51") or several."""
    objects: list[str] = field(default_factory=list)
    """Files with what the cluster has beside nodes and pods: PodGroups, quotas, volumes, services, budgets."""
    profiles: list[Contender] = field(default_factory=lambda: [Contender(name="default")])
    """The profiles that are compared, each on the same pods."""
    duration: Duration | None = None
    """When to stop, counted from the first row where the workload is one of the QoS broker; without it, when no pod can
    arrive, start or end any more."""
    node_order: Literal["given", "shuffled"] = "given"
    """Which of equal nodes is first: as they are written (`given`), or in an order drawn from the seed (`shuffled`)."""
    unschedulable: Literal["wait", "drop"] = "wait"
    """A pod that fits nowhere stays in the queue (`wait`) or goes (`drop`)."""
    evicted: Literal["restart", "resume", "lost"] = "restart"
    """What comes for a pod that is preempted or loses its node: a new one that runs all of its time (`restart`), one
    that runs the rest of it (`resume`), or none (`lost`)."""
    start_delay: Varying = 0
    """From binding to running."""
    decision: Duration = field(default_factory=lambda: Duration.parse("0s"))
    """Virtual time each decision takes."""
    faults: list[Fault] = field(default_factory=list)
    """What happens to nodes."""
    usage: UsageModel | None = None
    """What pods really use; without it, nothing is measured."""
    rewards: RewardRules | None = None
    """With `usage`: how pods fare."""
    checkpoints: Checkpoints = field(default_factory=Checkpoints)
    """When figures are taken."""
    summary: list[str] = field(default_factory=list)
    """Figures that the summary shows; where it is empty, those that vary."""
    summary_at: list[Positive] = field(default_factory=list)
    """With `checkpoints.arrivedPct`: the percents that the summary shows; else the last checkpoint."""


DURATION = {
    "type": "string",
    "pattern": r"^(0|([0-9]*\.?[0-9]+(ns|us|µs|ms|s|m|h))+)$",
    "examples": ["90s", "5m", "1h30m"],
}


def scenario_schema() -> dict[str, Any]:
    """The JSON Schema of scenarios, draft 2020-12, which editors use to complete and check them."""
    schema = msgspec.json.schema(Scenario, schema_hook=_hook)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Podium scenario", **schema}


def _hook(kind: type) -> dict[str, Any]:
    if kind is Duration:
        return DURATION
    raise NotImplementedError(kind)
