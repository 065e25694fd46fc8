"""Keeps a pod where its volumes can be: each extension point in a few lines, the work in the modules beside it.

What the filter finds for a node (which volume for which claim) is worked out again for the one node chosen, in Reserve:
nothing has changed in between, and for all other nodes it is not needed.

What a pod needs is the same for all pods with the same answer key: of bound claims only how far their volumes reach,
not which they are. How far a pod has come on its way to a node is noted apart, because needs may be shared.

Also decides which changes may let a pod in that VolumeBinding refused.

Also types the arguments of VolumeBinding. `shape` belongs to scoring by storage capacity (`storage_score`). While that
is off, as it is by default before 1.37, `shape` must be left out, so that an upgrade does not make it act.

Also sorts a pod's claims by what is still to be done for them.

A claim must exist, not be lost and not be on its way out, and the claim of an ephemeral volume must have been made for
the pod. A claim that is not fully bound either waits for its first consumer, which the pod now is (delayed), or should
have been bound already (immediate): then the pod has to wait. A claim that names a volume before it is bound counts as
immediate, whatever its class says.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Hashable, Iterable
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from podium.cluster import Cluster, Nodes
from podium.cluster.csi_nodes import MIGRATED_PLUGINS
from podium.cluster.facts import CLAIM_CONCERNS
from podium.cluster.free_volumes import volume_limit
from podium.cluster.objects import Latest
from podium.config.field import FieldError, FieldPath
from podium.config.types import Int64
from podium.framework import (
    SKIP,
    Action,
    Cycle,
    DependsOn,
    Handle,
    Interest,
    NodePart,
    Plugin,
    PluginError,
    Resource,
    Scores,
    Status,
    Verdict,
    Write,
)
from podium.framework.handle import Effect
from podium.kube import CSIDriver, CSINode, CSIStorageCapacity, PersistentVolumeClaim, Pod, StorageClass, Volume
from podium.kube.claims import claim_name, foreign_claim, fully_bound, is_ephemeral, not_found
from podium.kube.versions import Gate, VersionRules
from podium.placement.shape import Shape, UtilizationShapePoint, shape_errors
from podium.plugins.volume_binding.choice import BindingFailedError, Choice, all_bound, assume, choose, take_back
from podium.plugins.volume_binding.search import Reach, judge, leaves_all_open, reach_of
from podium.plugins.volume_binding.storage_score import DEFAULT_SHAPE, storage_scores

NAME = "VolumeBinding"
RESERVE = f"Reserve{NAME}"
POLL_SECONDS = 1
TIMED_OUT = Status.error("binding volumes: context deadline exceeded")
UNBOUND_IMMEDIATE = Status.unresolvable("pod has unbound immediate PersistentVolumeClaims")
WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"
LOST = "Lost"


class Needs(NamedTuple):
    """How far the volumes of bound claims reach (None for a volume that is missing), and the delayed claims."""

    bound: tuple[Reach | None, ...] = ()
    delayed: tuple[PersistentVolumeClaim, ...] = ()


NOTHING = Needs()


class _Way:
    """A pod's way to a node: what was chosen there (None: all was bound), and whether that is written."""

    __slots__ = ("choice", "written")

    def __init__(self, choice: Choice | None) -> None:
        self.choice = choice
        self.written = False


class VolumeBindingArgs(msgspec.Struct, rename="camel", kw_only=True, frozen=True, forbid_unknown_fields=True):
    bind_timeout_seconds: Int64 = 600
    shape: tuple[UtilizationShapePoint, ...] | None = None

    def validate(self, path: FieldPath) -> Iterable[FieldError]:
        if self.bind_timeout_seconds < 0:
            yield FieldError.invalid(
                path.child("bindTimeoutSeconds"),
                self.bind_timeout_seconds,
                "invalid BindTimeoutSeconds, should not be a negative value",
            )

    def validate_by(self, path: FieldPath, rules: VersionRules) -> Iterable[FieldError]:
        if Gate.STORAGE_CAPACITY_SCORING in rules.gates:
            yield from shape_errors(self.shape or (), path.child("shape"))
        elif self.shape is not None:
            yield FieldError.invalid(
                path.child("shape"),
                [{"Utilization": point.utilization, "Score": point.score} for point in self.shape],
                "unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring",
            )

    def with_defaults_of(self, rules: VersionRules) -> VolumeBindingArgs:
        scores = Gate.STORAGE_CAPACITY_SCORING in rules.gates
        return replace(self, shape=DEFAULT_SHAPE) if scores and not self.shape else self


