"""Holds the state of the cluster, in columns: what a scheduling cycle reads and what a placement changes.

A node is a row. Placing a pod adds its requests, labels, ports and terms to that row; taking it off subtracts exactly
the same, so every change can be undone. Rows keep their place for as long as the node (or a pod that says it runs
there) exists, and are reused afterwards. Pods on nodes that are not known (yet) stand on rows that are not `present`:
they count for nothing until the node appears.

The scheduler is single-threaded: events are applied between cycles, so the state itself is the consistent snapshot of a
cycle. Two journals record the rows that change (`node_changes`, `pod_changes`), so that cached answers can be refreshed
row by row.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from podium.cluster.attached import AttachedVolumes, MountedDisks
from podium.cluster.columns import ColumnSet, Interned
from podium.cluster.counts import PodClass, PodCounts
from podium.cluster.csi_nodes import CsiNodeColumns
from podium.cluster.facts import FactsCache, PodFacts
from podium.cluster.free_volumes import FreeVolumes, StoragePools
from podium.cluster.images import NodeImages
from podium.cluster.journal import Journal, RowCursor
from podium.cluster.labels import NodeLabels
from podium.cluster.objects import Objects
from podium.cluster.order import NodeOrder
from podium.cluster.ports import UsedPorts
from podium.cluster.resources import ResourceColumns
from podium.cluster.terms import PlacedTerms
from podium.kube import Node, Pod, Taint


class ClusterError(Exception):
    """The caller's view of the cluster contradicts ours (a pod assumed twice, forgotten but never assumed)."""


class PlacedPod(msgspec.Struct, gc=False, eq=False):
    """A pod on a row, with what it adds there. Nothing of that leads back here, so no cycle has to be looked for."""

    pod: Pod
    row: int
    facts: PodFacts
    pod_class: PodClass
    assumed: bool


class PodAccount(Protocol):
    """An account of the pods on rows. It is called in dry runs, too, where what comes goes again."""

    def pod_added(self, placed: PlacedPod) -> None: ...

    def pod_removed(self, placed: PlacedPod) -> None: ...


A = TypeVar("A", bound=PodAccount)


