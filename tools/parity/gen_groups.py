"""Random clusters with PodGroups (scheduling.k8s.io), and which of kube-scheduler's gates are on.

What would make kube-scheduler's first decision a matter of chance is left out: members differ in priority or not at
all, start times are all different, and only a cluster with one group has pods that it could evict. From 1.37 on most
members have the priority of their group, because another one is an error; and some clusters have a single pod to place
in place of a group, which may evict groups.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from podium.kube.versions.rules import VersionRules
from tools.parity.dice import HOSTNAME, RACK, ZONE, Dice, Obj

GATES = ("GenericWorkload", "GangScheduling", "TopologyAwareWorkloadScheduling", "WorkloadAwarePreemption")
TOPOLOGY = GATES[2]
ON = {
    "generic": GATES[:1],
    "gang": GATES[:2],
    "topology": GATES[:3],
    "preemption": (*GATES[:2], GATES[3]),
    "all": GATES,
}
MODES: dict[str, Obj] = {"Pod": {"single": {}}, "PodGroup": {"all": {}}}
EPOCH = datetime(2024, 1, 1, tzinfo=UTC)


@dataclass
class GroupPlan:
    """One cluster before the scheduler starts."""

    index: int
    gates: tuple[str, ...]
    objects: list[Obj]
    groups: list[str]
    theme: str


def group_gates(rules: VersionRules) -> tuple[str, ...]:
    """The gates that groups need, as this minor has them."""
    return tuple(gate for gate in GATES if gate not in rules.part_of_generic_workload)


def make_groups(seed: int, index: int, rules: VersionRules) -> GroupPlan:
    plan = _of_1_36(seed, index)
    return _of_1_37(plan, Dice(f"groups of 1.37 {seed}/{index}"), rules) if rules.pod_groups_are_queued else plan


def _of_1_37(plan: GroupPlan, dice: Dice, rules: VersionRules) -> GroupPlan:
    plan.gates = tuple(gate for gate in plan.gates if gate in group_gates(rules))
    for group in [each for each in plan.objects if each["kind"] == "PodGroup"]:
        group["apiVersion"] = "scheduling.k8s.io/v1beta1"
        if "disruptionMode" in group["spec"]:
            group["spec"]["disruptionMode"] = MODES[group["spec"]["disruptionMode"]]
        if dice.chance(0.1):
            continue
        name, policy = group["metadata"]["name"], dice.chance(0.1)
        for pod in [each for each in plan.objects if each["kind"] == "Pod"]:
            if pod["spec"].get("schedulingGroup", {}).get("podGroupName") == name:
                pod["spec"]["priority"] = group["spec"]["priority"]
                pod["spec"].pop("preemptionPolicy", None)
                if policy:
                    pod["spec"]["preemptionPolicy"] = "Never"
    if len(plan.groups) == 1 and dice.chance(0.25):
        (name,) = plan.groups
        first = next(each for each in plan.objects if each["metadata"]["name"] == f"{name}-0")
        del first["spec"]["schedulingGroup"]
        first["spec"]["priority"] = 1000
        others = [each for each in plan.objects if not each["metadata"]["name"].startswith(name)]
        plan.objects, plan.groups, plan.theme = [*others, first], [], "single"
    return plan


def _of_1_36(seed: int, index: int) -> GroupPlan:
    dice = Dice(f"groups {seed}/{index}")
    theme = dice.weighted({"generic": 1, "gang": 4, "topology": 4, "preemption": 4, "all": 3})
    gates = ON[theme]
    nodes = [_node(dice, number) for number in range(dice.randint(1, 6))]
    names = [node["metadata"]["name"] for node in nodes]
    one_group = dice.chance(0.75)
    bound = _bound_pods(dice, names, evictable=one_group and dice.chance(0.7))
    objects = [*nodes, *bound, *_budgets(dice)]
    groups = ["g0"] if one_group else ["g0", "g1"]
    for number, name in enumerate(groups):
        objects += _group(dice, name, 1000 - 100 * number, gates, names)
    return GroupPlan(index, gates, objects, groups, theme)


def _node(dice: Dice, number: int) -> Obj:
    name = f"n{number}"
    labels = {HOSTNAME: name, "disk": dice.pick(("ssd", "hdd"))}
    if dice.chance(0.9):
        labels[ZONE] = dice.pick(("z1", "z2", "z3"))
    if dice.chance(0.7):
        labels[RACK] = dice.pick(("r1", "r2"))
    node: Obj = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {},
        "status": {
            "allocatable": {
                "cpu": dice.pick(("1", "2", "3", "4", "8")),
                "memory": dice.pick(("2Gi", "4Gi", "16Gi")),
                "pods": str(dice.pick((2, 4, 20, 20))),
            },
        },
    }
    node["status"]["capacity"] = node["status"]["allocatable"]
    if dice.chance(0.15):
        node["spec"]["taints"] = [{"key": "dedicated", "value": "red", "effect": "NoSchedule"}]
    if dice.chance(0.07):
        node["spec"]["unschedulable"] = True
    return node


def _pod(name: str, requests: Obj, priority: int, **spec: object) -> Obj:
    container = {"name": "main", "image": "example.test/web:1", "resources": {"requests": requests}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": {}},
        "spec": {"containers": [container], "priority": priority, "terminationGracePeriodSeconds": 3600, **spec},
        "status": {},
    }


def _requests(dice: Dice) -> Obj:
    requests: Obj = {}
    if dice.chance(0.9):
        requests["cpu"] = dice.pick(("250m", "500m", "1", "1", "2"))
    if dice.chance(0.4):
        requests["memory"] = dice.pick(("256Mi", "1Gi", "2Gi"))
    return requests


def _bound_pods(dice: Dice, nodes: list[str], evictable: bool) -> list[Obj]:
    """Pods that stand on nodes, some of groups of their own that are there, too."""
    objects: list[Obj] = []
    started = dice.sample(range(10**6), 60)
    for node in nodes:
        for _ in range(dice.randint(0, 3)):
            number = len(objects)
            priority = dice.pick((0, 0, 5, 50, 2000)) if evictable else 2000
            pod = _pod(f"old-{number}", _requests(dice), priority, nodeName=node)
            pod["metadata"]["labels"] = {"app": dice.pick(("web", "db"))}
            if dice.chance(0.9):
                start = EPOCH + timedelta(seconds=started[number])
                pod["status"] = {"phase": "Running", "startTime": start.strftime("%Y-%m-%dT%H:%M:%SZ")}
            if dice.chance(0.35):
                pod["spec"]["schedulingGroup"] = {"podGroupName": dice.pick(("there-0", "there-1"))}
            objects.append(pod)
    for number in range(2):
        spec: Obj = {"schedulingPolicy": {"basic": {}}}
        if dice.chance(0.6):
            spec["disruptionMode"] = "PodGroup"
        spec["priority"] = dice.pick((0, 5, 50)) if evictable else 2000
        objects.append(_pod_group(f"there-{number}", spec))
    return objects


def _pod_group(name: str, spec: Obj) -> Obj:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "metadata": metadata, "spec": spec}


def _group(dice: Dice, name: str, priority: int, gates: tuple[str, ...], nodes: list[str]) -> list[Obj]:
    """A PodGroup and its pods: all equal, or each with a priority of its own."""
    number = dice.randint(1, 5)
    spec: Obj = {"schedulingPolicy": {"basic": {}}}
    if dice.chance(0.85):
        spec["schedulingPolicy"] = {"gang": {"minCount": dice.randint(1, number)}}
    if dice.chance(0.45):
        spec["schedulingConstraints"] = {"topology": [{"key": dice.pick((ZONE, ZONE, RACK, HOSTNAME, "absent"))}]}
    spec["priority"] = dice.pick((priority, priority, 10, 0))
    if dice.chance(0.3):
        spec["disruptionMode"] = dice.pick(("Pod", "PodGroup"))
    members: list[Obj] = []
    alike = dice.chance(0.4)
    template = _member(dice, name, priority)
    for each in range(number):
        pod = {**template} if alike else _member(dice, name, priority)
        pod = {**pod, "metadata": {**pod["metadata"], "name": f"{name}-{each}"}, "spec": {**pod["spec"]}}
        if not alike:
            pod["spec"]["priority"] = priority - each
        members.append(pod)
    if dice.chance(0.15):
        members.append(_placed_member(dice, name, priority, nodes))
    return [_pod_group(name, spec), *members]


def _member(dice: Dice, group: str, priority: int) -> Obj:
    pod = _pod(group, _requests(dice), priority, schedulingGroup={"podGroupName": group})
    pod["metadata"]["labels"] = {"app": dice.pick(("web", "db")), "group": group}
    spec = pod["spec"]
    if dice.chance(0.15):
        spec["nodeSelector"] = {"disk": dice.pick(("ssd", "hdd"))}
    if dice.chance(0.3):
        spec["tolerations"] = [{"key": "dedicated", "operator": "Exists"}]
    if dice.chance(0.15):
        spec["topologySpreadConstraints"] = [
            {
                "maxSkew": 1,
                "topologyKey": dice.pick((ZONE, HOSTNAME)),
                "whenUnsatisfiable": dice.pick(("DoNotSchedule", "ScheduleAnyway")),
                "labelSelector": {"matchLabels": {"group": group}},
            }
        ]
    if dice.chance(0.12):
        spec["preemptionPolicy"] = "Never"
    return pod


def _placed_member(dice: Dice, group: str, priority: int, nodes: list[str]) -> Obj:
    pod = _member(dice, group, priority)
    pod["metadata"]["name"] = f"{group}-placed"
    pod["spec"]["nodeName"] = dice.pick(nodes)
    pod["status"] = {"phase": "Running", "startTime": "2023-01-01T00:00:00Z"}
    return pod


def _budgets(dice: Dice) -> list[Obj]:
    return [
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": f"budget-{number}", "namespace": "default"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": dice.pick(("web", "db"))}}},
            "status": {
                "disruptionsAllowed": dice.pick((0, 0, 1, 2)),
                "currentHealthy": 1,
                "desiredHealthy": 1,
                "expectedPods": 1,
            },
        }
        for number in range(dice.randint(0, 2))
    ]
