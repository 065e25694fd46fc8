"""Prefers nodes where the pod adds few system calls that some pod there does not use (SySched).

    raw = |H \\ P| + Σ over the node's pods q of |(H ∪ P) \\ S(q)|,  H = the union of their sets, P = the pod's
    score = 100 − 100·raw ÷ highest; 100 for all where the highest is 0; none where nothing is known of the pod

A call that a node lets through for one pod is open to an attack by all others. `profiles` has which calls a pod may
use. Pods count from the moment they have a node.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from podium import SKIP, Cycle, DependsOn, FieldError, FieldPath, Handle, NodePart, Normalizer, Plugin, Scores, Status
from podium.cluster import Cluster, NodeInfo, Nodes, PlacedPod
from podium.kube import Pod
from podium_plugins.sy_sched.profiles import RESOURCE, SyscallProfiles

NAME: Final = "SySched"


class SySchedArgs(msgspec.Struct, rename="camel", kw_only=True, frozen=True, forbid_unknown_fields=True):
    default_profile_namespace: str = "default"
    default_profile_name: str = "all-syscalls"
    """The SeccompProfile of pods that refer to none."""

    def validate(self, path: FieldPath) -> Iterator[FieldError]:
        for name, value in (
            ("defaultProfileNamespace", self.default_profile_namespace),
            ("defaultProfileName", self.default_profile_name),
        ):
            if not value:
                yield FieldError.required(path.child(name), "name the SeccompProfile of pods that refer to none")


class SySched(Plugin):
    name = NAME
    trusted = True
    Args = SySchedArgs
    depends_on = DependsOn(node=NodePart.PODS, claims=False)
    normalizer = Normalizer.REVERSED
    resources = (f"{RESOURCE}/v1beta1",)

    def __init__(self, args: SySchedArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._default = f"{args.default_profile_namespace}/{args.default_profile_name}"
        self._profiles = SyscallProfiles(handle)
        self._counted_at = self._profiles.version
        self._rows = CallsOnRows(handle.cluster, self._set_of_placed)

    def answer_key(self, pod: Pod) -> Hashable:
        return (self._profiles.version,)

    def pre_score(self, cycle: Cycle, _nodes: Nodes) -> Status | None:
        return None if self._set_of(cycle) else SKIP

    def score(self, cycle: Cycle, nodes: Nodes) -> Scores:
        scores: Scores = nodes.pick(self._rows.over_rows(self._set_of(cycle)))
        return scores

    def score_node(self, cycle: Cycle, node: NodeInfo) -> int:
        return self._rows.on(node.row, self._set_of(cycle))

    def _set_of(self, cycle: Cycle) -> int:
        """The calls of the cycle's pod, after those of placed pods were brought up to date."""
        if self._counted_at != self._profiles.version:
            self._counted_at = self._profiles.version
            self._rows.count_all()
        return self._calls(cycle.facts.notes, cycle.pod)

    def _set_of_placed(self, placed: PlacedPod) -> int:
        return self._calls(placed.facts.notes, placed.pod)

    def _calls(self, notes: dict[object, object], pod: Pod) -> int:
        """Worked out once for pods with one signature, while no profile changes."""
        known = notes.get(self)
        if isinstance(known, tuple) and known[0] == self._profiles.version:
            return int(known[1])
        calls = self._profiles.of_pod(pod, self._default)
        notes[self] = self._profiles.version, calls
        return calls


PodSets = Callable[[PlacedPod], int]


class RowCalls:
    """What is kept of one row: its pods' sets by uid, their union and the sum of their sizes."""

    __slots__ = ("sets", "sizes", "union")

    def __init__(self) -> None:
        self.sets: dict[str, int] = {}
        self.union = 0
        self.sizes = 0

    def extraneous(self, calls: int) -> int:
        """How many calls would be let through that a pod does not use, added up over the pods."""
        together = (self.union | calls).bit_count()
        return (len(self.sets) + 1) * together - calls.bit_count() - self.sizes

    def add(self, uid: str, calls: int) -> None:
        self.sets[uid] = calls
        self.union |= calls
        self.sizes += calls.bit_count()

    def remove(self, uid: str) -> None:
        gone = self.sets.pop(uid)
        self.sizes -= gone.bit_count()
        self.union = 0
        for calls in dict.fromkeys(self.sets.values()):
            self.union |= calls


class CallsOnRows:
    """The system calls that the pods of each row may use: all pods that have a node, whoever bound them.

    It is a `PodAccount`.

    With H the union of the sets of a node's n pods, and P that of the pod to place, the extraneous calls are

        |H \\ P| + Σ |(H ∪ P) \\ S(q)|  =  (n + 1)·|H ∪ P| − |P| − Σ |S(q)|

    as each S(q) is a part of H. So of each row three things are kept: n, H and Σ|S(q)|. Rows without pods are left out.
    """

    def __init__(self, cluster: Cluster, set_of: PodSets) -> None:
        self._cluster = cluster
        self._set_of = set_of
        self._rows: dict[int, RowCalls] = {}
        cluster.follow_pods(self)

    def pod_added(self, placed: PlacedPod) -> None:
        row = self._rows.get(placed.row)
        if row is None:
            row = self._rows[placed.row] = RowCalls()
        row.add(placed.pod.metadata.uid, self._set_of(placed))

    def pod_removed(self, placed: PlacedPod) -> None:
        row = self._rows[placed.row]
        row.remove(placed.pod.metadata.uid)
        if not row.sets:
            del self._rows[placed.row]

    def count_all(self) -> None:
        """Start over: pods may have other sets now."""
        self._rows.clear()
        for placed in self._cluster.pods.values():
            self.pod_added(placed)

    def on(self, row: int, calls: int) -> int:
        """The extraneous calls of one row with a pod that may use these."""
        known = self._rows.get(row)
        return 0 if known is None else known.extraneous(calls)

    def over_rows(self, calls: int) -> NDArray[np.int64]:
        """The same for all rows."""
        scores = np.zeros(self._cluster.columns.rows, dtype=np.int64)
        if self._rows:
            scores[list(self._rows)] = [row.extraneous(calls) for row in self._rows.values()]
        return scores
