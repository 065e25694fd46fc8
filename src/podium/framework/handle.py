"""Gives plugins what is outside the cycle: the cluster, time, chance, waiting pods, writing to the API.

The runtime gives every plugin one handle. Everything with an effect outside the process goes through `writer`, which
each driver implements: the live scheduler calls the API server, the simulator changes its own world.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from podium.cluster import Cluster
from podium.framework.clock import Clock
from podium.framework.extender import Extender
from podium.framework.nominator import Nominator
from podium.framework.object_problems import ObjectProblems
from podium.framework.plugin_failures import OnPluginFailure, ignore_failure
from podium.framework.pod_outcomes import PodOutcomes
from podium.framework.status import Status
from podium.framework.timer import UNTIMED, Timer
from podium.framework.waiting import DeviceWaits, WaitingPods
from podium.kube import PersistentVolume, PersistentVolumeClaim, Pod, PodGroup, ResourceClaim
from podium.kube.devices import Allocation
from podium.kube.pod import ExtendedResourceRequestMapping
from podium.kube.versions import NEWEST, VersionRules
from podium.load.readings import LoadSource

if TYPE_CHECKING:
    from podium.framework.profile import ProfileRuntime

Effect = Status | None | Awaitable[Status | None]
"""The outcome of a step or a write: at once, or when awaited."""


class GroupPreemptor(NamedTuple):
    """A PodGroup that others give way to, and the scheduler of its pods."""

    group: PodGroup
    scheduler_name: str

    @property
    def uid(self) -> str:
        return self.group.uid

    @property
    def key(self) -> str:
        return self.group.key

    @property
    def name(self) -> str:
        return self.group.name


Preemptor = Pod | GroupPreemptor


class Writer(Protocol):
    """The writes plugins make. A driver that cannot wait answers at once."""

    def bind(self, pod: Pod, node_name: str) -> Effect: ...

    def evict(
        self, victims: Sequence[Pod], preemptor: Preemptor, node_name: str, done: Callable[[str | None], None]
    ) -> None:
        """Remove pods to make room (condition, event, deletion); `done` is called when all are, or with what failed."""

    def taken_back(self, victim: Pod, preemptor: Preemptor, node_name: str) -> None:
        """Record that a pod gave way before it was bound: nothing but the scheduler's memory had to change."""

    def nominate(self, pod: Pod, node_name: str) -> Effect:
        """Write into a pod's status where it is going, before it is bound."""

    def clear_nomination(self, pod: Pod) -> None:
        """Take back the nominated node in a pod's status."""

    def annotate(self, pod: Pod, annotations: Mapping[str, str]) -> Effect:
        """Write annotations of a pod that is about to be bound, beside those it has."""

    def write_volumes(self, volumes: Iterable[PersistentVolume], claims: Iterable[PersistentVolumeClaim]) -> Effect:
        """Write the claim references of volumes and the chosen node of claims.

        An answer given at once says that they are bound; after one that is awaited, the plugin waits for that itself.
        """

    def reserve_claim(self, claim: ResourceClaim, allocation: Allocation | None, pod: Pod) -> Effect:
        """Write into a claim's status that a pod uses it, with what it was given unless it has that already.

        What was written comes back as a change of the claim, before an answer that is awaited.
        """

    def create_claim(
        self,
        claim: ResourceClaim,
        allocation: Allocation,
        pod: Pod,
        mappings: Sequence[ExtendedResourceRequestMapping],
    ) -> Effect:
        """Create the claim for a pod's extended resources, reserved and with what it was given, and note it in the pod.

        Where the answer is given at once, the claim comes back with the uid that it has here.
        """

    def delete_claim(self, claim: ResourceClaim) -> None:
        """Delete a claim that was created for extended resources, and give back what it has."""

    def release_claim(self, claim: ResourceClaim, pod: Pod) -> None:
        """Take back that a pod uses a claim; what the claim was given stays."""

    def deallocate_claim(self, claim: ResourceClaim) -> None:
        """Take back what a claim was given."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Driver:
    """What a driver gives the engine and its plugins; `Handle` says what plugins use it for."""

    clock: Clock
    writer: Writer
    rng: random.Random = field(default_factory=lambda: random.Random(0))
    load: LoadSource | None = None
    pod_outcomes: PodOutcomes | None = None
    report: Callable[[str], None] = lambda _message: None
    timer: Timer = UNTIMED
    on_failure: OnPluginFailure | None = None
    """None: a scheduler reports what plugins raise, anything else ignores it."""
    extenders: Sequence[Extender] = ()
    launch: Callable[[Coroutine[Any, Any, None]], Any] | None = None
    """None: a scheduler runs it to its end at once, anything else does not run it."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class EngineState:
    """What all profiles of one scheduler share, and the ways to its queue."""

    cluster: Cluster
    nominator: Nominator = field(default_factory=Nominator)
    waiting: WaitingPods = field(default_factory=WaitingPods)
    device_waits: DeviceWaits = field(default_factory=DeviceWaits)
    problems: ObjectProblems | None = None
    pre_binding: dict[str, Callable[[str], None]] = field(default_factory=dict)
    activate: Callable[[Iterable[Pod]], None] = lambda _pods: None
    resort: Callable[[Iterable[Pod]], None] = lambda _pods: None
    wake_at: Callable[[Pod, float], None] = lambda _pod, _when: None


