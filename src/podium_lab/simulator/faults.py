"""Makes nodes fail, be drained, leave and join, as a scenario says.

A node that fails gets the taints of one that is out of reach, and its pods stop. After `evictAfter` they are replaced;
if it is back before that, they go on. A drained node takes no new pods and evicts those it has (budgets for
disruption are not heeded); it takes pods again when the time is over. One that leaves is gone for good.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

import numpy as np
from msgspec.structs import replace

from podium.cluster import Cluster
from podium.kube import Node, Taint
from podium_lab.simulator.distributions import Draw, sampler
from podium_lab.simulator.live_pods import LivePod, LivePods
from podium_lab.simulator.nodes import make_nodes
from podium_lab.simulator.pod_lives import SimulatedPodLives
from podium_lab.simulator.reading import LoadedScenario, Source
from podium_lab.simulator.scenario import Fault, ScenarioError
from podium_lab.simulator.timeline import EventTimeline, SimulatedClock

UNREACHABLE = (
    Taint(key="node.kubernetes.io/unreachable", effect="NoSchedule"),
    Taint(key="node.kubernetes.io/unreachable", effect="NoExecute"),
)


MOST_JOINING = 1000
"""Names of nodes that join again and again: as many are looked at."""


def check_faults(loaded: LoadedScenario, nodes: Iterable[Node]) -> None:
    """Raises ScenarioError for faults that would happen to no node, or bring one that is there already."""
    there, mistakes = {node.metadata.name for node in nodes}, []
    coming = [_joining(fault, loaded.source) for fault in loaded.scenario.faults]
    for i, (fault, names) in enumerate(zip(loaded.scenario.faults, coming, strict=True)):
        twice = next((name for name in names if name in there), None)
        if twice is not None:
            wrong = f'"{twice}" is there already; write another name'
            mistakes.append(f"{loaded.position_of('faults', i, 'group', 'name')}: faults[{i}].group.name: {wrong}")
        if fault.group is None and not any(fnmatchcase(name, fault.nodes) for name in there.union(*coming)):
            wrong = f'no node is called "{fault.nodes}"; there are {_some(sorted(there))}'
            mistakes.append(f"{loaded.position_of('faults', i, 'nodes')}: faults[{i}].nodes: {wrong}")
    if mistakes:
        raise ScenarioError(mistakes)


def _joining(fault: Fault, source: Source) -> list[str]:
    """The names of the nodes that a fault brings."""
    group = fault.group
    if group is None:
        return []
    if fault.every is not None and group.count is not None:
        group = replace(group, count=max(group.count, MOST_JOINING))
    return [node.metadata.name for node in make_nodes(group, source)]


def _some(names: list[str]) -> str:
    return ", ".join(names) if len(names) < 5 else f"{', '.join(names[:3])} and {len(names) - 3:,} more"


class NodeFaults:
    """The faults of one run."""

    def __init__(
        self,
        loaded: LoadedScenario,
        rng: np.random.Generator,
        *,
        clock: SimulatedClock,
        timeline: EventTimeline,
        cluster: Cluster,
        pods: LivePods,
        lives: SimulatedPodLives,
    ) -> None:
        self._clock = clock
        self._timeline = timeline
        self._cluster = cluster
        self._intake = pods.intake
        self._pods = pods
        self._lives = lives
        self._source = loaded.source
        self._down: set[str] = set()
        """Nodes that something is the matter with: nothing else happens to them."""
        self._joined = 0
        self.happened = 0
        for fault in loaded.scenario.faults:
            self._begin(fault, np.random.default_rng(rng.integers(2**63)))

    def _begin(self, fault: Fault, rng: np.random.Generator) -> None:
        every = None if fault.every is None else sampler(fault.every, rng, time=True)
        lasts = sampler(fault.lasts, rng, time=True)
        first = sampler(fault.at, rng, time=True)() if fault.at is not None else every() if every is not None else 0.0

        def happen(_: object) -> None:
            self._happen(fault, rng, lasts)
            if every is not None:
                self._timeline.plan(self._clock.time + max(every(), 1e-3), happen, background=True)

        self._timeline.plan(first, happen, background=every is not None)

    def _happen(self, fault: Fault, rng: np.random.Generator, lasts: Draw) -> None:
        if fault.group is not None:
            self.happened += 1
            for node in make_nodes(fault.group, self._source, first=self._joined):
                self._intake.set(node)
            self._joined += fault.group.count or 0
            return
        names = [self._cluster.names[row] for row in self._cluster.order.rows.tolist()]
        names = sorted(name for name in names if name not in self._down and fnmatchcase(name, fault.nodes))
        if not names:
            return
        chosen = sorted(rng.choice(len(names), min(fault.count, len(names)), replace=False).tolist())
        for position in chosen:
            self.happened += 1
            name, length = names[position], lasts()
            self._down.add(name)
            if fault.kind == "fail":
                self._fail(name, length, fault.evict_after.seconds)
            else:
                self._drain(name, length, leaves=fault.kind == "leave")

    # Failing

    def _fail(self, name: str, length: float, evict_after: float) -> None:
        self._change(name, taints=UNREACHABLE)
        stopped = self._lives.suspend(name)
        now = self._clock.time
        if evict_after < length:
            self._timeline.plan(now + evict_after, self._replace_all, stopped)
        self._timeline.plan(now + length, self._repair, (name, stopped))

    def _replace_all(self, stopped: list[LivePod]) -> None:
        for live in stopped:
            self._lives.replace(live)

    def _repair(self, failed: tuple[str, list[LivePod]]) -> None:
        name, stopped = failed
        self._down.discard(name)
        self._change(name, taints=())
        self._lives.resume(stopped)

    # Draining

    def _drain(self, name: str, length: float, *, leaves: bool) -> None:
        self._change(name, unschedulable=True)
        row = self._cluster.row_of[name]
        for uid in list(self._cluster.pods_on[row]):
            self._lives.evict(uid)
        self._timeline.plan(self._clock.time + length, self._leave if leaves else self._uncordon, name)

    def _uncordon(self, name: str) -> None:
        self._down.discard(name)
        self._change(name, unschedulable=False)

    def _leave(self, name: str) -> None:
        """The node goes, and the pods that are still there with it."""
        self._down.discard(name)
        row = self._cluster.row_of.get(name)
        node = None if row is None else self._cluster.nodes[row]
        if row is None or node is None:
            return
        self._intake.delete(node)
        for uid in list(self._cluster.pods_on[row]):
            live = self._pods.by_uid.get(uid)
            if live is not None:
                self._lives.replace(live)

    def _change(self, name: str, *, taints: tuple[Taint, ...] | None = None, unschedulable: bool | None = None) -> None:
        """Taint a node that is out of reach or free it again; cordon it or the opposite."""
        row = self._cluster.row_of.get(name)
        node: Node | None = None if row is None else self._cluster.nodes[row]
        if node is None:
            return
        spec = node.spec
        if taints is not None:
            others = tuple(taint for taint in spec.taints if taint not in UNREACHABLE)
            spec = replace(spec, taints=(*others, *taints))
        if unschedulable is not None:
            spec = replace(spec, unschedulable=unschedulable)
        self._intake.set(replace(node, spec=spec))
