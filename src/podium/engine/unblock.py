"""Finds what would have to change before a pod that fits nowhere fits somewhere: the smallest change, node by node.

The pod is judged again by the same plugins, each time with one of its demands dropped: tolerating every taint, cordoned
nodes included, without its node selector, its pod (anti-)affinity, its spread constraints, its host ports or its
requests. Where no single one is enough, two at a time are tried. A node that would then take the pod says what it
takes in its own words: the taint, the label, the amounts that are missing. Nothing is tried that the pod does not ask
for.

Where a plugin rejects the pod by objects of its own, as CapacityScheduling does by quotas, it says how these would have
to be. They are so while nodes are tried, and what is different about them belongs to every remedy.

A pod without requests gets by every other quota, too. So amounts are tried once more before they are named: the node
gets them, the pod asks for all it asks for, and who still refuses it is named beside them. Then the node is as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from kubecel.quantity import MILLI, NANO, format_nano
from podium.cluster import Cluster
from podium.engine.decide import decide
from podium.engine.sampling import Sampling
from podium.framework.cycle import Cycle
from podium.framework.profile import ProfileRuntime
from podium.framework.protocols import GrantingPlugin
from podium.framework.status import PluginError
from podium.kube import Pod
from podium.kube.pod import Container, PodSpec, ResourceRequirements, Toleration
from podium.kube.requests import fit_requests
from podium.kube.toleration import REPELLING, untolerated

MOST: Final = 3
"""Nodes that are named at most."""
_CORDON: Final = "node.kubernetes.io/unschedulable"
_TOGETHER: Final = 2


@dataclass
class Remedy:
    """A node, and everything that would have to be different for it to take the pod."""

    node: str
    changes: list[str]


@dataclass
class _Demand:
    """One thing the pod asks for: its spec without it, and what to say of a node that it keeps from taking the pod."""

    without: Callable[[PodSpec], PodSpec]
    change: Callable[[Cluster, Pod, int], str | None]


class _Grant(NamedTuple):
    """An object of a plugin as it would have to be, and what differs, in words."""

    resource: str
    key: str
    item: Any
    changes: list[str]


def remedies(runtime: ProfileRuntime, pod: Pod, sampling: Sampling, most: int = MOST) -> list[Remedy]:
    """The nodes that are closest to taking the pod, the one that lacks least first; none where nothing known helps."""
    grants = _grants(runtime, pod)
    if not grants:
        return _of_nodes(runtime, pod, sampling, most)
    texts = [each for grant in grants for each in grant.changes]
    with _granted(runtime.handle.cluster, grants):
        try:
            row = decide(runtime, Cycle(_without(pod, (), "granted"), runtime.handle.cluster), sampling).row
        except PluginError:
            return []
        if row is not None:
            return [Remedy(runtime.handle.cluster.names[row], texts)]
        found = _of_nodes(runtime, pod, sampling, most)
    return [Remedy(each.node, [*texts, *each.changes]) for each in found]


def _grants(runtime: ProfileRuntime, pod: Pod) -> list[_Grant]:
    """How objects of plugins, such as quotas, would have to be for these plugins to let the pod come."""
    plugins = (each for each in runtime.plugins.values() if isinstance(each, GrantingPlugin))
    return [_Grant(*each) for plugin in plugins for each in plugin.grants(pod)]


@contextmanager
def _granted(cluster: Cluster, grants: Iterable[_Grant]) -> Iterator[None]:
    """The cluster with these objects; then it is as it was."""
    stores = [(cluster.objects.custom_store(each.resource), each) for each in grants]
    before = [(store, each.key, store.get(each.key)) for store, each in stores]
    try:
        for store, each in stores:
            store.set(each.key, each.item)
        yield
    finally:
        for store, key, item in before:
            store.set(key, item)


def _of_nodes(runtime: ProfileRuntime, pod: Pod, sampling: Sampling, most: int) -> list[Remedy]:
    demands = [demand for demand in _DEMANDS if demand.without(pod.spec) != pod.spec]
    for size in range(1, _TOGETHER + 1):
        found = [each for tried in combinations(demands, size) for each in _with_dropped(runtime, pod, sampling, tried)]
        if found:
            found.sort(key=lambda each: (each.distance, each.remedy.node))
            whole = (_tried_whole(runtime, pod, sampling, each) for each in found[:most])
            return [remedy for remedy in whole if remedy is not None]
    return []


class _Found(NamedTuple):
    distance: float
    remedy: Remedy
    row: int
    dropped: Sequence[_Demand]


def _with_dropped(
    runtime: ProfileRuntime, pod: Pod, sampling: Sampling, dropped: Sequence[_Demand]
) -> Iterable[_Found]:
    """How far each node is from taking the pod that would take it without these demands."""
    cluster = runtime.handle.cluster
    try:
        feasible = decide(runtime, Cycle(_without(pod, dropped), cluster), sampling).search.feasible
    except PluginError:
        return
    for row in feasible.tolist():
        changes = [demand.change(cluster, pod, row) for demand in dropped]
        # A demand that this node has no quarrel with is not what kept the pod away.
        if all(changes):
            remedy = Remedy(cluster.names[row], [each for each in changes if each])
            yield _Found(_distance(cluster, pod, row), remedy, row, dropped)


def _without(pod: Pod, dropped: Iterable[_Demand], name: str = "without") -> Pod:
    """The pod as it would be; to all that goes by uid, a pod that asks for less is another one."""
    spec = pod.spec
    for demand in dropped:
        spec = demand.without(spec)
    numbers = "".join(str(_DEMANDS.index(demand)) for demand in dropped)
    return replace(pod, spec=spec, metadata=replace(pod.metadata, uid=f"{pod.uid}-{name}-{numbers}"))


def _tried_whole(runtime: ProfileRuntime, pod: Pod, sampling: Sampling, found: _Found) -> Remedy | None:
    """The remedy, with what else refuses the pod on a node that has the amounts; None where a plugin fails."""
    cluster, row = runtime.handle.cluster, found.row
    node = cluster.nodes[row]
    if _REQUESTS not in found.dropped or node is None:
        return found.remedy
    others = _without(pod, [each for each in found.dropped if each is not _REQUESTS], "with-room-and-without")
    amounts = {
        name: f"{has + missing}m" if name == "cpu" else has + missing
        for name, (_wanted, missing, has) in _shortages(cluster, pod, row).items()
    }
    cluster.set_node(replace(node, status=replace(node.status, allocatable={**node.status.allocatable, **amounts})))
    try:
        search = decide(runtime, Cycle(others, cluster), sampling).search
    except PluginError:
        return None
    finally:
        cluster.set_node(node)
    refusal = search.statuses().get(row)
    if row in search.feasible or not refusal.plugin:  # one that was not looked at has a status without a plugin
        return found.remedy
    return Remedy(found.remedy.node, [*found.remedy.changes, f"the consent of {refusal.plugin} ({refusal.message})"])


def _distance(cluster: Cluster, pod: Pod, row: int) -> float:
    return sum(missing / wanted for wanted, missing, _ in _shortages(cluster, pod, row).values())


def _shortages(cluster: Cluster, pod: Pod, row: int) -> dict[str, tuple[int, int, int]]:
    """Of each resource there is too little of: what is wanted for, what is missing, what the node has at all."""
    short = {}
    for name, wanted in fit_requests(pod).items():
        has = int(cluster.resources.allocatable_of(name)[row])
        missing = wanted - (has - int(cluster.resources.requested_of(name)[row]))
        if wanted and missing > 0:
            short[name] = (wanted, missing, has)
    return short


# Each demand: the spec without it, and what to say about a node.


def _missing_amounts(cluster: Cluster, pod: Pod, row: int) -> str | None:
    parts = [
        f"{_amount(name, missing)} more {name} (asks for {_amount(name, wanted)}, "
        f"{_amount(name, wanted - missing)} of {_amount(name, has)} free)"
        for name, (wanted, missing, has) in _shortages(cluster, pod, row).items()
    ]
    return " and ".join(parts) or None


def _amount(name: str, amount: int) -> str:
    return format_nano(amount * MILLI) if name == "cpu" else format_nano(amount * NANO, binary=amount >= 1 << 20)


def _cordon(cluster: Cluster, _pod: Pod, row: int) -> str | None:
    return f"kubectl uncordon {cluster.names[row]}" if cluster.unschedulable[row] else None


def _taint(cluster: Cluster, pod: Pod, row: int) -> str | None:
    node = cluster.nodes[row]
    taints = [] if node is None else [taint for taint in node.spec.taints if taint.key != _CORDON]
    refusing = [taint for taint in taints if untolerated([taint], pod.spec.tolerations, REPELLING) is not None]
    if not refusing:
        return None
    tolerated = " and ".join(f"{each.key}{'=' * bool(each.value)}{each.value}:{each.effect}" for each in refusing)
    uncordoned = _cordon(cluster, pod, row)  # a pod that tolerates everything does not mind a cordon either
    return f"{uncordoned + ' and ' if uncordoned else ''}a toleration of {tolerated}"


def _fixed(sentence: str) -> Callable[[Cluster, Pod, int], str | None]:
    return lambda _cluster, _pod, _row: sentence


def _tolerating(key: str) -> Callable[[PodSpec], PodSpec]:
    return lambda spec: replace(spec, tolerations=(*spec.tolerations, Toleration(key=key, operator="Exists")))


def _without_selector(spec: PodSpec) -> PodSpec:
    affinity = spec.affinity
    if affinity is not None and affinity.node_affinity is not None:
        affinity = replace(affinity, node_affinity=None)
    return replace(spec, node_selector={}, affinity=affinity)


def _without_pod_affinity(spec: PodSpec) -> PodSpec:
    if spec.affinity is None:
        return spec
    return replace(spec, affinity=replace(spec.affinity, pod_affinity=None, pod_anti_affinity=None))


def _without_spread(spec: PodSpec) -> PodSpec:
    return replace(spec, topology_spread_constraints=())


def _in_containers(change: Callable[[Container], Container]) -> Callable[[PodSpec], PodSpec]:
    return lambda spec: replace(
        spec,
        containers=tuple(map(change, spec.containers)),
        init_containers=tuple(map(change, spec.init_containers)),
    )


def _without_ports(container: Container) -> Container:
    return replace(container, ports=tuple(port for port in container.ports if not port.host_port))


def _without_requests(spec: PodSpec) -> PodSpec:
    bare = _in_containers(lambda each: replace(each, resources=ResourceRequirements(claims=each.resources.claims)))(
        spec
    )
    return replace(bare, resources=None, overhead={})


_REQUESTS: Final = _Demand(_without_requests, _missing_amounts)
_DEMANDS: Final = (
    _Demand(_tolerating(_CORDON), _cordon),
    _Demand(_tolerating(""), _taint),
    _REQUESTS,
    _Demand(_without_selector, _fixed("a node selector and node affinity that it matches")),
    _Demand(_without_pod_affinity, _fixed("no pod affinity or anti-affinity in the way")),
    _Demand(_without_spread, _fixed("no topology spread constraint in the way")),
    _Demand(_in_containers(_without_ports), _fixed("its host ports free")),
)
