"""Scores one node for one shape of pods, in compiled code: a learned policy, FGD and the other published rules.

The scores are those of the plugins, and tests compare them decision by decision. Of the devices that suffice for a
share, each amount left is tried, rising; the first of the best is taken, and of devices with that much left the first.
"""

from __future__ import annotations

from typing import NamedTuple

from podium_lab.learning.extra import compiled, inlined
from podium_lab.learning.kernel_state import NOT_FEASIBLE, ClassTable, Floats, Ints, KernelNodes, KernelShapes
from podium_plugins.gpu.knowledge import Knowledge
from podium_plugins.gpu.terms import (
    FRAGMENTED,
    FRAGMENTED_BY_GPU,
    HOSTED,
    HOSTED_BY_GPU,
    HOSTED_FRACTIONS,
    action_of,
    plain_state,
    state_of,
    weighed,
)

LEARNED, FGD, BEST_FIT, DOT_PROD, PACKING, CLUSTERING, RANDOM = range(7)
"""Rules that the kernel knows."""

for _each in (plain_state, state_of, action_of, weighed):
    inlined(_each)


class KernelNetwork(NamedTuple):
    """The numbers of `plugins.learned.network`; a policy without a network has no units."""

    first: Floats
    bias: Floats
    second: Floats
    pooled: Floats
    second_bias: Floats
    last: Floats


class Rule(NamedTuple):
    """How nodes are scored; weights are of a learned policy."""

    kind: int
    weights: Floats
    """float64[groups, terms]"""
    offset: float
    scale: float
    limits: Ints
    """How much F, times the typical pods, must shrink for a score of 1, 2, …, 99 (FGD)."""
    network: KernelNetwork


class Scratch(NamedTuple):
    """Room for what is worked out about one node, and what was worked out about nodes as they are."""

    state: Floats
    """float64[nodes, state terms]"""
    amount: Ints
    """int64[nodes]: F times the typical pods."""
    stamp: Ints
    """int64[nodes]: the version that these are of."""
    after: Floats
    action: Floats
    devices: Ints
    amounts: Ints


@compiled
def fragmented(cpu: int, free: Ints, model: int, table: ClassTable, out: Ints) -> None:
    """F and Fg of a node: times the typical pods, and times the GPU they ask for."""
    idle = 0
    for each in free:
        idle += each
    out[0] = table.all_pods * idle
    out[1] = table.all_gpu * idle
    if idle == 0:
        return
    milli = -1
    number = 0
    usable = 0
    for i in range(len(table.milli)):
        if table.milli[i] != milli:  # classes stand sorted by it
            milli = table.milli[i]
            number = 0
            usable = 0
            for each in free:
                if each >= milli:
                    number += 1
                    usable += each
            if number == 0:
                return
        if number >= table.number[i] and table.allowed[i, model]:
            fitting = -1
            for j in range(table.first[i], table.first[i + 1]):
                if table.cpu[j] > cpu:
                    break
                fitting = j
            if fitting >= 0:
                out[0] -= table.pods[fitting] * usable
                out[1] -= table.gpu[fitting] * usable


