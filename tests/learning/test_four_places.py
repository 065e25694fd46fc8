"""One state, one policy: plugin, extender agent, kernel of the simulation and environment give the same points."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest

pytest.importorskip("numba")
pytest.importorskip("gymnasium")

from podium.learning.env import PlacementEnv
from podium.learning.kernel import KernelRun, Scorer, plan_of
from podium.learning.kernel_choice import refresh, renew_prices
from podium.learning.kernel_state import KernelNode, KernelPod
from podium.placement.gpu.prices import PRICE_STEP
from podium.placement.gpu.request import GpuRequest
from podium.placement.gpu.terms import GROUPS, TERMS
from podium.plugins.learned import LearnedScore
from podium.plugins.learned.policy_file import Calibration
from tests.builders import make_cluster, make_plugin
from tests.extender.questions import World
from tests.plugins.ask import raw_scores
from tests.plugins.gpu_share.gpu_worlds import gpu_node, gpu_pod
from tests.plugins.learned.policies import random_policy, written

NODES = [("n1", 8, 96, "T4"), ("n2", 2, 32, "P100"), ("n3", 4, 16, "G2"), ("n4", 1, 8, "T4")]
KNOWN = [
    {"cpu": 4, "gpuCount": 1, "gpuMilli": 500, "pods": 4},
    {"cpu": 8, "gpuCount": 1, "gpuCardModels": ["T4"], "pods": 3},
]
WORKLOAD = {(4000, GpuRequest(1, 500)): 4, (8000, GpuRequest(1, 1000, ("T4",))): 3}


@pytest.mark.parametrize("seed", range(5))
def test_four_places_agree(seed: int, tmp_path: Path) -> None:
    policy = random_policy(seed)
    weights = policy.matrix()
    for group in range(len(GROUPS)):
        weights[group, TERMS.index("rank")] = weights[group, TERMS.index("scar")] = 0.0
    weights_only = {
        name: {term: float(weights[g, t]) for t, term in enumerate(TERMS) if weights[g, t]}
        for g, name in enumerate(GROUPS)
    }
    policy = msgspec.structs.replace(policy, weights=weights_only, calibration=Calibration(50.0, 5.0))
    file = written(tmp_path / "policy.json", policy)

    made = [gpu_node(name, gpus, cpu=cpu, model=model) for name, gpus, cpu, model in NODES]
    cluster = make_cluster(made)
    plugin = make_plugin(LearnedScore, cluster, policy=str(file), knowledge=KNOWN)
    scheduler = raw_scores(plugin, gpu_pod("arrives", 500, 1, cpu=4), cluster)

    config = f"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - pluginConfig:
      - name: LearnedScore
        args: {{policy: {file}, knowledge: {msgspec.json.encode(KNOWN).decode()}}}
"""
    world = World("learned", nodes=[msgspec.to_builtins(node) for node in made], config=config)
    extender = world.points("/learned/prioritize", gpu_pod("arrives", 500, 1, cpu=4), names=[each[0] for each in NODES])
    assert extender == {name: (score + 5) // 10 for name, score in scheduler.items()}

    nodes = [KernelNode(name, 1000 * cpu, 1 << 20, gpus, model) for name, gpus, cpu, model in NODES]
    pods = [KernelPod(4000, 1, GpuRequest(1, 500))] * 2
    run = KernelRun(plan_of(nodes, pods), Scorer(weights, 50.0, 5.0), "fixed")
    _, _, state, shapes, table, known, rule, hosts, scratch, memory = run.arguments(WORKLOAD, 10)
    renew_prices(memory, PRICE_STEP)
    refresh(0, state, shapes, table, known, rule, hosts, scratch, memory)
    prices = weights[1, TERMS.index("price")] * memory.prices[state.model]
    points = np.clip(np.floor(50.0 + 5.0 * (memory.base[0] + prices) + 0.5), 0, 100)
    assert dict(zip([each[0] for each in NODES], points.astype(int).tolist(), strict=True)) == scheduler

    env = PlacementEnv(nodes, pods, workload=WORKLOAD)
    observation, _ = env.reset(seed=seed)
    names = [spec.name for spec in env._plan.specs]
    columns = [*range(35), TERMS.index("price")]
    shown = observation["nodes"].astype(float) @ weights[1, columns]
    points = np.clip(np.floor(50.0 + 5.0 * shown + 0.5), 0, 100)
    assert dict(zip(names, points.astype(int).tolist(), strict=True)) == scheduler
