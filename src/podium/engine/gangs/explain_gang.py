"""Explains how a pod's gang stands: how many members there are, how many would fit, and what stops the rest.

Also counts the members of all gangs that a scheduler knows.

The members are placed by the code that schedules, on a cluster that may be changed, and taken back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from podium.cluster import Cluster
from podium.cluster.pod_groups import PodGroupStates
from podium.config.feature_gates import Gate
from podium.engine.decide import NodeSearch, decide
from podium.engine.gangs.gang_attempt import GangAttempt, Member, place_gang
from podium.engine.gangs.group_attempt import try_group
from podium.engine.sampling import Sampling
from podium.engine.unblock import Remedy, remedies
from podium.framework.cycle import Cycle
from podium.framework.gang import GangCount, GangPlugin, GangState
from podium.framework.profile import ProfileRuntime
from podium.framework.queued import QueuedPod
from podium.framework.status import NO_WAITS, PluginError, Status, Waits
from podium.kube import Pod
from podium.kube.pod_group import pod_group_key

if TYPE_CHECKING:
    from podium.engine.scheduler import Scheduler


@dataclass
class Obstacle:
    """Why some members get no node."""

    message: str
    pods: list[str]


@dataclass
class GangExplanation:
    """How a gang stands."""

    group: str
    """Its kind and name: "PodGroup default/training"."""
    minimum: int
    members: int
    assigned: int
    would_fit: int
    """How many of those without a node would get one, all in place."""
    starts: bool
    objection: str = ""
    obstacles: list[Obstacle] = field(default_factory=list)
    remedies: list[Remedy] = field(default_factory=list)
    """What would have to change for the first member that gets no node, with the others in place."""


def explain_gang(runtime: ProfileRuntime, pod: Pod, sampling: Sampling) -> GangExplanation | None:
    """How the pod's gang stands; None where it has none. Writes of the profile must go nowhere."""
    if Gate.GENERIC_WORKLOAD in runtime.handle.gates and pod_group_key(pod) is not None:
        return explain_pod_group(runtime, pod, _Trial(runtime.handle.cluster, sampling), sampling)
    for plugin in runtime.gang_plugins:
        state = plugin.gang_state(pod)
        if state is not None:
            return _explain(runtime, plugin, state, sampling)
    return None


def _explain(runtime: ProfileRuntime, plugin: GangPlugin, state: GangState, sampling: Sampling) -> GangExplanation:
    gang = state.gang
    explanation = GangExplanation(
        f"{state.kind} {gang.key}", state.minimum, state.members, state.assigned, 0, False, state.objection
    )
    if state.objection:
        return explanation
    attempt = GangAttempt(_Trial(runtime.handle.cluster, sampling), runtime)
    explanation.starts = place_gang(attempt, plugin, gang, [QueuedPod(pod, 0.0) for pod in gang.members])
    explanation.would_fit = len(attempt.placed)
    for unplaced in attempt.unplaced:
        unplaced.diagnose()
    explanation.obstacles = _obstacles(attempt.unplaced)
    if attempt.unplaced and not explanation.starts:
        explanation.remedies = remedies(runtime, attempt.unplaced[0].queued.pod, sampling)
    attempt.take_back()
    return explanation


def explain_pod_group(runtime: ProfileRuntime, pod: Pod, placer: _Trial, sampling: Sampling) -> GangExplanation | None:
    """How the pod's PodGroup of scheduling.k8s.io stands; None where there is no such group."""
    handle, key = runtime.handle, pod_group_key(pod)
    state = PodGroupStates.of(handle.cluster).get(key)
    group = None if key is None else handle.cluster.objects.pod_groups.get(key)
    if key is None or group is None or state is None:
        return None
    gang = Gate.GANG_SCHEDULING in handle.gates and group.min_count is not None
    minimum = group.min_count if gang and group.min_count is not None else 1
    held = runtime.run_pre_enqueue(pod, "")
    explanation = GangExplanation(
        f"PodGroup {key}", minimum, state.members, state.scheduled, 0, False, "" if held is None else held.message
    )
    if held is not None:
        return explanation
    waiting = sorted(state.unscheduled, key=lambda each: (-each.priority, each.key))
    ready = [QueuedPod(each, 0.0) for each in waiting if not each.terminating and not each.spec.scheduling_gates]

    result, attempt = try_group(placer, runtime, key, ready, to_the_end=True)
    explanation.would_fit = sum(bool(each.node_name) and each.status is None for each in result.members)
    explanation.starts = result.status is None
    if not result.members and result.status is not None:
        explanation.objection = result.status.message
    explanation.obstacles = _obstacles(result.members)
    unplaced = [member for member in result.members if not member.node_name]
    if unplaced and result.status is not None:
        explanation.remedies = remedies(runtime, unplaced[0].queued.pod, sampling)
    if attempt is not None:
        attempt.take_back()
    return explanation


def _obstacles(members: Iterable[Member]) -> list[Obstacle]:
    found: dict[str, Obstacle] = {}
    for member in members:
        if member.status is not None:
            message = member.status.message
            found.setdefault(message, Obstacle(message, [])).pods.append(member.queued.pod.key)
    return list(found.values())


class _Trial:
    """Places pods in a cluster that nothing is bound in."""

    def __init__(self, cluster: Cluster, sampling: Sampling) -> None:
        self.cluster = cluster
        self.sampling = sampling

    def search(self, runtime: ProfileRuntime, cycle: Cycle) -> int | NodeSearch:
        decision = decide(runtime, cycle, self.sampling)
        return decision.search if decision.row is None else decision.row

    def place(self, runtime: ProfileRuntime, cycle: Cycle, node_name: str, *, permit: bool = True) -> Status | Waits:
        self.cluster.assume(cycle.pod, node_name, cycle.facts)
        try:
            refusal = runtime.run_reserve(cycle, node_name)
            if refusal is not None:
                return refusal
            return runtime.run_permit(cycle, node_name) if permit else NO_WAITS
        except PluginError as error:
            return Status.error(str(error))

    def take_back(self, runtime: ProfileRuntime, cycle: Cycle, node_name: str) -> None:
        runtime.run_unreserve(cycle, node_name)
        self.cluster.forget(cycle.pod.uid)


def gang_counts(engine: Scheduler) -> list[GangCount]:
    """The gangs of plugins and those among the PodGroups of scheduling.k8s.io, those that wait first."""
    found = {
        gang.key: gang
        for runtime in engine.profiles.values()
        for plugin in runtime.gang_plugins
        for gang in plugin.gangs()
    }
    found |= {gang.key: gang for gang in _pod_groups(engine)}
    return sorted(found.values(), key=lambda gang: (gang.assigned >= gang.minimum, gang.key))


def _pod_groups(engine: Scheduler) -> Iterator[GangCount]:
    """The gangs among the PodGroups of scheduling.k8s.io, where the gate for these is on."""
    groups = engine.cluster.objects.pod_groups
    for state in engine.cluster.account(PodGroupStates) or ():
        group = groups.get(state.key)
        if group is not None and group.min_count is not None:
            yield GangCount(state.key, group.min_count, state.members, state.scheduled)