@compiled
def hosted(cpu: int, free: Ints, model: int, table: ClassTable, out: Floats) -> None:
    """H, Hf and Hg of a node."""
    out[HOSTED] = 0.0
    out[HOSTED_FRACTIONS] = 0.0
    out[HOSTED_BY_GPU] = 0.0
    left = max(cpu, 0)
    for i in range(len(table.milli)):
        if not table.allowed[i, model]:
            continue
        copies = 0
        for each in free:
            copies += each // table.milli[i]
        copies //= table.number[i]
        if copies == 0:
            continue
        gpu = table.milli[i] * table.number[i] / 1000.0
        before = 0
        for j in range(table.first[i], table.first[i + 1]):
            pods = table.pods[j] - before
            before = table.pods[j]
            ask = max(table.cpu[j], 1)
            many = min(copies, left // ask) * gpu
            out[HOSTED] += pods / table.all_pods * many
            out[HOSTED_FRACTIONS] += pods / table.all_pods * (min(float(copies), left / ask) * gpu)
            out[HOSTED_BY_GPU] += pods * (table.milli[i] * table.number[i]) / table.all_gpu * many


@compiled
def state(
    cpu: int, free: Ints, model: int, table: ClassTable, known: Knowledge, hosts: bool, amounts: Ints, out: Floats
) -> None:
    """All state terms of a node."""
    fragmented(cpu, free, model, table, amounts)
    out[FRAGMENTED] = amounts[0] / (table.all_pods * 1000.0)
    out[FRAGMENTED_BY_GPU] = amounts[1] / (table.all_gpu * 1000.0)
    state_of(cpu, free, known, out)
    if hosts:
        hosted(cpu, free, model, table, out)


@compiled
def learned_score(
    n: int,
    s: int,
    devices: Ints,
    left: int,
    nodes: KernelNodes,
    shapes: KernelShapes,
    table: ClassTable,
    known: Knowledge,
    rule: Rule,
    hosts: bool,
    scratch: Scratch,
) -> float:
    """The part of a learned score that a node's state and the placement give, with devices as they would be."""
    cpu = nodes.cpu[n] - shapes.cpu[s]
    state(cpu, devices, nodes.model[n], table, known, hosts, scratch.amounts, scratch.after)
    idle = 0
    for each in devices:
        idle += each
    equal = 0
    others = 0
    if shapes.gpus[s] > 0:
        size = shapes.gpus[s] if shapes.milli[s] == 1000 else 0
        for i in range(nodes.sizes.shape[1]):
            if i == size:
                equal += nodes.sizes[n, i]
            else:
                others += nodes.sizes[n, i]
    before = scratch.state[n]
    action_of(cpu, idle, before, scratch.after, nodes.pods[n], nodes.gpus[n], left, equal, others, scratch.action)
    total: float = weighed(before, scratch.after, scratch.action, rule.weights[shapes.group[s]])
    return total


@compiled
def fgd_score(
    cpu: int, devices: Ints, model: int, before: int, table: ClassTable, limits: Ints, scratch: Scratch
) -> float:
    fragmented(cpu, devices, model, table, scratch.amounts)
    gain = before - scratch.amounts[0]
    low = 0
    high = len(limits)
    while low < high:
        middle = (low + high) // 2
        if gain < limits[middle]:
            high = middle
        else:
            low = middle + 1
    return float(low)


@compiled
def plain_score(n: int, s: int, nodes: KernelNodes, shapes: KernelShapes, rule: Rule) -> float:
    """The scores that look at no typical pod."""
    idle = 0
    whole = 0
    least = 1000
    for i in range(nodes.gpus[n]):
        each = nodes.free[n, i]
        idle += each
        if each == 1000:
            whole += 1
        if each >= shapes.milli[s]:
            least = min(least, each)
    gpu = shapes.gpus[s] * shapes.milli[s]
    if rule.kind == BEST_FIT:
        raw = 100 * 128_000 - 50 * (nodes.cpu[n] - shapes.cpu[s]) - 800 * (idle - gpu)
        return float(raw // 128_000) if raw >= 0 else float(-(-raw // 128_000))
    if rule.kind == DOT_PROD:
        # 100·(1 − x/2) with x = (C·c)/128000² + (R·kd)/8000², in whole numbers, toward zero.
        raw = 2 * 128_000 * 128_000 - nodes.cpu[n] * shapes.cpu[s] - 256 * idle * gpu
        return float(100 * raw // (2 * 128_000 * 128_000))
    if gpu == 0 or rule.kind == RANDOM:
        return 0.0
    if rule.kind == PACKING:
        if whole == nodes.gpus[n]:
            return float(max(33 - nodes.gpus[n], 0))
        if least == 1000:
            return float(max(50 - shapes.gpus[s], 33))
        return float(max(100 - least // 100, 50))
    size = shapes.gpus[s] if shapes.milli[s] == 1000 else 0
    equal = nodes.sizes[n, size]
    pods = 0
    for i in range(nodes.sizes.shape[1]):
        pods += nodes.sizes[n, i]
    used = float(25 * (8000 - idle) // 8000)
    if pods == 0:
        return used + 25.0
    if equal == pods:
        return used + 75.0
    return used + 50.0 if equal > 0 else used


@compiled
def evaluate(
    n: int,
    s: int,
    nodes: KernelNodes,
    shapes: KernelShapes,
    table: ClassTable,
    known: Knowledge,
    rule: Rule,
    hosts: bool,
    scratch: Scratch,
) -> tuple[float, int]:
    """The score of a node (NOT_FEASIBLE where the pod does not fit) and what the device of a share has left before."""
    width = nodes.gpus[n]
    gpus = shapes.gpus[s]
    milli = shapes.milli[s]
    if nodes.cpu[n] < shapes.cpu[s] or nodes.slots[n] <= nodes.pods[n]:
        return NOT_FEASIBLE, -1
    free = nodes.free[n, :width]
    if gpus > 0:
        number = 0
        for each in free:
            if each >= milli:
                number += 1
        if number < gpus:
            return NOT_FEASIBLE, -1
    if rule.kind >= BEST_FIT:
        return plain_score(n, s, nodes, shapes, rule), -1
    cpu = nodes.cpu[n] - shapes.cpu[s]
    model = nodes.model[n]
    devices = scratch.devices[:width]
    for i in range(width):
        devices[i] = free[i]
    if scratch.stamp[n] != nodes.version[n]:
        scratch.stamp[n] = nodes.version[n]
        state(nodes.cpu[n], free, model, table, known, hosts, scratch.amounts, scratch.state[n])
        scratch.amount[n] = scratch.amounts[0]
    before = scratch.amount[n]
    if gpus == 0 or milli == 1000:
        missing = gpus
        for i in range(width):
            if missing > 0 and devices[i] == 1000:
                devices[i] = 0
                missing -= 1
        if rule.kind == FGD:
            return fgd_score(cpu, devices, model, before, table, rule.limits, scratch), -1
        return learned_score(n, s, devices, -1, nodes, shapes, table, known, rule, hosts, scratch), -1
    best = NOT_FEASIBLE
    chosen = -1
    tried = milli - 1
    while True:  # every amount that suffices, rising
        least = 1001
        device = -1
        for i in range(width):
            if tried < free[i] < least:
                least = free[i]
                device = i
        if device < 0:
            return best, chosen
        tried = least
        devices[device] = least - milli
        if rule.kind == FGD:
            score = fgd_score(cpu, devices, model, before, table, rule.limits, scratch)
        else:
            score = learned_score(n, s, devices, least - milli, nodes, shapes, table, known, rule, hosts, scratch)
        devices[device] = least
        if score > best:
            best = score
            chosen = least
