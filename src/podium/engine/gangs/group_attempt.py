"""Tries the members of a PodGroup (scheduling.k8s.io) by the rules of its API, and takes the best of its placements.

    v1beta1   PlacementFeasible plugins say, before the first member and after each, whether enough can have a node
    v1alpha2  a member that no node takes may get room by PostFilter, and then counts as placed on the node that is
              being freed; one that Permit lets through makes the whole group schedulable

Without the gate TopologyAwareWorkloadScheduling all nodes are the only placement. Where several take the group, the
weighted scores of the placementScore plugins decide; of equal ones the first is taken, where kube-scheduler draws lots.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from podium.cluster import PlacedPod, Rows
from podium.cluster.pod_groups import PodGroupStates
from podium.config.feature_gates import Gate
from podium.engine.gangs.gang_attempt import GangAttempt, Member, Placer
from podium.framework.cycle import Cycle
from podium.framework.diagnosis import Diagnosis
from podium.framework.gang import PlacementProgress
from podium.framework.normalize import MAX_SCORE
from podium.framework.notes import SharedNoteError
from podium.framework.profile import ProfileRuntime
from podium.framework.protocols import Placement, TriedPlacement
from podium.framework.queued import QueuedPod
from podium.framework.status import Code, PluginError, Status

UNSCHEDULABLE_GROUP: Final = "pod group is unschedulable"
WAITING_FOR_PREEMPTION: Final = "pod group is waiting for preemption to complete"
OTHER_FAILED: Final = "failed to schedule other pod from a pod group"
NO_PLACEMENT: Final = Status.unschedulable("no feasible placements found")


@dataclass(slots=True)
class GroupResult:
    """What a trial of a group found; `status` None: it can be scheduled."""

    status: Status | None
    members: list[Member] = field(default_factory=list)
    """Those that were tried, in that order."""
    waiting_for_preemption: bool = False
    nodes: dict[str, str] = field(default_factory=dict)
    """By uid: the nodes that members are nominated to while victims go."""

    @property
    def code(self) -> Code:
        return Code.SUCCESS if self.status is None else self.status.code

    @property
    def placed(self) -> list[Member]:
        """The members that have a node without anybody going."""
        return [each for each in self.members if each.node_name and each.status is None]


def try_group(
    placer: Placer,
    runtime: ProfileRuntime,
    key: str,
    members: Sequence[QueuedPod],
    *,
    post_filters: bool = True,
    afresh: bool = False,
    to_the_end: bool = False,
) -> tuple[GroupResult, GangAttempt | None]:
    """The result of the best placement; with it the attempt whose members still stand on their nodes, where they do.

    `afresh`: without cached answers, so that the members' cycles hold what plugins noted. `to_the_end`: every member is
    tried, though too few can have a node.
    """
    queued = runtime.handle.rules.pod_groups_are_queued

    def attempt_on(rows: Rows | None) -> tuple[GroupResult, GangAttempt]:
        attempt = GangAttempt(placer, runtime, rows, permits=not queued)
        attempt.afresh = attempt.afresh or afresh
        if queued:
            return _while_feasible(attempt, key, members, to_the_end), attempt
        return _until_permitted(attempt, members, post_filters), attempt

    placements = _placements(runtime, key)
    if isinstance(placements, Status):
        return GroupResult(placements), None
    if len(placements) > 1:
        result, attempt = _best(runtime, key, placements, attempt_on), None
    else:
        result, attempt = attempt_on(_rows(runtime, placements[0]))
        if result.code is Code.UNSCHEDULABLE and not result.waiting_for_preemption and _by_placement(runtime):
            result.status = _none_of(1, result, queued)
    if queued and result.status is None and not result.placed:
        result.status = Status.unschedulable(UNSCHEDULABLE_GROUP)
    return result, attempt


def _while_feasible(attempt: GangAttempt, key: str, members: Sequence[QueuedPod], to_the_end: bool) -> GroupResult:
    """Until PlacementFeasible says that too few can have a node; then what is left is not tried."""
    runtime, cluster = attempt.runtime, attempt.runtime.handle.cluster
    state = PodGroupStates.of(cluster).get(key)
    scheduled = 0 if state is None else state.scheduled
    status = _feasible(runtime, key, PlacementProgress(len(members), scheduled))
    if status is not None and status.code is not Code.WAIT:
        reasons = status.reasons if status.code is Code.ERROR else (UNSCHEDULABLE_GROUP, *status.reasons)
        return GroupResult(Status(status.code, reasons, status.plugin))
    result, ended = GroupResult(status), None
    for number, queued in enumerate(members, 1):
        member = attempt.try_member(queued)
        member.diagnose()
        result.members.append(member)
        if member.status is not None and not member.status.rejected:
            result.status = Status.error(f"{OTHER_FAILED}: {member.status.message}")
            return result
        scheduled += bool(member.node_name)
        result.status = _feasible(runtime, key, PlacementProgress(len(members) - number, scheduled))
        if result.code not in (Code.SUCCESS, Code.WAIT):
            ended = ended or result.status
            if not to_the_end:
                break
    if ended is not None:
        result.status = ended
    elif result.status is not None:
        result.status = Status.unschedulable(UNSCHEDULABLE_GROUP, *result.status.reasons)
    return result


def _feasible(runtime: ProfileRuntime, key: str, progress: PlacementProgress) -> Status | None:
    """None: enough have a node. WAIT: not yet."""
    group = runtime.handle.cluster.objects.pod_groups.get(key)
    waits: Status | None = None
    for plugin in runtime.placement_feasibles:
        status = None if group is None else plugin.placement_feasible(group, progress)
        if status is None:
            continue
        if status.code is Code.UNSCHEDULABLE:
            return status.by(plugin.name)
        if status.code is not Code.WAIT:
            why = f"running PlacementFeasible plugin: {status.message}"
            return Status.error(f"failed to evaluate placement feasibility: {why}")
        waits = status.by(plugin.name)
    return waits


def _until_permitted(attempt: GangAttempt, members: Sequence[QueuedPod], post_filters: bool) -> GroupResult:
    result = GroupResult(Status.unschedulable(UNSCHEDULABLE_GROUP))
    preempting = False
    for queued in members:
        member = attempt.try_member(queued)
        result.members.append(member)
        if member.search is not None:
            _make_room(attempt, member, post_filters)
        status = member.status
        if not member.node_name:
            assert status is not None
            if status.rejected:
                continue
            result.status = Status.error(f"{OTHER_FAILED}: {status.message}")
            result.waiting_for_preemption = False
            break
        preempting = preempting or status is not None
        if not member.waits:  # Permit is open: enough members have a node
            result.waiting_for_preemption = preempting
            result.status = Status.unschedulable(UNSCHEDULABLE_GROUP, WAITING_FOR_PREEMPTION) if preempting else None
    result.nodes = {each.queued.pod.uid: each.node_name for each in result.placed}
    return result


def _make_room(attempt: GangAttempt, member: Member, post_filters: bool) -> None:
    try:
        member.diagnose(attempt.runtime if post_filters else None)
    except PluginError as error:
        member.refuse(Status.error(str(error)))
    if member.nomination is not None and member.nomination.node_name:
        attempt.place(member, member.nomination.node_name)


# Placements


def _by_placement(runtime: ProfileRuntime) -> bool:
    return Gate.TOPOLOGY_AWARE in runtime.handle.gates


def _placements(runtime: ProfileRuntime, key: str) -> Sequence[Placement] | Status:
    cluster, generator = runtime.handle.cluster, runtime.placement_generator
    every_node = Placement("", cluster.order.rows)
    if not _by_placement(runtime) or generator is None:
        return [every_node]
    found = generator.generate_placements(key, cluster.objects.pod_groups.get(key), every_node.rows)
    if isinstance(found, Status):
        return found.by(generator.name)
    return found or NO_PLACEMENT


def _rows(runtime: ProfileRuntime, placement: Placement) -> Rows | None:
    """None for a placement of all nodes, which needs no care."""
    return None if len(placement.rows) == len(runtime.handle.cluster.order.rows) else placement.rows


def _none_of(number: int, first: GroupResult, queued: bool) -> Status:
    if not queued:
        return Status.unschedulable(_no_placement(number, UNSCHEDULABLE_GROUP))
    assert first.status is not None
    why = UNSCHEDULABLE_GROUP if first.status.reasons[0] == UNSCHEDULABLE_GROUP else first.status.message
    return Status.unschedulable(UNSCHEDULABLE_GROUP, _no_placement(number, why))


def _no_placement(number: int, first: str) -> str:
    return f"0/{number} placements are available, first placement status: {first}"


def _best(
    runtime: ProfileRuntime,
    key: str,
    placements: Sequence[Placement],
    attempt_on: Callable[[Rows | None], tuple[GroupResult, GangAttempt]],
) -> GroupResult:
    results: list[GroupResult] = []
    good: list[tuple[Placement, GroupResult]] = []
    for placement in placements:
        result, attempt = attempt_on(_rows(runtime, placement))
        attempt.take_back()
        if result.code is Code.ERROR:
            return result
        results.append(result)
        if result.status is None or result.waiting_for_preemption:
            good.append((placement, result))
    if not good:
        results[0].status = _none_of(len(placements), results[0], runtime.handle.rules.pod_groups_are_queued)
        return results[0]
    if len(good) == 1:
        return good[0][1]
    tried = [
        TriedPlacement(placement, [each.queued.pod for each in result.members if each.node_name])
        for placement, result in good
    ]
    totals = _total_scores(runtime, key, tried)
    return GroupResult(totals) if isinstance(totals, Status) else good[totals.index(max(totals))][1]


def _total_scores(runtime: ProfileRuntime, key: str, tried: Sequence[TriedPlacement]) -> list[int] | Status:
    totals = [0] * len(tried)
    for plugin in runtime.placement_scorers:
        scores = plugin.score_placements(key, tried)
        if isinstance(scores, Status):
            return Status.error(f'running PlacementScore plugins: plugin "{plugin.name}" failed with: {scores.message}')
        weight = runtime.profile.placement_weights[plugin.name]
        for number, score in enumerate(scores):
            if not 0 <= score <= MAX_SCORE:
                return Status.error(
                    f'applying score defaultWeights on PlacementScore plugins: plugin "{plugin.name}" returns an '
                    f"invalid score {score}, it should in the range of [0, {MAX_SCORE}] after normalizing"
                )
            totals[number] += weight * score
    return totals


class GroupTrial:
    """A group tried while its victims are off their nodes, for plugins that make room; a `GroupFit`."""

    def __init__(
        self,
        placer: Placer,
        runtime: ProfileRuntime,
        key: str,
        members: Sequence[QueuedPod],
        failed: Sequence[tuple[Cycle, Diagnosis]],
    ) -> None:
        self.failed = failed
        self._placer = placer
        self._runtime = runtime
        self._key = key
        self._members = members
        self._placed: list[Member] = []

    def fits(self) -> Status | None:
        afresh = self._runtime.handle.rules.pod_groups_are_queued  # then the cycles are used again
        result, attempt = try_group(
            self._placer, self._runtime, self._key, self._members, post_filters=False, afresh=afresh
        )
        self._placed = result.placed
        if attempt is not None:
            attempt.take_back()
        return result.status

    @property
    def nodes(self) -> dict[str, str]:
        return {each.queued.pod.uid: each.node_name for each in self._placed}

    def put_back(self, placed: PlacedPod) -> None:
        for member in self._placed:
            self._runtime.add_pod(member.cycle, placed)

    def take_off(self, placed: PlacedPod) -> None:
        for member in self._placed:
            self._runtime.remove_pod(member.cycle, placed)

    def still_fits(self) -> bool:
        standing: list[Member] = []
        try:
            for member in self._placed:
                row = self._placer.cluster.row_of[member.node_name]
                if self._runtime.run_filters_with_nominated(member.cycle, row) is not None:
                    return False
                self._placer.place(self._runtime, member.cycle, member.node_name, permit=False)
                standing.append(member)
        except SharedNoteError:
            raise  # what was found so far may rest on the note, too
        except PluginError:
            return False
        finally:
            for member in reversed(standing):
                self._placer.take_back(self._runtime, member.cycle, member.node_name)
        return True
