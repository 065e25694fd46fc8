"""The kernel decides as engine and plugins do, pod by pod."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("numba")

from podium.learning.kernel import RULES, KernelRun, Scorer
from podium.learning.lists import find_list, node_specs, static_plan
from podium.simulator.nodes import openb_nodes
from tests.learning.engine_decisions import engine_decisions, kernel_decisions
from tests.plugins.learned.policies import random_policy, written

SEED = 7


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A made cluster of 40 nodes, and 160 pods of all sorts."""
    folder = tmp_path_factory.mktemp("lists")
    rng = np.random.default_rng(1)
    nodes = ["sn,cpu_milli,memory_mib,gpu,model"]
    for i in range(40):
        gpus, model = int(rng.choice([1, 2, 4, 8])), rng.choice(["T4", "P100", "G2"])
        nodes.append(f"node-{i},{8000 * gpus},{32000 * gpus},{gpus},{model}")
    pods = ["name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec"]
    for i in range(160):
        kind = rng.integers(0, 4)
        count, milli = [(0, 0), (1, int(rng.choice([120, 300, 460, 810]))), (1, 1000), (int(rng.choice([2, 4])), 1000)][
            kind
        ]
        model = rng.choice(["", "", "T4", "P100|T4"]) if count else ""
        pods.append(
            f"pod-{i:03d},{int(rng.choice([1000, 4000, 7900]))},{rng.integers(1, 40) * 500},{count},{milli},{model}"
        )
    (folder / "nodes.csv").write_text("\n".join(nodes) + "\n")
    (folder / "pods.csv").write_text("\n".join(pods) + "\n")
    return folder


@pytest.mark.parametrize("ties", ["fixed", "heap"])
@pytest.mark.parametrize("knowledge", ["workload", "counted"])
@pytest.mark.parametrize("policy", [1, 2])
def test_learned_decisions_are_those_of_the_plugin(data: Path, ties: str, knowledge: str, policy: int) -> None:
    given = random_policy(policy)
    file = written(data / f"policy-{policy}.json", given)
    args = {"policy": str(file), "knowledge": knowledge, "firstOfEquals": ties == "fixed"}
    engine = engine_decisions(data, "nodes.csv", "pods.csv", SEED, "LearnedScore", args)
    pods = find_list("pods.csv", data)
    plan = static_plan(node_specs(openb_nodes(data / "nodes.csv")), pods.pods, SEED)
    run = KernelRun(plan, Scorer(given.matrix(), 50.0, 25.0), ties, SEED)
    run.static(pods.workload if knowledge == "workload" else None)
    assert kernel_decisions(plan, run, pods.pods, SEED) == engine
    assert 100 < len(engine) < len(plan.gpu)


@pytest.mark.parametrize("rule", sorted(set(RULES) - {"Random"}))
def test_published_rules_decide_as_their_plugins(data: Path, rule: str) -> None:
    plugin = "Gpu" + rule.removeprefix("Gpu")
    args = {"typicalPods": "workload"} if rule == "FGD" else None
    engine = engine_decisions(data, "nodes.csv", "pods.csv", SEED, plugin, args)
    pods = find_list("pods.csv", data)
    plan = static_plan(node_specs(openb_nodes(data / "nodes.csv")), pods.pods, SEED)
    run = KernelRun(plan, rule, "fixed", SEED)
    run.static(pods.workload)
    assert kernel_decisions(plan, run, pods.pods, SEED) == engine
