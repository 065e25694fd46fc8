"""Random pods, bound and pending, made of features that a theme makes more or less likely.

Bound pods fill the nodes, sometimes past what they have. Pending pods ask for the things the plugins look at. Every
pending pod carries a label of its own, so that no two share a scheduling signature and each is decided by itself.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from tools.parity.dice import (
    GPU,
    HUGEPAGES,
    IMAGES,
    MIB,
    NAMESPACES,
    NIC,
    POD_LABELS,
    RUNTIME_CLASSES,
    Dice,
    Obj,
)
from tools.parity.gen_claims import add_device_resources, pod_claims
from tools.parity.gen_devices import Devices
from tools.parity.gen_selectors import (
    node_affinity,
    node_selector,
    pod_affinities,
    spread_constraints,
    tolerations,
)
from tools.parity.gen_volumes import Storage, pod_volumes

# How often each theme comes in a row of twenty clusters. Nodes of "twins" are equal, so that equal scores abound; those
# of "evictions" are equal and full, so that every rule for the choice of victims gets to decide.
THEMES = {
    "volumes": 4,
    "preemption": 2,
    "evictions": 3,
    "twins": 2,
    "affinity": 2,
    "spread": 2,
    "resources": 1,
    "extended": 1,
    "taints": 1,
    "nodes": 1,
    "ports": 1,
    "devices": 3,
}
# Elsewhere pods ask for little, or most nodes would be full before the plugin of the theme is asked.
PENDING_SCALE = {"resources": 0.9, "extended": 0.5, "preemption": 0.8, "evictions": 1.0}
BOUND_SCALE = {"resources": 0.5, "extended": 0.3, "preemption": 0.6, "evictions": 1.0}
CPUS = {
    "usual": (0, 10, 50, 100, 200, 333, 600, 1200),
    "resources": (0, 50, 100, 250, 400, 700, 1000, 1500),
    "preemption": (100, 300, 400, 600, 800, 1000),
    "evictions": (300, 500, 500, 1000, 1000),
}
NAMESPACE_WEIGHTS = {
    "usual": (4.0, 4.0, 1.0, 1.0),
    "volumes": (12.0, 2.0, 1.0, 1.0),  # where the claims are
    "affinity": (3.0, 3.0, 2.0, 2.0),
    "devices": (6.0, 6.0, 0.5, 0.5),
}
PLAIN_THEMES = {"twins": 0.07, "evictions": 0.02, "devices": 0.07}  # the chance of any feature there

# The chance that a pod of a cluster without that theme has the feature; with the theme it is THEMED.
USUAL = {
    "nodes": 0.2,
    "affinity": 0.18,
    "spread": 0.18,
    "ports": 0.1,
    "volumes": 0.12,
    "extended": 0.08,
    "taints": 0.35,
}
# Preemption only helps against what pods take up, so those pods seldom ask for what a node simply has or has not.
PREEMPTION_USUAL = {**USUAL, "nodes": 0.07, "extended": 0.04, "ports": 0.2, "volumes": 0.15}
THEMED = 0.7


@dataclass
class PodPlan:
    """A pod to create, and the claims that it must own."""

    pod: Obj
    owned_claims: list[Obj] = field(default_factory=list)


@dataclass(frozen=True)
class PodMaker:
    """What pods of one cluster have in common."""

    dice: Dice
    theme: str
    node_names: list[str]
    storage: Storage
    devices: Devices
    owners: dict[str, list[Obj]]  # controllers by namespace
    profiles: tuple[str, ...]

    def _has(self, feature: str) -> bool:
        if self.theme in PLAIN_THEMES:
            return self.dice.chance(PLAIN_THEMES[self.theme])
        usual = PREEMPTION_USUAL if self.theme == "preemption" else USUAL
        return self.dice.chance(THEMED if feature == self.theme else usual[feature])

    def bound(self, name: str, node: str) -> PodPlan:
        """A pod that already runs on a node."""
        dice = self.dice
        plan = self._pod(name, scale=BOUND_SCALE.get(self.theme, 0.2))
        spec = plan.pod["spec"]
        spec["nodeName"] = node
        del spec["schedulerName"]
        levels = {-10: 2.0, 0: 3.0, 5: 2.0}
        _set_priority(dice, spec, levels if self.theme == "evictions" else {**levels, 10: 2.0, 100: 1.0})
        spec["terminationGracePeriodSeconds"] = 3600
        status: Obj = {"phase": dice.weighted({"Running": 20, "Pending": 3, "Succeeded": 0.7, "Failed": 0.4})}
        if dice.chance(0.4 if self.theme in ("resources", "twins") else 0.12):
            status |= _resize_status(dice, spec)
        plan.pod["status"] = status
        return plan

    def pending(self, name: str) -> PodPlan:
        """A pod for the scheduler to decide."""
        dice = self.dice
        plan = self._pod(name, scale=PENDING_SCALE.get(self.theme, 0.25))
        spec = plan.pod["spec"]
        levels = {-10: 0.5, 0: 3.0, 5: 2.0, 10: 2.0, 100: 2.0, 1000: 2.0}
        if self.theme in ("preemption", "evictions"):
            levels = {0: 0.5, 10: 2.0, 100: 4.0, 1000: 4.0}
        _set_priority(dice, spec, levels, never=0.04 if self.theme == "evictions" else 0.1)
        plan.pod["metadata"]["labels"]["case"] = name
        namespace = plan.pod["metadata"]["namespace"]
        if self.theme == "devices":
            asks_by_resource = dice.chance(0.3)
            has_gpu = any(GPU in each.get("resources", {}).get("requests", {}) for each in spec["containers"])
            if not has_gpu and self.devices.claims[namespace] and dice.chance(0.4 if asks_by_resource else 0.9):
                spec["resourceClaims"] = pod_claims(dice, self.devices, namespace)
            if asks_by_resource:
                add_device_resources(dice, spec)
        if dice.chance(0.02):
            spec["schedulingGates"] = [{"name": f"example.test/{gate}"} for gate in dice.some(("a", "b"), 1, 2)]
        if dice.chance(0.0 if self.theme == "evictions" else 0.04):
            _require_features(dice, spec)
        if dice.chance(0.04):  # left from an earlier preemption
            plan.pod["status"] = {"nominatedNodeName": dice.pick([*self.node_names, "vanished-node"])}
        return plan

    def _pod(self, name: str, scale: float) -> PodPlan:
        dice = self.dice
        weights = NAMESPACE_WEIGHTS.get(self.theme, NAMESPACE_WEIGHTS["usual"])
        namespace = dice.weighted(dict(zip(NAMESPACES, weights, strict=True)))
        labels = {key: dice.pick(values) for key, values in POD_LABELS.items() if dice.chance(0.75)}
        metadata: Obj = {"name": name, "namespace": namespace, "labels": labels}
        if self.owners[namespace] and dice.chance(0.35):
            metadata["ownerReferences"] = [_owner_reference(dice.pick(self.owners[namespace]))]
        spec: Obj = {"schedulerName": dice.pick(self.profiles)}
        _add_containers(dice, spec, self.theme, scale)
        plan = PodPlan({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
        if self._has("extended"):
            _add_extended(dice, spec)
        if self._has("taints"):
            spec["tolerations"] = tolerations(dice)
        if self._has("nodes"):
            self._add_node_choice(spec)
        if self._has("affinity"):
            spec.setdefault("affinity", {}).update(pod_affinities(dice, labels, required=0.45))
        if self._has("spread"):
            spec["topologySpreadConstraints"] = spread_constraints(dice, labels, hard=0.5)
        if self._has("ports"):
            _add_ports(dice, spec)
        if self._has("volumes"):
            spec["volumes"], plan.owned_claims = pod_volumes(dice, self.storage, namespace, name)
        elif dice.chance(0.03):
            spec["volumes"] = [{"name": "pictures", "image": {"reference": dice.pick(IMAGES)}}]
        if self.theme != "evictions":
            _add_pod_level(dice, spec)
        if dice.chance(0.06):
            spec["runtimeClassName"] = dice.pick(RUNTIME_CLASSES)
        return plan

    def _add_node_choice(self, spec: Obj) -> None:
        if self.dice.chance(0.35):
            spec["nodeSelector"] = node_selector(self.dice, self.node_names)
        if self.dice.chance(0.75):
            pinned = 0.5 if self.theme == "nodes" else 0.12
            spec["affinity"] = {"nodeAffinity": node_affinity(self.dice, self.node_names, pinned)}


def _owner_reference(owner: Obj) -> Obj:
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": f"uid-of-{owner['metadata']['name']}",
        "controller": True,
    }


def _set_priority(dice: Dice, spec: Obj, levels: dict[int, float], never: float = 0.0) -> None:
    level = dice.weighted(levels)
    if level != 0 or dice.chance(0.5):  # no priority at all counts as 0
        spec["priority"] = level
    if dice.chance(never):
        spec["preemptionPolicy"] = "Never"


def _add_containers(dice: Dice, spec: Obj, theme: str, scale: float) -> None:
    cpus = CPUS.get(theme, CPUS["usual"])
    plain = theme == "evictions"
    count = 1 if plain else dice.weighted({1: 7, 2: 2, 3: 1})
    spec["containers"] = [_container(dice, f"main-{index}", scale, cpus) for index in range(count)]
    if not plain and dice.chance(0.2):
        inits = []
        for index in range(dice.randint(1, 3)):
            container = _container(dice, f"init-{index}", scale, cpus)
            if dice.chance(0.5):
                container["restartPolicy"] = "Always"
            inits.append(container)
        spec["initContainers"] = inits


def _container(dice: Dice, name: str, scale: float, cpus: tuple[int, ...]) -> Obj:
    requests: Obj = {}
    if dice.chance(0.8):
        requests["cpu"] = f"{int(dice.pick(cpus) * scale)}m" if dice.chance(0.97) else "100500u"
    if dice.chance(0.75):
        memory = dice.pick((0, 16, 64, 100, 200, 256, 500, 1000)) * MIB
        requests["memory"] = str(int(memory * scale)) if dice.chance(0.9) else "123456789"
    if dice.chance(0.08):
        requests["ephemeral-storage"] = dice.pick(("10Mi", "1Gi", "4G"))
    resources: Obj = {}
    if requests:
        resources["requests"] = requests
    if dice.chance(0.05):
        resources["limits"] = {"cpu": "2", "memory": "2Gi"}  # a limit alone becomes the request
    container: Obj = {"name": name, "image": dice.pick(IMAGES)}
    if resources:
        container["resources"] = resources
    return container


def _add_extended(dice: Dice, spec: Obj) -> None:
    container = dice.pick(spec["containers"])
    resources = container.setdefault("resources", {})
    kinds: dict[str, Callable[[], str]] = {
        GPU: lambda: str(dice.pick((0, 1, 1, 2, 3))),
        NIC: lambda: str(dice.pick((1, 2))),
        HUGEPAGES: lambda: str(dice.pick((2, 32, 128)) * MIB),
        "unknown.test/thing": lambda: "1",
    }
    for name in dice.some(list(kinds), 1, 2):
        if name == "unknown.test/thing" and dice.chance(0.7):
            continue
        quantity = kinds[name]()
        resources.setdefault("requests", {})[name] = quantity
        resources.setdefault("limits", {})[name] = quantity
        if name == HUGEPAGES:
            resources["requests"].setdefault("memory", "16Mi")  # the API asks for cpu or memory beside huge pages


def _add_ports(dice: Dice, spec: Obj) -> None:
    wanted: set[tuple[int, str]] = set()
    containers = [*spec["containers"], *spec.get("initContainers", [])]
    for _ in range(dice.randint(1, 2)):
        container = dice.pick(containers)
        port, protocol = dice.pick((80, 443, 9000)), dice.pick(("TCP", "TCP", "UDP", "SCTP"))
        if (port, protocol) in wanted:
            continue
        wanted.add((port, protocol))
        entry: Obj = {"containerPort": port, "hostPort": port, "protocol": protocol}
        if dice.chance(0.5):
            entry["hostIP"] = dice.pick(("127.0.0.1", "192.0.2.10", "0.0.0.0"))
        container.setdefault("ports", []).append(entry)
    if dice.chance(0.1):
        spec["hostNetwork"] = True


def _add_pod_level(dice: Dice, spec: Obj) -> None:
    if not dice.chance(0.08):
        return
    every = [*spec["containers"], *spec.get("initContainers", [])]
    if any(set(each.get("resources", {}).get("limits", {})) & {"cpu", "memory"} for each in every):
        return
    # Requests of the pod must not be below the sum of its containers; a generous amount always passes.
    requests: Obj = {}
    if dice.chance(0.8):
        requests["cpu"] = dice.pick(("1500m", "2", "4500m")) if len(every) < 3 else "6"
    if dice.chance(0.8) or not requests:
        requests["memory"] = dice.pick(("2Gi", "3Gi")) if len(every) < 3 else "6Gi"
    spec["resources"] = {"requests": requests}


def _require_features(dice: Dice, spec: Obj) -> None:
    if dice.chance(0.5):
        spec["hostNetwork"] = True
        spec["hostUsers"] = False
        return
    container = spec["containers"][0]
    container["restartPolicy"] = "Never"
    container["restartPolicyRules"] = [
        {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [42]}}
    ]


def _resize_status(dice: Dice, spec: Obj) -> Obj:
    """What a kubelet reports in the middle of an in-place resize, whatever the stage."""
    statuses = []
    for container in spec["containers"]:
        wanted = container.get("resources", {}).get("requests", {})
        reported: Obj = {
            "name": container["name"],
            "image": container["image"],
            "imageID": "",
            "ready": True,
            "restartCount": 0,
        }
        if "cpu" in wanted or "memory" in wanted:
            actual = {name: dice.pick(("10m", "50m", "300m", "900m")) for name in wanted if name == "cpu"}
            actual |= {name: dice.pick(("32Mi", "300Mi")) for name in wanted if name == "memory"}
            if dice.chance(0.85):
                reported["resources"] = {"requests": actual}
            if dice.chance(0.7):
                allocated = {name: wanted[name] for name in actual}
                if "cpu" in actual and dice.chance(0.6):
                    allocated["cpu"] = dice.pick(("20m", "600m"))
                reported["allocatedResources"] = allocated
        statuses.append(reported)
    status: Obj = {"containerStatuses": statuses}
    if dice.chance(0.6):
        pending = {"type": "PodResizePending", "status": "True", "reason": dice.pick(("Deferred", "Infeasible"))}
        status["conditions"] = [pending]
    return status
