"""Defines workloads in which plugins of the scheduler-plugins family have something to do.

AppGroups: pods of a workload that depends on another, whose pods run in 16 zones of 4 regions. In AppGroupsGrowing pods
of both come in turns, so that costs move with every second pod. SystemCalls: pods with four SeccompProfiles in turns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from podium.kube import Node, Pod
from podium_plugins import app_group
from podium_plugins.app_group import APP_GROUP_LABEL, WORKLOAD_LABEL
from podium_plugins.network_overhead import network_topology
from podium_plugins.network_overhead.network_topology import REGION
from podium_plugins.sy_sched import RESOURCE as SECCOMP_PROFILES
from tools.bench.operations import CreateNodes, CreatePods, Step, WorkloadPlan
from tools.bench.templates import ZONE, ObjectTemplate, Rotating, node_template, small_pod
from tools.bench.workload import case

ZONES: Final = 16
ZONES_OF_A_REGION: Final = 4
PROFILES: Final = 4
CALLS: Final = 300

NETWORK_CONFIG: Final = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    multiPoint:
      enabled: [{name: NetworkOverhead}]
"""
SYSTEM_CALLS_CONFIG: Final = NETWORK_CONFIG.replace("NetworkOverhead", "SySched")


@dataclass(frozen=True)
class SetCustom:
    """Custom objects that are there from the beginning: (resource, "namespace/name", object)."""

    objects: tuple[tuple[str, str, Any], ...]

    def prepare(self, plan: WorkloadPlan) -> Step:
        def run_step(run: Any) -> None:
            for resource, key, item in self.objects:
                run.scheduler.intake.set_custom(resource, key, item)

        return run_step


def _located() -> ObjectTemplate[Node]:
    return node_template(
        labels={REGION: "region-<region>", ZONE: "zone-<zone>"},
        region=lambda index, _: index % ZONES // ZONES_OF_A_REGION,
        zone=lambda index, _: index % ZONES,
    )


def _of_workload(selector: str) -> ObjectTemplate[Pod]:
    return small_pod(f"{selector}-<index>", labels={APP_GROUP_LABEL: "shop", WORKLOAD_LABEL: selector})


def _app_group() -> Any:
    back = {"kind": "Deployment", "name": "back", "selector": "back"}
    dependency = {"workload": back, "maxNetworkCost": 40}
    front = {"workload": {"kind": "Deployment", "name": "front", "selector": "front"}, "dependencies": [dependency]}
    return {"metadata": {"name": "shop", "namespace": "default"}, "spec": {"workloads": [front, {"workload": back}]}}


def _topology() -> Any:
    def costs(key: str, name: str, count: int, far: int) -> dict[str, Any]:
        names = [f"{name}-{number}" for number in range(count)]
        origins = [
            {"origin": origin, "costList": [{"destination": each, "networkCost": far} for each in names]}
            for origin in names
        ]
        return {"topologyKey": key, "originList": origins}

    lists = [costs(REGION, "region", ZONES // ZONES_OF_A_REGION, 30), costs(ZONE, "zone", ZONES, 10)]
    return {"spec": {"weights": [{"name": "UserDefined", "topologyList": lists}]}}


def _profile(number: int) -> Any:
    names = [f"call-{each}" for each in range(number * CALLS // PROFILES, number * CALLS // PROFILES + CALLS)]
    return {"spec": {"syscalls": [{"action": "SCMP_ACT_ALLOW", "names": names}]}}


def _confined(number: int) -> ObjectTemplate[Pod]:
    profile = {"type": "Localhost", "localhostProfile": f"operator/default/profile-{number}.json"}
    return small_pod(f"confined-{number}-<index>", securityContext={"seccompProfile": profile})


APP_GROUP_OBJECTS = SetCustom(
    (
        (app_group.RESOURCE, "default/shop", _app_group()),
        (network_topology.RESOURCE, "default/nt-default", _topology()),
    )
)
PROFILE_OBJECTS = SetCustom(
    tuple((SECCOMP_PROFILES, f"default/profile-{number}", _profile(number)) for number in range(PROFILES))
)
SIZES = {"5000Nodes_10000Pods": {"nodes": 5000, "init": 1000, "measured": 10_000}}

SCHEDULER_PLUGINS = (
    *case(
        "AppGroups",
        [
            APP_GROUP_OBJECTS,
            CreateNodes("nodes", _located()),
            CreatePods("init", _of_workload("back")),
            CreatePods("measured", _of_workload("front"), measured=True),
        ],
        SIZES,
        config=NETWORK_CONFIG,
    ),
    *case(
        "AppGroupsGrowing",
        [
            APP_GROUP_OBJECTS,
            CreateNodes("nodes", _located()),
            CreatePods("init", _of_workload("back")),
            CreatePods("measured", Rotating(_of_workload("front"), _of_workload("back")), measured=True),
        ],
        SIZES,
        config=NETWORK_CONFIG,
    ),
    *case(
        "SystemCalls",
        [
            PROFILE_OBJECTS,
            CreateNodes("nodes"),
            CreatePods("init", Rotating(*map(_confined, range(PROFILES)))),
            CreatePods("measured", Rotating(*map(_confined, range(PROFILES))), measured=True),
        ],
        SIZES,
        config=SYSTEM_CALLS_CONFIG,
    ),
)
