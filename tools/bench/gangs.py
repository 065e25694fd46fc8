"""Defines workloads about gangs: PodGroups of scheduling.x-k8s.io, with Coscheduling enabled.

Gangs of 100 arrive one after another; one gang of 1,000 comes in batches, so that most of it waits for the last
members; and a gang that never fits is in the way of pods that do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from podium.kube import Pod
from podium.kube.custom_object import POD_GROUP_LABEL
from podium_plugins.coscheduling.pod_group import RESOURCE
from tools.bench.loop import WorkloadRun
from tools.bench.operations import Count, CreateNodes, CreatePods, Step, WorkloadPlan
from tools.bench.templates import CREATED, POD, Maker, pod_template, small_pod
from tools.bench.workload import case

GANG = "gang"

CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    multiPoint:
      enabled: [{name: Coscheduling}]
      disabled: [{name: PrioritySort}]
"""

MEMBER = small_pod(labels={POD_GROUP_LABEL: GANG})
HUGE = {"cpu": "1000"}
HUGE_MEMBER = pod_template("huge-<index>", requests=HUGE, limits=HUGE, labels={POD_GROUP_LABEL: GANG})


@dataclass(frozen=True)
class CreateGangs:
    """Gangs of equal size, each in a namespace of its own: the PodGroup first, then its pods."""

    gangs: Count
    pods: Count
    template: Maker[Pod] = MEMBER
    measured: bool = True
    prefix: str = "gang"
    wait: bool = True

    def prepare(self, plan: WorkloadPlan) -> Step:
        gangs, pods = plan.count(self.gangs), plan.count(self.pods)
        size = max(1, pods // gangs)
        names = [f"{self.prefix}-{number}" for number in range(gangs)]
        arrivals: list[tuple[Any, ...]] = [
            (self.template.make(index, size, name),) for name in names for index in range(size)
        ]
        return lambda run: self._run(run, names, size, arrivals)

    def _run(self, run: WorkloadRun, names: Sequence[str], size: int, arrivals: Sequence[tuple[Any, ...]]) -> None:
        for name in names:
            meta = {"name": GANG, "namespace": name, "creationTimestamp": CREATED}
            run.scheduler.intake.set_custom(RESOURCE, f"{name}/{GANG}", {"metadata": meta, "spec": {"minMember": size}})
        run.arrive(arrivals, measured=self.measured, wait=self.wait)


GANGS = (
    *case(
        "Gangs",
        [CreateNodes("nodes"), CreatePods("init", POD), CreateGangs("gangs", "measured")],
        {
            "5000Nodes_100Gangs_10000Pods": {"nodes": 5000, "init": 1000, "gangs": 100, "measured": 10_000},
            "5000Nodes_1Gang_1000Pods": {"nodes": 5000, "init": 1000, "gangs": 1, "measured": 1000},
        },
        config=CONFIG,
    ),
    *case(
        "GangThatNeverFits",
        [
            CreateNodes("nodes"),
            CreateGangs("gangs", "waiting", HUGE_MEMBER, measured=False, prefix="huge", wait=False),
            CreatePods("measured", POD, measured=True),
        ],
        {"5000Nodes_10000Pods": {"nodes": 5000, "gangs": 1, "waiting": 100, "measured": 10_000}},
        config=CONFIG,
    ),
)
