"""Computes what the environment shows of each node that a pod fits, in compiled code."""

from __future__ import annotations

from podium.learning.extra import compiled
from podium.learning.kernel_choice import Memory, account
from podium.learning.kernel_runs import fits
from podium.learning.kernel_score import Rule, Scratch, learned_score, state
from podium.learning.kernel_state import Bools, ClassTable, Floats, Ints, KernelNodes, KernelPods, KernelShapes
from podium.placement.gpu.knowledge import Knowledge


@compiled
def observe_nodes(
    pod: int,
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
    out: Floats,
    mask: Bools,
) -> int:
    """Fill `out` (nodes × terms) with state terms before minus after, and action terms; gives how many nodes fit."""
    s = pods.shape[pod]
    feasible = 0
    for n in range(len(nodes.cpu)):
        out[n, :] = 0.0
        mask[n] = fits(n, s, pods.memory[pod], pods.models[pod], nodes, shapes)
        if not mask[n]:
            continue
        feasible += 1
        width = nodes.gpus[n]
        free = nodes.free[n, :width]
        devices = scratch.devices[:width]
        devices[:] = free
        left = take(devices, shapes.gpus[s], shapes.milli[s])
        state(nodes.cpu[n], free, nodes.model[n], table, known, hosts, scratch.amounts, scratch.state[n])
        learned_score(n, s, devices, left, nodes, shapes, table, known, rule, hosts, scratch)
        for i in range(20):
            out[n, i] = scratch.state[n, i] - scratch.after[i]
        for i in range(15):
            out[n, 20 + i] = scratch.action[i]
        if shapes.gpus[s] > 0:
            share = 1.0 if pods.models[pod] == 0 else 0.5
            out[n, 35] = share * memory.prices[nodes.model[n]]
    return feasible


@compiled
def take(devices: Ints, gpus: int, milli: int) -> int:
    """Take GPUs of devices that suffice: whole ones from the first on, a share from the one with the least left.

    Gives what that one has left, −1 but for shares.
    """
    if gpus > 0 and milli < 1000:
        best = -1
        for i in range(len(devices)):
            if devices[i] >= milli and (best < 0 or devices[i] < devices[best]):
                best = i
        devices[best] -= milli
        return int(devices[best])
    missing = gpus
    for i in range(len(devices)):
        if missing > 0 and devices[i] == 1000:
            devices[i] = 0
            missing -= 1
    return -1


@compiled
def put_on(n: int, pod: int, pods: KernelPods, nodes: KernelNodes, shapes: KernelShapes, memory: Memory) -> None:
    """Have a node hold a pod."""
    s = pods.shape[pod]
    take(nodes.free[n, : nodes.gpus[n]], shapes.gpus[s], shapes.milli[s])
    account(n, s, pods.memory[pod], 1, nodes, shapes, memory)
