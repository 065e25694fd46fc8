"""Scores nodes by weighted terms, one node or many at a time.

Terms of a node depend on its model as far as typical pods name models, its cpu, and what its devices have left, in any
order: nodes are often in the same state, so states are remembered. What the price adds comes last, so that a new price
leaves the rest as it was.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium_plugins.gpu.devices import fits
from podium_plugins.gpu.fragmentation import Fragmentation
from podium_plugins.gpu.knowledge import Knowledge, knowledge_of
from podium_plugins.gpu.request import WHOLE, GpuRequest
from podium_plugins.gpu.terms import (
    ACTION,
    ACTIONS,
    HOSTED,
    STATE,
    STATES,
    Floats,
    HostedGpu,
    Ints,
    action_of,
    state_of,
    states_of,
    weighed,
)
from podium_plugins.gpu.typical_pods import PodType

MOST_STATES = 200_000
"""So many states are remembered; then all are forgotten."""
NOT_FEASIBLE = -math.inf
WEIGHED = STATES + ACTIONS
"""How many terms the node's state and the placement give."""

HasModel = Callable[[Sequence[str]], NDArray[np.bool_]]


class NodeState(NamedTuple):
    """A node as the score sees it, before a pod is placed."""

    cpu: int
    free: tuple[int, ...]
    """What devices have left, rising."""
    model: str
    """As far as it makes a difference."""
    empty: bool
    """Whether it has no pod."""
    sizes: frozenset[int]
    """Of its GPU pods, in whole GPUs, 0 for shares."""

    def kinds(self, request: GpuRequest) -> tuple[bool, bool]:
        """Whether GPU pods of the request's size, and of other sizes, are on the node."""
        if not request.gpus:
            return False, False
        equal = request.size in self.sizes
        return equal, len(self.sizes) > equal


