"""Defines workloads about elastic quotas: pods of a hundred namespaces, with CapacityScheduling enabled.

Each namespace has a quota that has room for all its pods, so that what is measured is the cost of looking.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from podium.kube import Pod
from podium_plugins.capacity_scheduling.quota import RESOURCE
from tools.bench.loop import WorkloadRun
from tools.bench.operations import Count, CreateNodes, CreatePods, Step, WorkloadPlan
from tools.bench.templates import CREATED, POD, Maker
from tools.bench.workload import case

CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    multiPoint:
      enabled: [{name: CapacityScheduling}]
    postFilter:
      enabled: [{name: CapacityScheduling}]
      disabled: [{name: "*"}]
"""

LARGE = {"cpu": "1000", "memory": "1000Gi"}


@dataclass(frozen=True)
class CreateQuotaPods:
    """Pods of many namespaces, one namespace after the other, each with a quota."""

    quotas: Count
    pods: Count
    template: Maker[Pod] = POD

    def prepare(self, plan: WorkloadPlan) -> Step:
        quotas, pods = plan.count(self.quotas), plan.count(self.pods)
        names = [f"quota-{number}" for number in range(quotas)]
        arrivals: list[tuple[Any, ...]] = [
            (self.template.make(index, pods, names[index * quotas // pods]),) for index in range(pods)
        ]

        def run_step(run: WorkloadRun) -> None:
            for name in names:
                meta = {"name": name, "namespace": name, "creationTimestamp": CREATED}
                quota = {"metadata": meta, "spec": {"min": LARGE, "max": LARGE}}
                run.scheduler.intake.set_custom(RESOURCE, f"{name}/{name}", quota)
            run.arrive(arrivals, measured=True, wait=True)

        return run_step


QUOTAS = case(
    "Quotas",
    [CreateNodes("nodes"), CreatePods("init", POD), CreateQuotaPods("quotas", "measured")],
    {"5000Nodes_100Quotas_10000Pods": {"nodes": 5000, "init": 1000, "quotas": 100, "measured": 10_000}},
    config=CONFIG,
)