class Cluster:
    """Nodes, pods and objects as the scheduler knows them; a node is a row of all columns."""

    def __init__(self, *, resize_by_sums: bool = True) -> None:
        """`resize_by_sums`: how a pod under resize counts, see `podium.kube.requests`."""
        self.columns = ColumnSet()
        self.names: list[str] = []
        self.nodes: list[Node | None] = []
        self.row_of: dict[str, int] = {}
        self._present = self.columns.new(np.bool_)
        self._unschedulable = self.columns.new(np.bool_)
        self.labels = NodeLabels(self.columns)
        self.taints: Interned[tuple[Taint, ...]] = Interned(self.columns, ())
        self.features: Interned[frozenset[str]] = Interned(self.columns, frozenset())
        self.resources = ResourceColumns(self.columns)
        self.order = NodeOrder()
        self.images = NodeImages()
        self.ports = UsedPorts()
        self.counts = PodCounts(self.columns)
        self.terms = PlacedTerms(self.columns)
        self.disks = MountedDisks()
        self.objects = Objects()
        self.node_changes: Journal[int] = Journal()
        self.pod_changes: Journal[int] = Journal()
        self.csi_nodes = CsiNodeColumns(self.columns, self.objects.csi_nodes, self.node_changes.append)
        self.attached = AttachedVolumes(self.columns, self.objects, self.pod_changes.append)
        self.free_volumes = FreeVolumes(self.objects.volumes)
        self.storage_pools = StoragePools(self.objects.csi_capacities)
        self.facts = FactsCache(resize_by_sums=resize_by_sums)
        self.pods: dict[str, PlacedPod] = {}
        self.pods_on: list[dict[str, PlacedPod]] = []
        self.claim_rows: dict[str, dict[int, int]] = {}
        self._free_rows: list[int] = []
        self._accounts: list[PodAccount] = []

    @property
    def present(self) -> NDArray[np.bool_]:
        """bool[rows]: the row belongs to a node that exists."""
        return self._present.view

    @property
    def unschedulable(self) -> NDArray[np.bool_]:
        return self._unschedulable.view

    def row_cursor(self) -> RowCursor:
        """A reader's place in both journals of rows."""
        return RowCursor(self.node_changes, self.pod_changes)

    # Nodes

    def set_node(self, node: Node) -> int:
        """Add a node or take over its newer version; returns its row."""
        row = self._row_for(node.name)
        known = self.nodes[row]
        self.nodes[row] = node
        self._present.view[row] = True
        self._unschedulable.view[row] = node.unschedulable
        self.taints.set(row, tuple(map(_timeless, node.taints)))
        self.features.set(row, frozenset(node.status.declared_features))
        self.images.set_row(row, node.status.images)
        if known is None:
            self.order.add(row, node.labels)
            self.csi_nodes.add_row(row, node.name)
            self.attached.add_row(row, node.name)
        else:
            self.order.update(row, node.labels)
        if known is None or known.labels != node.labels:
            self.labels.set_row(row, node.labels)
        if known is None or known.status.allocatable != node.status.allocatable:
            self.resources.set_allocatable(row, node.status.allocatable)
        self.node_changes.append(row)
        return row

    def remove_node(self, name: str) -> None:
        """Take a node away; its row stays while pods still claim to run there."""
        row = self.row_of.get(name)
        if row is None or self.nodes[row] is None:
            raise ClusterError(f'node "{name}" is not known, so it cannot be removed')
        self.nodes[row] = None
        self._present.view[row] = False
        self._unschedulable.view[row] = False
        self.taints.clear(row)
        self.features.clear(row)
        self.images.clear_row(row)
        self.order.remove(row)
        self.labels.clear_row(row)
        self.resources.clear_allocatable(row)
        self.csi_nodes.remove_row(row, name)
        self.attached.remove_row(row, name)
        self.node_changes.append(row)
        self._release(row)

    def _row_for(self, name: str) -> int:
        row = self.row_of.get(name)
        if row is None:
            if self._free_rows:
                row = self._free_rows.pop()
                self.names[row] = name
            else:
                row = self.columns.append_row()
                self.names.append(name)
                self.nodes.append(None)
                self.pods_on.append({})
            self.row_of[name] = row
        return row

    def _release(self, row: int) -> None:
        if self.nodes[row] is None and not self.pods_on[row]:
            del self.row_of[self.names[row]]
            self.names[row] = ""
            self._free_rows.append(row)

    # Pods

    def assume(self, pod: Pod, node_name: str, facts: PodFacts | None = None) -> PlacedPod:
        """Count a pod as running on a node before the API server has said so; `facts` where they are known."""
        if pod.uid in self.pods:
            raise ClusterError(f"pod {pod.key} is already placed, so it cannot be assumed")
        return self._add(pod, node_name, facts or self.facts.of(pod), assumed=True)

    def forget(self, uid: str) -> None:
        """Undo `assume`; a pod that is not known is left alone."""
        placed = self.pods.get(uid)
        if placed is None:
            return
        if not placed.assumed:
            raise ClusterError(f"pod {placed.pod.key} was not assumed, so it cannot be forgotten")
        self._remove(placed)

    def set_pod(self, pod: Pod) -> PlacedPod:
        """Take over the API server's word on a pod that has a node: new, confirmed after `assume`, or changed."""
        known, facts = self.pods.get(pod.uid), self.facts.of(pod)
        if known is not None:
            if self._adds_the_same(known, pod, facts):
                known.pod, known.assumed = pod, False
                return known
            self._remove(known)
        return self._add(pod, pod.node_name, facts, assumed=False)

    def _adds_the_same(self, known: PlacedPod, pod: Pod, facts: PodFacts) -> bool:
        """Whether a newer version of a pod changes nothing on its row: mostly, what was assumed is confirmed."""
        return (
            facts is known.facts
            and self.names[known.row] == pod.node_name
            and known.pod.terminating == pod.terminating
            and known.pod.status.start_time == pod.status.start_time
        )

    def remove_pod(self, uid: str) -> None:
        placed = self.pods.get(uid)
        if placed is None:
            raise ClusterError(f"pod with uid {uid} is not placed, so it cannot be removed")
        self._remove(placed)

    def _add(self, pod: Pod, node_name: str, facts: PodFacts, assumed: bool) -> PlacedPod:
        row = self._row_for(node_name)
        placed = self._placed(pod, row, facts, assumed)
        self.put_on(placed)
        self.pods[pod.uid] = placed
        return placed

    def _remove(self, placed: PlacedPod) -> None:
        del self.pods[placed.pod.uid]
        self.take_off(placed)
        self.counts.discard_if_empty(placed.pod_class)
        self._release(placed.row)

    def stand_in(self, pod: Pod, row: int) -> PlacedPod:
        """What placing the pod on the row would add, without adding it; for `put_on` in a dry run."""
        return self._placed(pod, row, self.facts.of(pod), assumed=True)

    def _placed(self, pod: Pod, row: int, facts: PodFacts, assumed: bool) -> PlacedPod:
        pod_class, terminating = facts.pod_class, pod.metadata.deletion_timestamp is not None
        if pod_class is None or not pod_class.pods or pod_class.terminating != terminating:
            pod_class = facts.pod_class = self.counts.class_of(pod.namespace, pod.labels, terminating)
        return PlacedPod(pod, row, facts, pod_class, assumed)

    def follow_pods(self, account: PodAccount) -> None:
        """Call the account for all pods that come and go, beginning with those that are here."""
        self._accounts.append(account)
        for placed in self.pods.values():
            account.pod_added(placed)

    def account(self, kind: type[A]) -> A | None:
        """The account of a class, so that one account serves all that ask."""
        return next((account for account in self._accounts if isinstance(account, kind)), None)

    def put_on(self, placed: PlacedPod) -> None:
        self.pods_on[placed.row][placed.pod.uid] = placed
        self._count(placed, 1)
        self.counts.add(placed.pod_class, placed.row)
        if placed.facts.may_attach:
            self.attached.add_pod(placed.pod, placed.row)
        if placed.facts.terms:
            self.terms.add(placed.facts.terms, placed.row)
        for account in self._accounts:
            account.pod_added(placed)

    def take_off(self, placed: PlacedPod) -> None:
        del self.pods_on[placed.row][placed.pod.uid]
        self._count(placed, -1)
        self.counts.remove(placed.pod_class, placed.row)
        if placed.facts.may_attach:
            self.attached.remove_pod(placed.pod, placed.row)
        if placed.facts.terms:
            self.terms.remove(placed.facts.terms, placed.row)
        for account in self._accounts:
            account.pod_removed(placed)

    def count_in(self, placed: PlacedPod) -> None:
        """Put a pod on its row as far as sums and the list of pods go, for dry runs where filters look no further. No
        account is called. To be undone by `count_out`, as that is by this."""
        self.pods_on[placed.row][placed.pod.uid] = placed
        self.resources.add_pod(placed.facts, placed.row, 1)

    def count_out(self, placed: PlacedPod) -> None:
        del self.pods_on[placed.row][placed.pod.uid]
        self.resources.add_pod(placed.facts, placed.row, -1)

    def _count(self, placed: PlacedPod, sign: int) -> None:
        facts, row = placed.facts, placed.row
        self.resources.add_pod(facts, row, sign)
        if facts.ports:
            self.ports.add(facts.ports, row, sign)
        if facts.disks:
            self.disks.add(facts.disks, row, sign)
        for claim in facts.claims:
            rows = self.claim_rows.setdefault(claim, {})
            rows[row] = rows.get(row, 0) + sign
            if not rows[row]:
                del rows[row]
            if not rows:
                del self.claim_rows[claim]
        self.pod_changes.append(row)

    @contextmanager
    def dry_run(self) -> Iterator[None]:
        """Changes made inside (`put_on`, `take_off`) must be undone inside; then nothing counts as changed."""
        before = self.pod_changes.begin_dry_run()
        try:
            yield
        finally:
            self.pod_changes.end_dry_run(before)


def _timeless(taint: Taint) -> Taint:
    """Without the time it was added, which matters to no plugin and would make every node's taints different."""
    return taint if taint.time_added is None else msgspec.structs.replace(taint, time_added=None)
