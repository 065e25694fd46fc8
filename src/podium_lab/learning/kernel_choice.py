"""Chooses a node for a pod, and keeps account of what nodes have left, in compiled code.

Ties: `FIXED` takes the first node, `HEAP` the one that kube-scheduler's heap gives up first, `FRESH` draws for each
pod. Prices are renewed when one of them has moved by `PRICE_STEP`.

A network corrects scores as `learned.network` does, node by node: what its first layer makes of a node's terms is
remembered per shape and node, as the linear score is; prices are added when a pod is placed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium_lab.learning.extra import compiled, inlined
from podium_lab.learning.kernel_score import (
    FGD,
    LEARNED,
    RANDOM,
    KernelNetwork,
    Rule,
    Scratch,
    evaluate,
    fgd_score,
    learned_score,
)
from podium_lab.learning.kernel_state import (
    NOT_FEASIBLE,
    Bools,
    ClassTable,
    Floats,
    Ints,
    KernelNodes,
    KernelShapes,
)
from podium_plugins.gpu.knowledge import PRICE_STEP, Knowledge, price
from podium_plugins.gpu.terms import ACTIONS, PRICE, RANK, SCAR, STATES


@compiled
def first_layer(
    n: int,
    s: int,
    wanted: int,
    nodes: KernelNodes,
    shapes: KernelShapes,
    table: ClassTable,
    known: Knowledge,
    rule: Rule,
    hosts: bool,
    scratch: Scratch,
    out: Floats,
) -> None:
    """What the first layer makes of a node; `wanted` is what the device of a share has left before, −1 for others."""
    width = nodes.gpus[n]
    devices = scratch.devices[:width]
    devices[:] = nodes.free[n, :width]
    left = -1
    if wanted >= 0:
        for i in range(width):
            if devices[i] == wanted:
                left = wanted - shapes.milli[s]
                devices[i] = left
                break
    else:
        missing = shapes.gpus[s]
        for i in range(width):
            if missing > 0 and devices[i] == 1000:
                devices[i] = 0
                missing -= 1
    learned_score(n, s, devices, left, nodes, shapes, table, known, rule, hosts, scratch)
    for unit in range(len(out)):
        weights = rule.network.first[unit]
        total = 0.0
        for i in range(STATES):
            total += weights[i] * (scratch.state[n, i] - scratch.after[i])
        for i in range(ACTIONS):
            total += weights[STATES + i] * scratch.action[i]
        out[unit] = total


@compiled
def correct(
    group: int, hidden: Floats, feasible: Bools, models: Ints, prices: Floats, network: KernelNetwork, out: Floats
) -> None:
    """What the network adds for each feasible node; `hidden` is of `first_layer`, `prices` of models, for this pod."""
    units, more = network.first.shape[0], network.second.shape[0]
    mean = np.zeros(units)
    most = np.full(units, -2.0)
    number = 0
    added = np.zeros((len(prices), units))
    for g in range(len(prices)):
        for unit in range(units):
            added[g, unit] = network.bias[group, unit] + network.first[unit, PRICE] * prices[g]
    for n in range(len(models)):
        if not feasible[n]:
            continue
        number += 1
        for unit in range(units):
            x = hidden[n, unit] + added[models[n], unit]
            h = x / (1.0 + abs(x))
            mean[unit] += h
            most[unit] = max(most[unit], h)
    context = np.zeros(more)
    for k in range(more):
        total = network.second_bias[k]
        for unit in range(units):
            total += network.pooled[k, unit] * (mean[unit] / max(number, 1))
            total += network.pooled[k, units + unit] * most[unit]
        context[k] = total
    own = np.zeros(units)
    for n in range(len(models)):
        if not feasible[n]:
            continue
        for unit in range(units):
            x = hidden[n, unit] + added[models[n], unit]
            own[unit] = x / (1.0 + abs(x))
        sum_ = 0.0
        for k in range(more):
            x = context[k]
            for unit in range(units):
                x += network.second[k, unit] * own[unit]
            sum_ += network.last[group, k] * (x / (1.0 + abs(x)))
        out[n] = sum_


FIXED, HEAP, FRESH = range(3)
TIES = {"fixed": FIXED, "heap": HEAP, "fresh": FRESH}


NDArrayU64 = NDArray[np.uint64]

inlined(price)


class Memory(NamedTuple):
    """Scores that are remembered, prices, and which nodes changed."""

    base: Floats
    """float64[shapes, nodes]"""
    stamp: Ints
    """int64[shapes, nodes]: the version that each is of."""
    by_type: Floats
    """float64[shapes, types]: of nodes that never changed."""
    cursor: Ints
    """int64[shapes]: how much of the log each has seen."""
    log: Ints
    """Nodes that changed."""
    logged: Ints
    """int64[1]: how long the log is."""
    free: Ints
    """int64[models + 1]: idle GPU by model."""
    demand: Floats
    scar: Floats
    prices: Floats
    """float64[models + 1]: as they are used."""
    random: NDArrayU64
    walk: Ints
    """The rank of each position in the walk of a heap."""
    hidden: Floats
    """float64[shapes, nodes, units]: what a network's first layer makes of nodes; without a network no units."""
    node_of_type: Ints
    """int64[shapes, types]: a node whose scores are those of `by_type`."""
    correction: Floats
    """float64[nodes]"""
    feasible: Bools


