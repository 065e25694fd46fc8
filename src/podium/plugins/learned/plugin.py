"""Scores nodes by a policy that was trained for the workload (LearnedScore).

    score = ⌊offset + scale·(Σ weight·term) + ½⌋, within 0–100; a policy file has the weights (`policy_file`)

A policy with a network (`network`) adds its correction to the sum; what it says of a node depends on all nodes that the
pod fits, so nothing is cached there but the terms.

Terms and prices are those of `placement.gpu`. They come from the scheduler's own state: nothing is measured. The model
is guarded (`placement.model_guard`): where it may not be asked, the fallback scores by what is left of cpu and GPU,
least first, and where that fails all nodes get 50. So the plugin never raises, leaves out no node, stays within 0–100.

In `shadow` the fallback decides and the model is compared with it. In `canary:p` a share of the pods, chosen by a hash
of their uid, is decided by the model, and all are compared. A model that does badly is demoted (`health`). The file is
looked at before each decision: one that is replaced takes effect at once, one that is gone or broken makes the fallback
decide.

Surprise: the device that a share gets is the one the score was best with, so GpuShare must be enabled beside it.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Hashable, Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium.cluster import Cluster, NodeInfo, Nodes
from podium.cluster.resources import ALLOCATABLE, CPU, REQUESTED
from podium.framework import MAX_SCORE, Cycle, Handle, Plugin, PluginError, Resource, Scope, Scores, Status
from podium.kube import Pod
from podium.placement.gpu.devices import GpuDevices, request_of
from podium.placement.gpu.knowledge import constrained_demand, price
from podium.placement.gpu.prices import Prices
from podium.placement.gpu.request import MODEL, NO_GPU, GpuRequest
from podium.placement.gpu.terms import FULL_CPU, FULL_GPU, STATE, TERMS, Floats, group_of
from podium.placement.model_guard import ModelGuard
from podium.plugins.learned.args import COUNTED, LearnedScoreArgs
from podium.plugins.learned.decision_log import DecisionLog, compare
from podium.plugins.learned.health import ModelHealth
from podium.plugins.learned.idle_gpu import IdleGpu
from podium.plugins.learned.linear import NOT_FEASIBLE, PRICE, RANK, SCAR, WEIGHED, LinearScore, NodeState
from podium.plugins.learned.name_ranks import NameRanks
from podium.plugins.learned.network import PlacementNetwork
from podium.plugins.learned.onnx_network import OnnxScore
from podium.plugins.learned.policy_file import PolicyError, PolicyFile, path_of, read_policy
from podium.plugins.learned.seen_pods import SeenPods, read_classes

NEUTRAL = 50
ASKED = ("", "shadow", "canary", "demoted")
"""Sources of decisions for which the model is asked, be it to be compared."""
FEW_ROWS = 64
"""Up to so many changed rows, going through them one by one is quicker than computing with arrays."""
MOST_SHAPES, MOST_SHAPES_OF_A_NETWORK = 2000, 60
"""Shapes that are remembered: 8 bytes a node each, with a network 300."""


class RequestShape(NamedTuple):
    """What a pod asks for, as far as the state of nodes is concerned."""

    cpu: int
    gpus: int
    milli: int


class ShapeScores:
    """What the state of each row and the placement give for pods of one shape."""

    __slots__ = ("base", "cursor", "terms")

    def __init__(self, cluster: Cluster, with_terms: bool) -> None:
        rows = cluster.columns.rows
        self.base: Floats = np.full(rows, NOT_FEASIBLE)
        self.terms: Floats | None = np.zeros((WEIGHED, rows)) if with_terms else None
        """float64[weighed terms, rows], for a network."""
        self.cursor = cluster.row_cursor()


class LearnedScore(Plugin):
    Args = LearnedScoreArgs
    score_scope = Scope.PODS
    sees_claims = False

    def __init__(self, args: LearnedScoreArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self.first_of_equals = args.first_of_equals  # type: ignore[misc]
        cluster = handle.cluster
        self._cluster = cluster
        self._devices = GpuDevices.of(cluster)
        self._models = cluster.labels.column(MODEL)
        self._idle = IdleGpu(cluster, self._devices)
        self._prices = Prices()
        self.guard = ModelGuard(args.deadline.seconds)
        self.health = ModelHealth(args.most_bad)
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
            self.score_scope = Scope.CLUSTER
        self._score: LinearScore | None = None
        self._network: PlacementNetwork | None = None
        self._built_of: Hashable = None
        self._demand: dict[str, float] = {}
        self._scar: dict[str, float] = {}
        self._shapes: dict[RequestShape, ShapeScores] = {}
        self._unprepared: dict[tuple[int, GpuRequest], None] = {}
        """Requests whose nodes are to be computed outside a decision."""
        self._ranks = NameRanks(cluster)
        self._last: tuple[str, str] = "", ""
        self.log = DecisionLog(args.log) if args.log else None
        self._warned = False
        self.drift = 0.0
        """The distance of the pods seen from those of the training."""

    @property
    def mode(self) -> str:
        """How it works now: off, shadow, canary, active, or demoted."""
        demoted = self.health.demoted and self.args.share > 0
        return "demoted" if demoted else str(self.args.mode).partition(":")[0]

    @property
    def unknown_models(self) -> int:
        """How many GPU models the nodes have that the training had not."""
        trained = set() if self._policy is None else set(self._policy.trained_on.models)
        here = {model for model, gpu in self._idle.capacity.items() if model and gpu > 0}
        return len(here - trained) if trained else 0

    def interests(self) -> Iterable[Any]:
        return ()

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
        except Exception as error:
            self._failed("exception", error)
        if len(self._unprepared) >= MOST_SHAPES:
            self._unprepared.clear()
        self._unprepared[cpu, request] = None
        self._prepare()

    def _prepare(self) -> None:
        """Compute the nodes for one shape that waits for it: the last."""
        if not self._unprepared or self._score is None:
            return
        try:
            if self.guard.reason(self.handle.clock.now()) is None:
                wanted, _ = self._unprepared.popitem()
                self._refreshed(*wanted)
        except _OutsideError:
            self.guard.set_lasting("ood")
        except Exception as error:
            self._failed("exception", error)

    # Who decides

    def watermark(self, pod: Pod) -> Hashable:
        reason = self._source(pod)
        if reason != "off" and (self.args.on_trial or self.health.demoted):
            return None  # both scores are wanted for every pod
        if self._network is not None:
            return None  # what it says of a node depends on the others
        return reason, self.guard.generation, self._built_of, self._prices.generation

    def _source(self, pod: Pod) -> str:
        """Why the fallback decides about a pod; empty where the model does. Everything is brought up to date."""
        try:
            reason = self._find_source(pod)
        except Exception as error:
            self._failed("exception", error)
            reason = "exception"
        if self._last[0] != pod.uid:
            self.guard.fallbacks[reason] += 1
            if reason in ASKED:
                self.health.decided()
        self._last = pod.uid, reason
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
        if self.args.mode == "shadow":
            return "shadow"
        if self.health.demoted:
            return "demoted"
        chosen = self.args.share >= 1 or zlib.crc32(pod.uid.encode()) / 0xFFFFFFFF < self.args.share
        return "" if chosen else "canary"

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
        self._ranges = _ranges(self._policy)
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
        self._shapes.clear()
        self._score = LinearScore(policy.matrix(), self._seen.typical)
        self._network = policy.correction()
        capacity = self._idle.capacity
        classes = ((request, pods) for (_, request), pods in self._seen.classes.items())
        self._demand = constrained_demand(classes, {model: gpu for model, gpu in capacity.items() if gpu and model})
        offered = sum(capacity.values())
        self._scar = {model: price(share, capacity[model], offered) for model, share in self._demand.items()}
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
                self._took(computed, clock.now() - began, began)
                if reason == "" and not self.args.on_trial:
                    return scores
                fallback = self._compare(cycle, nodes, scores, clock.now() - began)
                return scores if reason == "" else fallback
            self._recount(cycle.pod, reason)
        return self._fallback(cycle, nodes)

    def _took(self, computed: int, seconds: float, began: float) -> None:
        self.health.took(seconds)
        self.guard.took(computed, seconds, began)
        if seconds > self.args.deadline.seconds:
            self._was_bad()

    def _compare(self, cycle: Cycle, nodes: Nodes, model: Scores, seconds: float) -> Scores:
        """The fallback's scores, compared with the model's."""
        fallback = self._fallback(cycle, nodes)
        names = [cycle.cluster.names[row] for row in nodes.rows.tolist()]
        found = compare(cycle.pod, names, fallback, model, seconds)
        self.health.compared(found.same, found.tau)
        if self.log is not None:
            self.log.compared(found)
        return fallback

    def _was_bad(self) -> None:
        if self.health.was_bad():
            share = f"{self.health.bad_share:.1%} of its last answers were late or failed"
            self.handle.report(f"LearnedScore: the model no longer decides: {share}; a new policy file may")

    def score_node(self, cycle: Cycle, node: NodeInfo) -> int:
        if self._network is not None:
            return int(self.score(cycle, Nodes(self._cluster, np.array([node.row])))[0])
        if self._last == (cycle.pod.uid, ""):
            try:
                base = self._refreshed(*_wanted(cycle)).base[node.row]
                return self._points_of_row(cycle, node.row, float(base))
            except Exception as error:
                self._failed("exception", error)
        try:
            return self._fallback_row(cycle, node.row)
        except Exception:
            return NEUTRAL

    def reserve(self, cycle: Cycle, node_name: str) -> Status | None:
        """Record the decision and prepare for others; nothing is reserved."""
        self._prepare()
        if self.log is not None:
            uid, reason = self._last
            self.log.decided(cycle.pod, node_name, reason if uid == cycle.pod.uid else "single")
        return None

    def choose_device(self, cycle: Cycle, row: int) -> int | None:
        """The first device of those that had as much left as the score was best with."""
        if self._last[0] != cycle.pod.uid:
            self._source(cycle.pod)  # one node fits: no score was asked for
        if self._last[1] != "" or self._score is None:
            return None
        try:
            cpu, request = _wanted(cycle)
            state = self._state_of(row)
            pods = state.pods - 1 if cycle.pod.uid in cycle.cluster.pods else state.pods
            node = state._replace(cpu=state.cpu + cpu, pods=pods)
            _, left = self._score.base(node, cpu, request, group_of(request.gpus, request.milli))
            return None if left is None else self._devices.free_on(row).index(left)
        except Exception as error:
            self._failed("exception", error)
            return None

    def _guarded(self, compute: Callable[[], Scores], reason: str) -> tuple[Scores | None, str]:
        try:
            return compute(), reason
        except _OutsideError:
            self.guard.set_lasting("ood")
            return None, "ood"
        except FloatingPointError as error:
            return None, self._failed("nan", error)
        except Exception as error:
            return None, self._failed("exception", error)

    def _failed(self, reason: str, error: Exception) -> str:
        self.guard.failed(self.handle.clock.now())
        self.handle.report(f"LearnedScore: {type(error).__name__}: {error}; the fallback decides")
        return reason

    def _recount(self, pod: Pod, reason: str) -> None:
        """The model was to be asked, and was not able to answer."""
        self.guard.fallbacks[self._last[1]] -= 1
        self.guard.fallbacks[reason] += 1
        self._was_bad()
        self._last = pod.uid, reason

    def _to_compute(self, cycle: Cycle, nodes: Nodes) -> int:
        cpu, request = _wanted(cycle)
        known = self._shapes.get(RequestShape(cpu, request.gpus, request.milli))
        every = known is None or self._network is not None
        return len(nodes) if every else min(len(nodes), FEW_ROWS)

    def _model_scores(self, cycle: Cycle, nodes: Nodes) -> Scores:
        known = self._refreshed(*_wanted(cycle))
        base = nodes.pick(known.base)
        extra = nodes.pick(self._extra_by_model(cycle)[self._models.ids])
        assert self._policy is not None
        weight = self._weights(cycle)[RANK]
        ranked = extra if not weight else extra + weight * nodes.pick(self._ranks.column())
        calibration = self._policy.calibration
        total = base + ranked
        if self._network is not None and known.terms is not None:
            total = self._corrected(cycle, nodes, known.terms, total)
        raw = calibration.offset + calibration.scale * total + 0.5
        if np.isnan(raw).any():
            raise FloatingPointError("a score is not a number")
        scores: Scores = np.clip(np.floor(raw), 0, MAX_SCORE).astype(np.int64)
        return scores

    def _corrected(self, cycle: Cycle, nodes: Nodes, weighed: Floats, linear: Floats) -> Floats:
        """The score with what the network makes of the nodes that the pod fits."""
        assert self._network is not None
        request = _wanted(cycle)[1]
        prices = np.array([self._price(request, model or "") for model in self._models.values])
        terms = np.zeros((len(TERMS), len(nodes)))
        terms[:WEIGHED] = nodes.pick(weighed)
        terms[PRICE] = nodes.pick(prices[self._models.ids])
        group, fitting = group_of(request.gpus, request.milli), linear > NOT_FEASIBLE
        if self._onnx is not None:
            if not request.models:
                scar = np.array([self._scar.get(model or "", 0.0) for model in self._models.values])
                terms[SCAR] = nodes.pick(scar[self._models.ids]) if request.gpus else 0.0
            if self._weights(cycle)[RANK]:
                terms[RANK] = nodes.pick(self._ranks.column())
            return self._onnx.scores(terms, group, fitting)
        if fitting.all():
            return linear + self._network.corrections(terms, group)
        linear[fitting] += self._network.corrections(terms[:, fitting], group)
        return linear

    def _points_of_row(self, cycle: Cycle, row: int, base: float) -> int:
        assert self._policy is not None
        extra = self._extra(cycle, self._devices.model_of(row))
        weight = self._weights(cycle)[RANK]
        calibration = self._policy.calibration
        ranked = extra + weight * self._ranks.column().item(row) if weight else extra
        raw = calibration.offset + calibration.scale * (base + ranked) + 0.5
        if math.isnan(raw):
            self._failed("nan", FloatingPointError("a score is not a number"))
            return self._fallback_row(cycle, row)
        return 0 if raw < 0 else min(int(raw), MAX_SCORE) if raw < math.inf else MAX_SCORE

    def _weights(self, cycle: Cycle) -> Floats:
        assert self._score is not None
        request = _wanted(cycle)[1]
        weights: Floats = self._score.weights[group_of(request.gpus, request.milli)]
        return weights

    def _extra(self, cycle: Cycle, model: str) -> float:
        """What the price of a node's model adds."""
        request = _wanted(cycle)[1]
        if not request.gpus:
            return 0.0
        weights, now = self._weights(cycle), self._price(request, model)
        if request.models:
            return float(weights[PRICE] * now)
        return float(weights[SCAR] * self._scar.get(model, 0.0) + weights[PRICE] * now)

    def _price(self, request: GpuRequest, model: str) -> float:
        """The price of a model, half for pods that accept few."""
        if not request.gpus:
            return 0.0
        now = self._prices.by_model.get(model, 0.0)
        return now * 0.5 if request.models else now

    def _extra_by_model(self, cycle: Cycle) -> Floats:
        return np.array([self._extra(cycle, model or "") for model in self._models.values])

    # What is remembered of shapes

    def _refreshed(self, cpu: int, request: GpuRequest) -> ShapeScores:
        """The rows of a shape, up to date."""
        shape = RequestShape(cpu, request.gpus, request.milli)
        known = self._shapes.get(shape)
        if known is None:
            if len(self._shapes) >= (MOST_SHAPES if self._network is None else MOST_SHAPES_OF_A_NETWORK):
                self._shapes.clear()
            known = self._shapes[shape] = ShapeScores(self._cluster, self._network is not None)
        if known.cursor.at_end:
            return known
        changes = known.cursor.read()
        if changes is None:
            nodes = Nodes(self._cluster, None)
            self._check_ranges(nodes)
            known.base[:] = self._bases(nodes, cpu, request, known.terms)
            return known
        present = self._cluster.present
        rows = [row for row in dict.fromkeys((*changes[0], *changes[1])) if present[row]]
        if len(rows) > FEW_ROWS:
            terms = None if known.terms is None else known.terms[:, rows]
            known.base[rows] = self._bases(Nodes(self._cluster, np.array(rows, dtype=np.intp)), cpu, request, terms)
            if known.terms is not None and terms is not None:
                known.terms[:, rows] = terms
            return known
        group = group_of(request.gpus, request.milli)
        assert self._score is not None
        for row in rows:
            terms = None if known.terms is None else known.terms[:, row]
            known.base[row] = self._score.base(self._state_of(row), cpu, request, group, terms)[0]
        return known

    def _state_of(self, row: int) -> NodeState:
        numbers, devices = self._cluster.resources.on(row), self._devices
        cpu = numbers[ALLOCATABLE + CPU] - numbers[REQUESTED + CPU]
        pods = len(self._cluster.pods_on[row])
        return NodeState(cpu, devices.sorted_on(row), devices.model_of(row), pods, devices.pods_by_size_on(row))

    def _has_model(self, nodes: Nodes) -> Callable[[Iterable[str]], NDArray[np.bool_]]:
        return lambda models: self._devices.has_model(nodes, tuple(models))

    def _check_ranges(self, nodes: Nodes) -> None:
        """Raises _OutsideError where too many terms of the nodes are outside the trained range."""
        if self._ranges is None or self._score is None:
            return
        states = self._score.states(_cpu_left(nodes), self._devices.free(nodes), self._has_model(nodes))
        states = states[:, nodes.pick(self._cluster.present)]
        low, high = self._ranges
        outside = (states < low[:, np.newaxis]) | (states > high[:, np.newaxis])
        if outside.size and outside.mean() > self.args.most_outside:
            raise _OutsideError

    def _bases(self, nodes: Nodes, cpu: int, request: GpuRequest, terms: Floats | None) -> Floats:
        devices = self._devices
        assert self._score is not None
        return self._score.bases(
            _cpu_left(nodes),
            devices.free(nodes),
            self._has_model(nodes),
            nodes.pick(self._cluster.resources.pod_count),
            nodes.pick(devices.counts()),
            devices.pods_by_size(nodes, request.size),
            cpu,
            request,
            group_of(request.gpus, request.milli),
            terms,
        )

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
        except Exception:
            return np.full(len(nodes), NEUTRAL, dtype=np.int64)

    def _fallback_row(self, cycle: Cycle, row: int) -> int:
        cpu, request = _wanted(cycle)
        numbers = self._cluster.resources.on(row)
        left = numbers[ALLOCATABLE + CPU] - numbers[REQUESTED + CPU] - cpu
        idle = sum(self._devices.free_on(row)) - request.total
        return int(min(max(MAX_SCORE * (1 - 0.5 * left / FULL_CPU - 0.5 * idle / FULL_GPU), 0), MAX_SCORE))


class _OutsideError(Exception):
    """Too many terms are outside the trained range."""


def _wanted(cycle: Cycle) -> tuple[int, GpuRequest]:
    request = request_of(cycle.pod, cycle.facts)
    return int(cycle.facts.counted[CPU]), request if isinstance(request, GpuRequest) else NO_GPU


def _cpu_left(nodes: Nodes) -> NDArray[np.int64]:
    resources = nodes.cluster.resources
    left: NDArray[np.int64] = nodes.pick(resources.allocatable[CPU]) - nodes.pick(resources.requested[CPU])
    return left


def _ranges(policy: PolicyFile) -> tuple[Floats, Floats] | None:
    """The lowest and highest trained value of each state term."""
    ranges = policy.trained_on.ranges
    if not ranges:
        return None
    low = np.array([ranges.get(term, (-math.inf, math.inf))[0] for term in STATE])
    high = np.array([ranges.get(term, (-math.inf, math.inf))[1] for term in STATE])
    return low, high


def _given(args: LearnedScoreArgs) -> Iterable[Any] | None:
    if isinstance(args.knowledge, str):
        return None if args.knowledge == COUNTED else read_classes(args.knowledge)
    return args.knowledge
