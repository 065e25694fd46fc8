"""The scenarios in examples/ run as they are, or shortened where they are long."""

from __future__ import annotations

import pytest

from podium_lab.simulator import simulate
from tests.podium_lab.simulator.scenarios import EXAMPLES

SHORTENED = {
    "simulate/openb-sample": (),
    "simulate/azure-sample": (),
    "simulate/broker-sample": (),
    "simulate/dump-sample": (),
    "simulate/failing-nodes": ("duration=50m", "generate.count=300"),
    "qos": ("duration=3m",),
    "online": ("duration=20m", "generate.count=150"),
    "online-shift": ("duration=20m", "generate.count=150"),
    "measured-load": ("duration=20m", "generate.count=300", "nodes.count=10"),
}


@pytest.mark.parametrize("name", SHORTENED)
def test_an_example_runs(name: str) -> None:
    results = simulate(EXAMPLES / f"{name}.yaml", seeds=1, sets=SHORTENED[name])
    assert len(results.runs) == len(results.scenario.profiles)
    assert all(run.table[-1][1] > 0 for run in results.runs), "pods arrive"
    assert not [note for run in results.runs for note in run.notes if not note.startswith("faults")]


def test_every_example_is_tried() -> None:
    found = {f"simulate/{file.stem}" for file in EXAMPLES.glob("simulate/*.yaml")}
    assert found == {name for name in SHORTENED if name.startswith("simulate/")}
