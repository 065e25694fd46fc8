"""Corrects scores by a network, in compiled code: the same as `plugins.learned.network`, node by node.

What the first layer makes of a node's terms is remembered per shape and node, as the linear score is; prices are added
when a pod is placed.
"""

from __future__ import annotations

import numpy as np

from podium_lab.learning.extra import compiled
from podium_lab.learning.kernel_score import KernelNetwork, Rule, Scratch, learned_score
from podium_lab.learning.kernel_state import Bools, ClassTable, Floats, Ints, KernelNodes, KernelShapes
from podium_plugins.gpu.knowledge import Knowledge
from podium_plugins.gpu.terms import ACTIONS, STATES


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
            added[g, unit] = network.bias[group, unit] + network.first[unit, 37] * prices[g]
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
