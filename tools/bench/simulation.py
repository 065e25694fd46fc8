"""Measures simulations as users run them: `podium simulate` in a process of its own, one run at a time.

Placements a second count the CPU time beyond that of the same simulation with one pod: without the start of Python, the
reading of the scenario and the making of the nodes. Where a scenario cannot be cut to one pod, all CPU time counts.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec

GENERATED = """\
name: generated pods
seeds: 1
nodes: {{count: {nodes}, allocatable: {{cpu: 64, memory: 256Gi}}}}
workload:
  generate:
    count: {pods}
    interval: 1ms
    lifetime: {lifetime}
    shapes: [{{requests: {{cpu: 100m, memory: 200Mi}}}}]
"""
STAY, END = "24h", "10s"
"""Lifetimes: pods that are all there at the end, and pods that also end."""


class SimulationCost(msgspec.Struct, frozen=True):
    """What one run of a simulation took."""

    scenario: str
    profile: str
    seed: int
    placed: int
    seconds: float
    cpu_s: float
    placements_per_s: float
    peak_mb: float


class SimulationFailedError(Exception):
    """A simulation ended without an answer; the text says why."""


Tell = Callable[[str, bool], None]


def measure_generated(nodes: int, pods: int, tell: Tell) -> list[SimulationCost]:
    """Pods that a distribution draws, on empty nodes: such that stay, and such that end."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for what, lifetime in (("pods stay", STAY), ("pods end", END)):
            file, alone = Path(folder, "scenario.yaml"), Path(folder, "one-pod.yaml")
            file.write_text(GENERATED.format(nodes=nodes, pods=pods, lifetime=lifetime))
            alone.write_text(GENERATED.format(nodes=nodes, pods=1, lifetime=lifetime))
            tell(f"{nodes:,} nodes, {what}", False)
            before = _run([str(alone)])
            found.append(_cost(f"{nodes:,} nodes, {what}", _run([str(file)]), before[1]))
            tell(what, True)
    return found


def measure_scenario(
    file: str, data: str | None, sets: Sequence[str], runs: Sequence[tuple[str, int]], tell: Tell, workers: int = 1
) -> list[SimulationCost]:
    """Some profiles and seeds of a scenario, each in a process of its own, so many at a time."""
    shared = [file, *(() if data is None else ("--data", data))]
    for each in sets:
        shared += ["--set", each]

    def measured(run: tuple[str, int]) -> SimulationCost:
        profile, seed = run
        tell(f"{profile}, seed {seed}", False)
        found = _cost(Path(file).name, _run([*shared, "--profiles", profile, "--seeds", str(seed)]), 0.0)
        tell(profile, True)
        return found

    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(measured, runs))


def _run(options: Sequence[str]) -> tuple[list[dict[str, Any]], float, float, float]:
    """The rows of a simulation, its CPU seconds, wall seconds and megabytes at the peak."""
    command = [sys.executable, "-m", "podium", "simulate", *options, "--workers", "1", "--json"]
    began = time.perf_counter()
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as complaints:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=complaints)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.perf_counter() - began
        output.seek(0)
        complaints.seek(0)
        if process.returncode:
            complaint = complaints.read().decode(errors="replace").strip()
            raise SimulationFailedError(complaint or f"the simulation ended with {process.returncode}")
        rows = msgspec.json.decode(output.read(), type=list[dict[str, Any]])
    return rows, usage.ru_utime + usage.ru_stime, seconds, usage.ru_maxrss / 1024


def _cost(scenario: str, run: tuple[list[dict[str, Any]], float, float, float], before: float) -> SimulationCost:
    rows, cpu, seconds, peak = run
    last = rows[-1]
    placed = int(last["placed"])
    return SimulationCost(
        scenario,
        last["profile"],
        last["seed"],
        placed,
        round(seconds, 2),
        round(cpu, 2),
        round(placed / max(cpu - before, 1e-3), 1),
        round(peak, 1),
    )
