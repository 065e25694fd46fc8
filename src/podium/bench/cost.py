"""Measures what a plugin costs a decision: a configuration with it against the same one without it.

Both schedule the same workload, taking turns a hundred pods at a time, so that the ratio is about the plugin and not
about what else the machine was doing. Compared are the medians of the time per pod.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

import msgspec
from msgspec.structs import replace

from podium.bench.processes import WorkloadRequest, measure_in_turns


class CostRound(msgspec.Struct, frozen=True):
    without_us: float
    with_us: float
    ratio: float


class Cost(msgspec.Struct, frozen=True):
    """Medians over the rounds."""

    plugin: str
    workload: str
    nodes: int
    without_us: float
    with_us: float
    ratio: float
    rounds: list[CostRound]


def measure_cost(
    plugin: str, request: WorkloadRequest, rounds: int, on_round: Callable[[int], None] = lambda _number: None
) -> Cost:
    """`request` is the workload with the configuration that has the plugin."""
    found = []
    for number in range(rounds):
        on_round(number)
        without, with_it = measure_in_turns([replace(request, without=plugin), request])
        found.append(CostRound(without.p50_us, with_it.p50_us, round(with_it.p50_us / without.p50_us, 3)))
    return Cost(
        plugin=plugin,
        workload=with_it.workload,
        nodes=with_it.nodes,
        without_us=median(each.without_us for each in found),
        with_us=median(each.with_us for each in found),
        ratio=median(each.ratio for each in found),
        rounds=found,
    )
