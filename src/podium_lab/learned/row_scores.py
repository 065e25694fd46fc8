"""Keeps the score of every row for each request of pods, and computes again what changed.

A row is computed when its node or its pods changed; points of all rows when prices moved. Many nodes are in the same
state at one time or another, so states are numbered, and what they give for a request is remembered. With a network the
terms are kept instead of points: what it says of a node depends on all nodes that the pod fits.

    points = ⌊offset + scale·(what state and placement give + price + rank) + ½⌋, within 0–100
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from podium.cluster import Cluster, Nodes
from podium.cluster.resources import ALLOCATABLE, CPU, REQUESTED
from podium.framework import MAX_SCORE, Scores
from podium_lab.learned.linear import NOT_FEASIBLE, WEIGHED, LinearScore, NodeState
from podium_lab.learned.policy_file import PolicyFile
from podium_plugins.gpu.devices import GpuDevices
from podium_plugins.gpu.knowledge import Prices
from podium_plugins.gpu.request import MODEL, GpuRequest
from podium_plugins.gpu.terms import PRICE, RANK, SCAR, STATE, TERMS, Floats, group_of, rank_of
from podium_plugins.gpu.typical_pods import PodType

FEW_ROWS = 64
"""Up to so many changed rows, going through them one by one is quicker than computing with arrays."""
MOST_REQUESTS, MOST_REQUESTS_OF_A_NETWORK = 1000, 60
"""Requests that are remembered: 16 bytes a node each, with a network 300."""
MOST_STATES, MOST_ANSWERS = 50_000, 200_000
"""So many states, and answers about them, are remembered; then all are forgotten."""
UNKNOWN = -1


class OutsideError(Exception):
    """Too many terms are outside the trained range."""


class RequestScores:
    """The scores of all rows for pods of one request."""

    __slots__ = (
        "answers", "base", "cpu", "cursor", "extra", "group", "points", "priced", "rank_weight", "request", "terms",
    )  # fmt: skip

    def __init__(self, cluster: Cluster, cpu: int, request: GpuRequest, with_terms: bool) -> None:
        rows = cluster.columns.rows
        self.cpu, self.request = cpu, request
        self.group = group_of(request.gpus, request.milli)
        self.cursor = cluster.row_cursor()
        self.answers: dict[int, tuple[float, int | None]] = {}
        """What `LinearScore.base` gave for a state, by its number."""
        self.base: Floats = np.full(rows, NOT_FEASIBLE)
        """What state and placement give; −∞ where the pod does not fit."""
        self.terms: Floats | None = np.zeros((WEIGHED, rows)) if with_terms else None
        """float64[weighed terms, rows], for a network."""
        self.extra: list[float] = []
        """What the price of each model adds, by the number of its name."""
        self.rank_weight = 0.0
        self.priced: tuple[int, int] | None = None
        """Which prices, of how many models, `extra` and `points` are of."""
        self.points: Scores = np.zeros(0, dtype=np.int64)


class RowScores:
    """The scores of all rows by one policy, with one knowledge of the workload."""

    def __init__(
        self,
        cluster: Cluster,
        policy: PolicyFile,
        typical: Iterable[PodType],
        prices: Prices,
        scar: Mapping[str, float],
        ranks: NameRanks,
        most_outside: float,
    ) -> None:
        self._cluster = cluster
        self._devices = GpuDevices.of(cluster)
        self._models = cluster.labels.column(MODEL)
        self._ranks = ranks
        self._prices = prices
        self._scar = scar
        self._calibration = policy.calibration
        self._ranges = _ranges(policy)
        self._most_outside = most_outside
        self.linear = LinearScore(policy.matrix(), tuple(typical))
        self.network = policy.correction()
        self._requests: dict[tuple[int, GpuRequest], RequestScores] = {}
        self._cursor = cluster.row_cursor()
        self._state_of_row: list[int] = []
        """The number of each row's state, or UNKNOWN."""
        self._states: list[NodeState] = []
        self._numbers: dict[NodeState, int] = {}
        self._answers = 0

    def __contains__(self, wanted: tuple[int, GpuRequest]) -> bool:
        """Whether rows were computed for a request."""
        return wanted in self._requests

    def of(self, cpu: int, request: GpuRequest) -> RequestScores:
        """The scores for a request, up to date; raises FloatingPointError and OutsideError."""
        key = cpu, request
        known = self._requests.get(key)
        if known is None:
            if len(self._requests) >= (MOST_REQUESTS if self.network is None else MOST_REQUESTS_OF_A_NETWORK):
                self._requests.clear()
            known = self._requests[key] = RequestScores(self._cluster, cpu, request, self.network is not None)
        try:
            if not known.cursor.at_end:
                self._catch_up(known)
            if known.priced != (self._prices.generation, len(self._models.values)):
                self._price(known)
        except BaseException:  # also an interrupt
            del self._requests[key]  # what was read of the journal is lost
            raise
        return known

    def node_state(self, row: int) -> NodeState:
        """The state of a row as it is now."""
        numbers, devices = self._cluster.resources.on(row), self._devices
        cpu = numbers[ALLOCATABLE + CPU] - numbers[REQUESTED + CPU]
        model, empty = self.linear.model_group(devices.model_of(row)), not self._cluster.pods_on[row]
        return NodeState(cpu, devices.sorted_on(row), model, empty, frozenset(devices.pods_by_size_on(row)))

    def device_left(self, state: NodeState, cpu: int, request: GpuRequest) -> int | None:
        """What the device that a share would get has left before."""
        known, number = self._requests.get((cpu, request)), self._numbers.get(state, UNKNOWN)
        if known is not None and number in known.answers:
            return known.answers[number][1]
        return self.linear.base(state, cpu, request, group_of(request.gpus, request.milli))[1]

    # What changed

    def _catch_up(self, known: RequestScores) -> None:
        changes = known.cursor.read()
        if changes is None:
            nodes = Nodes(self._cluster, None)
            self._check_ranges(nodes)
            known.base[:] = self._bases(nodes, known, known.terms)
            known.priced = None
            return
        present = self._cluster.present
        rows = [row for row in dict.fromkeys((*changes[0], *changes[1])) if present[row]]
        if len(rows) <= FEW_ROWS:
            self._forget_changed()
            for row in rows:
                self._compute(known, row)
            return
        terms = None if known.terms is None else known.terms[:, rows]
        known.base[rows] = self._bases(Nodes(self._cluster, np.array(rows, dtype=np.intp)), known, terms)
        if known.terms is not None and terms is not None:
            known.terms[:, rows] = terms
        known.priced = None

    def _compute(self, known: RequestScores, row: int) -> None:
        """One row; its points too, where those of the others are known."""
        if known.terms is not None:
            terms, state = known.terms[:, row], self.node_state(row)
            known.base[row] = self.linear.base(state, known.cpu, known.request, known.group, terms)[0]
            return
        base = known.base[row] = self._base(known, row)
        if known.priced is None:
            return
        model = self._models.ids.item(row)
        if model >= len(known.extra):
            known.priced = None
            return
        extra = known.extra[model]
        ranked = extra + known.rank_weight * self._ranks.column().item(row) if known.rank_weight else extra
        raw = self._calibration.offset + self._calibration.scale * (base + ranked) + 0.5
        if math.isnan(raw):
            raise FloatingPointError("a score is not a number")
        known.points[row] = 0 if raw < 0 else min(int(raw), MAX_SCORE) if raw < math.inf else MAX_SCORE

    def _base(self, known: RequestScores, row: int) -> float:
        """What the row's state gives for the request."""
        number = self._state_of_row[row]
        if number == UNKNOWN:
            number = self._state_of_row[row] = self._number_of(self.node_state(row))
        answer = known.answers.get(number)
        if answer is None:
            if self._answers >= MOST_ANSWERS:
                for each in self._requests.values():
                    each.answers.clear()
                self._answers = 0
            answer = self.linear.base(self._states[number], known.cpu, known.request, known.group)
            known.answers[number] = answer
            self._answers += 1
        return answer[0]

    def _number_of(self, state: NodeState) -> int:
        number = self._numbers.setdefault(state, len(self._states))
        if number == len(self._states):
            self._states.append(state)
        return number

    def _forget_changed(self) -> None:
        """Forget the states of rows that changed since the last look."""
        if self._cursor.at_end:
            return
        changes, rows = self._cursor.read(), self._cluster.columns.rows
        if len(self._states) >= MOST_STATES:
            self._states, self._numbers = [], {}
            for each in self._requests.values():
                each.answers.clear()
            changes, self._answers = None, 0
        if changes is None or len(self._state_of_row) != rows:
            self._state_of_row = [UNKNOWN] * rows
            return
        for row in (*changes[0], *changes[1]):
            self._state_of_row[row] = UNKNOWN

    def _price(self, known: RequestScores) -> None:
        """What prices and ranks add, and the points of all rows."""
        known.extra = [self._extra(known, model or "") for model in self._models.values]
        known.rank_weight = float(self.linear.weights[known.group][RANK])
        known.priced = self._prices.generation, len(self._models.values)
        if known.terms is None:
            known.points = self.points(known.base + self.extra(known, Nodes(self._cluster)))

    def _bases(self, nodes: Nodes, known: RequestScores, terms: Floats | None) -> Floats:
        devices, request = self._devices, known.request
        return self.linear.bases(
            _cpu_left(nodes),
            devices.free(nodes),
            self._has_model(nodes),
            nodes.pick(self._cluster.resources.pod_count),
            nodes.pick(devices.counts()),
            devices.pods_by_size(nodes, request.size),
            known.cpu,
            request,
            known.group,
            terms,
        )

    def _check_ranges(self, nodes: Nodes) -> None:
        """Raises OutsideError where too many terms of the nodes are outside the trained range."""
        if self._ranges is None:
            return
        states = self.linear.states(_cpu_left(nodes), self._devices.free(nodes), self._has_model(nodes))
        states = states[:, nodes.pick(self._cluster.present)]
        low, high = self._ranges
        outside = (states < low[:, np.newaxis]) | (states > high[:, np.newaxis])
        if outside.size and outside.mean() > self._most_outside:
            raise OutsideError

    def _has_model(self, nodes: Nodes) -> Callable[[Iterable[str]], NDArray[np.bool_]]:
        return lambda models: self._devices.has_model(nodes, tuple(models))

    # What is added to state and placement

    def extra(self, known: RequestScores, nodes: Nodes) -> Floats:
        """What price and rank add, node by node."""
        by_row: Floats = np.array(known.extra)[self._models.ids]
        extra: Floats = nodes.pick(by_row)
        return extra + known.rank_weight * nodes.pick(self._ranks.column()) if known.rank_weight else extra

    def points(self, total: Floats) -> Scores:
        """Points of sums; raises FloatingPointError."""
        raw = self._calibration.offset + self._calibration.scale * total + 0.5
        if np.isnan(raw).any():
            raise FloatingPointError("a score is not a number")
        points: Scores = np.clip(np.floor(raw), 0, MAX_SCORE).astype(np.int64)
        return points

    def _extra(self, known: RequestScores, model: str) -> float:
        request, weights = known.request, self.linear.weights[known.group]
        if not request.gpus:
            return 0.0
        now = self.price_of(request, model)
        if request.models:
            return float(weights[PRICE] * now)
        return float(weights[SCAR] * self._scar.get(model, 0.0) + weights[PRICE] * now)

    def price_of(self, request: GpuRequest, model: str) -> float:
        """The price of a model, half for pods that accept few."""
        if not request.gpus:
            return 0.0
        now = self._prices.by_model.get(model, 0.0)
        return now * 0.5 if request.models else now

    def terms(self, known: RequestScores, nodes: Nodes, *, of_nodes: bool) -> Floats:
        """float64[terms, nodes] for a network; scar and rank, which only the linear part uses, where wanted."""
        request, models, ids = known.request, self._models.values, self._models.ids
        assert known.terms is not None
        terms = np.zeros((len(TERMS), len(nodes)))
        terms[:WEIGHED] = nodes.pick(known.terms)
        terms[PRICE] = nodes.pick(np.array([self.price_of(request, model or "") for model in models])[ids])
        if of_nodes and request.gpus and not request.models:
            terms[SCAR] = nodes.pick(np.array([self._scar.get(model or "", 0.0) for model in models])[ids])
        if of_nodes and known.rank_weight:
            terms[RANK] = nodes.pick(self._ranks.column())
        return terms


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


class NameRanks:
    """The rank of each row, a hash of its node's name from 0 to 1, kept as nodes come and go."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._cursor = cluster.row_cursor()
        self._column: Floats = np.zeros(0)

    def column(self) -> Floats:
        """float64[rows], up to date."""
        cluster, column = self._cluster, self._column
        if not self._cursor.at_end:
            changes = self._cursor.read()
            if changes is None or len(column) != cluster.columns.rows:
                names = cluster.names
                self._column = column = np.zeros(cluster.columns.rows)
                column[: len(names)] = [rank_of(name) for name in names]
            else:
                for row in changes[0]:
                    column[row] = rank_of(cluster.names[row])
        return column
