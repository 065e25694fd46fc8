"""Types every answer of the dashboard's API; `python -m tools.dashboard_types` makes the browser's types from these.

Amounts are as the scheduler counts them: CPU in thousandths, everything else in units. Times are RFC 3339. Fields are
added within a version of the API and never renamed.
"""

from __future__ import annotations

from typing import Any

import msgspec

from podium.engine.explain import Explanation
from podium.run.shadow import Finding


class ApiRecord(msgspec.Struct, rename="camel", kw_only=True):
    """The settings that all answers share."""


class DashboardState(ApiRecord, kw_only=True):
    """What an answer rests on."""

    source: str
    """"podium up", "podium run", "podium run --shadow" or "dump"."""
    at: str
    nodes: int
    pods: int
    """With a node."""
    leads: bool
    everything: bool
    """Whether the viewer sees all namespaces."""
    command: list[str]
    """The words of a command line that name the same source."""
    version: str
    """Podium's."""


class ResourceColumn(ApiRecord, kw_only=True):
    """One resource over all nodes."""

    name: str
    allocatable: list[int]
    requested: list[int]


class NodeLabelColumn(ApiRecord, kw_only=True):
    """One label over all nodes: the number of the value of each, or -1."""

    key: str
    values: list[str]
    of: list[int]


class MeasuredColumn(ApiRecord, kw_only=True):
    """One series of measured load over all nodes."""

    query: str
    source: str
    values: list[float | None]


class QueueCounts(ApiRecord, rename=None, kw_only=True):
    """How many pods are where."""

    active: int = 0
    backoff: int = 0
    unschedulable: int = 0
    gated: int = 0
    permit: int = 0


class Snapshot(ApiRecord, kw_only=True):
    """All nodes as columns, at one moment."""

    schema: str = "podium.dashboard.snapshot/1"
    state: DashboardState
    number: int
    """Grows with every tick of the stream; those after this one continue the snapshot."""
    names: list[str]
    pods: list[int]
    allowed_pods: list[int]
    flags: list[int]
    """1: cordoned, 2: not ready, 4: tainted."""
    resources: list[ResourceColumn]
    labels: list[NodeLabelColumn]
    measured: list[MeasuredColumn]
    counts: QueueCounts
    recent: list[PodEntry]


class PodEntry(ApiRecord, kw_only=True):
    """One thing that happened to a pod."""

    number: int
    time: str
    pod: str
    kind: str
    """queued, held, bound, failed or nominated."""
    where: str
    """The queue that it entered, its node, or the reason of a failure."""
    cause: str
    """The event that moved it, or the message of a failure."""
    object: str
    attempts: int


class Tick(ApiRecord, kw_only=True):
    """What changed since the tick before."""

    number: int
    at: str
    reset: bool
    """Whether the snapshot is to be fetched again: nodes came or went, or the viewer was too slow."""
    counts: QueueCounts
    pods_placed: int
    bound: int
    """Pods bound since the start."""
    failed: int
    leads: bool
    rows: list[int]
    """Places of the nodes that changed."""
    pods: list[int]
    flags: list[int]
    requested: list[list[int]]
    """For each resource, in the order of the snapshot."""
    entries: list[PodEntry]
    more: int
    """Entries left out."""


class WaitsFor(ApiRecord, kw_only=True):
    """A plugin that keeps a pod out, and the events that may change its mind."""

    plugin: str
    events: list[str]


class WaitingPodRow(ApiRecord, kw_only=True):
    """A pod that waits. The fields of `podium queue -o json`, and what the API server knows of it."""

    position: int | None
    pod: str
    scheduler: str
    priority: int
    queue: str
    attempts: int | None
    since: str
    next_try: str | None
    waits_for: list[WaitsFor]
    message: str | None
    owner: str = ""
    reason: str = ""
    """What its scheduler last said of it."""


class ReasonGroup(ApiRecord, kw_only=True):
    """Pods that wait for the same reason."""

    reason: str
    plugins: list[str]
    count: int
    pods: list[str]
    """The first of them."""


class QueueAnswer(ApiRecord, kw_only=True):
    """The pods that wait."""

    schema: str = "podium.dashboard.queue/1"
    state: DashboardState
    counts: QueueCounts
    groups: list[ReasonGroup]
    pods: list[WaitingPodRow]
    hidden: int
    """Pods of namespaces that the viewer may not see."""


class PodDetails(ApiRecord, kw_only=True):
    """A pod: how it stands, why it is where it is or why it is nowhere, and what happened to it."""

    schema: str = "podium.dashboard.pod/1"
    state: DashboardState
    pod: str
    node: str
    nominated: str
    phase: str
    created: str
    owner: str
    priority: int
    scheduler: str
    requests: dict[str, int]
    labels: dict[str, str]
    waiting: WaitingPodRow | None
    timeline: list[PodEntry]


class ExplainAnswer(ApiRecord, kw_only=True):
    """Why a pod is where it is: `explanation` is what `podium explain -o json` prints."""

    schema: str = "podium.dashboard.explain/1"
    state: DashboardState
    explanation: Explanation
    outcome: str


class NodeResource(ApiRecord, kw_only=True):
    """A resource of a node."""

    name: str
    allocatable: int
    requested: int


class NodePodRow(ApiRecord, kw_only=True):
    """A pod on a node."""

    pod: str
    requests: dict[str, int]
    priority: int
    owner: str
    assumed: bool


class MeasuredValue(ApiRecord, kw_only=True):
    """What a source says of a node."""

    query: str
    source: str
    value: float
    age_seconds: float


