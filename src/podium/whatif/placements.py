"""Places pods in a sandbox one after another, in the order of the queue, each with those before it in place.

Gangs are placed whole or not at all. Where no node takes a pod, the answer is the scheduler's own sentence. With
`preempt`, the pods that preemption would evict go, wait at the end of the queue, and are judged like the others.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cmp_to_key
from typing import Any

from podium.cluster import Rows
from podium.config.points import Point
from podium.engine.decide import NO_NODES, NodeSearch, decide, make_room
from podium.engine.explain import Eviction, Outcome, UnknownProfileError, as_unbound
from podium.engine.gangs.gang_attempt import GangAttempt, Member, place_gang
from podium.engine.gangs.group_attempt import try_group
from podium.engine.gangs.group_cycle import look_for_room, with_its_group
from podium.engine.unblock import Remedy, remedies
from podium.framework.cycle import Cycle
from podium.framework.diagnosis import Diagnosis, refused_by_one
from podium.framework.normalize import Scores
from podium.framework.profile import ProfileRuntime
from podium.framework.queued import QueuedPod
from podium.framework.status import PluginError, Status
from podium.kube import Pod, parse_time
from podium.kube.pod_group import pod_group_key
from podium.kube.versions import Gate
from podium.preemption.evictions import CANDIDATES
from podium.whatif.sandbox import Sandbox
from podium.whatif.unmatched import unmatched_terms

Totals = Callable[[], tuple[Rows, Scores]]


@dataclass(frozen=True)
class NodeRefusal:
    """Why some nodes refuse a pod: the plugin, its reason, and how many nodes say so."""

    plugin: str
    reason: str
    nodes: int


@dataclass
class PodPlacement:
    """What became of one pod."""

    pod: Pod
    node: str | None = None
    outcome: Outcome = Outcome.FITS_NOWHERE
    message: str | None = None
    ties: list[str] = field(default_factory=list)
    """All nodes of the best score, where there are several."""
    total: int | None = None
    reasons: list[NodeRefusal] = field(default_factory=list)
    eviction: Eviction | None = None
    """What preemption would do."""
    remedies: list[Remedy] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """Terms that no node can match."""
    victims: list[Pod] = field(default_factory=list)
    """The pods that went for it, with `preempt`."""

    @property
    def fits(self) -> bool:
        return self.node is not None


class SandboxPlacer:
    """Places pods in a sandbox. `closely` also finds ties, reasons and remedies."""

    def __init__(self, sandbox: Sandbox, *, closely: bool = False, with_remedies: bool = False) -> None:
        self._sandbox = sandbox
        self._engine = sandbox.engine
        self._closely = closely
        self._with_remedies = with_remedies
        self._failures: dict[tuple[str, bytes], tuple[int, PodPlacement]] = {}

    def in_queue_order(self, pods: Iterable[Pod], given: Iterable[Pod] = ()) -> list[Pod]:
        """The pods as the profile's QueueSort has them; given ones are the youngest."""
        queued = [QueuedPod(pod, created(pod), number) for number, pod in enumerate(pods)]
        last = max((each.timestamp for each in queued), default=0.0) + 1.0
        queued += [QueuedPod(pod, last, len(queued) + number) for number, pod in enumerate(given)]
        sorter: Any = next(iter(self._engine.profiles.values())).at(Point.QUEUE_SORT)[0]
        if hasattr(sorter, "sort_key"):
            queued.sort(key=lambda each: (sorter.sort_key(each), each.sequence))
        else:
            queued.sort(key=cmp_to_key(lambda a, b: -1 if sorter.less(a, b) else 1 if sorter.less(b, a) else 0))
        return [each.pod for each in queued]

    def place_all(self, pods: Sequence[Pod], *, preempt: bool = False) -> list[PodPlacement]:
        """Place the pods in this order; victims of preemption come last. The placements are in the order of trying."""
        queue, found = deque(pods), dict[str, PodPlacement]()
        while queue:
            pod = queue.popleft()
            if pod.uid in found:
                continue
            mates = self._gang_mates(pod, queue)
            placements = [self.place(pod)] if mates is None else self._place_gang(mates)
            for each in placements:
                plays = preempt and each.eviction is not None and not each.fits
                found[each.pod.uid] = placement = self._preempt(each) if plays else each
                queue.extend(placement.victims if plays else ())
        return list(found.values())

    def choose(self, pod: Pod) -> PodPlacement:
        """Where one pod would go by itself; it is not placed."""
        return self._decided(pod, keep=False)

    def place(self, pod: Pod) -> PodPlacement:
        """Place one pod by itself."""
        return self._decided(pod, keep=True)

    def _decided(self, pod: Pod, *, keep: bool) -> PodPlacement:
        sandbox = self._sandbox
        runtime = self._engine.profiles.get(pod.spec.scheduler_name)
        if runtime is None:
            known = ", ".join(f'"{each}"' for each in self._engine.profiles)
            raise UnknownProfileError(
                f'pod {pod.key} asks for scheduler "{pod.spec.scheduler_name}", but the configuration only has {known}'
            )
        try:
            held = runtime.run_pre_enqueue(pod, "")
            if held is not None:
                return PodPlacement(pod, outcome=Outcome.HELD, message=held.message)
            if not len(sandbox.cluster.order.rows):
                return PodPlacement(pod, message=NO_NODES)
            cycle = Cycle(pod, sandbox.cluster)
            key = (runtime.name, cycle.facts.signature)
            known_failure = self._failures.get(key)
            if known_failure is not None and known_failure[0] == sandbox.version and not cycle.facts.claims:
                return _of_another(known_failure[1], pod)
            found, totals = self._search(runtime, cycle)
            if not isinstance(found, int):
                placement = self._nowhere(runtime, cycle, found)
                self._failures[key] = (sandbox.version, placement)
                return placement
            return self._on(runtime, cycle, found, totals, keep=keep)
        except PluginError as error:
            return PodPlacement(pod, outcome=Outcome.FAILED, message=str(error))

    def _search(self, runtime: ProfileRuntime, cycle: Cycle) -> tuple[int | NodeSearch, Totals | None]:
        engine = self._engine
        known = engine.answer_cache.decide(runtime, cycle, engine.sampling)
        if known is not None:
            last = engine.answer_cache.last
            return known, last.totals if last is not None and isinstance(known, int) and last.feasible > 1 else None
        cycle.forget_notes()
        decision = decide(runtime, cycle, engine.sampling)
        if decision.row is None:
            return decision.search, None
        engine.answer_cache.decided_without(runtime, cycle)
        return decision.row, None if decision.scores is None else decision.totals

    def _on(
        self, runtime: ProfileRuntime, cycle: Cycle, row: int, totals: Totals | None, *, keep: bool
    ) -> PodPlacement:
        name = self._sandbox.cluster.names[row]
        placement = PodPlacement(cycle.pod, name, Outcome.FITS)
        if self._closely and totals is not None:
            rows, scores = totals()
            best = scores.max()
            placement.total = int(best)
            ties = rows[scores == best].tolist()
            placement.ties = [self._sandbox.cluster.names[each] for each in ties] if len(ties) > 1 else []
        if not keep:
            return placement
        waits = self._sandbox.place(runtime, cycle, name)
        if isinstance(waits, Status):
            message = refused_by_one(waits).message if waits.rejected else waits.message
            outcome = Outcome.FITS_NOWHERE if waits.rejected else Outcome.FAILED
            return PodPlacement(cycle.pod, outcome=outcome, message=message)
        if waits:
            placement.outcome, placement.message = Outcome.WAITS, waits.message
        return placement

    def _nowhere(self, runtime: ProfileRuntime, cycle: Cycle, search: NodeSearch) -> PodPlacement:
        diagnosis = search.diagnosis()
        reasons = refusals(diagnosis) if self._closely else []
        make_room(runtime, cycle, diagnosis)
        placement = PodPlacement(cycle.pod, message=diagnosis.message, reasons=reasons)
        if self._closely:
            placement.notes = unmatched_terms(cycle.pod, self._sandbox.nodes())
        candidates = cycle.data.get(CANDIDATES, ())
        if candidates:
            placement.eviction = Eviction(candidates[0].node_name, [each.key for each in candidates[0].victims])
            placement.victims = list(candidates[0].victims)
        elif self._with_remedies:
            placement.remedies = remedies(runtime, cycle.pod, self._engine.sampling)
        return placement

    def _preempt(self, placement: PodPlacement) -> PodPlacement:
        """Let the victims go and the pod stand on the node that they leave."""
        sandbox, eviction = self._sandbox, placement.eviction
        assert eviction is not None
        victims = [as_unbound(each) for each in placement.victims]
        for victim in placement.victims:
            sandbox.remove_pod(victim)
        for victim in victims:
            sandbox.set(victim)
        sandbox.nominate(placement.pod, eviction.node)
        again = self.place(placement.pod)
        again.eviction, again.victims = eviction, victims
        return again

    # Gangs

    def _gang_mates(self, pod: Pod, queue: Iterable[Pod]) -> list[Pod] | None:
        """The pod and the members of its gang that are to be placed; None where it goes by itself."""
        runtime = self._engine.profiles.get(pod.spec.scheduler_name)
        if runtime is None:
            return None
        group = pod_group_key(pod) if Gate.GENERIC_WORKLOAD in runtime.handle.gates else None
        if group is not None:
            return [pod, *(each for each in queue if pod_group_key(each) == group)]
        for plugin in runtime.gang_plugins:
            key = plugin.gang_key(pod)
            if key is not None:
                return [pod, *(each for each in queue if plugin.gang_key(each) == key)]
        return None

    def _place_gang(self, pods: Sequence[Pod]) -> list[PodPlacement]:
        pod = pods[0]
        runtime = self._engine.profiles[pod.spec.scheduler_name]
        if Gate.GENERIC_WORKLOAD in runtime.handle.gates and pod_group_key(pod) is not None:
            return self._place_group(runtime, pods)
        by_uid = {each.uid: each for each in pods}
        for plugin in runtime.gang_plugins:
            state = plugin.gang_state(pod)
            if state is None:
                continue
            if state.objection:
                return [PodPlacement(each, outcome=Outcome.HELD, message=state.objection) for each in pods]
            members = [each for each in state.gang.members if each.uid in by_uid]
            attempt = GangAttempt(self._engine, runtime)
            starts = place_gang(attempt, plugin, state.gang, [QueuedPod(each, 0.0) for each in members])
            if starts:
                for member in attempt.placed:
                    self._sandbox.placed(runtime, member.cycle, member.node_name)
            found = [self._of_member(runtime, each) for each in attempt.members]
            if not starts:
                refusal = refused_by_one(state.gang.refusal).message
                for placement in found:
                    if placement.fits:
                        placement.node, placement.outcome, placement.message = None, Outcome.GANG_WAITS, refusal
                attempt.take_back()
            left_out = by_uid.keys() - {each.uid for each in members}
            return [*found, *(self.place(by_uid[uid]) for uid in by_uid if uid in left_out)]
        return [self.place(each) for each in pods]

    def _of_member(self, runtime: ProfileRuntime, member: Member) -> PodPlacement:
        pod = member.queued.pod
        if member.node_name:
            return PodPlacement(pod, member.node_name, Outcome.FITS)
        if member.search is not None:
            return self._nowhere(runtime, member.cycle, member.search)
        return PodPlacement(pod, message=None if member.status is None else member.status.message)

    def _place_group(self, runtime: ProfileRuntime, pods: Sequence[Pod]) -> list[PodPlacement]:
        sandbox, engine = self._sandbox, self._engine
        key = pod_group_key(pods[0])
        held = runtime.run_pre_enqueue(pods[0], "")
        if held is not None or key is None:
            message = None if held is None else held.message
            return [PodPlacement(each, outcome=Outcome.HELD, message=message) for each in pods]
        ready = [QueuedPod(each, 0.0) for each in pods if not each.spec.scheduling_gates]

        result, attempt = try_group(engine, runtime, key, ready)
        if attempt is not None and result.status is not None:
            attempt.take_back()
        look_for_room(engine, runtime, key, ready, result)
        message = None if result.status is None else result.status.message
        found = {}
        for member in result.members:
            pod = member.queued.pod
            if member.status is not None:
                found[pod.uid] = PodPlacement(pod, message=member.status.message)
            elif result.status is not None:
                why = message if result.waiting_for_preemption else with_its_group(runtime, member, result).message
                found[pod.uid] = PodPlacement(pod, outcome=Outcome.GANG_WAITS, message=why)
            elif attempt is not None:
                sandbox.placed(runtime, member.cycle, member.node_name)
                found[pod.uid] = PodPlacement(pod, member.node_name, Outcome.FITS)
            else:
                waits = sandbox.place(runtime, member.cycle, member.node_name)
                refused = waits.message if isinstance(waits, Status) else None
                found[pod.uid] = (
                    PodPlacement(pod, member.node_name, Outcome.FITS)
                    if refused is None
                    else PodPlacement(pod, message=refused)
                )
        return [found.get(each.uid) or PodPlacement(each, outcome=Outcome.HELD, message=message) for each in pods]


