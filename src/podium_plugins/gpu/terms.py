"""Computes the terms that learned scores are sums of: numbers about a node before and after a pod is placed on it.

    score = Σ w·(state before − state after) + Σ v·action + weight of the price · price of the node's GPU model

Symbols: pod c (cpu), k GPUs with d thousandths of each; node C (cpu left), r of each device, R = Σ r; C' = C − c,
R' = R − k·d, all in thousandths. State terms are of a node as it is:

    F, Fg            GPU that typical pods cannot use (see `fragmentation`); Fg weighs classes by the GPU they ask for
    st4 … st24       GPU stranded at x cores each: max(0, R/1000 − C/(1000·x))
    surplus          max(0, C − rho·R/1000)/rho
    ufill, vfill     what no set of typical shares fills on partly used devices, and what random ones leave
    H, Hf, Hg        GPU that the node could give if filled with one class: mean over classes; Hf with fractions of
                     pods as to cpu, Hg weighted by GPU
    nfull, npart     devices wholly free, partly used
    logr, sqrtRC     |ln((C + 2000)/(rho·(R + 200)/1000))|;  √(R·C)/20000

Action terms are of the placement: C1 = C'/128000, R1 = R'/8000, CR = C1·R1; empty (no pod on the node), gfree (all of
its GPUs free), opened (a share opens a free GPU); lo (left on the chosen device/1000), lo2 (its square), R1zero
(R' = 0); ng (GPUs/8), own (all GPU pods of the node are of the pod's size), oth (some are not); logr1, F1, st12_1
(those terms after the placement); scar (the price on an empty cluster, for pods that accept any model), rank (a hash
of the node's name, 0–1).

Each formula stands once, in a subset of Python that Numba compiles and that arrays understand: numbers are about one
node, arrays about many. Only the logarithm and the root have a form for each (`state_of`, `states_of`). All add in the
same order, so one node and many agree to the last bit but for the logarithm.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from podium_plugins.gpu.knowledge import Knowledge
from podium_plugins.gpu.request import WHOLE
from podium_plugins.gpu.typical_pods import PodType

STATE: Final = (
    "F", "Fg", "st4", "st6", "st8", "st10", "st12", "st14", "st16", "st24", "surplus", "ufill", "vfill",
    "H", "Hf", "Hg", "nfull", "npart", "logr", "sqrtRC",
)  # fmt: skip
ACTION: Final = (
    "C1", "R1", "CR", "empty", "gfree", "opened", "lo", "lo2", "R1zero", "ng", "own", "oth", "logr1", "F1", "st12_1",
)  # fmt: skip
OF_NODE: Final = ("scar", "rank", "price")
"""Terms that are the same for all devices of a node and all its states, but for the price, which moves by itself."""
TERMS: Final = (*STATE, *ACTION, *OF_NODE)
CORES = (4.0, 6.0, 8.0, 10.0, 12.0, 14.0, 16.0, 24.0)
"""The cores per GPU of st4 … st24."""
STATES: Final = len(STATE)
ACTIONS: Final = len(ACTION)
FRAGMENTED, FRAGMENTED_BY_GPU, FIRST_ST, ST12, SURPLUS, UFILL, VFILL = 0, 1, 2, 6, 10, 11, 12
HOSTED, HOSTED_FRACTIONS, HOSTED_BY_GPU, NFULL, NPART, LOGR, SQRT_RC = 13, 14, 15, 16, 17, 18, 19
"""Positions in STATE; st4 … st24 begin at FIRST_ST."""
(
    CPU_LEFT, GPU_LEFT, CPU_TIMES_GPU, EMPTY, ALL_FREE, OPENED, LEFT_ON_DEVICE, LEFT_SQUARED, NOTHING_LEFT, NUMBER,
    OWN_SIZE, OTHER_SIZES, LOGR_AFTER, FRAGMENTED_AFTER, ST12_AFTER,
) = range(ACTIONS)  # fmt: skip
"""Positions in ACTION."""
SCAR, RANK, PRICE = (TERMS.index(each) for each in OF_NODE)
"""Positions in TERMS."""
FULL_CPU, FULL_GPU = 128_000.0, 8_000.0

GROUPS: Final = ("cpuOnly", "sharing", "oneGpu", "severalGpus")
"""Groups of pods that may have weights of their own."""
MEANINGLESS: Final = {
    "cpuOnly": frozenset(("opened", "lo", "lo2", "own", "oth", "scar", "price")),
    "oneGpu": frozenset(("opened", "lo", "lo2")),
    "severalGpus": frozenset(("opened", "lo", "lo2")),
    "sharing": frozenset[str](),
}
"""Terms that are always 0 for a group of pods."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def group_of(gpus: int, milli: int) -> int:
    """The position in GROUPS of pods with such a request."""
    if gpus == 0:
        return 0
    if milli < WHOLE:
        return 1
    return 2 if gpus == 1 else 3


def rank_of(name: str) -> float:
    """A number from 0 to 1 that a node's name alone decides."""
    return zlib.crc32(name.encode()) / 0xFFFFFFFF


def state_of(cpu: int, free: Any, known: Knowledge, out: Any) -> None:
    """The state terms of one node, as a list or array of them, but for F, Fg, H, Hf and Hg, which stay as they are."""
    ratio, product = plain_state(cpu, free, known, out)
    out[LOGR] = abs(math.log(ratio))
    out[SQRT_RC] = math.sqrt(product) / 20000.0


