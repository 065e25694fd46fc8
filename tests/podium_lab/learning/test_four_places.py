"""One state, one policy: plugin, extender agent, kernel of the simulation and environment give the same points."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest

pytest.importorskip("numba")
pytest.importorskip("gymnasium")

from podium_lab.learned import LearnedScore
from podium_lab.learned.policy_file import Calibration
from podium_lab.learning.env import FEATURES, Episode
from podium_lab.learning.kernel import KernelRun, Scorer, plan_of
from podium_lab.learning.kernel_choice import account, refresh, renew_prices
from podium_lab.learning.kernel_state import KernelNode, KernelPod
from podium_plugins.gpu.knowledge import PRICE_STEP
from podium_plugins.gpu.request import GpuRequest
from podium_plugins.gpu.terms import GROUPS, TERMS
from tests.podium.extender.questions import World
from tests.podium.plugins.ask import raw_scores
from tests.podium_lab.learned.policies import random_policy, written
from tests.podium_plugins.gpu_share.gpu_worlds import gpu_node, gpu_pod
from tools.kit.builders import make_cluster, make_plugin

pytestmark = pytest.mark.long  # compiling takes most of the time

NODES = [("n1", 8, 96, "T4"), ("n2", 2, 32, "P100"), ("n3", 4, 16, "G2"), ("n4", 1, 8, "T4")]
KNOWN = [
    {"cpu": 4, "gpuCount": 1, "gpuMilli": 500, "pods": 4},
    {"cpu": 8, "gpuCount": 1, "gpuCardModels": ["T4"], "pods": 3},
]
WORKLOAD = {(4000, GpuRequest(1, 500)): 4, (8000, GpuRequest(1, 1000, ("T4",))): 3}


RUNNING = [("n1", 300, 1, 3, "0"), ("n1", 1000, 1, 2, "1"), ("n2", 1000, 1, 8, "0"), ("n3", 460, 1, 4, "0")]
"""Pods that run already: node, thousandths, GPUs, cores, devices."""


@pytest.mark.parametrize("running", [[], RUNNING], ids=["empty", "in use"])
@pytest.mark.parametrize("seed", range(3))
def test_four_places_agree(seed: int, running: list[tuple[str, int, int, int, str]], tmp_path: Path) -> None:
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
    there = [
        gpu_pod(f"there-{i}", milli, gpus, cpu=cpu, devices=devices, node=node)
        for i, (node, milli, gpus, cpu, devices) in enumerate(running)
    ]
    cluster = make_cluster(made, there)
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
    for pod in there:
        world.cluster.set_pod(pod)
    extender = world.points("/learned/prioritize", gpu_pod("arrives", 500, 1, cpu=4), names=[each[0] for each in NODES])
    assert extender == {name: (score + 5) // 10 for name, score in scheduler.items()}

    nodes = [KernelNode(name, 1000 * cpu, 1 << 20, gpus, model) for name, gpus, cpu, model in NODES]
    names = [each[0] for each in NODES]
    before = [KernelPod(1000 * cpu, 1, GpuRequest(gpus, milli)) for _, milli, gpus, cpu, _ in running]
    pods = [*before, *[KernelPod(4000, 1, GpuRequest(1, 500))] * 2]
    scorer = Scorer(weights, 50.0, 5.0)
    plan = plan_of(nodes, pods)
    run = KernelRun(plan, scorer, "fixed")
    sequence, _, state, shapes, table, known, rule, hosts, scratch, memory = run.arguments(WORKLOAD, 10)
    for i, (node, _, _, _, devices) in enumerate(running):
        n, shape = names.index(node), int(sequence.shape[i])
        state.free[n, int(devices)] -= running[i][1]
        account(n, shape, 1, 1, state, shapes, memory)
    renew_prices(memory, PRICE_STEP)
    shape = int(sequence.shape[len(running)])
    refresh(shape, state, shapes, table, known, rule, hosts, scratch, memory)
    prices = weights[1, TERMS.index("price")] * memory.prices[state.model]
    points = np.clip(np.floor(50.0 + 5.0 * (memory.base[shape] + prices) + 0.5), 0, 100)
    assert dict(zip(names, points.astype(int).tolist(), strict=True)) == scheduler

    shown, mask = np.zeros((len(NODES), FEATURES), dtype=np.float32), np.zeros(len(NODES), dtype=np.bool_)
    episode = Episode(plan, WORKLOAD, scorer, shown, mask)
    for node, *_ in running:
        episode.step(names.index(node))
    columns = [*range(35), TERMS.index("price")]
    points = np.clip(np.floor(50.0 + 5.0 * (shown.astype(float) @ weights[1, columns]) + 0.5), 0, 100)
    assert dict(zip(names, points.astype(int).tolist(), strict=True)) == scheduler
