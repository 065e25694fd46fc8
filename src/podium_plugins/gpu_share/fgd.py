"""Scores nodes whose idle GPU stays usable, or becomes so, highest: GpuFGD (FGD, fragmentation gradient descent).

    score = ⌊100·sigmoid((F before − F after)/1000)⌋, sigmoid(x) = 1/(1 + exp(−x))

F is the fragmented GPU of the node in thousandths as typical pods see it (`podium_plugins.gpu.fragmentation`), before
and after the pod is placed. A sharing pod scores what the best device that suffices gives, and gets the first such
device. A node where the pod does not fit scores 0.

The difference is a whole number of pods·thousandths, and the score grows with it: 99 limits, worked out once, stand for
the exponential function, so that answers about one node and about many agree exactly. Cpu matters as far as some
typical pod needs more of it. So nodes are often in the same state, and the score of a state is remembered.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from podium import MAX_SCORE, Cycle, FieldError, FieldPath, Handle, Scores
from podium.cluster import NodeInfo, Nodes
from podium_plugins.gpu.devices import best_devices, sufficient
from podium_plugins.gpu.fragmentation import Amounts, Fragmentation
from podium_plugins.gpu.request import WHOLE, GpuRequest
from podium_plugins.gpu.typical_pods import TypicalPod
from podium_plugins.gpu_share.room import GpuScorePlugin, cpu_left, cpu_left_on, wanted_by

FEW = 2000
"""Up to so many nodes, looking up states one by one is quicker than computing with arrays."""
MOST_STATES = 500_000
"""So many scores are remembered; then all are forgotten."""

_State = tuple[GpuRequest, int, int, str, tuple[int, ...]]


class GpuFGDArgs(msgspec.Struct, rename="camel", kw_only=True, frozen=True, forbid_unknown_fields=True):
    """The typical pods of the workload to come."""

    typical_pods: tuple[TypicalPod, ...] = ()

    def validate(self, path: FieldPath) -> Iterator[FieldError]:
        if not self.typical_pods:
            detail = "the classes of pods that are to come: cpu, gpuCount, gpuMilli, gpuCardModels, pods"
            yield FieldError.required(path.child("typicalPods"), detail)
        for i, each in enumerate(self.typical_pods):
            yield from each.validate(path.child("typicalPods").index(i))


class GpuFGD(GpuScorePlugin):
    trusted = True
    Args = GpuFGDArgs

    def __init__(self, args: GpuFGDArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._fragmentation = Fragmentation(each.pod_type() for each in args.typical_pods)
        self._limits = score_limits(self._fragmentation.pods)
        self._known: dict[_State, int] = {}

    def score(self, cycle: Cycle, nodes: Nodes) -> Scores:
        if len(nodes) > FEW or nodes.bare:
            return self._score_with_arrays(cycle, nodes)
        cpu, request = wanted_by(cycle)
        left, levels = cpu_left(nodes), self._fragmentation.levels
        states = zip(levels(left).tolist(), levels(left - cpu).tolist(), nodes.rows.tolist(), strict=True)
        return np.array([self._score_row(request, *state) for state in states], dtype=np.int64)

    def _score_with_arrays(self, cycle: Cycle, nodes: Nodes) -> Scores:
        wanted = wanted_by(cycle)
        cpu, free = cpu_left(nodes), self._devices.free(nodes)
        before = self._amounts(nodes, cpu, free)
        if not wanted.request.gpus:
            return self._scores(before - self._amounts(nodes, cpu - wanted.cpu, free))
        if not wanted.request.sharing:
            usable = free == WHOLE
            taken = usable & (usable.cumsum(axis=0) <= wanted.request.gpus)
            gains = before - self._amounts(nodes, cpu - wanted.cpu, np.where(taken, 0, free))
            return np.where(taken.sum(axis=0) == wanted.request.gpus, self._scores(gains), 0)
        # One column for each choice of a node and a device on it.
        scores: Scores = np.zeros(len(nodes), dtype=np.int64)
        positions, devices = choices(free, wanted.request)
        after = free[:, positions]
        after[devices, np.arange(len(positions))] -= wanted.request.milli
        gains = before[positions] - self._amounts(nodes, cpu[positions] - wanted.cpu, after, positions)
        np.maximum.at(scores, positions, self._scores(gains))
        return scores

    def score_node(self, cycle: Cycle, node: NodeInfo) -> int:
        cpu, request = wanted_by(cycle)
        left, level = cpu_left_on(cycle.cluster, node.row), self._fragmentation.level
        return self._score_row(request, level(left), level(left - cpu), node.row)

    def _score_row(self, request: GpuRequest, before: int, after: int, row: int) -> int:
        """The score of a row by its levels of cpu before and after."""
        model = self._fragmentation.model_group(self._devices.model_of(row))
        state = request, before, after, model, self._devices.sorted_on(row)
        known = self._known.get(state)
        if known is None:
            if len(self._known) >= MOST_STATES:
                self._known.clear()
            known = self._known[state] = self._score_state(*state)
        return known

    def choose_device(self, cycle: Cycle, row: int) -> int | None:
        """The first device with the best score. The pod counts on the node's cpu already."""
        cpu, request = wanted_by(cycle)
        free, fragmentation = self._devices.free_on(row), self._fragmentation
        left = cpu_left_on(cycle.cluster, row)
        model = fragmentation.model_group(self._devices.model_of(row))
        before, after = fragmentation.level(left + cpu), fragmentation.level(left)
        ordered = self._devices.sorted_on(row)
        best, chosen = -1, None
        for device in sufficient(free, request):
            score = self._score_after(before, after, model, ordered, _without(ordered, free[device], request.milli))
            if score > best:
                best, chosen = score, device
        return chosen

    def _score_state(self, request: GpuRequest, before: int, after: int, model: str, free: tuple[int, ...]) -> int:
        """The score of a node in a state: levels of cpu before and after, and what devices have left, sorted."""
        if not request.gpus:
            return self._score_after(before, after, model, free, free)
        if best_devices(free, request) is None:
            return 0
        if request.milli == WHOLE:  # the devices taken are the last, and have nothing left
            taken = (*[0] * request.gpus, *free[: -request.gpus])
            return self._score_after(before, after, model, free, taken)
        enough = {left for left in free if left >= request.milli}
        return max(
            self._score_after(before, after, model, free, _without(free, left, request.milli)) for left in enough
        )

    def _score_after(self, before: int, after: int, model: str, free: tuple[int, ...], left: tuple[int, ...]) -> int:
        amount = self._fragmentation.amount
        return bisect_right(self._limits, amount(before, free, model) - amount(after, left, model))

    def _amounts(self, nodes: Nodes, cpu: Amounts, free: Amounts, positions: NDArray[np.intp] | None = None) -> Amounts:
        def has_model(models: Sequence[str]) -> NDArray[np.bool_]:
            allowed = self._devices.has_model(nodes, models)
            return allowed if positions is None else allowed[positions]

        return self._fragmentation.amounts(cpu, free, has_model)

    def _scores(self, gains: Amounts) -> Scores:
        return np.searchsorted(self._limits, gains, side="right").astype(np.int64)


def choices(free: Amounts, request: GpuRequest) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """(positions of nodes, devices): devices that suffice, of equal ones on a node the first."""
    usable = free >= request.milli
    for device in range(1, len(free)):
        usable[device] &= ~(free[:device] == free[device]).any(axis=0)
    devices, positions = np.nonzero(usable)
    return positions, devices


def score_limits(pods: int) -> list[int]:
    """How much the fragmentation, times `pods`, must shrink at least for a score of 1, 2, …, 99.

    >>> score_limits(1)[48:51]
    [-40, 0, 41]
    """
    return [math.ceil(1000 * pods * math.log(score / (MAX_SCORE - score))) for score in range(1, MAX_SCORE)]


def _without(free: tuple[int, ...], device: int, milli: int) -> tuple[int, ...]:
    """What is left, sorted, when a device that has `device` left gives some."""
    left = list(free)
    left.remove(device)
    left.append(device - milli)
    left.sort()
    return tuple(left)
