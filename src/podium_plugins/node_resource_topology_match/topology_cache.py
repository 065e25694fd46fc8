"""Decides what counts of NodeResourceTopologies: the pass-through, discard-reserved and over-reserve caches.

Agents report every few seconds, the scheduler places many pods in between. A cache decides which report counts for a
node, what pods have taken since, and when nothing that is known of a node may be used.

The over-reserve cache subtracts pods from every zone until a report covers them, because the scheduler does not know
which zone the kubelet takes a pod's resources from. So a pod counts in all zones of its node until a report says where
it is: one whose fingerprint is that of the pods which the scheduler sees running there. Then these pods are covered,
and count no more; pods that are not running yet go on counting. So whatever the order in which pods and reports arrive,
what is left of a zone is never more than what the kubelet has left there.

    pod placed              counts in all zones
    pod gone, not covered   no longer counts
    pod gone, covered       the report still counts it, until the next one that fits
    report, fits            its amounts and settings count; running pods are covered
    report, does not fit    waits; its settings count at once if they differ (resyncScope All)
    first report of a node  its amounts count; without a fingerprint, running pods are covered

A pod of a scheduler without this plugin is foreign. An event of such a pod makes what is known of its node stale until
a report fits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol

from podium import Handle, NodePart, ObjectProblems, custom_reference
from podium.cluster import Cluster, PlacedPod
from podium.kube import Pod
from podium_plugins.node_resource_topology_match.args import (
    ALL,
    AUTODETECT,
    NONE,
    ONLY_EXCLUSIVE,
    SHARED,
    TopologyCacheArgs,
)
from podium_plugins.node_resource_topology_match.fingerprint import fingerprint
from podium_plugins.node_resource_topology_match.topology_object import (
    RESOURCE,
    VERSION,
    NodeTopology,
    listed_resources,
    read_topology,
)
from podium_plugins.node_resource_topology_match.zone_columns import ZoneColumns
from podium_plugins.node_resource_topology_match.zone_needs import has_exclusive, needs_of

NO_FINGERPRINT: Final = (
    "it has no fingerprint of the pods that it covers, so newer versions are not taken over, and once pods of other "
    "schedulers run on the node, none is aligned there; have the agent write fingerprints"
)
NOT_RUNNING: Final = ("", "Pending")
MOST_PROBLEMS = 3
INVALID = "InvalidNodeResourceTopology"
"""The reason of events on reports that are wrong."""


class TopologyCache(Protocol):
    """What is known of the zones of all nodes (`zones`), and how pods change it."""

    zones: ZoneColumns
    node_part: NodePart
    """How far answers look: whether they change when pods come and go."""

    def reserve(self, pod: Pod, node_name: str) -> None:
        """A pod was given to a node."""

    def release(self, pod: Pod, node_name: str) -> None:
        """The pod was taken back from the node, or is bound to it."""

    def observe(self, before: Pod | None, after: Pod | None) -> None:
        """A pod came, changed or went; before the cluster knows, unless it went."""

    def renewed(self, node_name: str) -> bool:
        """Whether the latest event made known of a node what was not known before."""


def note_problems(problems: ObjectProblems, name: str, report: Any | None) -> NodeTopology | None:
    """Read a report, and say what is wrong with it."""
    topology = None if report is None else read_topology(report)
    regarding = custom_reference(f"topology.node.k8s.io/{VERSION}", "NodeResourceTopology", name, report)
    if topology is None or not topology.problems:
        problems.clear(regarding)
        return topology
    more = len(topology.problems) - MOST_PROBLEMS
    rest = f"; and {more} more" if more > 0 else ""
    problems.set(regarding, INVALID, "; ".join(topology.problems[:MOST_PROBLEMS]) + rest)
    return topology


def follow_reports(zones: ZoneColumns, changed: Callable[[str, Any | None], None]) -> None:
    """Call with the name and the data of every NodeResourceTopology that comes or changes; None when it goes."""
    zones.cluster.objects.custom_store(RESOURCE).follow(lambda name, _before, after: changed(name, after))


class PassThroughCache:
    """The newest report of each node, taken as it comes: nothing is known of pods placed since."""

    node_part = NodePart.OBJECT

    def __init__(self, cluster: Cluster, problems: ObjectProblems) -> None:
        self.zones = ZoneColumns(cluster)
        self._problems = problems
        follow_reports(self.zones, self._set)

    def _set(self, name: str, report: Any | None) -> None:
        note_problems(self._problems, name, report)
        self.zones.set_report(name, report)

    def reserve(self, pod: Pod, node_name: str) -> None:
        pass

    def release(self, pod: Pod, node_name: str) -> None:
        pass

    def observe(self, before: Pod | None, after: Pod | None) -> None:
        pass

    def renewed(self, node_name: str) -> bool:
        return False


class DiscardReservedCache(PassThroughCache):
    """The newest report of each node without pods on their way to it.

    From Reserve until the pod is bound, or taken back, what is known of its node must not be used.
    """

    node_part = NodePart.PODS

    def __init__(self, cluster: Cluster, problems: ObjectProblems) -> None:
        super().__init__(cluster, problems)
        self._on_the_way: dict[str, set[str]] = {}
        self._renewed = ""

    def reserve(self, pod: Pod, node_name: str) -> None:
        self._on_the_way.setdefault(node_name, set()).add(pod.uid)
        self.zones.set_stale(node_name, True)

    def release(self, pod: Pod, node_name: str) -> None:
        waiting = self._on_the_way.get(node_name)
        if waiting is None:
            return
        waiting.discard(pod.uid)
        if not waiting:
            del self._on_the_way[node_name]
            self.zones.set_stale(node_name, False)

    def observe(self, before: Pod | None, after: Pod | None) -> None:
        """A pod that the API server shows on its node is bound, even if the answer to the binding is still awaited."""
        self._renewed = ""
        if after is not None and after.node_name:
            self.release(after, after.node_name)
            if before is None or not before.node_name:
                self._renewed = after.node_name

    def renewed(self, node_name: str) -> bool:
        return self._renewed == node_name


# Over-reserve


class OverReserveCache:
    """The last report of each node that fitted, less the pods that it does not cover."""

    node_part = NodePart.PODS

    def __init__(self, handle: Handle, args: TopologyCacheArgs, schedulers: set[str]) -> None:
        cluster = handle.cluster
        self.zones = ZoneColumns(cluster)
        self.args = args
        self.schedulers = schedulers
        """The names of the profiles that have the plugin."""
        self._cluster = cluster
        self._problems = handle.problems
        self._report = handle.report
        self._newest: dict[str, Any] = {}
        """Reports that did not fit when they came."""
        self._covered: set[str] = set()
        self._covered_pods: dict[str, tuple[Pod, ...]] = {}
        self._renewed = ""
        cluster.follow_pods(self)
        follow_reports(self.zones, self._set)

    @classmethod
    def of(cls, handle: Handle, args: TopologyCacheArgs) -> OverReserveCache:
        """The cache for a profile; profiles with equal arguments share it."""
        known = handle.cluster.account(cls)
        schedulers = set() if known is None else known.schedulers
        schedulers.add(handle.scheduler_name)
        return known if known is not None and known.args == args else cls(handle, args, schedulers)

    def reserve(self, pod: Pod, node_name: str) -> None:
        """Pods count from the moment they have a node (see `came`)."""

    def release(self, pod: Pod, node_name: str) -> None:
        """Pods that are taken back have no node any more (see `went`)."""

    def renewed(self, node_name: str) -> bool:
        return self._renewed == node_name

    def covers(self, pod: Pod) -> bool:
        """Whether the report that counts has the pod's zones."""
        return pod.uid in self._covered

    def covered_pods(self, name: str) -> tuple[Pod, ...]:
        """The pods on a node as of the report that counts."""
        return self._covered_pods.get(name, ())

    # Pods on rows, in dry runs, too

    def pod_added(self, placed: PlacedPod) -> None:
        self._count(placed, 1)

    def pod_removed(self, placed: PlacedPod) -> None:
        self._count(placed, -1)

    def _count(self, placed: PlacedPod, sign: int) -> None:
        pod = placed.pod
        if pod.metadata.uid not in self._covered and pod.spec.scheduler_name in self.schedulers:
            self.zones.reserve(placed.row, needs_of(pod, placed.facts).amounts, sign)

    # Events

    def observe(self, before: Pod | None, after: Pod | None) -> None:
        self._renewed = ""
        pod = before if after is None else after
        if pod is None or not pod.spec.node_name:
            return
        name = pod.spec.node_name
        ours_to_come = after is not None and after.status.phase in NOT_RUNNING and not self._is_others(pod)
        if ours_to_come and not self.zones.is_stale(name):
            return  # mostly, the API server confirms a binding
        if after is None:
            self._covered.discard(pod.uid)
        report = self.zones.report(name)
        if report is None:
            return
        if self._is_foreign(pod, report):
            self.zones.set_stale(name, True)
        if self.zones.is_stale(name) or self._runs(before) != self._runs(after):
            self._try_newest(name, after)
        if after is not None and self._runs(after) and before is None and not read_fingerprint(report):
            self._cover(name, [after])

    def _set(self, name: str, report: Any | None) -> None:
        topology = note_problems(self._problems, name, report)
        self._renewed = ""
        if topology is None:
            self._newest.pop(name, None)
            self._covered_pods.pop(name, None)
            self.zones.set_stale(name, False)
            self.zones.set_report(name, None)
            return
        known = self.zones.report(name)
        self._newest[name] = report
        if self._try_newest(name, None):
            return
        settings_changed = known is not None and read_topology(known).settings != topology.settings
        if known is None or (settings_changed and self.args.resync_scope == ALL):
            self._covered_pods.pop(name, None)
            self.zones.set_report(name, report)
            self._renewed = name
        if known is None:
            if not topology.fingerprint:
                self._report(f"NodeResourceTopology {name}: {NO_FINGERPRINT}")
                self._cover(name, self._running(name, None))
            if any(self._is_foreign(pod, report) for pod in self._pods(name, None)):
                self.zones.set_stale(name, True)

    # Fingerprints

    def _try_newest(self, name: str, changed: Pod | None) -> bool:
        """Take over the newest report of a node if it fits the pods that run there."""
        report = self._newest.get(name) or self.zones.report(name)
        topology = read_topology(report)
        if not topology.fingerprint:
            return False
        running = self._running(name, changed)
        counted = running
        if self._counts_exclusive(topology):
            listed = listed_resources(report)
            counted = [pod for pod in running if has_exclusive(pod, listed)]
        if fingerprint(counted) != topology.fingerprint:
            return False
        self._newest.pop(name, None)
        self.zones.set_report(name, report)
        self._cover(name, running)
        coming = (pod for pod in self._pods(name, changed) if not self._runs(pod))
        self.zones.set_stale(name, any(self._is_foreign(pod, report) for pod in coming))
        self._covered_pods[name] = tuple(running)
        self._renewed = name
        return True

    def _counts_exclusive(self, topology: NodeTopology) -> bool:
        """Whether a fingerprint covers only pods with exclusive resources; one in the annotation never does."""
        method = self.args.resync_method
        chosen = method == ONLY_EXCLUSIVE or (method == AUTODETECT and topology.says_exclusive)
        return chosen and not topology.annotated

    def _cover(self, name: str, pods: list[Pod]) -> None:
        for pod in pods:
            placed = self._cluster.pods.get(pod.uid)
            if placed is not None:
                self._count(placed, -1)
            self._covered.add(pod.uid)
        self.zones.changed(name)

    def _running(self, name: str, changed: Pod | None) -> list[Pod]:
        return [pod for pod in self._pods(name, changed) if self._runs(pod)]

    def _pods(self, name: str, changed: Pod | None) -> list[Pod]:
        """The pods on a node, one of them as it is now."""
        row = self._cluster.row_of.get(name)
        pods = {} if row is None else {uid: placed.pod for uid, placed in self._cluster.pods_on[row].items()}
        if changed is not None:
            pods[changed.uid] = changed
        return list(pods.values())

    def _runs(self, pod: Pod | None) -> bool:
        if pod is None or not pod.node_name:
            return False
        phase = pod.status.phase
        return phase == "Running" if self.args.informer_mode == SHARED else phase not in NOT_RUNNING

    def _is_others(self, pod: Pod) -> bool:
        return pod.spec.scheduler_name not in self.schedulers

    def _is_foreign(self, pod: Pod, report: Any) -> bool:
        detect = self.args.foreign_pods_detect
        if detect == NONE or not self._is_others(pod):
            return False
        return detect == ALL or has_exclusive(pod, listed_resources(report))


def read_fingerprint(report: Any) -> str:
    topology: NodeTopology = read_topology(report)
    return topology.fingerprint
