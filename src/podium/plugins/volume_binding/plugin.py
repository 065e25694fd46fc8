"""The plugin itself: each extension point in a few lines, the work in the modules beside it.

What the filter finds for a node (which volume for which claim) is worked out again for the one node chosen, in Reserve:
nothing has changed in between, and for all other nodes nobody asks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Hashable, Iterable

import numpy as np

from podium.cluster import Nodes
from podium.framework import SKIP, Cycle, Interest, Plugin, PluginError, Scope, Scores, Status, Verdict
from podium.framework.handle import Effect
from podium.kube import Pod
from podium.plugins.volume_binding.args import VolumeBindingArgs
from podium.plugins.volume_binding.choice import Choice, assume, choose, take_back
from podium.plugins.volume_binding.claims import PodClaims, claims_of
from podium.plugins.volume_binding.hints import interests
from podium.plugins.volume_binding.progress import BindingFailedError, all_bound
from podium.plugins.volume_binding.search import judge

NAME = "VolumeBinding"
POLL_SECONDS = 1
TIMED_OUT = Status.error("binding volumes: context deadline exceeded")


class _Notes:
    """The pod's claims (None: it has none), and on the way to a node, what was chosen there."""

    __slots__ = ("bound", "choice", "claims", "written")

    def __init__(self, claims: PodClaims | None) -> None:
        self.claims = claims
        self.choice: Choice | None = None
        self.bound = False
        self.written = False


class VolumeBinding(Plugin):
    name = NAME
    Args = VolumeBindingArgs
    filter_scope = Scope.CLUSTER
    score_scope = Scope.NODE

    def interests(self) -> Iterable[Interest]:
        return interests()

    def watermark(self, pod: Pod) -> Hashable:
        own_claims = any(volume.ephemeral is not None for volume in pod.spec.volumes)
        if not own_claims and all(volume.persistent_volume_claim is None for volume in pod.spec.volumes):
            return ()
        objects = self.handle.cluster.objects
        return (
            objects.claims.version,
            objects.volumes.version,
            objects.storage_classes.version,
            objects.csi_nodes.version,
            objects.csi_drivers.version,
            objects.csi_capacities.version,
            pod.key if own_claims else "",
        )

    def pre_filter(self, cycle: Cycle) -> Status | None:
        claims = claims_of(cycle.pod, cycle.cluster)
        if isinstance(claims, Status):
            return claims
        cycle.data[NAME] = _Notes(claims)
        return SKIP if claims is None else None

    def filter(self, cycle: Cycle, nodes: Nodes) -> Verdict | None:
        claims = _notes(cycle).claims
        return None if claims is None else judge(claims, nodes)

    def pre_score(self, cycle: Cycle, nodes: Nodes) -> Status:
        """Scoring by storage capacity is off."""
        return SKIP

    def score(self, cycle: Cycle, nodes: Nodes) -> Scores:
        return np.zeros(len(nodes), dtype=np.int64)

    def reserve(self, cycle: Cycle, node_name: str) -> None:
        notes = _notes(cycle)
        notes.bound = notes.claims is None or not notes.claims.delayed
        if notes.claims is not None and notes.claims.delayed:
            notes.choice = choose(notes.claims, cycle.cluster, node_name)
            assume(notes.choice, cycle.cluster)

    def unreserve(self, cycle: Cycle, node_name: str) -> None:
        """What was written stays assumed until the API server's version arrives."""
        notes: _Notes | None = cycle.data.get(NAME)
        if notes is not None and notes.choice is not None and not notes.written:
            take_back(notes.choice, cycle.cluster)

    def pre_bind_preflight(self, cycle: Cycle, node_name: str) -> Status | None:
        notes = _notes(cycle)
        if notes.bound:
            return SKIP
        return None if notes.choice is not None else _nothing_chosen(node_name)

    def pre_bind(self, cycle: Cycle, node_name: str) -> Effect:
        notes = _notes(cycle)
        if notes.bound:
            return None
        choice = notes.choice
        if choice is None:
            return _nothing_chosen(node_name)
        effect = self.handle.writer.write_volumes([each.volume for each in choice.bindings], choice.provisions)
        if isinstance(effect, Awaitable):
            return self._see_bound(cycle, node_name, choice, effect)
        notes.written = effect is None
        return effect

    async def _see_bound(
        self, cycle: Cycle, node_name: str, choice: Choice, effect: Awaitable[Status | None]
    ) -> Status | None:
        status = await effect
        if status is not None:
            return status
        _notes(cycle).written = True
        args: VolumeBindingArgs = self.args
        try:
            for waited in range(args.bind_timeout_seconds + 1):
                if waited:
                    await asyncio.sleep(POLL_SECONDS)
                if all_bound(choice, cycle.cluster, cycle.pod, node_name):
                    return None
        except BindingFailedError as error:
            return Status.error(f"binding volumes: {error}")
        return TIMED_OUT


def _notes(cycle: Cycle) -> _Notes:
    notes: _Notes | None = cycle.data.get(NAME)
    if notes is None:
        raise PluginError("not found")
    return notes


def _nothing_chosen(node_name: str) -> Status:
    return Status.error(f'no pod volume found for node "{node_name}"')
