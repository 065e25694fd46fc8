"""Takes the picture that the live view shows: plain values from the engine and the pod tracker, ready to be drawn.
It also reads how full the ElasticQuotas of a cluster are, and says so in one line of the live view.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgspec

from kubecel.quantity import QuantityError, format_nano, parse
from podium.engine.gangs.explain_gang import gang_counts
from podium.engine.queue.scheduling_queue import Pending
from podium.engine.scheduler import Scheduler
from podium.framework.gang import GangCount
from podium.kube.printable import printable
from podium.serving.event_recorder import waiting_on_permit
from podium_cluster.apiserver.api import EmbeddedApi
from podium_cluster.apiserver.kinds import NODE
from podium_cluster.up.pod_tracker import PodDecision, PodTracker, PodVerdict

MOST_SHOWN: Final = 4
MOST_READ: Final = 100
"""Quotas that are looked at for one picture."""
_BINARY: Final = ("memory", "ephemeral-storage")


class QuotaUse(NamedTuple):
    """The resource of a quota that is nearest to its max: what is used, at most and guaranteed, in nano units."""

    name: str
    resource: str
    used: int
    most: int
    least: int


class _Bounds(msgspec.Struct):
    min: dict[str, Any] = {}
    max: dict[str, Any] = {}


class _Status(msgspec.Struct):
    used: dict[str, Any] = {}


class _Quota(msgspec.Struct):
    spec: _Bounds = msgspec.field(default_factory=_Bounds)
    status: _Status = msgspec.field(default_factory=_Status)


_quota_decoder: Final = msgspec.json.Decoder(_Quota)


def quotas_in_use(api: EmbeddedApi) -> list[QuotaUse]:
    """Every quota with a max, the fullest first; those that cannot be read are left out."""
    kind = api.kinds.by_kind("scheduling.x-k8s.io/v1alpha1", "ElasticQuota")
    if kind is None:
        return []
    found = []
    for stored in api.store.items(kind)[:MOST_READ]:
        try:
            use = _use(f"{stored.namespace}/{stored.name}", _quota_decoder.decode(stored.raw))
        except (msgspec.DecodeError, QuantityError, TypeError):
            continue
        if use is not None:
            found.append(use)
    return sorted(found, key=lambda use: (-_share(use), use.name))


def _use(name: str, quota: _Quota) -> QuotaUse | None:
    used, least = quota.status.used, quota.spec.min
    uses = [
        QuotaUse(name, resource, parse(used.get(resource, 0)), parse(most), parse(least.get(resource, 0)))
        for resource, most in quota.spec.max.items()
    ]
    return max(uses, key=_share, default=None)


def _share(use: QuotaUse) -> float:
    return use.used / use.most if use.most > 0 else float(use.used > 0)


def quota_line(quotas: Sequence[QuotaUse]) -> str:
    """
    >>> quota_line([QuotaUse("q1/q", "cpu", 6 * 10**9, 6 * 10**9, 4 * 10**9), QuotaUse("q2/q", "cpu", 0, 10**9, 0)])
    'quotas: q1/q 6 of 6 cpu (2 borrowed), q2/q 0 of 1 cpu'
    """
    shown = ", ".join(map(_shown, quotas[:MOST_SHOWN]))
    more = f", and {len(quotas) - MOST_SHOWN} more" if len(quotas) > MOST_SHOWN else ""
    return f"quotas: {shown}{more}"


def _shown(use: QuotaUse) -> str:
    borrowed = f" ({_amount(use, use.used - use.least)} borrowed)" if use.used > use.least else ""
    amounts = f"{_amount(use, use.used)} of {_amount(use, use.most)}"
    return f"{printable(use.name)} {amounts} {printable(use.resource)}{borrowed}"


def _amount(use: QuotaUse, nano: int) -> str:
    return format_nano(nano, binary=use.resource in _BINARY or use.resource.startswith("hugepages-"))


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
