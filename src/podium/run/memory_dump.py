"""Writes what the scheduler holds in memory to the log when SIGUSR2 asks for it, and where that contradicts the watch.

One line per node (what is requested and offered, its pods, the pods nominated for it) and one per pod in the queue, as
kube-scheduler's dump has them. First come mismatches: nodes and pods that the watch has shown and the scheduler does
not count (`missed`), and such as it counts but the watch has not shown (`redundant`; a pod that was just placed may be
among them for a moment). Scheduling goes on in between: a line is true at the moment it is written.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from podium.cluster import Cluster
from podium.cluster.resources import ALLOCATABLE, ALLOWED_PODS, CORE_RESOURCES, POD_COUNT, REQUESTED
from podium.engine.scheduler import Scheduler
from podium.kube import Node, Pod
from podium.run.driver import LiveScheduler
from podium.serving.log import LOG

LINES_AT_ONCE = 50
"""Lines before scheduling has its turn."""


class Mismatch(NamedTuple):
    """Names in what was watched only, and in memory only."""

    missed: list[str]
    redundant: list[str]


def dump_on_signal(live: LiveScheduler) -> None:
    """From now on SIGUSR2 writes the dump."""
    under_way: set[asyncio.Task[None]] = set()

    def on_signal() -> None:
        if not under_way:
            task = asyncio.get_running_loop().create_task(dump(live))
            under_way.add(task)
            task.add_done_callback(under_way.discard)

    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR2, on_signal)


async def dump(live: LiveScheduler) -> None:
    """Write all of it to the log, in pieces."""
    engine, kinds = live.engine, live.informers.by_kind
    for what, found in (
        ("nodes", compare_nodes(kinds[Node].store.values(), engine.cluster)),
        ("pods", compare_pods(kinds[Pod].store.values(), engine)),
    ):
        if found.missed or found.redundant:
            LOG.warning("memory and watch differ: missed %s %s, redundant %s", what, found.missed, found.redundant)
    for number, line in enumerate(lines(engine)):
        LOG.info("%s", line)
        if number % LINES_AT_ONCE == 0:
            await asyncio.sleep(0)


def compare_nodes(watched: Iterable[Node], cluster: Cluster) -> Mismatch:
    return _differences(
        {node.name for node in watched},
        {name for name, row in cluster.row_of.items() if cluster.nodes[row] is not None},
    )


def compare_pods(watched: Iterable[Pod], engine: Scheduler) -> Mismatch:
    """Pods that wait for another scheduler, or have ended, are none of ours."""
    ours = {
        pod.key
        for pod in watched
        if pod.status.phase not in ("Succeeded", "Failed")
        and (pod.node_name or pod.spec.scheduler_name in engine.profiles)
    }
    placed = {placed.pod.key for placed in engine.cluster.pods.values()}
    queued = {queued.pod.key for queued in engine.queue}
    return _differences(ours, placed | queued | {pod.key for pod in engine.queue.in_flight.pods()})


def _differences(watched: set[str], held: set[str]) -> Mismatch:
    return Mismatch(sorted(watched - held), sorted(held - watched))


def lines(engine: Scheduler) -> Iterator[str]:
    """The nodes by name, then the queue in its order."""
    cluster = engine.cluster
    for name in sorted(cluster.row_of):
        row = cluster.row_of.get(name)
        if row is not None:
            yield _node_line(engine, name, row)
    pending = engine.queue.pending()
    yield f"queue: {', '.join(f'{where} {number}' for where, number in pending._asdict().items())}"
    for queued in list(engine.queue):
        yield f"queue: {_pod_text(queued.pod)}, attempts {queued.attempts}"


def _node_line(engine: Scheduler, name: str, row: int) -> str:
    cluster = engine.cluster
    numbers = cluster.resources.on(row)
    requested = dict(zip(CORE_RESOURCES, numbers[REQUESTED:], strict=False))
    offered = dict(zip(CORE_RESOURCES, numbers[ALLOCATABLE:], strict=False))
    node = cluster.nodes[row]
    for resource in () if node is None else node.status.allocatable:
        if resource not in CORE_RESOURCES and resource != "pods":
            offered[resource], requested[resource] = cluster.resources.scalar_on(resource, row)
    parts = [
        f"node {name}{' (deleted)' if node is None else ''}: requested {_amounts(requested)}",
        f"allocatable {_amounts(offered)}",
        f"pods {numbers[POD_COUNT]} of {numbers[ALLOWED_PODS]}",
        *(_pod_text(placed.pod) + (" (assumed)" if placed.assumed else "") for placed in cluster.pods_on[row].values()),
        *(f"nominated {_pod_text(pod)}" for pod in engine.nominator.on(name)),
    ]
    return "; ".join(parts)


def _amounts(amounts: dict[str, int]) -> str:
    """CPU in thousandths."""
    return " ".join(f"{name}={amount}{'m' if name == 'cpu' else ''}" for name, amount in amounts.items())


def _pod_text(pod: Pod) -> str:
    nominated = f", nominated node {pod.status.nominated_node_name}" if pod.status.nominated_node_name else ""
    return f"pod {pod.key}, uid {pod.uid}, phase {pod.status.phase or 'Pending'}{nominated}"
