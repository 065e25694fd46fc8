"""A scheduler in a world of its own: time that stands still, and somebody who remembers all it writes and tells."""

from __future__ import annotations

import random
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from podium.cluster import Cluster
from podium.engine.binding import run_at_once
from podium.engine.intake import Intake
from podium.engine.scheduler import Scheduler
from podium.framework import ManualClock, Nomination, Plugin, QueuedPod
from podium.framework.extender import Extender
from podium.framework.handle import Driver, Effect, Preemptor
from podium.kube import Node, PersistentVolume, PersistentVolumeClaim, Pod, ResourceClaim
from podium.kube.devices import Allocation
from podium.kube.pod import ExtendedResourceRequestMapping
from podium.testing.memory_writer import MemoryWriter
from tests.podium.framework.runtimes import setup

CLEARED = Nomination("")


class Failed(NamedTuple):
    key: str
    reason: str
    message: str
    nomination: Nomination | None


class World(MemoryWriter):
    """The scheduler with the plugins (see `setup`), and the API server's side of it.

    `bind_answer` is what binding a pod gives; evictions end at once unless `slow_evictions`, then `evictions` holds
    what to call.
    """

    clock: ManualClock
    intake: Intake

    def __init__(
        self,
        *plugins: type[Plugin] | str,
        nodes: Iterable[Node] = (),
        parity: bool = False,
        extenders: Sequence[Extender] = (),
        **options: Any,
    ) -> None:
        given = ("launch", "timer", "on_failure", "load", "pod_outcomes")
        passed_on = {name: options.pop(name) for name in given if name in options}
        hears = {name: options.pop(name) for name in ("on_group_condition",) if name in options}
        super().__init__(options.pop("clock", None) or ManualClock(1_000_000.0), at_once=True)
        config, registry = setup(*plugins, **options)
        self.bind_answer: Effect = None
        self.slow_evictions = False
        self.bound: list[tuple[str, str]] = []
        self.scheduled_pods: list[tuple[str, str]] = []
        self.failures: list[Failed] = []
        self.evicted: list[str] = []
        self.annotate_answer: Effect = None
        self.claim_answer: Effect = None
        self.evictions: list[Callable[[str | None], None]] = []
        self.cleared: list[str] = []
        self.mappings: dict[str, list[ExtendedResourceRequestMapping]] = {}
        self.nominated: list[tuple[str, str]] = []
        self.nominate_answer: Effect = None
        self.gave_way: list[tuple[str, str, str]] = []
        self.reports: list[str] = []
        driver = Driver(
            clock=self.clock,
            writer=self,
            rng=random.Random(0),
            report=self.reports.append,
            extenders=extenders,
            **passed_on,
        )
        self.scheduler = Scheduler(config, registry, driver, self, parity=parity, **hears)
        self.queue, self.intake = self.scheduler.queue, self.scheduler.intake
        self.add(*nodes)

    @property
    def cluster(self) -> Cluster:
        return self.scheduler.cluster

    # What the scheduler writes and tells

    def bind(self, pod: Pod, node_name: str) -> Effect:
        if self.bind_answer is None:
            self.bound.append((pod.name, node_name))
        return self.bind_answer

    def evict(
        self, victims: Sequence[Pod], preemptor: Preemptor, node_name: str, done: Callable[[str | None], None]
    ) -> None:
        self.evicted += [victim.name for victim in victims]
        if self.slow_evictions:
            self.evictions.append(done)
        else:
            done(None)

    def taken_back(self, victim: Pod, preemptor: Preemptor, node_name: str) -> None:
        self.gave_way.append((victim.name, preemptor.name, node_name))

    def nominate(self, pod: Pod, node_name: str) -> Effect:
        self.nominated.append((pod.name, node_name))
        return self.nominate_answer

    def clear_nomination(self, pod: Pod) -> None:
        self.cleared.append(pod.name)

    def annotate(self, pod: Pod, annotations: Mapping[str, str]) -> Effect:
        if self.annotate_answer is None:
            self.annotated[pod.name] = dict(annotations)
        return self.annotate_answer

    def write_volumes(self, volumes: Iterable[PersistentVolume], claims: Iterable[PersistentVolumeClaim]) -> None:
        pass

    def reserve_claim(self, claim: ResourceClaim, allocation: Allocation | None, pod: Pod) -> Effect:
        return super().reserve_claim(claim, allocation, pod) if self.claim_answer is None else self.claim_answer

    def create_claim(
        self,
        claim: ResourceClaim,
        allocation: Allocation,
        pod: Pod,
        mappings: Sequence[ExtendedResourceRequestMapping],
    ) -> Effect:
        self.mappings[pod.name] = list(mappings)
        return super().create_claim(claim, allocation, pod, mappings)

    def scheduled(self, pod: Pod, node_name: str) -> None:
        self.scheduled_pods.append((pod.name, node_name))

    def failed(self, pod: Pod, reason: str, message: str, nomination: Nomination | None) -> None:
        self.failures.append(Failed(pod.key, reason, message, nomination))

    # What happens around it

    def add(self, *items: Any) -> None:
        for item in items:
            self.intake.set(item)

    def delete(self, *items: Any) -> None:
        for item in items:
            self.intake.delete(item)

    def try_next(self) -> None:
        """One scheduling cycle; there must be a pod to try."""
        assert self.scheduler.schedule_one() is not None, "no pod is ready"

    def attempt(self, *pods: Pod) -> None:
        """Let pods arrive and try each of them once."""
        for pod in pods:
            self.add(pod)
            self.try_next()

    def pass_time(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.scheduler.tick()

    # What can be seen

    @property
    def message(self) -> str:
        """The last failure's message."""
        return self.failures[-1].message

    def node_of(self, name: str) -> str | None:
        """The node a pod stands on in the scheduler's eyes."""
        placed = self.cluster.pods.get(f"default-{name}")
        return None if placed is None else self.cluster.names[placed.row]

    def queued(self, name: str = "p1") -> QueuedPod:
        found = self.queue.get(f"default/{name}")
        assert found is not None, f"{name} is not queued"
        return found

    def nothing_left_of(self, name: str = "p1") -> bool:
        """Whether a pod that failed has no node, is not held and not in flight."""
        uid = f"default-{name}"
        held = self.scheduler.waiting.get(uid) is not None
        return uid not in self.cluster.pods and not held and uid not in self.queue.in_flight

    def place(self, name: str) -> str:
        """Where in the queue a pod is; "" when it is not."""
        queued = self.queue.get(f"default/{name}")
        return "" if queued is None else queued.queue


class Launched:
    """Bindings that do not start until told to; give it as `launch`."""

    def __init__(self) -> None:
        self.waiting: list[Coroutine[Any, Any, None]] = []

    def __call__(self, work: Coroutine[Any, Any, None]) -> None:
        self.waiting.append(work)

    def finish(self) -> None:
        while self.waiting:
            run_at_once(self.waiting.pop(0))


def on(pod: Pod, node_name: str) -> Pod:
    """The pod as the API server shows it once bound."""
    metadata = replace(pod.metadata, resource_version="bound")
    return replace(pod, metadata=metadata, spec=replace(pod.spec, node_name=node_name))