@compiled
def draw(random: NDArrayU64, below: int) -> int:
    """A random number (xorshift)."""
    x = random[0]
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    random[0] = x
    return int(((x >> np.uint64(32)) * np.uint64(below)) >> np.uint64(32))  # much quicker than a division


@compiled
def renew_prices(memory: Memory, step: float) -> None:
    """Renew all prices when one has moved."""
    total = 0
    for each in memory.free:
        total += each
    moved = False
    for g in range(len(memory.demand)):
        if abs(price(memory.demand[g], memory.free[g], total) - memory.prices[g]) >= step:
            moved = True
    if moved:
        for g in range(len(memory.demand)):
            memory.prices[g] = price(memory.demand[g], memory.free[g], total)


@compiled
def refresh(
    s: int,
    nodes: KernelNodes,
    shapes: KernelShapes,
    table: ClassTable,
    known: Knowledge,
    rule: Rule,
    hosts: bool,
    scratch: Scratch,
    memory: Memory,
) -> None:
    """Renew the scores of a shape for the nodes that changed."""
    end = memory.logged[0]
    network = memory.hidden.shape[2] > 0
    if memory.cursor[s] < 0:
        for n in range(len(nodes.cpu)):
            kind = nodes.type[n]
            if nodes.version[n] == 0 and memory.by_type[s, kind] > 2 * NOT_FEASIBLE:
                memory.base[s, n] = memory.by_type[s, kind]
                if network:
                    memory.hidden[s, n] = memory.hidden[s, memory.node_of_type[s, kind]]
            else:
                memory.base[s, n], left = evaluate(n, s, nodes, shapes, table, known, rule, hosts, scratch)
                if network and memory.base[s, n] != NOT_FEASIBLE:
                    out = memory.hidden[s, n]
                    first_layer(n, s, left, nodes, shapes, table, known, rule, hosts, scratch, out)
                if nodes.version[n] == 0:
                    memory.by_type[s, kind] = memory.base[s, n]
                    memory.node_of_type[s, kind] = n
            memory.stamp[s, n] = nodes.version[n]
    else:
        for i in range(memory.cursor[s], end):
            n = memory.log[i]
            if memory.stamp[s, n] != nodes.version[n]:
                memory.stamp[s, n] = nodes.version[n]
                memory.base[s, n], left = evaluate(n, s, nodes, shapes, table, known, rule, hosts, scratch)
                if network and memory.base[s, n] != NOT_FEASIBLE:
                    out = memory.hidden[s, n]
                    first_layer(n, s, left, nodes, shapes, table, known, rule, hosts, scratch, out)
    memory.cursor[s] = end


