"""Every workload at a size that takes no time: it must place all it measures, and do what it is known for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml

from podium.config import default_config
from podium.plugins import load_registry
from tools.bench.loop import WorkloadRun
from tools.bench.operations import Step, WorkloadPlan
from tools.bench.runner import Measurement, run_workload
from tools.bench.suite import WORKLOADS, at_nodes, by_name
from tools.bench.thresholds import NAMES_IN_1_37, THRESHOLDS
from tools.bench.workload import Workload

REGISTRY = load_registry()
CONFIG = default_config(REGISTRY)
NODES = 10


def measured(workload: Workload) -> Measurement:
    return run_workload(workload, CONFIG, REGISTRY)


def after(workload: Workload) -> WorkloadRun:
    """The run of a workload, to look into."""
    plan, steps = WorkloadPlan(workload.sizes), list[Step]()
    for plan.position, operation in enumerate(workload.operations):
        steps.append(operation.prepare(plan))
    run = WorkloadRun(CONFIG, REGISTRY, lambda _phase: None)
    for step in steps:
        step(run)
    return run


EVERY_EIGHTH = [
    pytest.param(workload, id=workload.name, marks=() if number % 8 == 0 else pytest.mark.long)
    for number, workload in enumerate(WORKLOADS)
]


@pytest.mark.parametrize("workload", EVERY_EIGHTH)
def test_every_measured_pod_is_scheduled(workload: Workload) -> None:
    # A tenth of the event workloads' pods tell as much as all.
    result = measured(workload.at(NODES if workload.grows else 4))
    assert result.scheduled == result.pods > 0
    assert result.pods_per_s > 0
    assert 0 < result.p50_us <= result.p99_us
    assert result.nodes_scored <= result.nodes + 1


@pytest.mark.parametrize("name", ["SchedulingBasic/5000Nodes_10000Pods", "AllDifferent/5000Nodes_5000Pods"])
def test_all_nodes_are_scored_by_default(name: str) -> None:
    result = measured(by_name(name).at(20))
    assert (result.nodes, result.nodes_scored) == (20, 20)


def test_a_preemptor_evicts_three_of_four_pods() -> None:
    run = after(by_name("PreemptionBasic/1000Nodes").at(5))
    placed = [placed.pod for placed in run.scheduler.cluster.pods.values()]
    assert sorted(pod.priority for pod in placed) == [0] * 5 + [10] * 5


def test_gated_pods_stay_gated() -> None:
    run = after(by_name("SchedulingWhileGated/1Node_10000GatedPods").at(NODES))
    assert run.scheduler.queue.pending().gated == 20


def test_pods_marked_for_deletion_are_not_placed() -> None:
    run = after(by_name("SchedulingDeletedPodsWithFinalizers/5000Node_5000DeletingPods").at(500))
    terminating = [pod for pod in run.api.pods.values() if pod.terminating]
    assert any(not pod.node_name for pod in terminating)
    assert any(pod.node_name for pod in terminating)


def test_daemon_pods_all_run_on_their_node() -> None:
    run = after(by_name("SchedulingDaemonset/15000Nodes").at(NODES))
    assert {pod.node_name for pod in run.api.pods.values()} == {"scheduler-perf-node"}


def test_churn_brings_pods_that_fit_nowhere() -> None:
    run = after(by_name("Unschedulable/5kNodes/100Init/10kPods").at(NODES))
    assert run.scheduler.queue.pending().unschedulable == 1


def test_hard_spreading_keeps_zones_within_the_skew() -> None:
    run = after(by_name("TopologySpreading/5000Nodes_5000Pods").at(30))
    zones = {"moon-1": 0, "moon-2": 0, "moon-3": 0}
    for placed in run.scheduler.cluster.pods.values():
        node = run.scheduler.cluster.nodes[placed.row]
        if placed.pod.labels and node is not None:
            zones[node.labels["topology.kubernetes.io/zone"]] += 1
    assert sum(zones.values()) == 30
    assert max(zones.values()) - min(zones.values()) <= 5


def test_no_two_pods_of_all_different_are_alike() -> None:
    run = after(by_name("AllDifferent/5000Nodes_5000Pods").at(300))
    pods = list(run.api.pods.values())
    assert (
        len({(str(pod.labels), str(pod.spec.affinity), str(pod.spec.containers)) for pod in pods}) == len(pods) == 600
    )
    signatures = {(facts.signature, facts.claims) for facts in map(run.scheduler.cluster.facts.of, pods)}
    assert len(signatures) == len(pods)


def test_turnover_replaces_pods_and_nodes_as_fast_as_pods_arrive() -> None:
    workload = by_name("Turnover/5000Nodes_10000Pods").at(20)
    run = after(workload)
    names = {f"scheduler-perf-{number}" for number in range(20)}
    alive = {node.name for node in run.scheduler.cluster.nodes if node is not None}
    assert len(alive) in (20, 21)
    assert len(alive & names) <= 1  # 40 pods arrived: 20 nodes came and 20 went
    assert abs(len(run.scheduler.cluster.pods) - 40) <= 8


def given(run: WorkloadRun) -> list[tuple[str, list[str]]]:
    """For each claim that has devices the node of its pod, and what each request got."""
    return sorted(
        (
            next(pod.node_name for pod in run.api.pods.values() if pod.uid == claim.status.reserved_for[0].uid),
            [f"{result.request}={result.device}" for result in claim.status.allocation.devices.results],
        )
        for claim in run.scheduler.cluster.objects.resource_claims
        if claim.status.allocation is not None
    )


def test_partitionable_backtracking_gives_back_the_device_that_is_too_large() -> None:
    run = after(by_name("PartitionableBacktracking/fast_QueueingHintsEnabled"))
    assert given(run) == [("scheduler-perf-dra-0", [f"req-0=device-{number}" for number in range(2, 9)])]


def test_first_available_takes_the_second_class_as_the_first_has_no_devices() -> None:
    run = after(by_name("FirstAvailable/fast_QueueingHintsEnabled"))
    assert sorted(given(run)) == [("scheduler-perf-dra-0", [f"req-0/sub-1=instance-{number}"]) for number in range(10)]


def test_tolerations_give_devices_all_of_which_are_tainted() -> None:
    run = after(by_name("DeviceTaintToleration/fast_QueueingHintsEnabled"))
    assert [devices for _node, devices in given(run)] == [[f"req-0=instance-{number}"] for number in range(10)]
    slices = list(run.scheduler.cluster.objects.resource_slices)
    assert all(device.taints for each in slices for device in each.spec.devices)


def test_each_pod_of_extended_resource_asks_for_a_class_of_its_own() -> None:
    run = after(by_name("ExtendedResource/fast"))
    assert len(given(run)) == 10
    asked = {
        request.exactly.device_class_name
        for claim in run.scheduler.cluster.objects.resource_claims
        for request in claim.spec.devices.requests
        if request.exactly is not None
    }
    assert asked == {f"test-class-{number}" for number in range(10)}


def test_a_measurement_says_what_kube_scheduler_must_reach_and_how_many_times_that_was() -> None:
    result = measured(by_name("SchedulingBasic/5000Nodes_10000Pods").at(NODES))
    assert result.threshold == 680
    assert result.ratio == pytest.approx(result.pods_per_s / 680, abs=0.006)
    own = measured(by_name("GpuSharing/5000Nodes_10000Pods").at(NODES))
    assert (own.threshold, own.ratio) == (None, None)


def test_thresholds_are_of_workloads_that_exist() -> None:
    assert THRESHOLDS.keys() <= {workload.name for workload in WORKLOADS}
    assert NAMES_IN_1_37.keys() <= THRESHOLDS.keys()


def test_thresholds_are_those_of_the_sources_of_1_37() -> None:
    modules = Path(os.environ.get("GOMODCACHE") or Path.home() / "go" / "pkg" / "mod")
    folder = modules / "k8s.io" / "kubernetes@v1.37.1" / "test" / "integration" / "scheduler_perf"
    if not folder.is_dir():
        pytest.skip("the sources of Kubernetes 1.37.1 are not in the cache of Go modules")
    theirs: dict[str, float] = {}
    for path in folder.rglob("performance-config.yaml"):
        for case in yaml.load(path.read_text(), Loader=yaml.CSafeLoader):
            for each in case["workloads"]:
                floor = each.get("threshold", 0)
                floor = floor.get("dra", 0) if isinstance(floor, dict) else floor
                if floor:
                    theirs[f"{case['name']}/{each['name']}"] = floor
    for workload in WORKLOADS:
        name = NAMES_IN_1_37.get(workload.name, workload.name)
        assert THRESHOLDS.get(workload.name) == theirs.get(name), workload.name


def test_workloads_about_devices_keep_their_size_unless_one_is_named() -> None:
    device = by_name("Partitionable/2000pods_100nodes")
    for patterns in ([], ["*"], ["Partition*"]):
        assert at_nodes(device, 5000, patterns) is device
    for name in ("Partitionable", device.name):
        assert at_nodes(device, 5000, [name]).sizes["slices"] == 100_000
    assert at_nodes(by_name("SchedulingBasic/5000Nodes_10000Pods"), 50, ["*"]).sizes["nodes"] == 50


def test_workloads_have_names_of_their_own() -> None:
    names = [workload.name for workload in WORKLOADS]
    assert len(names) == len(set(names))
