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

`state_of` and `action_of` are about one node, in a subset of Python that Numba compiles; the others are the same about
many nodes. Both add in the same order, so they agree to the last bit but for the logarithm.
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


# One node. `out` is filled; `free` are the devices in any order; the first terms and H are given, being costly.


def state_of(cpu: int, free: Any, known: Knowledge, out: Any) -> None:
    """The state terms from st4 on, but for H, Hf and Hg, which stay as they are."""
    left = max(cpu, 0)
    idle = 0
    whole = 0
    part = 0
    lost = 0.0
    expected = 0.0
    for each in free:
        idle += each
        if each == 1000:
            whole += 1
        elif each > 0:
            part += 1
            lost += known.loss[each]
            expected += known.expected_loss[each]
    gpus = idle / 1000.0
    for i in range(len(CORES)):
        out[FIRST_ST + i] = max(0.0, gpus - left / (1000.0 * CORES[i]))
    out[SURPLUS] = max(0.0, left - known.rho * gpus) / known.rho
    out[UFILL] = lost
    out[VFILL] = expected
    out[NFULL] = float(whole)
    out[NPART] = float(part)
    out[LOGR] = abs(math.log((left + 2000.0) / (known.rho * (idle + 200.0) / 1000.0)))
    out[SQRT_RC] = math.sqrt(float(idle) * float(left)) / 20000.0


def action_of(
    cpu: int, idle: int, before: Any, after: Any, pods: int, gpus: int, left: int, equal: int, others: int, out: Any
) -> None:
    """The action terms; `cpu` and `idle` are what is left after the placement, `before` and `after` the state terms.

    `left` is what the chosen device has left, −1 but for shares; `equal` and `others` are the GPU pods on the node of
    the pod's size and of other sizes, both 0 for pods without GPU.
    """
    out[CPU_LEFT] = cpu / FULL_CPU
    out[GPU_LEFT] = idle / FULL_GPU
    out[CPU_TIMES_GPU] = out[CPU_LEFT] * out[GPU_LEFT]
    out[EMPTY] = 1.0 if pods == 0 else 0.0
    out[ALL_FREE] = 1.0 if gpus > 0 and before[NFULL] == gpus else 0.0
    out[OPENED] = 1.0 if left >= 0 and after[NFULL] < before[NFULL] else 0.0
    out[LEFT_ON_DEVICE] = max(left, 0) / 1000.0
    out[LEFT_SQUARED] = out[LEFT_ON_DEVICE] * out[LEFT_ON_DEVICE]
    out[NOTHING_LEFT] = 1.0 if idle == 0 else 0.0
    out[NUMBER] = gpus / 8.0
    out[OWN_SIZE] = 1.0 if equal > 0 and others == 0 else 0.0
    out[OTHER_SIZES] = 1.0 if others > 0 else 0.0
    out[LOGR_AFTER] = after[LOGR]
    out[FRAGMENTED_AFTER] = after[FRAGMENTED]
    out[ST12_AFTER] = after[ST12]


def weighed(before: Any, after: Any, action: Any, weights: Any) -> float:
    """The part of a score that the node's state and the placement give."""
    total = 0.0
    for i in range(STATES):
        if weights[i] != 0.0:
            total += weights[i] * (before[i] - after[i])
    for i in range(ACTIONS):
        if weights[STATES + i] != 0.0:
            total += weights[STATES + i] * action[i]
    return total


# Many nodes: cpu[nodes], free[devices, nodes]


def states_of(cpu: Ints, free: Ints, known: Knowledge) -> Floats:
    """float64[state terms, nodes]; F, Fg, H, Hf and Hg are 0."""
    left = np.maximum(cpu, 0)
    idle = free.sum(axis=0)
    gpus = idle / 1000.0
    out = np.zeros((STATES, len(cpu)))
    for i, cores in enumerate(CORES):
        out[FIRST_ST + i] = np.maximum(0.0, gpus - left / (1000.0 * cores))
    out[SURPLUS] = np.maximum(0.0, left - known.rho * gpus) / known.rho
    for device in free:  # one by one, so that they add up in the order of `state_of`
        out[UFILL] += known.loss[device]
        out[VFILL] += known.expected_loss[device]
    out[NFULL] = (free == WHOLE).sum(axis=0)
    out[NPART] = ((free > 0) & (free < WHOLE)).sum(axis=0)
    out[LOGR] = np.abs(np.log((left + 2000.0) / (known.rho * (idle + 200.0) / 1000.0)))
    out[SQRT_RC] = np.sqrt(idle.astype(np.float64) * left) / 20000.0
    return out


def actions_of(
    cpu: Ints, idle: Ints, before: Floats, after: Floats, pods: Ints, gpus: Ints, left: Ints, equal: Ints, others: Ints
) -> Floats:
    """float64[action terms, nodes]."""
    lo = np.maximum(left, 0) / 1000.0
    first, second = cpu / FULL_CPU, idle / FULL_GPU
    return np.array(
        [
            first,
            second,
            first * second,
            pods == 0,
            (gpus > 0) & (before[NFULL] == gpus),
            (left >= 0) & (after[NFULL] < before[NFULL]),
            lo,
            lo * lo,
            idle == 0,
            gpus / 8.0,
            (equal > 0) & (others == 0),
            others > 0,
            after[LOGR],
            after[FRAGMENTED],
            after[ST12],
        ]
    )


def weighed_all(before: Floats, after: Floats, action: Floats, weights: Floats) -> Floats:
    """The same as `weighed` of many nodes."""
    total = np.zeros(before.shape[1])
    for i in range(STATES):
        if weights[i] != 0.0:
            total += weights[i] * (before[i] - after[i])
    for i in range(ACTIONS):
        if weights[STATES + i] != 0.0:
            total += weights[STATES + i] * action[i]
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
