"""Measures what a plugin costs a decision: a configuration with it against the same one without it.

Both schedule the same workload, taking turns a hundred pods at a time, so that the ratio is about the plugin and not
about what else the machine was doing. Where a configuration is given, the bare default profile takes its turns, too.
Compared are the medians of the time per pod.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

import msgspec
from msgspec.structs import replace

from tools.bench.processes import WorkloadRequest, measure_in_turns


class CostRound(msgspec.Struct, frozen=True):
    without_us: float
    with_us: float
    ratio: float
    bare_us: float
    ratio_to_bare: float


class Cost(msgspec.Struct, frozen=True):
    """Medians over the rounds."""

    plugin: str
    workload: str
    nodes: int
    without_us: float
    with_us: float
    ratio: float
    bare_us: float
    """Of the default profile; without a configuration that is what `with_us` is of."""
    ratio_to_bare: float
    rounds: list[CostRound]


def measure_cost(
    plugin: str, request: WorkloadRequest, rounds: int, on_round: Callable[[int], None] = lambda _number: None
) -> Cost:
    """`request` is the workload with the configuration that has the plugin."""
    found = []
    for number in range(rounds):
        on_round(number)
        compared = [replace(request, without=plugin), request]
        if request.config is not None:
            compared.append(replace(request, config=None, config_source=""))
        measured = measure_in_turns(compared)
        without, with_it, bare = measured[0].p50_us, measured[1].p50_us, measured[-1].p50_us
        found.append(CostRound(without, with_it, round(with_it / without, 3), bare, round(with_it / bare, 3)))
    return Cost(
        plugin=plugin,
        workload=measured[0].workload,
        nodes=measured[0].nodes,
        without_us=median(each.without_us for each in found),
        with_us=median(each.with_us for each in found),
        ratio=median(each.ratio for each in found),
        bare_us=median(each.bare_us for each in found),
        ratio_to_bare=median(each.ratio_to_bare for each in found),
        rounds=found,
    )
