"""The kernel decides as engine and plugins do, pod by pod."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("numba")

from podium_lab.learning.judge import scorer_of
from podium_lab.learning.kernel import RULES, KernelRun, Scorer, plan_of
from podium_lab.learning.kernel_state import KernelPod
from podium_lab.learning.lists import NODE_LIST, find_list, find_nodes, node_specs, pod_spec, static_plan
from podium_plugins.gpu.request import GpuRequest
from tests.podium_lab.learned.policies import network_policy, random_policy, written
from tests.podium_lab.learning.engine_decisions import engine_decisions, kernel_decisions
from tests.podium_lab.learning.lists import write_lists

pytestmark = pytest.mark.long  # compiling takes most of the time

SEED = 7


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_lists(tmp_path_factory.mktemp("lists"))


@pytest.mark.parametrize("ties", ["fixed", "heap"])
@pytest.mark.parametrize("knowledge", ["workload", "counted"])
@pytest.mark.parametrize("policy", [1, 2])
def test_learned_decisions_are_those_of_the_plugin(data: Path, ties: str, knowledge: str, policy: int) -> None:
    given = random_policy(policy)
    file = written(data / f"policy-{policy}.json", given)
    args = {"policy": str(file), "knowledge": knowledge, "firstOfEquals": ties == "fixed"}
    engine = engine_decisions(data, NODE_LIST, "openb_pod_list_made.csv", SEED, "LearnedScore", args)
    pods = find_list("made", data)
    plan = static_plan(node_specs(find_nodes(data)), pods.pods, SEED)
    run = KernelRun(plan, Scorer(given.matrix(), 50.0, 25.0), ties, SEED)
    run.static(pods.workload if knowledge == "workload" else None)
    assert kernel_decisions(plan, run, pods.pods, SEED) == engine
    assert 100 < len(engine) < len(plan.gpu)


@pytest.mark.parametrize("ties", ["fixed", "heap"])
@pytest.mark.parametrize("seed", [1, 2])
def test_decisions_of_a_network_are_those_of_the_plugin(data: Path, ties: str, seed: int) -> None:
    given = network_policy(seed)
    file = written(data / f"network-{seed}.json", given)
    args = {"policy": str(file), "knowledge": "workload", "firstOfEquals": ties == "fixed"}
    engine = engine_decisions(data, NODE_LIST, "openb_pod_list_made.csv", SEED, "LearnedScore", args)
    pods = find_list("made", data)
    plan = static_plan(node_specs(find_nodes(data)), pods.pods, SEED)
    run = KernelRun(plan, scorer_of(given), ties, SEED)
    run.static(pods.workload)
    found = kernel_decisions(plan, run, pods.pods, SEED)
    assert found == engine
    linear = KernelRun(plan, Scorer(given.matrix(), 50.0, 25.0), ties, SEED)
    linear.static(pods.workload)
    assert kernel_decisions(plan, linear, pods.pods, SEED) != found, "the network decides nothing"


@pytest.mark.parametrize("knowledge", ["workload", "counted"])
def test_decisions_do_not_depend_on_pods_that_come_later(data: Path, knowledge: str) -> None:
    """All pods after the 60th are others: the first 60 decisions stay, with a policy, with a network."""
    specs = node_specs(find_nodes(data))
    pods = [pod_spec(pod) for pod in find_list("made", data).pods]
    known = find_list("made", data).workload if knowledge == "workload" else None
    others = [*pods[:60], *[KernelPod(1000, 10, GpuRequest(4, 1000))] * 30]
    for policy in (random_policy(3), network_policy(3)):
        found = []
        for sequence in (pods, others):
            run = KernelRun(plan_of(specs, sequence), scorer_of(policy), "fixed")
            run.static(known)
            found.append((run.chosen[:60].tolist(), run.devices[:60].tolist()))
        assert found[0] == found[1]


@pytest.mark.parametrize("rule", sorted(set(RULES) - {"Random"}))
def test_published_rules_decide_as_their_plugins(data: Path, rule: str) -> None:
    plugin = "Gpu" + rule.removeprefix("Gpu")
    args = {"typicalPods": "workload"} if rule == "FGD" else None
    engine = engine_decisions(data, NODE_LIST, "openb_pod_list_made.csv", SEED, plugin, args)
    pods = find_list("made", data)
    plan = static_plan(node_specs(find_nodes(data)), pods.pods, SEED)
    run = KernelRun(plan, rule, "fixed", SEED)
    run.static(pods.workload)
    assert kernel_decisions(plan, run, pods.pods, SEED) == engine
