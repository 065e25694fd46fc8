"""Measures nodes and annotates them, once or at an interval.

One round lists what it needs, measures, and writes; what goes wrong in it is the answer, with the exit code 1. Many
rounds watch what they need instead, because all nodes and pods of a large cluster are too much to list every minute.
What goes wrong in one of them is logged, once while it lasts and once more when it is over, and the next tries again.

Allocation is what the pods on each node request, and what is left of the node. Every pod that is bound to the node and
has not ended counts, whether it runs yet or not, with what Kubernetes reckons it to ask for: the larger of its
containers and its init containers, and its overhead. cpu is in thousandths, memory and storage in bytes, pods and GPUs
are counted; all are whole numbers.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from podium.client import RESOURCES, ApiError, ApiResource, Client, ClientError, Reflector, missing_rule
from podium.client.listing import list_all
from podium.client.reading import Reader
from podium.framework.clock import Clock
from podium.kube import Node, Pod
from podium.kube.requests import offered, requested
from podium.load import USAGE_KEYS, NodeUsage, UsageSettings
from podium.run.snapshot import fetch_nodes
from podium.serving.log import LOG
from podium_plugins.annotate.annotations import AnnotationKeys, AnnotationOutcome, Annotator, ForbiddenError

AMOUNTS = ("cpu", "memory", "pods", "gpu", "ephemeral-storage")
REQUESTED, FREE = "requested-{}", "free-{}"
ALLOCATION_KEYS = tuple(kind.format(resource) for resource in AMOUNTS for kind in (REQUESTED, FREE))
ENDED = ("Succeeded", "Failed")
USAGE = AnnotationKeys("podium-annotate-usage", USAGE_KEYS, "usage-measured-at")
ALLOCATION = AnnotationKeys("podium-annotate-allocation", ALLOCATION_KEYS, "allocation-measured-at")
FINE, FAILED = 0, 1


class Pace(NamedTuple):
    """How often and how exactly; `interval` None: once, and then `print` and `warn` get the answer."""

    interval: float | None
    max_age: float
    tolerance: float = 0.0
    print: Callable[[str], None] = LOG.info
    warn: Callable[[str], None] = LOG.warning


class AnnotationRound(NamedTuple):
    """One round: what became of the nodes, and what went wrong."""

    outcome: AnnotationOutcome
    problems: list[str]


async def annotate_usage(
    client: Client, settings: UsageSettings, pace: Pace, *, clock: Clock, rng: random.Random, stop: asyncio.Event
) -> int:
    measuring = NodeUsage(settings, clock=clock, rng=rng)
    annotator = Annotator(client, USAGE, max_age=pace.max_age, tolerance=pace.tolerance)

    async def one_round(known: ClusterView) -> AnnotationRound:
        nodes, now = await known.nodes(), clock.now()
        measured = await measuring.measure(nodes, now)
        return AnnotationRound(await annotator.write(nodes, measured, now), measuring.problems)

    try:
        return await _rounds(one_round, pace, stop, client, (Node,), rng)
    finally:
        await measuring.close()


async def annotate_allocation(
    client: Client, gpu: str, pace: Pace, *, clock: Clock, rng: random.Random, stop: asyncio.Event
) -> int:
    annotator = Annotator(client, ALLOCATION, max_age=pace.max_age, tolerance=pace.tolerance)

    async def one_round(known: ClusterView) -> AnnotationRound:
        nodes, now = await known.nodes(), clock.now()
        measured = allocations(nodes, await known.pods(), gpu)
        return AnnotationRound(await annotator.write(nodes, measured, now), [])

    return await _rounds(one_round, pace, stop, client, (Node, Pod), rng)


# The cluster


class ClusterView(Protocol):
    """The nodes and pods of the cluster, as of now."""

    async def nodes(self) -> Sequence[Node]: ...

    async def pods(self) -> Sequence[Pod]: ...


class ListedCluster:
    """The cluster, listed each time."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def nodes(self) -> Sequence[Node]:
        return await fetch_nodes(self._client)

    async def pods(self) -> Sequence[Pod]:
        resource: ApiResource[Pod] = RESOURCES[Pod]
        found, _version = await list_all(self._client, resource, Reader(resource))
        return [each.object for each in found if each.object is not None]


