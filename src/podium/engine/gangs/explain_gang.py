"""Explains how a pod's gang stands: how many members there are, how many would fit, and what stops the rest.

The members are placed by the code that schedules, on a cluster that may be changed, and taken back.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from podium.cluster import Cluster
from podium.engine.decide import NodeSearch, decide
from podium.engine.gangs.gang_attempt import GangAttempt, UnplacedMember
from podium.engine.sampling import Sampling
from podium.engine.unblock import Remedy, remedies
from podium.framework.cycle import Cycle
from podium.framework.gang import GangPlugin, GangState
from podium.framework.profile import ProfileRuntime
from podium.framework.queued import QueuedPod
from podium.framework.status import PluginError, Status
from podium.kube import Pod


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
    attempt = GangAttempt(_Trial(runtime.handle.cluster, sampling), runtime, plugin, gang)
    attempt.place_members([QueuedPod(pod, 0.0) for pod in gang.members])
    explanation.would_fit = len(attempt.placed)
    explanation.starts = attempt.enough
    obstacles: dict[str, Obstacle] = {}
    for unplaced in attempt.unplaced:
        message = _message(unplaced)
        obstacles.setdefault(message, Obstacle(message, [])).pods.append(unplaced.queued.pod.key)
    explanation.obstacles = list(obstacles.values())
    if attempt.unplaced and not attempt.enough:
        explanation.remedies = remedies(runtime, attempt.unplaced[0].queued.pod, sampling)
    attempt.take_back()
    return explanation


def _message(unplaced: UnplacedMember) -> str:
    why = unplaced.why
    return why.diagnosis().message if isinstance(why, NodeSearch) else why.message


class _Trial:
    """Places pods in a cluster that nothing is bound in."""

    def __init__(self, cluster: Cluster, sampling: Sampling) -> None:
        self.cluster = cluster
        self._sampling = sampling

    def search(self, runtime: ProfileRuntime, cycle: Cycle) -> int | NodeSearch:
        decision = decide(runtime, cycle, self._sampling)
        return decision.search if decision.row is None else decision.row

    def place(self, runtime: ProfileRuntime, cycle: Cycle, node_name: str) -> Status | dict[str, float]:
        self.cluster.assume(cycle.pod, node_name, cycle.facts)
        try:
            refusal = runtime.run_reserve(cycle, node_name)
            return runtime.run_permit(cycle, node_name) if refusal is None else refusal
        except PluginError as error:
            return Status.error(str(error))

    def take_back(self, runtime: ProfileRuntime, cycle: Cycle, node_name: str) -> None:
        runtime.run_unreserve(cycle, node_name)
        self.cluster.forget(cycle.pod.uid)
