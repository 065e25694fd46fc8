"""Small scenarios for tests, and the traces where they are at hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from podium.plugins import load_registry
from podium_lab.simulator.figures import COLUMNS
from podium_lab.simulator.profiles import configuration
from podium_lab.simulator.reading import LoadedScenario, load_scenario
from podium_lab.simulator.run import RunResult, SimulatedRun

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "examples"
DATA = ROOT.parent / "shared" / "data"

SMALL = """
nodes: {count: 4, allocatable: {cpu: 4, memory: 8Gi}}
workload:
  generate:
    count: 60
    interval: {exponential: 10s}
    lifetime: {exponential: 2m}
    shapes: [{requests: {cpu: 1, memory: 1Gi}}]
checkpoints: {every: 30s}
"""

COMPARED = """
nodes: {count: 6, allocatable: {cpu: 4, memory: 8Gi}}
workload:
  generate:
    count: 80
    interval: {exponential: 5s}
    lifetime: {exponential: 2m}
    shapes:
      - {name: web, weight: 4, requests: {cpu: 500m}}
      - {name: batch, requests: {cpu: 3}}
checkpoints: {every: 30s}
seeds: 1-4
profiles:
- {name: default}
- name: packed
  profile:
    pluginConfig:
    - {name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}}
- {name: the same}
"""
"""Two kinds of pods; packing lets the large ones wait less."""


def needs(name: str) -> pytest.MarkDecorator:
    """Skip where a trace is not at hand."""
    return pytest.mark.skipif(not (DATA / name).exists(), reason=f"the trace {name} is not here")


def loaded(text: str, *sets: str) -> LoadedScenario:
    return load_scenario(text, "scenario.yaml", sets=sets)


def run_one(text: str, *sets: str, seed: int = 1, profile: int = 0) -> RunResult:
    """One run of a scenario's first profile."""
    scenario, registry = loaded(text, *sets), load_registry()
    contender = scenario.scenario.profiles[profile]
    config = configuration(scenario, contender, registry)
    return SimulatedRun(scenario, contender.name, seed, config, registry).run()


def last(run: RunResult) -> dict[str, float]:
    """The figures at the end."""
    return dict(zip(COLUMNS, run.table[-1].tolist(), strict=True))


def course(run: RunResult, column: str) -> list[float]:
    values: list[float] = run.table[:, COLUMNS.index(column)].tolist()
    return values
