"""Takes the picture that the live view shows: plain values from the engine and the pod tracker, ready to be drawn."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from podium.cluster.pod_groups import PodGroupStates
from podium.engine.queue.scheduling_queue import Pending
from podium.engine.scheduler import Scheduler
from podium.framework.gang import GangCount
from podium.up.pod_tracker import PodDecision, PodTracker
from podium.up.quotas import QuotaUse


class NodeBar(NamedTuple):
    """A node: which share of its CPU and memory pods have asked for, and how many pods it has."""

    name: str
    zone: str
    cpu: float
    memory: float
    pods: int
    cordoned: bool


class EnginePicture(NamedTuple):
    """What of the picture the engine knows."""

    nodes: list[NodeBar]
    queue: Pending
    gangs: list[GangCount]
    """Groups of pods that start together, those that wait first."""


EMPTY_ENGINE: Final = EnginePicture([], Pending(0, 0, 0, 0), [])


class Picture(NamedTuple):
    """What the live view shows at one moment."""

    address: str
    uptime: float
    nodes: list[NodeBar]
    pods: int
    running: int
    succeeded: int
    placed: int
    queue: Pending
    refused: list[PodDecision]
    """Those of the pods that wait because no node takes them."""
    decisions: list[PodDecision]
    """The newest first."""
    gangs: list[GangCount]
    quotas: list[QuotaUse]
    """The fullest first."""


def take_engine_picture(engine: Scheduler) -> EnginePicture:
    """To be called on the scheduler's loop."""
    return EnginePicture(_bars(engine), engine.queue.pending(), _gangs(engine))


def take_picture(
    engine: EnginePicture, tracker: PodTracker, quotas: list[QuotaUse], address: str, uptime: float
) -> Picture:
    """To be called on the API's loop, like all that has to do with the tracker."""
    return Picture(
        address,
        uptime,
        engine.nodes,
        tracker.pods,
        tracker.phases["Running"],
        tracker.phases["Succeeded"],
        tracker.placed,
        engine.queue,
        tracker.refused(),
        list(reversed(tracker.decisions)),
        engine.gangs,
        quotas,
    )


def _gangs(engine: Scheduler) -> list[GangCount]:
    found = {
        gang.key: gang
        for runtime in engine.profiles.values()
        for plugin in runtime.gang_plugins
        for gang in plugin.gangs()
    }
    found |= {gang.key: gang for gang in _pod_groups(engine)}
    return sorted(found.values(), key=lambda gang: (gang.assigned >= gang.minimum, gang.key))


def _pod_groups(engine: Scheduler) -> Iterator[GangCount]:
    """The gangs among the PodGroups of scheduling.k8s.io, where the gate for these is on."""
    groups = engine.cluster.objects.pod_groups
    for state in engine.cluster.account(PodGroupStates) or ():
        group = groups.get(state.key)
        if group is not None and group.min_count is not None:
            yield GangCount(state.key, group.min_count, state.members, state.scheduled)


def _bars(engine: Scheduler) -> list[NodeBar]:
    cluster = engine.cluster
    resources = cluster.resources
    shares = {
        name: resources.requested_of(name) / resources.allocatable_of(name).clip(min=1) for name in ("cpu", "memory")
    }
    bars = []
    for row in cluster.order.rows.tolist():
        node = cluster.nodes[row]
        zone = "" if node is None else node.metadata.labels.get("topology.kubernetes.io/zone", "")
        bars.append(
            NodeBar(
                cluster.names[row],
                zone,
                float(shares["cpu"][row]),
                float(shares["memory"][row]),
                int(resources.pod_count[row]),
                bool(cluster.unschedulable[row]),
            )
        )
    return sorted(bars, key=_in_order)


def _in_order(bar: NodeBar) -> tuple[str, int, str]:
    """By name, where node-10 comes after node-9."""
    stem = bar.name.rstrip("0123456789")
    number = bar.name[len(stem) :]
    return stem, int(number) if number else -1, bar.name
