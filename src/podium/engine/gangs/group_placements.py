"""Tries a PodGroup on each of its placements, and takes the best of those that take it.

Without the gate TopologyAwareWorkloadScheduling all nodes are the only placement. Where several take the group, the
weighted scores of the placementScore plugins decide; of equal ones the first is taken, where kube-scheduler draws lots.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from podium.cluster import Rows
from podium.config.feature_gates import Gate
from podium.engine.gangs.group_attempt import UNSCHEDULABLE_GROUP, GroupAttempt, GroupResult
from podium.framework.normalize import MAX_SCORE
from podium.framework.profile import ProfileRuntime
from podium.framework.protocols import Placement, TriedPlacement
from podium.framework.queued import QueuedPod
from podium.framework.status import Code, Status

NO_PLACEMENT: Final = Status.unschedulable("no feasible placements found")

NewAttempt = Callable[[Rows | None], GroupAttempt]


def try_group(
    runtime: ProfileRuntime,
    key: str,
    members: Sequence[QueuedPod],
    attempt_on: NewAttempt,
    *,
    post_filters: bool = True,
) -> tuple[GroupResult, GroupAttempt | None]:
    """The result of the best placement; with it the attempt whose members still stand on their nodes, where they do."""
    placements = _placements(runtime, key)
    if isinstance(placements, Status):
        return GroupResult(placements), None
    if len(placements) == 1:
        attempt = attempt_on(_rows(runtime, placements[0]))
        result = attempt.run(members, post_filters=post_filters)
        if result.code is Code.UNSCHEDULABLE and not result.waiting_for_preemption and _by_placement(runtime):
            result.status = _none_of(1)
        return result, attempt
    return _best(runtime, key, members, placements, attempt_on, post_filters)


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


def _none_of(number: int) -> Status:
    first = f"first placement status: {UNSCHEDULABLE_GROUP}"
    return Status.unschedulable(f"0/{number} placements are available, {first}")


def _best(
    runtime: ProfileRuntime,
    key: str,
    members: Sequence[QueuedPod],
    placements: Sequence[Placement],
    attempt_on: NewAttempt,
    post_filters: bool,
) -> tuple[GroupResult, None]:
    results: list[GroupResult] = []
    good: list[tuple[Placement, GroupResult]] = []
    for placement in placements:
        attempt = attempt_on(_rows(runtime, placement))
        result = attempt.run(members, post_filters=post_filters)
        attempt.take_back()
        if result.code is Code.ERROR:
            return result, None
        results.append(result)
        if result.status is None or result.waiting_for_preemption:
            good.append((placement, result))
    if not good:
        results[0].status = _none_of(len(placements))
        return results[0], None
    if len(good) == 1:
        return good[0][1], None
    tried = [
        TriedPlacement(placement, [each.queued.pod for each in result.members if each.node_name])
        for placement, result in good
    ]
    totals = _total_scores(runtime, key, tried)
    if isinstance(totals, Status):
        return GroupResult(totals), None
    return good[totals.index(max(totals))][1], None


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
