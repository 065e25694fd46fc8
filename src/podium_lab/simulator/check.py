"""Checks a scenario without running it: schedulers get their clusters, every file is read, the first pods are made."""

from __future__ import annotations

from itertools import islice

from podium.plugins import load_registry
from podium_lab.simulator.nodes import gpu_capacity
from podium_lab.simulator.profiles import configuration
from podium_lab.simulator.run import SimulatedRun
from podium_lab.simulator.sweep import Plan
from podium_lab.simulator.workload import arrivals

MOST = 1_000_000
"""Pods that are counted."""


def check_files(planned: Plan) -> tuple[str, int]:
    """How many pods the first run has, in words, and how many nodes there are; raises what a run would raise."""
    loaded, registry = planned.loaded, load_registry(planned.plugins)
    nodes = []
    for contender in {job.contender.name: job.contender for job in planned.jobs}.values():
        config = configuration(loaded, contender, registry)
        nodes = SimulatedRun(loaded, contender.name, planned.jobs[0].seed, config, registry).set_up()
    pods = sum(1 for _ in islice(arrivals(loaded, planned.jobs[0].seed, gpu_capacity(nodes)), MOST))
    return f"{pods:,} pods" if pods < MOST else f"more than {MOST:,} pods", len(nodes)