class WatchedCluster:
    """The cluster, watched; the first use waits for the first lists."""

    def __init__(self, client: Client, kinds: Iterable[type], rng: random.Random) -> None:
        self._reflectors: dict[type, Reflector[Any]] = {
            kind: Reflector(client, RESOURCES[kind], on_set=_nothing, on_delete=_nothing, report=LOG.warning, rng=rng)
            for kind in kinds
        }

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for reflector in self._reflectors.values():
                tasks.create_task(reflector.run())

    async def nodes(self) -> Sequence[Node]:
        return await self._all(Node)

    async def pods(self) -> Sequence[Pod]:
        return await self._all(Pod)

    async def _all(self, kind: type) -> list[Any]:
        reflector = self._reflectors[kind]
        await reflector.synced.wait()
        return list(reflector.store.values())


def _nothing(_item: object) -> None:
    pass


# Rounds

OneRound = Callable[[ClusterView], Awaitable[AnnotationRound]]


async def _rounds(
    one_round: OneRound,
    pace: Pace,
    stop: asyncio.Event,
    client: Client,
    kinds: Iterable[type],
    rng: random.Random,
) -> int:
    if pace.interval is None:
        summary, problems = await _try(one_round, ListedCluster(client))
        if summary:
            pace.print(summary)
        for problem in problems:
            pace.warn(problem)
        return FAILED if problems else FINE
    known = WatchedCluster(client, kinds, rng)
    works = [known.run(), _repeat(one_round, known, pace.interval), stop.wait()]
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        done, _pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
        return FINE
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _repeat(one_round: OneRound, known: ClusterView, interval: float) -> None:
    loop = asyncio.get_running_loop()
    reported: list[str] = []
    while True:
        due = loop.time() + interval
        summary, problems = await _try(one_round, known)
        if summary:
            LOG.info("%s", summary)
        for problem in problems:
            if problem not in reported:
                LOG.warning("%s", problem)
        if reported and not problems:
            LOG.info("nodes are annotated again")
        reported = problems
        await asyncio.sleep(max(0.0, due - loop.time()))


async def _try(one_round: OneRound, known: ClusterView) -> tuple[str, list[str]]:
    """What became of a round, and what went wrong in it."""
    try:
        outcome, problems = await one_round(known)
    except ForbiddenError as error:
        return "", [str(error)]
    except ApiError as error:
        rule = missing_rule(error)
        return "", [f"nodes cannot be annotated: the role needs the rule {rule}" if rule else str(error)]
    except ClientError as error:
        return "", [str(error)]
    if outcome.failed:
        name, problem = min(outcome.failed.items())
        more = f" (and {len(outcome.failed) - 1} more)" if len(outcome.failed) > 1 else ""
        problems = [*problems, f"node {name}{more} cannot be annotated: {problem}"]
    return str(outcome), problems


# What is allocated


def allocations(nodes: Iterable[Node], pods: Iterable[Pod], gpu: str) -> dict[str, dict[str, str]]:
    """The annotations of each node; `gpu` is what GPUs are called."""
    used: dict[str, dict[str, int]] = {}
    for pod in pods:
        if pod.node_name and pod.status.phase not in ENDED:
            total = used.setdefault(pod.node_name, {"pods": 0})
            total["pods"] += 1
            for name, amount in requested(pod).items():
                total[name] = total.get(name, 0) + amount
    return {node.name: _annotations(node, used.get(node.name, {}), gpu) for node in nodes}


def _annotations(node: Node, used: dict[str, int], gpu: str) -> dict[str, str]:
    capacity = offered(node.status.allocatable)
    found = {}
    for resource in AMOUNTS:
        name = gpu if resource == "gpu" else resource
        taken = used.get(name, 0)
        found[REQUESTED.format(resource)] = str(taken)
        found[FREE.format(resource)] = str(max(capacity.get(name, 0) - taken, 0))
    return found
