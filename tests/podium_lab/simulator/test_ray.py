"""A sweep on two Ray nodes gives what a sweep on this machine gives, also when one of them is lost."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from podium_lab.simulator import ScenarioError, simulate
from podium_lab.simulator.run import RunResult
from tests.podium_lab.simulator.scenarios import SMALL

TEXT = SMALL.replace("count: 60", "count: 1500") + "profiles:\n- {name: a}\n- {name: b}\nseeds: 1-4\n"


@pytest.fixture
def two_nodes(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Any, Any]]:
    """A Ray cluster of a head and one more node, each of one core."""
    pytest.importorskip("ray", reason="Ray is not installed (the extra podium[ray])")
    cluster = import_module("ray.cluster_utils").Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    other = cluster.add_node(num_cpus=1)
    monkeypatch.setenv("RAY_ADDRESS", cluster.address)
    try:
        yield cluster, other
    finally:
        cluster.shutdown()


@pytest.mark.filterwarnings("ignore")
def test_losing_a_node_changes_nothing(two_nodes: tuple[Any, Any], tmp_path: Path) -> None:
    cluster, other = two_nodes
    file = tmp_path / "scenario.yaml"
    file.write_text(TEXT)

    def lose_one(number: int, _run: RunResult) -> None:
        if number == 2:
            cluster.remove_node(other, allow_graceful=False)

    on_ray = simulate(file, engine="ray", finished=lose_one)
    here = simulate(file)
    assert len(on_ray.runs) == on_ray.planned == 8
    assert [run.table.tobytes() for run in on_ray.runs] == [run.table.tobytes() for run in here.runs]


@pytest.mark.filterwarnings("ignore")
def test_a_mistake_is_told_as_on_this_machine(two_nodes: tuple[Any, Any], tmp_path: Path) -> None:
    file = tmp_path / "scenario.yaml"
    file.write_text(TEXT + "faults: [{kind: join, group: {openb: nowhere.csv}}]\n")
    with pytest.raises(ScenarioError, match=r"nowhere\.csv: no such file"):
        simulate(file, engine="ray")