class LinearScore:
    """The score of one policy with one workload."""

    def __init__(self, weights: Floats, typical: Sequence[PodType]) -> None:
        self.weights = weights
        self._lists = [row.tolist() for row in weights]
        self._known: Knowledge = knowledge_of(typical)
        self._plain = Knowledge(self._known.rho, self._known.loss.tolist(), self._known.expected_loss.tolist())
        self._fragmentation = Fragmentation(typical)
        self._by_gpu = Fragmentation(PodType(cpu, request, pods * request.total) for cpu, request, pods in typical)
        hosts = weights[:, HOSTED : HOSTED + 3].any()
        self._hosted = HostedGpu(typical) if hosts else None
        self._states: dict[tuple[int, tuple[int, ...], str], list[float]] = {}

    def model_group(self, model: str) -> str:
        """A model as far as it makes a difference."""
        return self._fragmentation.model_group(model)

    # One node

    def base(
        self, node: NodeState, cpu: int, request: GpuRequest, group: int, terms: Floats | None = None
    ) -> tuple[float, int | None]:
        """What the node's state and the placement give, and what the device of a share has left before; where the pod
        does not fit, −∞. `terms`, where given, gets the numbers that were weighed."""
        free = node.free
        if request.gpus and not fits(free, request):
            return NOT_FEASIBLE, None
        before = self._state(node.cpu, free, node.model)
        after_cpu = node.cpu - cpu
        if not request.sharing:
            after = (*[0] * request.gpus, *free[: len(free) - request.gpus]) if request.gpus else free
            return self._weighed(node, before, after_cpu, after, -1, request, group, terms), None
        best, chosen = NOT_FEASIBLE, None
        tried = -1
        for position, left in enumerate(free):
            if left < request.milli or left == tried:
                continue
            tried = left
            rest = left - request.milli
            others = (*free[:position], *free[position + 1 :])
            position_after = sum(1 for each in others if each < rest)
            after = (*others[:position_after], rest, *others[position_after:])
            tried_terms = None if terms is None else np.zeros(WEIGHED)
            score = self._weighed(node, before, after_cpu, after, rest, request, group, tried_terms)
            if score > best:
                best, chosen = score, left
                if terms is not None and tried_terms is not None:
                    terms[:] = tried_terms
        return best, chosen

    def _weighed(
        self,
        node: NodeState,
        before: list[float],
        cpu: int,
        free: tuple[int, ...],
        left: int,
        request: GpuRequest,
        group: int,
        terms: Floats | None,
    ) -> float:
        after = self._state(cpu, free, node.model)
        equal, others = node.kinds(request)
        action = [0.0] * len(ACTION)
        action_of(cpu, sum(free), before, after, not node.empty, len(free), left, equal, others, action)
        if terms is not None:
            terms[: len(STATE)] = np.subtract(before, after)
            terms[len(STATE) :] = action
        total: float = weighed(before, after, action, self._lists[group])
        return total

    def _state(self, cpu: int, free: tuple[int, ...], model: str) -> list[float]:
        key = cpu, free, self._fragmentation.model_group(model)
        known = self._states.get(key)
        if known is None:
            if len(self._states) >= MOST_STATES:
                self._states.clear()
            known = self._states[key] = self._new_state(*key, model)
        return known

    def _new_state(self, cpu: int, free: tuple[int, ...], group: str, model: str) -> list[float]:
        out = [0.0] * len(STATE)
        for i, each in enumerate((self._fragmentation, self._by_gpu)):
            out[i] = each.amount(each.level(cpu), free, group) / (max(each.pods, 1) * 1000.0)
        state_of(cpu, free, self._plain, out)
        if self._hosted is not None:
            columns = np.array([cpu]), np.array(free, dtype=np.int64)[:, np.newaxis]
            hosted = self._hosted.of(*columns, lambda models: np.array([model in models]))
            out[HOSTED : HOSTED + 3] = hosted[:, 0].tolist()
        return out

    # Many nodes

    def states(self, cpu: Ints, free: Ints, has_model: HasModel) -> Floats:
        """float64[state terms, nodes]"""
        out = states_of(cpu, free, self._known)
        for i, each in enumerate((self._fragmentation, self._by_gpu)):
            out[i] = each.amounts(cpu, free, has_model) / (max(each.pods, 1) * 1000.0)
        if self._hosted is not None:
            out[HOSTED : HOSTED + 3] = self._hosted.of(cpu, free, has_model)
        return out

    def bases(
        self,
        cpu: Ints,
        free: Ints,
        has_model: HasModel,
        pods: Ints,
        number: Ints,
        sizes: tuple[Ints, Ints],
        cpu_request: int,
        request: GpuRequest,
        group: int,
        terms: Floats | None = None,
    ) -> Floats:
        """The same as `base` of many nodes: cpu[nodes], free[devices, nodes], `number` of devices, `sizes` GPU pods of
        the request's size and all; terms[weighed terms, nodes]."""
        before = self.states(cpu, free, has_model)
        weights = self.weights[group]
        equal = sizes[0] if request.gpus else np.zeros_like(pods)
        others = sizes[1] - equal if request.gpus else equal

        def scores(after: Ints, left: Ints, at: NDArray[np.intp] | slice) -> Floats:
            def at_positions(models: Sequence[str]) -> NDArray[np.bool_]:
                return has_model(models)[at]

            rest = cpu[at] - cpu_request
            states = self.states(rest, after, at_positions)
            at_first, action, total = before[:, at], np.empty((ACTIONS, len(rest))), np.zeros(len(rest))
            given = at_first, states, pods[at], number[at], left, equal[at], others[at]
            action_of(rest, after.sum(axis=0), *given, action)
            if terms is not None:
                tried.append(np.concatenate([at_first - states, action]))
            total += weighed(at_first, states, action, weights)
            return total

        tried: list[Floats] = []
        everywhere = slice(None)
        none = np.full(len(cpu), -1)
        if not request.gpus:
            total = scores(free, none, everywhere)
            if terms is not None:
                terms[:] = tried[0]
            return total
        if not request.sharing:
            usable = free == WHOLE
            taken = usable & (usable.cumsum(axis=0) <= request.gpus)
            total = scores(np.where(taken, 0, free), none, everywhere)
            if terms is not None:
                terms[:] = tried[0]
            return np.where(taken.sum(axis=0) == request.gpus, total, NOT_FEASIBLE)
        usable = free >= request.milli
        for device in range(1, len(free)):
            usable[device] &= ~(free[:device] == free[device]).any(axis=0)
        devices, positions = np.nonzero(usable)  # one column for each choice of a node and a device on it
        after = free[:, positions]
        columns = np.arange(len(positions))
        after[devices, columns] -= request.milli
        best = np.full(len(cpu), NOT_FEASIBLE)
        left = after[devices, columns]
        found = scores(after, left, positions)
        np.maximum.at(best, positions, found)
        if terms is not None:
            order = np.lexsort((left, -found, positions))  # of equally good devices the one with the least left
            at, firsts = np.unique(positions[order], return_index=True)
            terms[:, at] = tried[0][:, order[firsts]]
        return best
