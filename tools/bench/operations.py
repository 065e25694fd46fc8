"""Defines the operations of workloads, after those of scheduler_perf: create nodes, create pods, delete, churn.

An operation is data. Counts are numbers or the names of a workload's sizes. `prepare` makes every object it will need,
so that nothing is built while the clock runs, and gives the step that uses them.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from msgspec.structs import replace

from podium.kube import CSINode, Namespace, Node, Pod, ResourceClaim
from podium.kube.claim_status import deallocated
from podium.placement.devices.allocator import search
from podium.placement.devices.preparation import prepare
from podium.placement.devices.uses import device_uses
from tools.bench.loop import DECISION, WorkloadRun
from tools.bench.templates import NODE, Maker, ObjectTemplate
from tools.bench.zone_reports import report_zones

Count = int | str
Step = Callable[[WorkloadRun], None]


class Operation(Protocol):
    def prepare(self, plan: WorkloadPlan) -> Step: ...


@dataclass
class WorkloadPlan:
    """What operations know while they prepare: the sizes, and what those before them will create."""

    sizes: Mapping[str, int]
    position: int = 0
    pods: dict[tuple[str, Maker[Pod]], list[Pod]] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)

    def count(self, count: Count) -> int:
        return self.sizes[count] if isinstance(count, str) else count

    def namespace(self, given: str | None) -> str:
        """Operations that name no namespace have one of their own."""
        return f"namespace-{self.position}" if given is None else given


@dataclass(frozen=True)
class CreateNodes:
    count: Count
    template: Maker[Node] = NODE
    csi_node: Maker[CSINode] | None = None

    def prepare(self, plan: WorkloadPlan) -> Step:
        count = plan.count(self.count)
        objects: list[Any] = []
        nodes: list[Node] = []
        for index in range(count):
            node = self.template.make(index, count)
            nodes.append(node)
            objects.append(node)
            if self.csi_node is not None:
                objects.append(self.csi_node.make(index, count))
        plan.nodes += nodes

        def run_step(run: WorkloadRun) -> None:
            _set_all(run, objects)
            report_zones(run.scheduler, nodes)

        return run_step


@dataclass(frozen=True)
class CreateNamespaces:
    prefix: str
    count: Count
    labels: Mapping[str, str] = field(default_factory=dict)

    def prepare(self, plan: WorkloadPlan) -> Step:
        data = {"metadata": {"name": f"{self.prefix}-<index>", "labels": self.labels}}
        template = ObjectTemplate(Namespace, data)
        namespaces = [template.make(index) for index in range(plan.count(self.count))]
        return lambda run: _set_all(run, namespaces)


@dataclass(frozen=True)
class CreateAny:
    template: Maker[Any]
    namespace: str = ""
    count: Count = 1
    less: Count = 0

    def prepare(self, plan: WorkloadPlan) -> Step:
        count = max(0, plan.count(self.count) - plan.count(self.less))
        created = [self.template.make(index, count, self.namespace) for index in range(count)]
        return lambda run: _set_all(run, created)


@dataclass(frozen=True)
class CreatePods:
    """Pods arrive as fast as they are decided, each behind the objects that it `needs`. With `wait` off they are not
    decided yet."""

    count: Count
    template: Maker[Pod]
    namespace: str | None = None
    needs: Sequence[Maker[Any]] = ()
    measured: bool = False
    wait: bool = True
    first: Count = 0
    """The number of the first pod."""

    def prepare(self, plan: WorkloadPlan) -> Step:
        namespace = plan.namespace(self.namespace)
        first = plan.count(self.first)
        arrivals = self._arrivals(first, first + plan.count(self.count), namespace)
        plan.pods[namespace, self.template] = [objects[-1] for objects in arrivals]
        return lambda run: run.arrive(arrivals, measured=self.measured, wait=self.wait) if arrivals else None

    def _arrivals(self, first: int, end: int, namespace: str) -> list[tuple[Any, ...]]:
        makers = (*self.needs, self.template)
        return [tuple(each.make(index, end - first, namespace) for each in makers) for index in range(first, end)]


@dataclass(frozen=True)
class SteadyPods:
    """A few pods at a time: when all are bound they end, their claims with them, and the next ones arrive."""

    at_once: Count
    count: Count
    template: Maker[Pod]
    needs: Sequence[Maker[Any]] = ()
    namespace: str | None = None

    def prepare(self, plan: WorkloadPlan) -> Step:
        namespace, count = plan.namespace(self.namespace), plan.count(self.count)
        makers = (*self.needs, self.template)
        arrivals = [tuple(each.make(index, count, namespace) for each in makers) for index in range(count)]
        return lambda run: self._run(run, arrivals, plan.count(self.at_once))

    def _run(self, run: WorkloadRun, arrivals: list[tuple[Any, ...]], at_once: int) -> None:
        for start in range(0, len(arrivals), at_once):
            batch = arrivals[start : start + at_once]
            run.arrive(batch, measured=True, wait=True)
            if start + at_once < len(arrivals):
                for *needed, pod in batch:
                    run.api.delete_pod(pod.uid)
                    for each in needed:
                        _end_claim(run, each)


@dataclass(frozen=True)
class AllocateClaims:
    """Claims of a namespace get devices of nodes picked at random, without a pod that uses them."""

    namespace: str

    def prepare(self, plan: WorkloadPlan) -> Step:
        return self._run

    def _run(self, run: WorkloadRun) -> None:
        objects, rng = run.scheduler.cluster.objects, random.Random(0)
        uses = device_uses(objects)
        nodes = [node for node in run.scheduler.cluster.nodes if node is not None]
        claims = [each for each in objects.resource_claims if each.namespace == self.namespace]
        prepared = prepare(claims[:1], uses.classes)  # all ask for the same
        for claim in claims:
            for node in rng.sample(nodes, len(nodes)):
                found = search(node, uses.inventory.devices(node), prepared, uses.tally)
                if found is not None:
                    (allocation,) = found.allocations(node.name)
                    run.scheduler.intake.set(replace(claim, status=replace(claim.status, allocation=allocation)))
                    break


@dataclass(frozen=True)
class CreatePodSets:
    """Pods in equal numbers in the namespaces prefix-0, prefix-1, …; `count` is the number of all."""

    namespaces: Count
    prefix: str
    count: Count
    template: Maker[Pod]

    def prepare(self, plan: WorkloadPlan) -> Step:
        count, namespaces = plan.count(self.count), plan.count(self.namespaces)
        arrivals = [
            (self.template.make(index, count, f"{self.prefix}-{index % namespaces}"),) for index in range(count)
        ]
        return lambda run: run.arrive(arrivals, measured=False, wait=True)


@dataclass(frozen=True)
class Barrier:
    """Wait until every pod is bound; or, with `attempted`, only until each has been tried."""

    attempted: bool = False

    def prepare(self, plan: WorkloadPlan) -> Step:
        return WorkloadRun.decide if self.attempted else WorkloadRun.settle


@dataclass(frozen=True)
class DeletePods:
    """Pods created before are deleted on the side."""

    namespace: str
    template: Maker[Pod]
    per_second: float

    def prepare(self, plan: WorkloadPlan) -> Step:
        uids = [pod.uid for pod in plan.pods[self.namespace, self.template]]
        return lambda run: run.on_the_side(_each(run.api.delete_pod, uids), self.per_second)


@dataclass(frozen=True)
class UpdateEach:
    """Objects get a newer version, one after another, and what that brings about is decided."""

    count: Count
    template: Maker[Any]
    per_second: float
    namespace: str = ""

    def prepare(self, plan: WorkloadPlan) -> Step:
        count = plan.count(self.count)
        versions = [self.template.make(index, count, self.namespace) for index in range(count)]
        return lambda run: run.play(_each(partial(_set_one, run), versions), self.per_second)


@dataclass(frozen=True)
class Churn:
    """Objects come on the side. With `recreate` they go again before the next ones come."""

    templates: Sequence[Maker[Any]]
    per_second: float
    recreate: bool = False

    def prepare(self, plan: WorkloadPlan) -> Step:
        namespace = plan.namespace(None)
        # Twice as many as come while every measured pod is decided once: some are decided twice.
        rounds = 1 + int(2 * plan.sizes["measured"] * DECISION * self.per_second)
        created = [[each.make(index, rounds, namespace) for each in self.templates] for index in range(rounds)]
        return lambda run: run.on_the_side(self._stream(run, created), self.per_second)

    def _stream(self, run: WorkloadRun, created: list[list[Any]]) -> Iterator[None]:
        for objects in created:
            _set_all(run, objects)
            yield
            if self.recreate:
                for each in objects:
                    _delete_one(run, each)
                yield


@dataclass(frozen=True)
class Turnover:
    """With every arriving pod a running pod ends and a node comes or goes.

    The node that goes is the oldest; its pods end with it, and as many arrivals then end no other pod.
    """

    node: Maker[Node]
    running: tuple[str, Maker[Pod]]
    arriving: tuple[str, Maker[Pod]]
    count: Count

    def prepare(self, plan: WorkloadPlan) -> Step:
        count, known = plan.count(self.count), len(plan.nodes)
        fresh = [self.node.make(known + index, count) for index in range(count // 2 + 1)]
        # The arriving pods are created by the operation after this one.
        pods = plan.pods
        nodes = plan.nodes
        return lambda run: run.on_the_side(
            self._stream(run, deque(nodes), fresh, [*pods[self.running], *pods[self.arriving]]), 1 / DECISION
        )

    def _stream(self, run: WorkloadRun, nodes: deque[Node], fresh: list[Node], pods: list[Pod]) -> Iterator[None]:
        oldest = iter([pod.uid for pod in pods])
        ended_early = 0
        for comes in fresh:
            ended_early = self._end_one(run, oldest, ended_early)
            run.scheduler.intake.set(comes)
            nodes.append(comes)
            yield
            ended_early = self._end_one(run, oldest, ended_early)
            goes = nodes.popleft()
            cluster = run.scheduler.cluster
            for placed in list(cluster.pods_on[cluster.row_of[goes.name]].values()):
                run.api.delete_pod(placed.pod.uid)
                ended_early += 1
            run.scheduler.intake.delete(goes)
            yield

    def _end_one(self, run: WorkloadRun, oldest: Iterator[str], ended_early: int) -> int:
        if ended_early:
            return ended_early - 1
        for uid in oldest:
            pod = run.api.pods.get(uid)
            if pod is not None and pod.node_name:
                run.api.delete_pod(uid)
                break
        return 0


def _each(act: Callable[[Any], None], items: Iterable[Any]) -> Iterator[None]:
    """A stream of one act after another."""
    for item in items:
        act(item)
        yield


def _set_all(run: WorkloadRun, objects: Sequence[Any]) -> None:
    for each in objects:
        _set_one(run, each)


def _set_one(run: WorkloadRun, each: Any) -> None:
    if isinstance(each, Pod):
        run.api.submit(each)
    else:
        run.scheduler.intake.set(each)


def _end_claim(run: WorkloadRun, each: Any) -> None:
    """A claim ends with its pod: it gives its devices back, and is deleted."""
    latest = run.scheduler.cluster.objects.resource_claims.get(each.key) if isinstance(each, ResourceClaim) else None
    if latest is not None:
        run.scheduler.intake.set(deallocated(latest))
        run.scheduler.intake.delete(latest)


def _delete_one(run: WorkloadRun, each: Any) -> None:
    if isinstance(each, Pod):
        run.api.delete_pod(each.uid)
    else:
        run.scheduler.intake.delete(each)
