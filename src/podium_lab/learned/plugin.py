"""Scores nodes by a policy that was trained for the workload (LearnedScore).

    score = ⌊offset + scale·(Σ weight·term) + ½⌋, within 0–100; a policy file has the weights (`policy_file`)

A policy with a network (`network`) adds its correction to the sum; what it says of a node depends on all nodes that the
pod fits, so nothing is cached there but the terms.

Terms and prices are those of `podium_plugins.gpu`. They come from the scheduler's own state: nothing is measured. The
model is guarded (`podium_lab.model_guard`): where it may not be asked, the fallback scores by what is left of cpu and
GPU, least first, and where that fails all nodes get 50. So the plugin never raises, leaves out no node, stays within
0–100.

In `shadow` the fallback decides and the model is compared with it. In `canary:p` a share of the pods, chosen by a hash
of their uid, is decided by the model, and all are compared. A model that does badly is demoted (`health`). The file is
looked at before each decision: one that is replaced takes effect at once, one that is gone or broken makes the fallback
decide.

Surprise: the device that a share gets is the one the score was best with, so GpuShare must be enabled beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any

import numpy as np

from podium.cluster import NodeInfo, Nodes
from podium.cluster.resources import ALLOCATABLE, CPU, REQUESTED
from podium.framework import (
    MAX_SCORE,
    Cycle,
    DependsOn,
    Handle,
    NodePart,
    Plugin,
    PluginError,
    Resource,
    Scores,
    Status,
)
from podium.framework.plugin_extras import MetricKind, PluginMetric
from podium.framework.protocols import ModelAnswer
from podium.kube import Pod
from podium_lab.learned.args import COUNTED, LearnedScoreArgs
from podium_lab.learned.idle_gpu import IdleGpu
from podium_lab.learned.linear import NOT_FEASIBLE
from podium_lab.learned.onnx_file import OnnxScore
from podium_lab.learned.policy_file import PolicyError, PolicyFile, path_of, read_policy
from podium_lab.learned.row_scores import FEW_ROWS, NameRanks, OutsideError, RequestScores, RowScores
from podium_lab.learned.seen_pods import SeenPods, read_classes
from podium_lab.model_decisions import ASKED, ModelDecisions, ModelTrialSettings
from podium_lab.model_metrics import decision_metrics
from podium_plugins.gpu.devices import GpuDevices, request_of
from podium_plugins.gpu.knowledge import Prices, constrained_demand, price
from podium_plugins.gpu.request import NO_GPU, GpuRequest
from podium_plugins.gpu.terms import FULL_CPU, FULL_GPU, Floats

NEUTRAL = 50
MOST_UNPREPARED = 2000
"""Requests that may wait to have their rows computed; then all are forgotten."""


class LearnedScore(Plugin):
    trusted = True
    Args = LearnedScoreArgs
    depends_on = DependsOn(node=NodePart.PODS, claims=False)
    not_reproducible: str | None = None

    def __init__(self, args: LearnedScoreArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self.first_of_equals = args.first_of_equals  # type: ignore[misc]
        cluster = handle.cluster
        self._cluster = cluster
        self._devices = GpuDevices.of(cluster)
        self._idle = IdleGpu(cluster, self._devices)
        self._prices = Prices()
        settings = ModelTrialSettings(args.mode, args.deadline.seconds, args.most_bad, args.log)
        self.decisions = ModelDecisions("LearnedScore", settings, handle)
        self.guard, self.health = self.decisions.guard, self.decisions.health
        self._path = path_of(args.policy)
        self._file_stamp: Hashable = None
        self._policy: PolicyFile | None = None
        self._kind = ""
        self._onnx: OnnxScore | None = None
        try:
            self._seen = SeenPods(_given(args))
            self._load()
        except PolicyError as error:
            raise PluginError(str(error)) from None
        if self._kind == "network":
            self.depends_on = DependsOn(claims=False)
        self._rows: RowScores | None = None
        self._built_of: Hashable = None
        self._demand: dict[str, float] = {}
        self._unprepared: dict[tuple[int, GpuRequest], None] = {}
        """Requests whose nodes are to be computed outside a decision."""
        self._ranks = NameRanks(cluster)
        self._warned = False
        self.drift = 0.0
        """The distance of the pods seen from those of the training."""

    @property
    def mode(self) -> str:
        """How it works now: off, shadow, canary, active, or demoted."""
        return self.decisions.mode

    @property
    def unknown_models(self) -> int:
        """How many GPU models the nodes have that the training had not."""
        trained = set() if self._policy is None else set(self._policy.trained_on.models)
        here = {model for model, gpu in self._idle.capacity.items() if model and gpu > 0}
        return len(here - trained) if trained else 0

    def interests(self) -> Iterable[Any]:
        return ()

    def metrics(self) -> Iterable[PluginMetric]:
        return learned_metrics(self)

    # What is heard of

    def observe(self, resource: str, before: Any, after: Any) -> None:
        """Count a pod that is new, and compute the nodes for its shape now: what takes long is done when its decision
        comes."""
        if resource != Resource.POD or before is not None or not isinstance(after, Pod):
            return
        facts = self._cluster.facts.of(after)
        found = request_of(after, facts)
        cpu, request = int(facts.counted[CPU]), found if isinstance(found, GpuRequest) else NO_GPU
        if self._seen.counted:
            self._seen.add((cpu, request))
        if after.spec.node_name or self.args.mode == "off":
            return
        try:
            self._look_at_file()
            self._build()
        except Exception as error:  # a mistake in the model must not cost a placement: the fallback decides
            self._failed("exception", error)
        if len(self._unprepared) >= MOST_UNPREPARED:
            self._unprepared.clear()
        self._unprepared[cpu, request] = None
        self._prepare()

    def _prepare(self) -> None:
        """Compute the nodes for one request that waits for it: the last. What fails here fails in the decision, too,
        and counts there."""
        if not self._unprepared or self._rows is None:
            return
        if self.guard.reason(self.handle.clock.now()) is None:
            wanted, _ = self._unprepared.popitem()
            try:
                self._rows.of(*wanted)
            except OutsideError:
                self.guard.set_lasting("ood")
            except Exception:  # it is raised again, and counted, when a pod asks for the scores
                return

    # Who decides

    def answer_key(self, pod: Pod) -> Hashable:
        reason = self._source(pod)
        if reason != "off" and (self.args.on_trial or self.health.demoted):
            return None  # both scores are wanted for every pod
        if self._kind == "network":
            return None  # what it says of a node depends on the others
        return reason, self.guard.generation, self._built_of, self._prices.generation

    def _source(self, pod: Pod) -> str:
        """Why the fallback decides about a pod; empty where the model does. Everything is brought up to date."""
        try:
            reason = self._find_source(pod)
        except Exception as error:  # a mistake in the model must not cost a placement: the fallback decides
            reason = self._failed("exception", error)
        self.decisions.count(pod, reason)
        return reason

    def _find_source(self, pod: Pod) -> str:
        if self.args.mode == "off":
            return "off"
        self._look_at_file()
        self._build()
        reason = self.guard.reason(self.handle.clock.now())
        if reason is not None:
            return reason
        self._renew_prices()
        return self.decisions.by_mode(pod)

    def _look_at_file(self) -> None:
        if self._stamp() != self._file_stamp:
            try:
                self._load()
            except PolicyError as error:
                self._policy = None
                self.guard.set_lasting(error.reason)
                self.handle.report(f"LearnedScore: {error}; the fallback decides")

    def _load(self) -> None:
        self._file_stamp = self._stamp()
        found = read_policy(self._path)
        if self._kind and found.kind != self._kind:
            raise PolicyError(f"{self._path}: is {found.kind}, and was {self._kind}; start again to use it", "schema")
        graph = None
        if self.args.runtime == "onnx" and found.kind == "network":
            graph = OnnxScore(self._path.with_suffix(".onnx"), found)
        self._policy, self._kind, self._onnx = found, found.kind, graph
        self.guard.set_lasting(None)
        self.guard.generation += 1
        self.health.begin()
        self._built_of = None

    def _stamp(self) -> Hashable:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino

    def _build(self) -> None:
        """Prepare for the typical pods and the nodes of now."""
        self._idle.catch_up()
        policy = self._policy
        wanted = self._seen.generation, self._idle.generation, self._cluster.columns.rows, self._file_stamp
        if policy is None or wanted == self._built_of:
            return
        self._built_of = wanted
        capacity = self._idle.capacity
        classes = ((request, pods) for (_, request), pods in self._seen.classes.items())
        self._demand = constrained_demand(classes, {model: gpu for model, gpu in capacity.items() if gpu and model})
        offered = sum(capacity.values())
        scar = {model: price(share, capacity[model], offered) for model, share in self._demand.items()}
        typical, most = self._seen.typical, self.args.most_outside
        self._rows = RowScores(self._cluster, policy, typical, self._prices, scar, self._ranks, most)
        self._check_drift(policy)

    def _check_drift(self, policy: PolicyFile) -> None:
        drift = self.drift = self._seen.drift(policy.trained_on.classes)
        if drift >= self.args.warn_drift and not self._warned:
            self._warned = True
            self.handle.report(f"LearnedScore: the pods seen differ by {drift:.2f} from those of the training")
        self.guard.set_lasting("drift" if drift >= self.args.most_drift else None)

    def _renew_prices(self) -> None:
        self._prices.renew(self._demand, self._idle.free)

    # Scores

    def score(self, cycle: Cycle, nodes: Nodes) -> Scores:
        reason = self._source(cycle.pod)
        clock = self.handle.clock
        if reason in ASKED:
            began = clock.now()
            scores = None
            computed = self._to_compute(cycle, nodes)
            if self.guard.too_slow(computed):
                reason = "timeout"
                self._unprepared[_wanted(cycle)] = None
            else:
                scores, reason = self._guarded(lambda: self._model_scores(cycle, nodes), reason)
            if scores is not None:
                self.decisions.took(computed, clock.now() - began, began)
                if reason == "" and not self.args.on_trial:
                    return scores
                fallback = self._fallback(cycle, nodes)
                self.decisions.compare(cycle, nodes, fallback, scores, clock.now() - began)
                return scores if reason == "" else fallback
            self.decisions.recount(cycle.pod, reason)
        return self._fallback(cycle, nodes)

    def score_node(self, cycle: Cycle, node: NodeInfo) -> int:
        if self._kind == "network":
            return int(self.score(cycle, Nodes(self._cluster, np.array([node.row])))[0])
        if self.decisions.last == (cycle.pod.uid, ""):
            try:
                return self._scores_for(cycle).points.item(node.row)
            except Exception as error:  # a mistake in the model must not cost a placement: the fallback decides
                self._failed("exception", error)
        try:
            return self._fallback_row(cycle, node.row)
        except Exception:  # no score of this plugin is worth a failed cycle
            return NEUTRAL

    def reserve(self, cycle: Cycle, node_name: str) -> Status | None:
        """Record the decision and prepare for others; nothing is reserved."""
        self._prepare()
        self.decisions.placed(cycle.pod, node_name)
        return None

    def choose_device(self, cycle: Cycle, row: int) -> int | None:
        """The first device of those that had as much left as the score was best with."""
        if self.decisions.last[0] != cycle.pod.uid:
            self._source(cycle.pod)  # one node fits: no score was asked for
        if self.decisions.last[1] != "" or self._rows is None:
            return None
        try:
            cpu, request = _wanted(cycle)
            state = self._rows.node_state(row)
            pods = len(cycle.cluster.pods_on[row]) - (cycle.pod.uid in cycle.cluster.pods)
            left = self._rows.device_left(state._replace(cpu=state.cpu + cpu, empty=not pods), cpu, request)
            return None if left is None else self._devices.free_on(row).index(left)
        except Exception as error:  # without the model's choice of a device the pod is placed all the same
            self._failed("exception", error)
            return None

    def _guarded(self, compute: Callable[[], Scores], reason: str) -> tuple[Scores | None, str]:
        try:
            return compute(), reason
        except OutsideError:
            self.guard.set_lasting("ood")
            return None, "ood"
        except FloatingPointError as error:
            return None, self._failed("nan", error)
        except Exception as error:  # a mistake in the model must not cost a placement: the fallback decides
            return None, self._failed("exception", error)

    def _failed(self, reason: str, error: Exception) -> str:
        return self.decisions.failed(reason, error)

    def _to_compute(self, cycle: Cycle, nodes: Nodes) -> int:
        every = self._rows is None or self._kind == "network" or _wanted(cycle) not in self._rows
        return len(nodes) if every else min(len(nodes), FEW_ROWS)

    def _scores_for(self, cycle: Cycle) -> RequestScores:
        assert self._rows is not None
        return self._rows.of(*_wanted(cycle))

    def _model_scores(self, cycle: Cycle, nodes: Nodes) -> Scores:
        known, rows = self._scores_for(cycle), self._rows
        assert rows is not None
        if rows.network is None:
            return known.points.copy() if nodes.chosen is None else known.points.take(nodes.chosen)
        linear: Floats = nodes.pick(known.base) + rows.extra(known, nodes)
        fitting = linear > NOT_FEASIBLE
        terms = rows.terms(known, nodes, of_nodes=self._onnx is not None)
        if self._onnx is not None:
            return rows.points(self._onnx.scores(terms, known.group, fitting))
        if fitting.all():
            return rows.points(linear + rows.network.corrections(terms, known.group))
        linear[fitting] += rows.network.corrections(terms[:, fitting], known.group)
        return rows.points(linear)

    def model_answer(self, cycle: Cycle) -> ModelAnswer | None:
        """Who decided about the pod of a cycle, for explanations."""
        uid, reason = self.decisions.last
        if uid != cycle.pod.uid:
            return None
        seconds = self.health.last_seconds if reason in ASKED else 0.0
        return ModelAnswer("LearnedScore", "fallback" if reason else "model", reason, round(1000 * seconds, 3))

    # The fallback

    def _fallback(self, cycle: Cycle, nodes: Nodes) -> Scores:
        """The least room left after the pod, highest."""
        try:
            cpu, request = _wanted(cycle)
            resources = nodes.cluster.resources
            left = nodes.pick(resources.allocatable[CPU]) - nodes.pick(resources.requested[CPU]) - cpu
            idle = self._devices.free(nodes).sum(axis=0) - request.total
            raw = MAX_SCORE * (1 - 0.5 * left / FULL_CPU - 0.5 * idle / FULL_GPU)
            scores: Scores = np.clip(raw, 0, MAX_SCORE).astype(np.int64)
            return scores
        except Exception:  # no score of this plugin is worth a failed cycle
            return np.full(len(nodes), NEUTRAL, dtype=np.int64)

    def _fallback_row(self, cycle: Cycle, row: int) -> int:
        cpu, request = _wanted(cycle)
        numbers = self._cluster.resources.on(row)
        left = numbers[ALLOCATABLE + CPU] - numbers[REQUESTED + CPU] - cpu
        idle = sum(self._devices.free_on(row)) - request.total
        return int(min(max(MAX_SCORE * (1 - 0.5 * left / FULL_CPU - 0.5 * idle / FULL_GPU), 0), MAX_SCORE))


def _wanted(cycle: Cycle) -> tuple[int, GpuRequest]:
    request = request_of(cycle.pod, cycle.facts)
    return int(cycle.facts.counted[CPU]), request if isinstance(request, GpuRequest) else NO_GPU


def _given(args: LearnedScoreArgs) -> Iterable[Any] | None:
    if isinstance(args.knowledge, str):
        return None if args.knowledge == COUNTED else read_classes(args.knowledge)
    return args.knowledge


def learned_metrics(plugin: LearnedScore) -> Iterator[PluginMetric]:
    yield from decision_metrics("podium_learned", plugin.name, plugin.decisions)
    yield PluginMetric(
        MetricKind.GAUGE,
        "podium_learned_drift",
        "The distance, 0 to 1, of the pods seen from those of the training.",
        lambda: plugin.drift,
    )
    yield PluginMetric(
        MetricKind.GAUGE,
        "podium_learned_unknown_models",
        "GPU models of nodes that the training had not.",
        lambda: plugin.unknown_models,
    )
