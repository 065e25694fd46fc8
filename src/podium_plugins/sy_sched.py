"""Prefers nodes where the pod adds few system calls that some pod there does not use (SySched).

    raw = |H \\ P| + Σ over the node's pods q of |(H ∪ P) \\ S(q)|,  H = the union of their sets, P = the pod's
    score = 100 − 100·raw ÷ highest; 100 for all where the highest is 0; none where nothing is known of the pod

A call that a node lets through for one pod is open to an attack by all others. Pods count from the moment they have a
node.

A pod may use the calls of all SeccompProfiles that it refers to. It refers to profiles by its own seccompProfile of
type Localhost, by those of its app containers, and by the first annotation (by key) that is named after seccomp. A
reference is the path of a file: its last two components are the namespace and the name of the SeccompProfile, the
extension left off. A pod that refers to none that can be read has the default profile. Sets are numbers, a bit for each
call.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from podium import (
    SKIP,
    Cycle,
    DependsOn,
    FieldError,
    FieldPath,
    Handle,
    NodePart,
    Normalizer,
    Plugin,
    Scores,
    Status,
    custom_reference,
)
from podium.cluster import Cluster, NodeInfo, Nodes, PlacedPod
from podium.kube import Pod, SecurityContext

NAME: Final = "SySched"
API_VERSION: Final = "security-profiles-operator.x-k8s.io/v1beta1"
INVALID: Final = "InvalidSeccompProfile"
"""The reason of events on SeccompProfiles."""
RESOURCE: Final = "seccompprofiles.security-profiles-operator.x-k8s.io"
ANNOTATION: Final = "seccomp.security.alpha.kubernetes.io"
"""What the key of an annotation contains that refers to a profile."""
LOCALHOST: Final = "Localhost"
LETS_THROUGH: Final = ("SCMP_ACT_ALLOW", "SCMP_ACT_LOG")


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


# Which calls a pod may use


class _Rule(msgspec.Struct, frozen=True):
    action: str = ""
    names: tuple[str, ...] = ()


class _Spec(msgspec.Struct, frozen=True):
    syscalls: tuple[_Rule, ...] = ()


class _SeccompProfile(msgspec.Struct, frozen=True):
    spec: _Spec = _Spec()


class SyscallProfiles:
    """The sets of all SeccompProfiles, by "namespace/name"."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._bits: dict[str, int] = {}
        self._sets: dict[str, int] = {}
        self._missing: set[str] = set()
        self.version = 0
        """Moves whenever the set of a profile does."""
        handle.cluster.objects.custom_store(RESOURCE).follow(self._changed)

    def of_pod(self, pod: Pod, default: str) -> int:
        """The calls that the pod may use; 0 where not even the default profile is there."""
        calls = 0
        for name in references(pod):
            found = self._sets.get(name)
            if found is not None:
                calls |= found
            elif name not in self._missing:
                self._missing.add(name)
                self._handle.report(
                    f"SeccompProfile {name}: not found, or not readable; pods that refer to it do without it"
                )
        return calls or self._sets.get(default, 0)

    def _changed(self, key: str, _before: Any, after: Any) -> None:
        before = self._sets.pop(key, None)
        self._missing.discard(key)
        regarding, problems = custom_reference(API_VERSION, "SeccompProfile", key, after), self._handle.problems
        try:
            if after is not None:
                self._sets[key] = self._read(msgspec.convert(after, _SeccompProfile))
            problems.clear(regarding)
        except msgspec.ValidationError as error:
            self._missing.add(key)
            problems.set(regarding, INVALID, f"{error}; it counts as not there until that is put right")
        if self._sets.get(key) != before:
            self.version += 1

    def _read(self, profile: _SeccompProfile) -> int:
        calls = 0
        for rule in profile.spec.syscalls:
            if rule.action in LETS_THROUGH:
                for name in rule.names:
                    calls |= 1 << self._bits.setdefault(name, len(self._bits))
        return calls


def references(pod: Pod) -> Iterator[str]:
    """The profiles that a pod refers to, as "namespace/name"."""
    spec = pod.spec
    for context in (spec.security_context, *(container.security_context for container in spec.containers)):
        path = _path(context)
        if path is not None:
            yield from profile_name(path)
    annotated = min((key for key in pod.annotations if ANNOTATION in key), default=None)
    if annotated is not None:
        yield from profile_name(pod.annotations[annotated])


def profile_name(path: str) -> Iterator[str]:
    """The profile that a path stands for, if it stands for one.

    >>> [*profile_name("localhost/operator/default/nginx.v2.json"), *profile_name("nginx.json")]
    ['default/nginx.v2']
    >>> [*profile_name("default/.json"), *profile_name("default/nginx")]
    ['default/nginx']
    """
    *_, namespace, file = ("", *path.split("/")) if "/" in path else ("", "", "")
    name = file[: file.rindex(".")] if "." in file else file
    if namespace and name:
        yield f"{namespace}/{name}"


def _path(context: SecurityContext | None) -> str | None:
    profile = None if context is None else context.seccomp_profile
    return profile.localhost_profile if profile is not None and profile.type == LOCALHOST else None