@compiled
def choose(
    s: int,
    need: int,
    models: int,
    ties: int,
    nodes: KernelNodes,
    shapes: KernelShapes,
    table: ClassTable,
    known: Knowledge,
    rule: Rule,
    hosts: bool,
    scratch: Scratch,
    memory: Memory,
) -> int:
    """The node for a pod of a shape that needs so much memory and accepts a set of models; −1 for none."""
    refresh(s, nodes, shapes, table, known, rule, hosts, scratch, memory)
    base = memory.base[s]
    allowed = shapes.allowed[models]
    weights = rule.weights[shapes.group[s]]
    learned = rule.kind == LEARNED
    extra = np.zeros(len(memory.prices))
    if learned:
        renew_prices(memory, PRICE_STEP)
        if shapes.gpus[s] > 0:
            for g in range(len(extra)):
                if models == 0:
                    extra[g] = weights[SCAR] * memory.scar[g] + weights[PRICE] * memory.prices[g]
                else:
                    extra[g] = weights[PRICE] * (memory.prices[g] * 0.5)
    ranked = weights[RANK] if learned else 0.0
    network = memory.hidden.shape[2] > 0
    if network:
        for n in range(len(base)):
            memory.feasible[n] = base[n] != NOT_FEASIBLE and nodes.memory[n] >= need and allowed[nodes.model[n]]
        now = np.zeros(len(memory.prices))
        if shapes.gpus[s] > 0:
            now[:] = memory.prices if models == 0 else memory.prices * 0.5
        group = shapes.group[s]
        correct(group, memory.hidden[s], memory.feasible, nodes.model, now, rule.network, memory.correction)
    best = -1.0
    chosen = -1
    feasible = 0
    equal = 0
    rank = 0
    for n in range(len(base)):
        if base[n] == NOT_FEASIBLE or nodes.memory[n] < need or not allowed[nodes.model[n]]:
            continue
        points = base[n]
        if learned:
            raw = points + extra[nodes.model[n]] + ranked * nodes.rank[n]
            if network:
                raw += memory.correction[n]
            points = np.floor(rule.offset + rule.scale * raw + 0.5)
            points = min(max(points, 0.0), 100.0)
        if chosen < 0 or points > best:
            best = points
            chosen = n
            equal = 1
            rank = memory.walk[feasible]
        elif points == best:
            if ties == HEAP and memory.walk[feasible] < rank:
                chosen = n
                rank = memory.walk[feasible]
            elif ties == FRESH:
                equal += 1
                if draw(memory.random, equal) == 0:
                    chosen = n
        feasible += 1
    return chosen


@compiled
def put(
    n: int,
    s: int,
    need: int,
    nodes: KernelNodes,
    shapes: KernelShapes,
    table: ClassTable,
    known: Knowledge,
    rule: Rule,
    hosts: bool,
    scratch: Scratch,
    memory: Memory,
) -> int:
    """Have a node hold a pod; gives the device of a share, or whole GPUs, the first free ones, as bits."""
    gpus = shapes.gpus[s]
    milli = shapes.milli[s]
    free = nodes.free[n, : nodes.gpus[n]]
    device = -1
    if gpus > 0 and milli < 1000:
        device = device_for(n, s, nodes, shapes, table, known, rule, hosts, scratch, memory)
        free[device] -= milli
    elif gpus > 0:
        missing = gpus
        device = 0
        for i in range(len(free)):
            if missing > 0 and free[i] == 1000:
                free[i] = 0
                missing -= 1
                device |= 1 << i
    account(n, s, need, 1, nodes, shapes, memory)
    return device


@compiled
def account(n: int, s: int, need: int, sign: int, nodes: KernelNodes, shapes: KernelShapes, memory: Memory) -> None:
    """Count a pod that came to a node or left it, but for its devices."""
    nodes.cpu[n] -= sign * shapes.cpu[s]
    nodes.memory[n] -= sign * need
    nodes.pods[n] += sign
    if shapes.gpus[s] > 0:
        nodes.sizes[n, shapes.gpus[s] if shapes.milli[s] == 1000 else 0] += sign
        memory.free[nodes.model[n]] -= sign * shapes.gpus[s] * shapes.milli[s]
    nodes.version[n] += 1
    memory.log[memory.logged[0]] = n
    memory.logged[0] += 1


@compiled
def device_for(
    n: int,
    s: int,
    nodes: KernelNodes,
    shapes: KernelShapes,
    table: ClassTable,
    known: Knowledge,
    rule: Rule,
    hosts: bool,
    scratch: Scratch,
    memory: Memory,
) -> int:
    """The device that a share gets."""
    free = nodes.free[n, : nodes.gpus[n]]
    milli = shapes.milli[s]
    if rule.kind == LEARNED:
        _, wanted = evaluate(n, s, nodes, shapes, table, known, rule, hosts, scratch)
        for i in range(len(free)):
            if free[i] == wanted:
                return i
    best = -1.0
    chosen = -1
    enough = 0
    for i in range(len(free)):
        if free[i] < milli:
            continue
        if rule.kind == FGD:
            devices = scratch.devices[: len(free)]
            devices[:] = free
            devices[i] -= milli
            cpu = nodes.cpu[n] - shapes.cpu[s]
            score = fgd_score(cpu, devices, nodes.model[n], scratch.amount[n], table, rule.limits, scratch)
        elif rule.kind == RANDOM:
            enough += 1
            if draw(memory.random, enough) == 0:
                chosen = i
            continue
        else:
            score = 2000.0 - free[i]
        if score > best:
            best = score
            chosen = i
    return chosen