class Handle:
    """One profile's way to the outside."""

    def __init__(
        self,
        driver: Driver,
        state: EngineState,
        *,
        rules: VersionRules = NEWEST,
        scheduler_name: str = "default-scheduler",
    ) -> None:
        self.cluster = state.cluster
        """The state of the cluster: nodes, pods and objects. It is read only."""
        self.clock = driver.clock
        """The only time a plugin may use."""
        self.rng = driver.rng
        """The only chance a plugin may use."""
        self.nominator = state.nominator
        """The pods that preemption makes room for."""
        self.waiting = state.waiting
        """The pods that are held at Permit."""
        self.writer = driver.writer
        """Writes to the API server."""
        self.activate = state.activate
        """Tries waiting pods again now."""
        self.resort = state.resort
        """Puts pods that wait in the queue where QueueSort has them now; for when their keys changed."""
        self.wake_at = state.wake_at
        """Has a pod tried again at a time when it is known that time will help it, if it is unschedulable then."""
        self.load = driver.load
        """Measured load; `podium.load.readings.follow` uses it."""
        self.pod_outcomes = driver.pod_outcomes
        """What becomes of pods; `podium.framework.pod_outcomes.learn` uses it."""
        self.report = driver.report
        """Logs a sentence as a warning."""
        self.problems = state.problems or ObjectProblems(driver.report)
        """Where plugins say what is wrong with an object that they read."""
        self.timer = driver.timer
        """Measures how long plugins take."""
        self.on_failure: OnPluginFailure = driver.on_failure or ignore_failure
        """Hears of every exception that a plugin raises."""
        self.scheduler_name = scheduler_name
        """The name of the profile."""
        self.extenders = driver.extenders
        """The extenders of the configuration."""
        self.pre_binding = state.pre_binding
        """Pods being prepared for binding, by uid: calling off what is under way, with the reason."""
        self.rules = rules
        """What the kube-scheduler of the Kubernetes minor does that those of others do not."""
        self.gates = rules.gates
        """kube-scheduler's feature gates that are on."""
        self.launch: Callable[[Coroutine[Any, Any, None]], Any] = driver.launch or Coroutine.close
        """Let something run beside the decisions; what it awaits is awaited by the driver."""
        self.device_waits = state.device_waits
        """Hears of pods that wait for devices to be attached."""
        self.initializing = ""
        """The plugin whose `__init__` runs."""
        self.runtime: ProfileRuntime

    def pods(self) -> Iterator[Pod]:
        """Every pod the scheduler knows: placed and pending."""
        yield from (placed.pod for placed in self.cluster.pods.values())
        yield from self.cluster.objects.pending_pods
