"""Runs one episode on the engine: `podium simulate` in virtual time, with someone else choosing the nodes.

Filters, preemption, binding, departures, faults and measurements are those of a simulation; only the choice among the
nodes that a pod fits is given from outside.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium.cluster import Cluster, PlacedPod
from podium.config import Registry
from podium.engine.outside_choice import OpenDecision, close_decision, open_decision
from podium.kube import Node, Pod
from podium.kube.requests import pod_requests
from podium.plugins import load_registry
from podium_lab.environments.limits import MIB, NVIDIA
from podium_lab.environments.rewards import Reward, RewardedPlacement, cost_of_none
from podium_lab.environments.survey import ScenarioSurvey
from podium_lab.models.features import ClusterArrays, Features, PodArrays, feature_arrays, pod_class
from podium_lab.models.heuristics import GpuArrays
from podium_lab.models.schema import CPU, GPU, MEMORY, PODS
from podium_lab.simulator.profiles import configuration
from podium_lab.simulator.reading import LoadedScenario
from podium_lab.simulator.run import SimulatedRun
from podium_lab.simulator.usage import CONNECTIONS_LINE, LATENCY_LINE, TRAFFIC_LINE
from podium_plugins.latency_aware import limits_of

STALE = 300.0
"""Seconds after which a measurement no longer counts."""
FRESH = 60.0
"""Seconds up to which a measured latency may exclude a node."""
WHOLE = 1000.0
_NOTE = "podium_lab.environments"
Floats = NDArray[np.float64]


@lru_cache(maxsize=1)
def _registry() -> Registry:
    return load_registry(())


class Shown(NamedTuple):
    """A pod that waits for a choice, as rewards and heuristics see it."""

    cluster: ClusterArrays
    pod: PodArrays
    gpus: GpuArrays


class EngineEpisode:
    """One scenario with one seed, from the first pod that fits somewhere to the last."""

    def __init__(
        self, loaded: LoadedScenario, seed: int, width: int, known: ScenarioSurvey, reward: Reward, *, masked: bool
    ) -> None:
        """`masked`: nodes beyond the hard latency limit are excluded while another is left."""
        contender = loaded.scenario.profiles[0]
        config = configuration(loaded, contender, _registry())
        self._run = SimulatedRun(loaded, contender.name, seed, config, _registry())
        self._run.watch_usage()
        self._width, self._known, self._reward, self._masked = width, known, reward, masked
        self._moments = self._run.moments()
        self._open: OpenDecision | None = None
        self._cost = 0.0
        self._tried_at: float | None = None
        self.shown: Shown | None = None
        """The pod that waits for a choice; None: the episode is over."""
        self._advance()

    @property
    def over(self) -> bool:
        return self.shown is None

    @property
    def arrived(self) -> int:
        """How many pods came so far."""
        return self._run.arrived

    @property
    def placed(self) -> int:
        """How many of them got a node."""
        return self._run.placed

    def node_of(self, position: int) -> Node:
        """The node at a position that the mask allows."""
        node = self._cluster.nodes[position]
        assert node is not None
        return node

    @property
    def pod(self) -> Pod | None:
        return None if self._open is None else self._open.queued.pod

    def features(self) -> Features:
        """What an agent is shown."""
        assert self.shown is not None
        return feature_arrays(np, self.shown.cluster, self.shown.pod)

    def step(self, position: int) -> float:
        """Place the pod, go on to the next, and give the reward; a position that the mask excludes counts as the first
        that it allows."""
        assert self.shown is not None
        assert self._open is not None
        shown, run = self.shown, self._run
        mask = shown.cluster.mask
        chosen = position if 0 <= position < self._width and mask[position] else int(mask.argmax())
        true = shown.cluster._replace(**self._truth())
        decided_at = run.time
        self._cost, self._tried_at = 0.0, None
        close_decision(run.scheduler, self._open, chosen)
        run.decided()
        self._advance()
        until = decided_at if self._tried_at is None else self._tried_at
        units = np.float64((until - decided_at) / self._known.unit)
        placed = RewardedPlacement(true, shown.pod, np.int64(chosen), units, shown.gpus)
        return float(self._reward(np, placed)) + self._cost

    # The way to the next choice

    def _advance(self) -> None:
        self._open = self.shown = None
        run = self._run
        while True:
            queued = run.scheduler.queue.pop()
            if queued is None:
                if next(self._moments, self) is self:
                    return
                continue
            if self._tried_at is None:
                self._tried_at = run.time
            found = open_decision(run.scheduler, queued)
            if found is not None and bool((found.rows < self._width).any()):
                self._open, self.shown = found, self._show(found)
                return
            if queued.attempts <= 1:
                pod = self._pod_arrays(queued.pod)
                self._cost += float(cost_of_none(np, pod.request, self._capacity()))
            run.decided()

    # What is shown

    def _show(self, found: OpenDecision) -> Shown:
        pod = self._pod_arrays(found.queued.pod)
        mask = np.zeros(self._width, dtype=np.bool_)
        mask[found.rows[found.rows < self._width]] = True
        capacity, requested = self._capacity(), self._requested()
        seen = self._seen()
        if self._masked:
            late = (seen["latency"] > pod.latency_hard) & (seen["age"] <= FRESH)
            mask = mask & ~late if (mask & ~late).any() else mask
        cluster = ClusterArrays(
            capacity=capacity,
            requested=requested,
            link_speed=np.full(self._width, np.nan),
            same_class=self._same_class(int(pod.pod_class)),
            mask=mask,
            nodes=np.int64((capacity.max(axis=-1) > 0).sum()),
            queue=np.float64(self._run.pending),
            **seen,
        )
        free = (capacity - requested)[:, GPU, np.newaxis]
        typical, devices = self._known.typical, max(self._known.devices, 1)
        gpus = GpuArrays(
            free=np.where(WHOLE * np.arange(devices) < free, WHOLE, 0.0),
            typical_cpu=np.array(typical.cpu),
            typical_gpus=np.array(typical.gpus),
            typical_milli=np.full(len(typical.gpus), WHOLE),
            typical_share=np.array(typical.share),
        )
        return Shown(cluster, pod, gpus)

    def _capacity(self) -> Floats:
        resources = self._cluster.resources
        offered = resources.table(("cpu", "memory", NVIDIA), offered=True)
        present = self._cluster.present
        return self._wide(_amounts(offered, resources.allowed_pods) * present[:, np.newaxis])

    def _requested(self) -> Floats:
        resources = self._cluster.resources
        return self._wide(_amounts(resources.table(("cpu", "memory", NVIDIA)), resources.pod_count))

    def _seen(self) -> dict[str, Floats]:
        """Use, connections, traffic, latency and age as they were measured; NaN where nothing is known."""
        usage, nothing = self._run.usage, np.full(self._width, np.nan)
        if usage is None:
            return self._metrics(np.full((5, self._width), np.nan), nothing)
        age = self._run.now - self._wide(usage.seen_at, -np.inf)
        known = age <= STALE
        seen = np.where(known, self._wide(usage.seen.T, np.nan).T, np.nan)
        return self._metrics(seen, np.where(known, age, np.nan))

    def _truth(self) -> dict[str, Floats]:
        """The same as it is now."""
        usage = self._run.usage
        if usage is None:
            return {**self._metrics(np.zeros((5, self._width)), np.zeros(self._width))}
        latency = [usage.latency.get(name, np.nan) for name in self._cluster.names]
        now = np.vstack([usage.use(self._run.time), latency])
        return self._metrics(self._wide(now.T).T, np.zeros(self._width))

    def _metrics(self, lines: Floats, age: Floats) -> dict[str, Floats]:
        none = np.full(self._width, np.nan)
        return {
            "used": np.stack([lines[0], lines[1] / MIB, none, none], axis=-1),
            "connections": lines[CONNECTIONS_LINE],
            "traffic": lines[TRAFFIC_LINE],
            "latency": lines[LATENCY_LINE],
            "age": age,
        }

    def _same_class(self, wanted: int) -> Floats:
        found = np.zeros(self._width)
        for row, placed in enumerate(self._cluster.pods_on[: self._width]):
            found[row] = sum(_class_of(each) == wanted for each in placed.values())
        return found

    def _wide(self, rows: Any, otherwise: float = 0.0) -> Floats:
        """One entry for each position, whether or not there is a row for it."""
        out = np.full((self._width, *rows.shape[1:]), otherwise)
        number = min(self._width, len(rows))
        out[:number] = rows[:number]
        return out

    @property
    def _cluster(self) -> Cluster:
        return self._run.scheduler.cluster

    @staticmethod
    def _pod_arrays(pod: Pod) -> PodArrays:
        requests = pod_requests(pod)
        request = np.zeros(4)
        request[CPU], request[MEMORY] = requests.get("cpu", 0), requests.get("memory", 0) / MIB
        request[GPU], request[PODS] = WHOLE * requests.get(NVIDIA, 0), 1
        soft, hard, _ = limits_of(pod.metadata.annotations)
        return PodArrays(
            request=request,
            latency_soft=np.float64(soft),
            latency_hard=np.float64(hard),
            priority=np.float64(pod.priority),
            pod_class=np.int64(pod_class(pod.metadata.labels)),
        )


def _class_of(placed: PlacedPod) -> int:
    """The class of a pod, found once for all of its signature."""
    notes = placed.facts.notes
    number: int | None = notes.get(_NOTE)
    if number is None:
        number = notes[_NOTE] = pod_class(placed.pod.metadata.labels)
    return number


def _amounts(lines: NDArray[np.int64], pods: NDArray[np.int64]) -> Floats:
    """float64[rows, 4] in the order of the schema: thousandths of a core, MiB, thousandths of a GPU, pods."""
    return np.stack([lines[0], lines[1] / MIB, lines[2] * WHOLE, pods], axis=-1)
