"""Indexes the pods for controllers: the few fields that they decide by, decoded once for each change, and found by
owner, by namespace and by node."""

from __future__ import annotations

from functools import lru_cache

import msgspec

from podium.kube.affinity import NodeAffinitySpec
from podium.kube.decode import decode_json
from podium.kube.meta import OwnerReference, parse_time
from podium.kube.pod import Toleration

Key = tuple[str, str]
"""Namespace and name."""


class View(msgspec.Struct, rename="camel", frozen=True, gc=False, kw_only=True):
    """The settings of the partial objects below."""


class PodViewMeta(View, frozen=True, kw_only=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[OwnerReference, ...] = ()

    @property
    def controller(self) -> OwnerReference | None:
        return next((owner for owner in self.owner_references if owner.controller), None)


class PodViewCondition(View, frozen=True, kw_only=True):
    type: str = ""
    status: str = ""
    last_transition_time: str | None = None


class PodViewContainerStatus(View, frozen=True, kw_only=True):
    restart_count: int = 0


class PodViewAffinity(View, frozen=True, kw_only=True):
    node_affinity: NodeAffinitySpec | None = None


class PodViewSpec(View, frozen=True, kw_only=True):
    node_name: str = ""
    affinity: PodViewAffinity | None = None
    tolerations: tuple[Toleration, ...] = ()


class PodViewStatus(View, frozen=True, kw_only=True):
    phase: str = ""
    conditions: tuple[PodViewCondition, ...] = ()
    container_statuses: tuple[PodViewContainerStatus, ...] = ()


class PodView(View, frozen=True, kw_only=True):
    metadata: PodViewMeta = PodViewMeta()
    spec: PodViewSpec = PodViewSpec()
    status: PodViewStatus = PodViewStatus()

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def key(self) -> Key:
        return self.metadata.namespace, self.metadata.name

    @property
    def phase(self) -> str:
        return self.status.phase

    @property
    def finished(self) -> bool:
        return self.status.phase in ("Succeeded", "Failed")

    @property
    def terminating(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    @property
    def active(self) -> bool:
        return not self.finished and not self.terminating

    @property
    def meant_for(self) -> str:
        """The node it runs on, or else the one that its affinity names, as that of a DaemonSet's pod does."""
        if self.spec.node_name:
            return self.spec.node_name
        affinity = self.spec.affinity.node_affinity if self.spec.affinity else None
        for term in affinity.required.node_selector_terms if affinity and affinity.required else ():
            for field in term.match_fields:
                if field.key == "metadata.name" and field.operator == "In" and len(field.values) == 1:
                    return field.values[0]
        return ""

    def condition(self, kind: str) -> PodViewCondition | None:
        return next((condition for condition in self.status.conditions if condition.type == kind), None)

    @property
    def ready(self) -> bool:
        condition = self.condition("Ready")
        return condition is not None and condition.status == "True"

    @property
    def ready_since(self) -> float | None:
        condition = self.condition("Ready")
        if condition is None or condition.status != "True":
            return None
        return seconds(condition.last_transition_time)

    def available(self, min_ready_seconds: int, now: float) -> bool:
        if not self.ready:
            return False
        since = self.ready_since
        return min_ready_seconds == 0 or (since is not None and since + min_ready_seconds <= now)


def view(raw: bytes) -> PodView:
    return decode_json(PodView, raw)


@lru_cache(maxsize=1 << 14)
def seconds(time: str | None) -> float | None:
    """Seconds since the epoch of a time on an object, None where it has none."""
    return parse_time(time) if time else None


class PodIndex:
    """All pods by key, and the same by what they are asked for. Each group keeps the order in which its pods came."""

    def __init__(self) -> None:
        self.all: dict[Key, PodView] = {}
        self._groups: dict[tuple[str, str], dict[Key, PodView]] = {}

    def put(self, pod: PodView) -> PodView | None:
        """Takes in a new or changed pod; returns what was known before."""
        key, groups = pod.key, _groups_of(pod)
        old = self.all.get(key)
        if old is not None:
            for group in _groups_of(old):
                if group not in groups:
                    self._drop(group, key)
        self.all[key] = pod
        for group in groups:
            self._groups.setdefault(group, {})[key] = pod
        return old

    def remove(self, key: Key) -> PodView | None:
        pod = self.all.pop(key, None)
        if pod is not None:
            for group in _groups_of(pod):
                self._drop(group, key)
        return pod

    def owned_by(self, uid: str) -> list[PodView]:
        return list(self._groups.get(("owner", uid), {}).values())

    def orphans(self, namespace: str) -> list[PodView]:
        """The pods of a namespace that no controller owns."""
        return list(self._groups.get(("orphans", namespace), {}).values())

    def in_namespace(self, namespace: str) -> list[PodView]:
        return list(self._groups.get(("namespace", namespace), {}).values())

    def on_node(self, name: str) -> list[PodView]:
        return list(self._groups.get(("node", name), {}).values())

    def _drop(self, group: tuple[str, str], key: Key) -> None:
        members = self._groups[group]
        del members[key]
        if not members:
            del self._groups[group]


def _groups_of(pod: PodView) -> list[tuple[str, str]]:
    owner, namespace = pod.metadata.controller, pod.metadata.namespace
    groups = [("namespace", namespace), ("owner", owner.uid) if owner else ("orphans", namespace)]
    if pod.spec.node_name:
        groups.append(("node", pod.spec.node_name))
    return groups
