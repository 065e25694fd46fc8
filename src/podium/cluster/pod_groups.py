"""Counts the members of every PodGroup (scheduling.k8s.io): those that wait, those placed in memory, those bound.

A member is a pod that names the group: one without a node that a profile of ours is to place, or any that has one. The
account exists only where the gate GenericWorkload is on.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager

from podium.cluster.state import Cluster, PlacedPod
from podium.kube import Pod
from podium.kube.pod_group import pod_group_key


class PodGroupState:
    """The members of one group, by uid."""

    __slots__ = ("key", "pending", "placed")

    def __init__(self, key: str) -> None:
        self.key = key
        self.pending: dict[str, Pod] = {}
        """Without a node in the API."""
        self.placed: dict[str, PlacedPod] = {}
        """With a node, in memory or bound."""

    @property
    def members(self) -> int:
        return len(self.pending.keys() | self.placed.keys())

    @property
    def scheduled(self) -> int:
        """How many have a node, in memory or bound."""
        return len(self.placed)

    @property
    def unscheduled(self) -> list[Pod]:
        """Those without a node, in the order they came."""
        return [pod for uid, pod in self.pending.items() if uid not in self.placed]

    @property
    def empty(self) -> bool:
        return not self.pending and not self.placed


class PodGroupStates:
    """The states of one cluster, by "namespace/name"; a `PodAccount`: `PodGroupStates.of(cluster)`."""

    def __init__(self, cluster: Cluster) -> None:
        self._states: dict[str, PodGroupState] = {}
        self._fixed: Collection[str] = ()
        cluster.follow_pods(self)
        cluster.objects.pending_pods.follow(self._pending)

    @staticmethod
    def of(cluster: Cluster) -> PodGroupStates:
        return cluster.account(PodGroupStates) or PodGroupStates(cluster)

    def get(self, key: str | None) -> PodGroupState | None:
        return None if key is None else self._states.get(key)

    def __iter__(self) -> Iterator[PodGroupState]:
        return iter(list(self._states.values()))

    @contextmanager
    def fixed(self, uids: Collection[str]) -> Iterator[None]:
        """Members with these uids count as they do now, whatever is tried: kube-scheduler takes victims off nodes in a
        trial, not out of their groups."""
        self._fixed = uids
        try:
            yield
        finally:
            self._fixed = ()

    def pod_added(self, placed: PlacedPod) -> None:
        key = pod_group_key(placed.pod)
        if key is not None and placed.pod.uid not in self._fixed:
            self._of(key).placed[placed.pod.uid] = placed

    def pod_removed(self, placed: PlacedPod) -> None:
        key = pod_group_key(placed.pod)
        if key is not None and placed.pod.uid not in self._fixed:
            state = self._of(key)
            state.placed.pop(placed.pod.uid, None)
            self._drop_if_empty(state)

    def _pending(self, _key: str, before: Pod | None, after: Pod | None) -> None:
        if before is not None and (after is None or after.uid != before.uid):
            state = self.get(pod_group_key(before))
            if state is not None:
                state.pending.pop(before.uid, None)
                self._drop_if_empty(state)
        if after is not None:
            key = pod_group_key(after)
            if key is not None:
                self._of(key).pending[after.uid] = after

    def _of(self, key: str) -> PodGroupState:
        state = self._states.get(key)
        if state is None:
            state = self._states[key] = PodGroupState(key)
        return state

    def _drop_if_empty(self, state: PodGroupState) -> None:
        if state.empty:
            self._states.pop(state.key, None)
