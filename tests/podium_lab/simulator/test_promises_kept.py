"""Promises kept in simulated runs: where all of them fit, every controller gets about its share, whatever the measure.

The workloads are of the kind of the published experiments, and none of them: drawn here, or as small as can be.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from podium.plugins import load_registry
from podium_lab.simulator import simulate
from podium_lab.simulator.profiles import configuration
from podium_lab.simulator.reading import read_scenario
from podium_lab.simulator.run import SimulatedRun
from podium_lab.simulator.timeline import EPOCH
from podium_plugins.qos.formulas import AGGREGATE, APPROACHES
from podium_plugins.qos.report import outcomes
from tests.podium_lab.simulator.scenarios import EXAMPLES

SCENARIO = str(EXAMPLES / "qos.yaml")
HOUR = 3600.0
SLOTS = 4
"""Pods of 0.85 CPU on one node."""


def row(at: int, number: int, klass: str, slo: float, replicas: int, approach: str, task: int = 120) -> str:
    kind = "job" if approach == AGGREGATE else "deployment"
    return f"{at},{number},{number},any,0,0,7200,-1,0.85,0.85,{klass},{slo},{kind},{replicas},9999,{approach},,{task}\n"


@pytest.mark.parametrize("approach", APPROACHES)
@pytest.mark.parametrize(("delay", "share"), [("0s", 0.95), (None, 0.90)], ids=["at once", "with start overhead"])
def test_promises_that_just_fit_are_all_but_kept(
    tmp_path: Path, approach: str, delay: str | None, share: float
) -> None:
    file = tmp_path / "four.csv"
    file.write_text("".join(row(number, number, "free", 0.5, 2, approach) for number in range(SLOTS)))
    sets = [f"workload={file}", "nodes.count=1", *([] if delay is None else [f"startDelay={delay}"])]
    loaded, registry = read_scenario(SCENARIO, sets=sets), load_registry(())
    contender = next(each for each in loaded.scenario.profiles if each.name == "QosAware")
    run = SimulatedRun(loaded, contender.name, 1, configuration(loaded, contender, registry), registry)
    run.run()
    assert run._qos is not None
    got = {each.name: each.availability for each in outcomes(run._qos.ledger.accounts.values(), EPOCH + HOUR)}
    assert len(got) == SLOTS
    assert min(got.values()) >= share * 0.5, got


def drawn(seed: int, nodes: int, approach: str) -> str:
    """Controllers that promise nine tenths of the cluster, and more pods than it has room for."""
    rng, promised = random.Random(seed), 0.0
    rows: list[str] = []
    while True:
        klass, slo = rng.choice((("batch", 0.9), ("free", 0.5), ("free", 0.5), ("free", 0.6)))
        replicas = rng.choice((1, 2, 3))
        promised += slo * replicas
        if promised > 0.9 * SLOTS * nodes:
            return "".join(rows)
        rows.append(row(len(rows), len(rows), klass, slo, replicas, approach))


@pytest.mark.parametrize("approach", APPROACHES)
def test_deficits_are_a_fifth_of_those_by_priority_at_most(tmp_path: Path, approach: str) -> None:
    file, nodes = tmp_path / "drawn.csv", 4
    file.write_text(drawn(10 + APPROACHES.index(approach), nodes, approach))
    sets = [f"workload={file}", f"nodes.count={nodes}"]
    default, promises = simulate(SCENARIO, seeds=1, sets=sets).rows()
    assert (default["profile"], promises["profile"]) == ("default", "QosAware")
    assert default["mean_deficit"] > 0.02, "pods contend"
    assert default["least_deficit"] == 0, "all promises fit"
    assert promises["mean_deficit"] <= default["mean_deficit"] / 5, (default, promises)
    assert promises["gini"] < default["gini"], (default, promises)
    assert promises["preemption_overhead"] <= 0.05, promises
