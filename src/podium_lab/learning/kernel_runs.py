"""Runs sequences of pods through the kernel: pods that stay (static), and pods that come and go (churn).

A static run goes in parts, so that what is known of the workload can grow between them. In a churn run pods that do not
fit are dropped, or wait: first come, first served, later ones may overtake, and the waiting are tried when a pod leaves
the node they might fit on.
"""

from __future__ import annotations

import numpy as np

from podium_lab.learning.extra import compiled
from podium_lab.learning.kernel_choice import Memory, account, choose, put
from podium_lab.learning.kernel_score import Rule, Scratch
from podium_lab.learning.kernel_state import ClassTable, Floats, Ints, KernelNodes, KernelPods, KernelShapes
from podium_plugins.gpu.knowledge import Knowledge


@compiled
def run_static(
    first: int,
    last: int,
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
    chosen: Ints,
    devices: Ints,
) -> None:
    """Place pods `first` to `last`, in order; `chosen` gets the node of each or −1, `devices` the device of shares."""
    for i in range(first, last):
        s = pods.shape[i]
        need = pods.memory[i]
        n = choose(s, need, pods.models[i], ties, nodes, shapes, table, known, rule, hosts, scratch, memory)
        chosen[i] = n
        if n >= 0:
            devices[i] = put(n, s, need, nodes, shapes, table, known, rule, hosts, scratch, memory)


@compiled
def push(times: Floats, items: Ints, size: int, time: float, item: int) -> None:
    """Put an item into a heap of so many, by time."""
    i = size
    while i > 0:
        above = (i - 1) // 2
        if times[above] <= time:
            break
        times[i] = times[above]
        items[i] = items[above]
        i = above
    times[i] = time
    items[i] = item


@compiled
def pop(times: Floats, items: Ints, size: int) -> int:
    """Take the earliest item out of a heap of so many."""
    item = items[0]
    time = times[size - 1]
    moved = items[size - 1]
    last = size - 1
    i = 0
    while True:
        below = 2 * i + 1
        if below >= last:
            break
        if below + 1 < last and times[below + 1] < times[below]:
            below += 1
        if times[below] >= time:
            break
        times[i] = times[below]
        items[i] = items[below]
        i = below
    times[i] = time
    items[i] = moved
    return int(item)


@compiled
def run_churn(
    arrival: Floats,
    lifetime: Floats,
    end: float,
    counted_from: float,
    queue: bool,
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
    chosen: Ints,
    devices: Ints,
    waited: Floats,
) -> float:
    """Place pods as they arrive; gives the mean of the GPU thousandths in use from `counted_from` to `end`.

    `chosen` gets the node of each pod or −1, `waited` how long each waited (to the end where it never got a node).
    """
    number = len(arrival)
    times = np.zeros(number + 1)
    items = np.zeros(number + 1, dtype=np.int64)
    running = 0
    waiting = np.zeros(number + 1, dtype=np.int64)
    queued = 0
    used = 0
    total = 0.0
    now = 0.0
    i = 0
    while True:
        leaves = running > 0 and (i >= number or times[0] <= arrival[i])
        if not leaves and i >= number:
            break
        at = times[0] if leaves else arrival[i]
        if at > end:
            break
        total += used * max(0.0, at - max(now, counted_from))
        now = at
        if not leaves:
            s = pods.shape[i]
            n = choose(
                s, pods.memory[i], pods.models[i], ties, nodes, shapes, table, known, rule, hosts, scratch, memory
            )
            chosen[i] = n
            if n >= 0:
                devices[i] = put(n, s, pods.memory[i], nodes, shapes, table, known, rule, hosts, scratch, memory)
                used += shapes.gpus[s] * shapes.milli[s]
                push(times, items, running, now + lifetime[i], i)
                running += 1
            elif queue:
                waiting[queued] = i
                queued += 1
            i += 1
            continue
        gone = pop(times, items, running)
        running -= 1
        s = pods.shape[gone]
        n = chosen[gone]
        free = nodes.free[n, : nodes.gpus[n]]
        used -= shapes.gpus[s] * shapes.milli[s]
        if shapes.milli[s] < 1000 and shapes.gpus[s] > 0:
            free[devices[gone]] += shapes.milli[s]
        elif shapes.gpus[s] > 0:
            give_back(free, devices[gone])
        account(n, s, pods.memory[gone], -1, nodes, shapes, memory)
        still = 0
        for j in range(queued):
            pod = waiting[j]
            s = pods.shape[pod]
            found = -1
            if fits(n, s, pods.memory[pod], pods.models[pod], nodes, shapes):
                found = choose(
                    s,
                    pods.memory[pod],
                    pods.models[pod],
                    ties,
                    nodes,
                    shapes,
                    table,
                    known,
                    rule,
                    hosts,
                    scratch,
                    memory,
                )
            if found < 0:
                waiting[still] = pod
                still += 1
                continue
            chosen[pod] = found
            devices[pod] = put(found, s, pods.memory[pod], nodes, shapes, table, known, rule, hosts, scratch, memory)
            used += shapes.gpus[s] * shapes.milli[s]
            waited[pod] = now - arrival[pod]
            push(times, items, running, now + lifetime[pod], pod)
            running += 1
        queued = still
    total += used * max(0.0, end - max(now, counted_from))
    for j in range(queued):
        waited[waiting[j]] = end - arrival[waiting[j]]
    return total / (end - counted_from)


@compiled
def give_back(free: Ints, devices: int) -> None:
    """Free whole GPUs, given as bits."""
    for i in range(len(free)):
        if devices >> i & 1:
            free[i] = 1000


@compiled
def fits(n: int, s: int, need: int, models: int, nodes: KernelNodes, shapes: KernelShapes) -> bool:
    if nodes.cpu[n] < shapes.cpu[s] or nodes.memory[n] < need or nodes.slots[n] <= nodes.pods[n]:
        return False
    if not shapes.allowed[models, nodes.model[n]]:
        return False
    number = 0
    for i in range(nodes.gpus[n]):
        if nodes.free[n, i] >= shapes.milli[s]:
            number += 1
    return bool(number >= shapes.gpus[s])
