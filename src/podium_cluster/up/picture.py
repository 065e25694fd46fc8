"""Takes the picture that the live view shows: plain values from the engine and the pod tracker, ready to be drawn."""

from typing import Final, NamedTuple

import msgspec

from podium.engine.gangs.explain_gang import gang_counts
from podium.engine.queue.scheduling_queue import Pending
from podium.engine.scheduler import Scheduler
from podium.framework.gang import GangCount
from podium.serving.events.recorder import waiting_on_permit
from podium_cluster.apiserver.api import EmbeddedApi
from podium_cluster.apiserver.kinds import NODE
from podium_cluster.up.pod_tracker import PodDecision, PodTracker, PodVerdict
from podium_cluster.up.quotas import QuotaUse, quotas_in_use

ZONE: Final = "topology.kubernetes.io/zone"


class NodeBar(NamedTuple):
    """A node: which share of its CPU and memory pods have asked for, and how many pods it has; None where only the
    scheduler would know."""

    name: str
    zone: str
    cpu: float | None
    memory: float | None
    pods: int | None
    cordoned: bool


class EnginePicture(NamedTuple):
    """What of the picture the engine knows."""

    nodes: list[NodeBar]
    queue: Pending
    gangs: list[GangCount]
    """Groups of pods that start together, those that wait first."""
    held: list[PodDecision]
    """Pods that plugins hold at Permit."""
    silent: float = 0.0
    """Seconds for which a plugin has kept the engine from answering: all this is from before."""


EMPTY_ENGINE: Final = EnginePicture([], Pending(0, 0, 0, 0), [], [])


class ServedAt(NamedTuple):
    """The cluster of `podium up` as its users reach it."""

    address: str
    kubeconfig: str
    uptime: float


class PodTotals(NamedTuple):
    """Pods that are there, by phase, and how many got a node since the start."""

    total: int
    running: int
    succeeded: int
    placed: int


class Picture(NamedTuple):
    """What the live view shows at one moment."""

    service: ServedAt
    pods: PodTotals
    engine: EnginePicture
    waiting: list[PodDecision]
    """The pods without a node, those that need attention first."""
    placed: list[PodDecision]
    """The newest first."""
    quotas: list[QuotaUse]
    """The fullest first."""


def take_engine_picture(engine: Scheduler) -> EnginePicture:
    """To be called on the scheduler's loop."""
    return EnginePicture(_bars(engine), engine.queue.pending(), gang_counts(engine), take_held(engine))


def take_held(engine: Scheduler) -> list[PodDecision]:
    """The pods that plugins hold at Permit; to be called on the scheduler's loop."""
    held = (each for each in engine.waiting if not each.settled)
    return [PodDecision(each.pod.key, PodVerdict.HELD, why=waiting_on_permit(each).note) for each in held]


def take_picture(engine: EnginePicture, tracker: PodTracker, api: EmbeddedApi, service: ServedAt) -> Picture:
    """To be called on the API's loop, like all that has to do with the tracker."""
    if not engine.nodes:
        engine = engine._replace(nodes=_bars_without_figures(api))
    held = {each.pod: each for each in engine.held}
    waiting = [held.get(each.pod, each) for each in tracker.waiting()]
    return Picture(
        service,
        PodTotals(tracker.pods, tracker.phases["Running"], tracker.phases["Succeeded"], tracker.placed),
        engine,
        sorted(waiting, key=lambda decision: _URGENCY[decision.verdict]),
        [each for each in reversed(tracker.decisions) if each.verdict is PodVerdict.PLACED],
        quotas_in_use(api),
    )


_URGENCY: Final = {verdict: position for position, verdict in enumerate(PodVerdict)}


def _bars(engine: Scheduler) -> list[NodeBar]:
    cluster = engine.cluster
    resources = cluster.resources
    shares = {
        name: resources.requested_of(name) / resources.allocatable_of(name).clip(min=1) for name in ("cpu", "memory")
    }
    bars = []
    for row in cluster.order.rows.tolist():
        node = cluster.nodes[row]
        zone = "" if node is None else node.metadata.labels.get(ZONE, "")
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


class _Spec(msgspec.Struct):
    unschedulable: bool = False


class _Node(msgspec.Struct):
    spec: _Spec = msgspec.field(default_factory=_Spec)


_decoder: Final = msgspec.json.Decoder(_Node)


def _bars_without_figures(api: EmbeddedApi) -> list[NodeBar]:
    """The nodes as the API has them, for as long as the scheduler has none."""
    bars = []
    for stored in api.store.items(NODE):
        node = _decoder.decode(stored.raw)
        bars.append(NodeBar(stored.name, stored.labels.get(ZONE, ""), None, None, None, node.spec.unschedulable))
    return sorted(bars, key=_in_order)


def _in_order(bar: NodeBar) -> tuple[str, int, str]:
    """By name, where node-10 comes after node-9."""
    stem = bar.name.rstrip("0123456789")
    number = bar.name[len(stem) :]
    return stem, int(number) if number else -1, bar.name
