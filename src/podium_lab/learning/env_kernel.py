"""Goes from one pod with a choice to the next and shows the nodes that it fits, in compiled code.

Terms are remembered per shape of pods and node, as the scores of a run are: only nodes that changed are computed again.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from podium_lab.learning.extra import compiled
from podium_lab.learning.kernel_choice import Memory, put, refresh, renew_prices
from podium_lab.learning.kernel_score import KernelNetwork, Rule, Scratch
from podium_lab.learning.kernel_state import (
    NOT_FEASIBLE,
    Bools,
    ClassTable,
    Ints,
    KernelNodes,
    KernelPods,
    KernelShapes,
)
from podium_plugins.gpu.knowledge import PRICE_STEP, Knowledge
from podium_plugins.gpu.terms import ACTION, STATE, TERMS

WEIGHED = len(STATE) + len(ACTION)
NEXT, PLACED, DROPPED, GPU = range(4)
"""What `go_on` says: the next pod with a choice (behind the last: none), and pods and GPU thousandths on the way."""
Shown = NDArray[np.float32]


def showing(rule: Rule, memory: Memory) -> tuple[Rule, Memory]:
    """Have the first layer of a network, which is remembered, be the terms themselves."""
    none = np.zeros((0, 0))
    terms = KernelNetwork(np.eye(WEIGHED, len(TERMS)), none, none, none, np.zeros(0), none)
    shapes, nodes = memory.base.shape
    return rule._replace(network=terms), memory._replace(hidden=np.zeros((shapes, nodes, WEIGHED)))


@compiled
def go_on(
    pod: int,
    action: int,
    pods: KernelPods,
    ties: int,
    nodes: KernelNodes,
    shapes: KernelShapes,
    table: ClassTable,
    known: Knowledge,
    rule: Rule,
    hosts: bool,
    scratch: Scratch,
    memory: Memory,
    out: Shown,
    mask: Bools,
    counts: Ints,
) -> None:
    """Have node `action` hold a pod (−1: none yet), then go on to the next pod that fits several nodes.

    `out` gets nodes × terms of that pod, the price last, within ±100; `mask` the nodes that it fits.
    """
    counts[:] = 0
    i = pod
    if action >= 0:
        s = pods.shape[i]
        put(action, s, pods.memory[i], nodes, shapes, table, known, rule, hosts, scratch, memory)
        counts[PLACED] += 1
        counts[GPU] += shapes.gpus[s] * shapes.milli[s]
        i += 1
    while i < len(pods.shape):
        s = pods.shape[i]
        need = pods.memory[i]
        refresh(s, nodes, shapes, table, known, rule, hosts, scratch, memory)
        renew_prices(memory, PRICE_STEP)
        base = memory.base[s]
        allowed = shapes.allowed[pods.models[i]]
        feasible = 0
        only = -1
        for n in range(len(base)):
            mask[n] = base[n] != NOT_FEASIBLE and nodes.memory[n] >= need and allowed[nodes.model[n]]
            if mask[n]:
                feasible += 1
                only = n
        if feasible > 1:
            break
        if feasible == 1:
            put(only, s, need, nodes, shapes, table, known, rule, hosts, scratch, memory)
            counts[PLACED] += 1
            counts[GPU] += shapes.gpus[s] * shapes.milli[s]
        else:
            counts[DROPPED] += 1
        i += 1
    counts[NEXT] = i
    out[:, :] = 0.0
    if i >= len(pods.shape):
        mask[:] = False
        return
    s = pods.shape[i]
    half = 1.0 if pods.models[i] == 0 else 0.5
    last = out.shape[1] - 1
    for n in range(len(mask)):
        if mask[n]:
            for t in range(last):
                out[n, t] = min(max(memory.hidden[s, n, t], -100.0), 100.0)
            if shapes.gpus[s] > 0:
                out[n, last] = half * memory.prices[nodes.model[n]]
