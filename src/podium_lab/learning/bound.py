"""Bounds what any policy can reach, with full knowledge of the list, by a linear program.

Maximised is the GPU placed of the pods that have arrived. Variables are the pods of a class (cpu, memory, GPUs, models)
on a type of node, as fractions, at most as many as there are, and only where one pod fits an empty node. Per type: cpu
and memory in total; whole-GPU pods use k GPUs each; the GPUs left to shares carry a flow on levels 0 … 100 of 10
thousandths, with an arc of length d/10 per share and arcs of loss to the end. It is a relaxation, so a true limit.

A score cannot refuse a pod that fits: "no refusal" has all pods of the first 90 % placed, which is the honest limit at
130 %; where that is infeasible there is none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from podium_lab.learning.extra import needed
from podium_lab.learning.kernel_state import KernelNode, KernelPod
from podium_lab.learning.lists import capacity_of, find_list, find_nodes, node_specs, pod_spec
from podium_lab.simulator.traces.openb import submitted
from podium_plugins.gpu.request import WHOLE

LEVELS = 100
CERTAIN = 0.9


def bounds(data: Path, pod_list: str, seed: int) -> list[dict[str, object]]:
    """Rows of limits at 100 and 130 % arrived; `gpu_allocation_pct` is None where there is none."""
    pods = find_list(pod_list, data)
    specs = node_specs(find_nodes(data))
    capacity = capacity_of(specs)
    sequence = [pod_spec(pod) for pod, _ in submitted(pods.pods, 1.3 * capacity, seed)]
    arrived = np.cumsum([pod.request.total for pod in sequence]) / capacity
    first = [pod for pod, share in zip(sequence, arrived, strict=True) if share <= CERTAIN]
    rows: list[dict[str, object]] = []
    for percent in (100, 130):
        there = [pod for pod, share in zip(sequence, arrived, strict=True) if share <= percent / 100]
        for refusal, certain in ((True, []), (False, first)):
            limit = most_gpu(specs, there, certain)
            rows.append(
                {
                    "list": pods.name,
                    "policy": "bound" if refusal else "bound without refusal",
                    "seed": seed,
                    "arrived_pct": percent,
                    "gpu_allocation_pct": None if limit is None else round(100 * limit / capacity, 4),
                }
            )
    return rows


def most_gpu(specs: Sequence[KernelNode], pods: Sequence[KernelPod], certain: Sequence[KernelPod] = ()) -> float | None:
    """The GPU thousandths that can be placed at most, with all of some pods placed; None where these do not fit."""
    sparse, optimize = needed("scipy.sparse"), needed("scipy.optimize")
    types = Counter(spec._replace(name="") for spec in specs)
    numbers = Counter(pod._replace(lifetime=0.0) for pod in pods)
    least = Counter(pod._replace(lifetime=0.0) for pod in certain)
    gain: list[float] = []
    rows: list[int] = []
    columns: list[int] = []
    values: list[float] = []
    upper: list[float] = []
    equal: list[tuple[int, int, float]] = []
    equalities = 0

    def constrain(row: int, column: int, value: float) -> None:
        rows.append(row)
        columns.append(column)
        values.append(value)

    row_of = {pod: i for i, pod in enumerate(numbers)}
    upper += [float(number) for number in numbers.values()]
    at_least = [pod for pod in numbers if least[pod]]
    row_at_least = {pod: len(upper) + i for i, pod in enumerate(at_least)}
    upper += [-float(min(least[pod], numbers[pod])) for pod in at_least]
    for spec, number in types.items():
        cpu, memory, gpus = (len(upper) + i for i in range(3))
        upper += [float(spec.cpu * number), float(spec.memory * number), float(spec.gpus * number)]
        shares: dict[int, list[int]] = {}
        for pod in numbers:
            request = pod.request
            fits = pod.cpu <= spec.cpu and pod.memory <= spec.memory and request.gpus <= spec.gpus
            if not fits or (request.models and spec.model not in request.models):
                continue
            column = len(gain)
            gain.append(-float(request.total))
            constrain(row_of[pod], column, 1.0)
            if pod in row_at_least:
                constrain(row_at_least[pod], column, -1.0)
            constrain(cpu, column, float(pod.cpu))
            constrain(memory, column, float(pod.memory))
            if request.sharing:
                shares.setdefault(request.milli * LEVELS // WHOLE, []).append(column)
            elif request.gpus:
                constrain(gpus, column, float(request.gpus))
        if not shares:
            continue
        source = len(gain)  # GPUs that are shared
        gain.append(0.0)
        constrain(gpus, source, 1.0)
        level_row = equalities
        equalities += LEVELS  # what flows into a level flows out of it, but for the last
        equal.append((level_row, source, 1.0))
        for length, pods_of in shares.items():
            total_row = equalities
            equalities += 1
            equal += [(total_row, column, -1.0) for column in pods_of]
            for level in range(LEVELS - length + 1):
                arc = len(gain)
                gain.append(0.0)
                equal.append((total_row, arc, 1.0))
                equal.append((level_row + level, arc, -1.0))
                if level + length < LEVELS:
                    equal.append((level_row + level + length, arc, 1.0))
        for level in range(LEVELS):
            equal.append((level_row + level, len(gain), -1.0))
            gain.append(0.0)
    size = len(gain)
    limits = sparse.csr_matrix((values, (rows, columns)), shape=(len(upper), size))
    flows = sparse.csr_matrix(
        ([value for _, _, value in equal], ([row for row, _, _ in equal], [column for _, column, _ in equal])),
        shape=(max(equalities, 1), size),
    )
    found = optimize.linprog(
        gain, A_ub=limits, b_ub=upper, A_eq=flows, b_eq=np.zeros(max(equalities, 1)), bounds=(0, None), method="highs"
    )
    return -float(found.fun) if found.success else None