def refusals(diagnosis: Diagnosis) -> list[NodeRefusal]:
    """Why nodes refuse the pod, the most frequent reason first; a node may have several."""
    if diagnosis.pre_filter_message:
        plugin = next(iter(sorted(diagnosis.unschedulable_plugins)), "")
        return [NodeRefusal(plugin, diagnosis.pre_filter_message, diagnosis.nodes)]
    found: dict[tuple[str, str], int] = {}
    for status, number in diagnosis.statuses.counts():
        for reason in status.reasons:
            key = (status.plugin, reason)
            found[key] = found.get(key, 0) + number
    counted = [NodeRefusal(plugin, reason, number) for (plugin, reason), number in found.items() if number]
    return sorted(counted, key=lambda each: (-each.nodes, each.reason))


def _of_another(known: PodPlacement, pod: Pod) -> PodPlacement:
    """The failure of a pod of the same signature, nothing having changed since."""
    return PodPlacement(
        pod,
        None,
        known.outcome,
        known.message,
        reasons=known.reasons,
        eviction=known.eviction,
        remedies=known.remedies,
        notes=known.notes,
        victims=list(known.victims),
    )


def created(pod: Pod) -> float:
    """When a pod was created; 0 where it does not say."""
    text = pod.metadata.creation_timestamp
    try:
        return 0.0 if text is None else parse_time(text)
    except ValueError:
        return 0.0