class VolumeBinding(Plugin):
    name = NAME
    trusted = True
    Args = VolumeBindingArgs
    prepares_in_parallel = True
    depends_on = DependsOn(node=NodePart.OBJECT, claims=False)
    writes = (Write.VOLUMES,)

    def __init__(self, args: VolumeBindingArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        objects = handle.cluster.objects
        scores = Gate.STORAGE_CAPACITY_SCORING in handle.gates
        self._shape = Shape(args.shape or DEFAULT_SHAPE) if scores else None
        self._needs = Latest(
            lambda pod: needs_of(pod, handle.cluster), objects.claims, objects.volumes, objects.storage_classes
        )

    def interests(self) -> Iterable[Interest]:
        return interests()

    def answer_key(self, pod: Pod) -> Hashable:
        needs = self._needs.of(pod)
        if isinstance(needs, Status):
            return None
        if not needs.delayed:
            return needs.bound
        objects = self.handle.cluster.objects
        return (
            needs.bound,
            tuple(claim.key for claim in needs.delayed),
            objects.claims.version,
            objects.volumes.version,
            objects.storage_classes.version,
            objects.csi_drivers.version,
            objects.csi_capacities.version,
        )

    def pre_filter(self, cycle: Cycle) -> Status | None:
        needs = self._needs.of(cycle.pod)
        if isinstance(needs, Status):
            return needs
        cycle.data[NAME] = needs
        return SKIP if leaves_all_open(*needs) else None

    def filter(self, cycle: Cycle, nodes: Nodes) -> Verdict | None:
        return judge(*_noted(cycle), nodes)

    def pre_score(self, cycle: Cycle, nodes: Nodes) -> Status | None:
        return SKIP if self._shape is None else None

    def score(self, cycle: Cycle, nodes: Nodes) -> Scores | int:
        delayed = () if self._shape is None else _noted(cycle).delayed
        if self._shape is None or not delayed:
            return 0
        return storage_scores(delayed, cycle.cluster, nodes, self._shape)

    def reserve(self, cycle: Cycle, node_name: str) -> None:
        delayed = _noted(cycle).delayed
        choice = choose(delayed, cycle.cluster, node_name) if delayed else None
        cycle.data[RESERVE] = _Way(choice)
        if choice is not None:
            assume(choice, cycle.cluster)

    def unreserve(self, cycle: Cycle, node_name: str) -> None:
        """What was written stays assumed until the API server's version arrives."""
        way: _Way | None = cycle.data.get(RESERVE)
        if way is not None and way.choice is not None and not way.written:
            take_back(way.choice, cycle.cluster)

    def pre_bind_preflight(self, cycle: Cycle, node_name: str) -> Status | None:
        way = _way(cycle)
        if way is None:
            return _nothing_chosen(node_name)
        return SKIP if way.choice is None else None

    def pre_bind(self, cycle: Cycle, node_name: str) -> Effect:
        way = _way(cycle)
        if way is None:
            return _nothing_chosen(node_name)
        choice = way.choice
        if choice is None:
            return None
        effect = self.handle.writer.write_volumes([each.volume for each in choice.bindings], choice.provisions)
        if isinstance(effect, Awaitable):
            return self._see_bound(cycle, node_name, choice, effect)
        way.written = effect is None
        return effect

    async def _see_bound(
        self, cycle: Cycle, node_name: str, choice: Choice, effect: Awaitable[Status | None]
    ) -> Status | None:
        status = await effect
        if status is not None:
            return status
        cycle.data[RESERVE].written = True
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


def needs_of(pod: Pod, cluster: Cluster) -> Needs | Status:
    claims = claims_of(pod, cluster)
    if claims is None:
        return NOTHING
    if isinstance(claims, Status):
        return claims
    volumes = [cluster.objects.volumes.get(claim.spec.volume_name) for claim in claims.bound]
    reaches = [None if volume is None else reach_of(volume) for volume in volumes]
    return Needs(tuple(reaches), tuple(claims.delayed))


def _noted(cycle: Cycle) -> Needs:
    needs: Needs | None = cycle.data.get(NAME)
    if needs is None:
        raise PluginError("not found")
    return needs


def _way(cycle: Cycle) -> _Way | None:
    _noted(cycle)
    way: _Way | None = cycle.data.get(RESERVE)
    return way


def _nothing_chosen(node_name: str) -> Status:
    return Status.error(f'no pod volume found for node "{node_name}"')


def interests() -> Iterable[Interest]:
    return [
        Interest(Resource.STORAGE_CLASS, Action.ADD | Action.UPDATE, _topologies_changed, by_signature=True),
        Interest(Resource.PVC, Action.ADD | Action.UPDATE, _is_the_pods_claim, concerns=CLAIM_CONCERNS),
        Interest(Resource.PV, Action.ADD | Action.UPDATE),
        Interest(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL),
        Interest(Resource.CSI_NODE, Action.ADD | Action.UPDATE, _migration_changed, by_signature=True),
        Interest(Resource.CSI_DRIVER, Action.UPDATE, _stops_reporting_capacity, by_signature=True),
        Interest(Resource.CSI_CAPACITY, Action.ADD | Action.UPDATE, _capacity_grew, by_signature=True),
    ]


def _topologies_changed(_pod: Pod, before: StorageClass | None, after: StorageClass) -> bool:
    return before is None or before.allowed_topologies != after.allowed_topologies


def _is_the_pods_claim(pod: Pod, _before: PersistentVolumeClaim | None, after: PersistentVolumeClaim) -> bool:
    return after.namespace == pod.namespace and any(
        claim_name(pod, volume) == after.name for volume in pod.spec.volumes
    )


def _migration_changed(_pod: Pod, before: CSINode | None, after: CSINode) -> bool:
    return before is None or before.annotations.get(MIGRATED_PLUGINS, "") != after.annotations.get(MIGRATED_PLUGINS, "")


def _stops_reporting_capacity(pod: Pod, before: CSIDriver, after: CSIDriver) -> bool:
    """Only inline volumes of the driver are looked at, although it is claims that need capacity."""
    stops = bool(before.spec.storage_capacity) and not after.spec.storage_capacity
    return stops and any(volume.csi is not None and volume.csi.driver == after.name for volume in pod.spec.volumes)


def _capacity_grew(_pod: Pod, before: CSIStorageCapacity | None, after: CSIStorageCapacity) -> bool:
    if before is None:
        return True
    old, new = volume_limit(before), volume_limit(after)
    return new is not None and (old is None or new > old)


class PodClaims(NamedTuple):
    """The claims in the order of the pod's volumes; one that is used twice is listed twice."""

    bound: list[PersistentVolumeClaim]
    delayed: list[PersistentVolumeClaim]


def claims_of(pod: Pod, cluster: Cluster) -> PodClaims | Status | None:
    """The pod's claims, why they are not ready, or None when it has none."""
    claims: list[PersistentVolumeClaim] = []
    for volume in pod.spec.volumes:
        name = claim_name(pod, volume)
        if name is None:
            continue
        claim = cluster.objects.claims.get(f"{pod.namespace}/{name}")
        objection = _missing(volume, name) if claim is None else _unusable(pod, volume, claim)
        if objection:
            return Status.unresolvable(objection)
        if claim is not None:
            claims.append(claim)
    return _sorted(claims, cluster) if claims else None


def _missing(volume: Volume, name: str) -> str:
    if is_ephemeral(volume):
        return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
    return not_found("persistentvolumeclaim", name)


def _unusable(pod: Pod, volume: Volume, claim: PersistentVolumeClaim) -> str:
    if claim.status.phase == LOST:
        volume_name = claim.spec.volume_name
        return f'persistentvolumeclaim "{claim.name}" bound to non-existent persistentvolume "{volume_name}"'
    if claim.terminating:
        return f'persistentvolumeclaim "{claim.name}" is being deleted'
    return foreign_claim(pod, claim) if is_ephemeral(volume) else ""


def _sorted(claims: list[PersistentVolumeClaim], cluster: Cluster) -> PodClaims | Status:
    bound: list[PersistentVolumeClaim] = []
    delayed: list[PersistentVolumeClaim] = []
    immediate = False
    for claim in claims:
        if fully_bound(claim):
            bound.append(claim)
            continue
        name = claim.storage_class_name
        storage_class = cluster.objects.storage_classes.get(name) if name else None
        if storage_class is not None and storage_class.volume_binding_mode is None:
            return Status.error(f'VolumeBindingMode not set for StorageClass "{name}"')
        waits = storage_class is not None and storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER
        if waits and not claim.spec.volume_name:
            delayed.append(claim)
        else:
            immediate = True
    return UNBOUND_IMMEDIATE if immediate else PodClaims(bound, delayed)
