"""Says what the batched environment models, and refuses scenarios that need more."""

from __future__ import annotations

from podium.kube.affinity import Affinity, TopologySpreadConstraint
from podium.kube.requests import pod_requests
from podium_lab.simulator.pods import PodTemplate
from podium_lab.simulator.reading import LoadedScenario
from podium_lab.simulator.scenario import ScenarioError

ZONE = "topology.kubernetes.io/zone"
NVIDIA = "nvidia.com/gpu"
MIB = 2**20
RESOURCES = frozenset(("cpu", "memory", NVIDIA))
MODELLED = (
    "cpu, memory, nvidia.com/gpu and the number of pods of a node",
    "taints and tolerations, node selectors and required node affinity, nodeName, unschedulable nodes",
    "one required topology spread constraint over zones for each pod",
    "arrivals, lifetimes and departures",
    "measurements that are late, or miss a node; use, connections, traffic and latency of nodes",
)
NOT_MODELLED = (
    "pods that wait: one that fits nowhere leaves, as with `unschedulable: drop`",
    "preemption and priorities among waiting pods, gangs, quotas",
    "affinity between pods, host ports, volumes, claims of devices, shares of a GPU",
    "spread constraints over anything but zones, more than one for a pod, minDomains, matchLabelKeys",
    "node faults, start delays, decisions that take time",
    "memory below 1 MiB: requests are rounded up, nodes down",
    "a departure at the very moment of a measurement comes before it; with the engine, it depends",
    "waves of a pod's use (`usage.swing`): it uses its mean",
)
"""Scenarios with any of these are refused, but for the first, the last three, and preemption."""


def check_scenario(loaded: LoadedScenario) -> None:
    """Raises ScenarioError where a scenario needs what isn't modelled."""
    scenario = loaded.scenario
    for field, wrong in (
        ("faults", bool(scenario.faults)),
        ("objects", bool(scenario.objects)),
        ("rewards", scenario.rewards is not None),
        ("startDelay", scenario.start_delay not in (0, "0s")),
        ("decision", scenario.decision != 0),
    ):
        if wrong:
            raise not_modelled(loaded, field)


def not_modelled(loaded: LoadedScenario, what: str) -> ScenarioError:
    advice = 'leave it out, or use the exact environment, gymnasium.make("podium_lab:Podium/Scheduling-v0")'
    return ScenarioError(f"{loaded.source.file}: {what}: the batched environment doesn't model it; {advice}")


def check_template(loaded: LoadedScenario, template: PodTemplate) -> None:
    """Raises ScenarioError where a pod needs what isn't modelled."""
    spec = template.spec
    requests = pod_requests(template.pod("pod", 0.0))
    for name, amount in requests.items():
        if name not in RESOURCES and amount:
            raise not_modelled(loaded, f"requests of {name}")
    for what, wrong in (
        ("a share of a GPU", template.gpu > 0),
        ("affinity between pods", _between_pods(spec.affinity)),
        ("host ports", any(port.host_port for container in spec.containers for port in container.ports)),
        ("volumes", bool(spec.volumes)),
        ("resource claims", bool(spec.resource_claims)),
        ("a scheduling gate", bool(spec.scheduling_gates)),
        ("a pod group", spec.scheduling_group is not None),
    ):
        if wrong:
            raise not_modelled(loaded, what)
    zone_constraint(loaded, template)


def _between_pods(affinity: Affinity | None) -> bool:
    if affinity is None:
        return False
    parts = (affinity.pod_affinity, affinity.pod_anti_affinity)
    return any(part is not None and part.required_during_scheduling_ignored_during_execution for part in parts)


def zone_constraint(loaded: LoadedScenario, template: PodTemplate) -> TopologySpreadConstraint | None:
    """The required spreading of a pod over zones; raises ScenarioError where it is another one."""
    required = [
        each for each in template.spec.topology_spread_constraints if each.when_unsatisfiable != "ScheduleAnyway"
    ]
    if not required:
        return None
    only = required[0]
    plain = only.topology_key == ZONE and only.min_domains is None and not only.match_label_keys
    policies = only.node_affinity_policy in (None, "Honor") and only.node_taints_policy in (None, "Ignore")
    if len(required) > 1 or not plain or not policies:
        raise not_modelled(loaded, "topologySpreadConstraints other than one over zones")
    return only