def states_of(cpu: Ints, free: Ints, known: Knowledge) -> Floats:
    """float64[state terms, nodes] of cpu[nodes] and free[devices, nodes]; F, Fg, H, Hf and Hg are 0."""
    out = np.zeros((STATES, len(cpu)))
    ratio, product = plain_state(cpu, free, known, out)
    out[LOGR] = np.abs(np.log(ratio))
    out[SQRT_RC] = np.sqrt(product) / 20000.0
    return out


def plain_state(cpu: Any, free: Any, known: Knowledge, out: Any) -> tuple[Any, Any]:
    """The state terms that need neither logarithm nor root, and the numbers that do; `free` are devices in any order.

    (x + |x|)/2 is max(0, x) to the last bit, of numbers and of arrays.
    """
    left = cpu * (cpu > 0)
    idle = 0
    whole = 0
    empty = 0
    lost = 0.0
    expected = 0.0
    for each in free:
        idle = idle + each
        whole = whole + (each == 1000)
        empty = empty + (each == 0)
        lost = lost + known.loss[each]
        expected = expected + known.expected_loss[each]
    gpus = idle / 1000.0
    for i in range(len(CORES)):
        stranded = gpus - left / (1000.0 * CORES[i])
        out[FIRST_ST + i] = (stranded + abs(stranded)) / 2.0
    surplus = left - known.rho * gpus
    out[SURPLUS] = (surplus + abs(surplus)) / 2.0 / known.rho
    out[UFILL] = lost
    out[VFILL] = expected
    out[NFULL] = whole * 1.0
    out[NPART] = (len(free) - whole - empty) * 1.0
    return (left + 2000.0) / (known.rho * (idle + 200.0) / 1000.0), idle * 1.0 * left


def action_of(
    cpu: Any, idle: Any, before: Any, after: Any, pods: Any, gpus: Any, left: Any, equal: Any, others: Any, out: Any
) -> None:
    """The action terms; `cpu` and `idle` are what is left after the placement, `before` and `after` the state terms.

    `left` is what the chosen device has left, −1 but for shares; `equal` and `others` are the GPU pods on the node of
    the pod's size and of other sizes, both 0 for pods without GPU.
    """
    out[CPU_LEFT] = cpu / FULL_CPU
    out[GPU_LEFT] = idle / FULL_GPU
    out[CPU_TIMES_GPU] = out[CPU_LEFT] * out[GPU_LEFT]
    out[EMPTY] = (pods == 0) * 1.0
    out[ALL_FREE] = ((gpus > 0) & (before[NFULL] == gpus)) * 1.0
    out[OPENED] = ((left >= 0) & (after[NFULL] < before[NFULL])) * 1.0
    out[LEFT_ON_DEVICE] = left * (left > 0) / 1000.0
    out[LEFT_SQUARED] = out[LEFT_ON_DEVICE] * out[LEFT_ON_DEVICE]
    out[NOTHING_LEFT] = (idle == 0) * 1.0
    out[NUMBER] = gpus / 8.0
    out[OWN_SIZE] = ((equal > 0) & (others == 0)) * 1.0
    out[OTHER_SIZES] = (others > 0) * 1.0
    out[LOGR_AFTER] = after[LOGR]
    out[FRAGMENTED_AFTER] = after[FRAGMENTED]
    out[ST12_AFTER] = after[ST12]


def weighed(before: Any, after: Any, action: Any, weights: Any) -> Any:
    """The part of a score that the node's state and the placement give; 0.0 for any nodes if no term has a weight."""
    total = 0.0
    for i in range(STATES):
        if weights[i] != 0.0:
            total = total + weights[i] * (before[i] - after[i])
    for i in range(ACTIONS):
        if weights[STATES + i] != 0.0:
            total = total + weights[STATES + i] * action[i]
    return total


class HostedGpu:
    """How much GPU nodes could give if they were filled with one class of typical pods: the terms H, Hf and Hg."""

    def __init__(self, typical: Iterable[PodType]) -> None:
        classes = list(typical)
        self._pods = max(sum(each.pods for each in classes), 1)
        self._gpu = max(sum(each.pods * each.request.total for each in classes), 1)
        with_gpu = (each for each in classes if each.request.gpus)
        self._classes = sorted(
            with_gpu, key=lambda each: (each.request.milli, each.request.gpus, each.request.models, each.cpu)
        )

    def of(
        self,
        cpu: NDArray[np.int64],
        free: NDArray[np.int64],
        has_model: Callable[[Sequence[str]], NDArray[np.bool_]],
    ) -> NDArray[np.float64]:
        """float64[3, nodes]: whole pods, fractions of pods as to cpu, and whole pods weighted by GPU."""
        left = np.maximum(cpu, 0)
        out = np.zeros((3, len(cpu)))
        for ask, request, pods in self._classes:
            copies = (free // request.milli).sum(axis=0) // request.gpus
            if request.models:
                copies = copies * has_model(request.models)
            gpu = request.milli * request.gpus / 1000.0
            many = np.minimum(copies, left // max(ask, 1)) * gpu
            out[0] += pods / self._pods * many
            out[1] += pods / self._pods * (np.minimum(copies, left / max(ask, 1)) * gpu)
            out[2] += pods * (request.milli * request.gpus) / self._gpu * many
        return out