class NodeDevice(ApiRecord, kw_only=True):
    """A device of a node, and the claim that has it."""

    driver: str
    pool: str
    device: str
    claim: str


class NodeDetails(ApiRecord, kw_only=True):
    """A node: what it offers, who is on it, and what came and went."""

    schema: str = "podium.dashboard.node/1"
    state: DashboardState
    node: str
    cordoned: bool
    ready: bool
    labels: dict[str, str]
    taints: list[str]
    conditions: list[str]
    """Those that are not as they should be."""
    resources: list[NodeResource]
    pod_count: int
    allowed_pods: int
    pods: list[NodePodRow]
    hidden_pods: int
    hidden_requests: dict[str, int]
    """What pods ask for that the viewer may not see."""
    measured: list[MeasuredValue]
    devices: list[NodeDevice]
    timeline: list[PodEntry]


class GangRow(ApiRecord, kw_only=True):
    """Pods that start together."""

    key: str
    minimum: int
    members: int
    assigned: int
    waiting: list[WaitingPodRow]


class QuotaRow(ApiRecord, kw_only=True):
    """A quota: what of each resource is used, guaranteed and allowed at most, as its object says."""

    key: str
    used: dict[str, Any]
    min: dict[str, Any]
    max: dict[str, Any]


class GroupsAnswer(ApiRecord, kw_only=True):
    """Gangs and quotas."""

    schema: str = "podium.dashboard.groups/1"
    state: DashboardState
    gangs: list[GangRow]
    quotas: list[QuotaRow]
    reads_quotas: bool
    """Whether a plugin of the configuration reads quotas."""


class QosAnswer(ApiRecord, kw_only=True):
    """The table of `podium qos`."""

    schema: str = "podium.dashboard.qos/1"
    state: DashboardState
    served: bool
    """Whether a plugin of the configuration follows QoS."""
    rows: list[dict[str, Any]]


class PluginNumber(ApiRecord, kw_only=True):
    """A number that a plugin offers."""

    name: str
    text: str
    labels: dict[str, str]
    value: float


class PolicyRow(ApiRecord, kw_only=True):
    """A plugin that learns, or asks what was learnt."""

    profile: str
    plugin: str
    arguments: dict[str, Any]
    numbers: list[PluginNumber]


class PolicyAnswer(ApiRecord, kw_only=True):
    """Learned policies."""

    schema: str = "podium.dashboard.policy/1"
    state: DashboardState
    policies: list[PolicyRow]


class DifferencesAnswer(ApiRecord, kw_only=True):
    """Where a shadowing scheduler decided otherwise than the one in charge."""

    schema: str = "podium.dashboard.differences/1"
    state: DashboardState
    shadows: bool
    counts: dict[str, int]
    meanings: dict[str, str]
    findings: list[Finding]


class PluginTime(ApiRecord, kw_only=True):
    """How long a plugin took at one step, in sampled attempts."""

    plugin: str
    step: str
    calls: int
    mean_seconds: float
    p50_seconds: float | None
    p99_seconds: float | None


class PluginPlace(ApiRecord, kw_only=True):
    """A plugin at an extension point, with its weight where scores are weighted."""

    name: str
    weight: int | None


class PointPlugins(ApiRecord, kw_only=True):
    """The plugins of an extension point, in running order."""

    point: str
    plugins: list[PluginPlace]


class ProfilePoints(ApiRecord, kw_only=True):
    """A profile as `podium check` prints it."""

    name: str
    points: list[PointPlugins]


class ConfigurationAnswer(ApiRecord, kw_only=True):
    """The configuration in force, as `/configz` shows it."""

    schema: str = "podium.dashboard.configuration/1"
    state: DashboardState
    configuration: dict[str, Any]
    profiles: list[ProfilePoints]
    feature_gates: list[str]
    times: list[PluginTime]
    failures: dict[str, int]
    telemetry: list[TelemetryRow]


class TelemetryRow(ApiRecord, kw_only=True):
    """A series of measured load: how many nodes it has a value for, and how old the oldest is."""

    source: str
    address: str
    query: str
    problem: str | None
    nodes: int
    oldest_seconds: float | None


class TimelinePoint(ApiRecord, kw_only=True):
    """What was counted at one time of the past."""

    time: str
    waiting: int
    placed: int
    bound: int
    failed: int


class TimelineAnswer(ApiRecord, kw_only=True):
    """The past, as far as the dashboard remembers it."""

    schema: str = "podium.dashboard.timeline/1"
    state: DashboardState
    begins: str
    ends: str
    bytes_used: int
    bytes_allowed: int
    points: list[TimelinePoint]
    marks: list[PodEntry]


class NameMatch(ApiRecord, kw_only=True):
    """A node or pod whose name was asked for."""

    kind: str
    name: str
    detail: str


class SearchAnswer(ApiRecord, kw_only=True):
    schema: str = "podium.dashboard.search/1"
    matches: list[NameMatch]


class NoAnswer(ApiRecord, kw_only=True):
    """Why there is no answer, in one sentence."""

    error: str
    login: bool = False
    """Whether a token would help."""


ANSWERS = (
    Snapshot,
    Tick,
    QueueAnswer,
    PodDetails,
    ExplainAnswer,
    NodeDetails,
    GroupsAnswer,
    QosAnswer,
    PolicyAnswer,
    DifferencesAnswer,
    ConfigurationAnswer,
    TimelineAnswer,
    SearchAnswer,
    NoAnswer,
)
"""What the API answers; the types in `web/src/api.ts` are made of these."""
