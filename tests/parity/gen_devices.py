"""Random devices: classes, slices of nodes and of the network, and claims that pods name.

Every claim can be had by several pods, and most devices by one: so claims are shared, run out, and limit the nodes of
later pods. Two classes stand behind extended resources: one that nodes may offer themselves, and one that none does.
"""

from dataclasses import dataclass, field

from tests.parity.dice import CARD, GPU, NAMESPACES, ZONE, Dice, Obj
from tests.placement.devices.worlds import DRIVER, ask, claim, device, device_class, request, selectors, slice_

SELECTORS = (
    f'device.attributes["{DRIVER}"].s == "x"',
    f'device.attributes["{DRIVER}"].?m.orValue(0) >= 2',
    "device.allowMultipleAllocations",
    f'has(device.capacity["{DRIVER}"].mem)',
    f'device.capacity["{DRIVER}"].?mem.orValue(quantity("0")).isGreaterThan(quantity("3"))',
)
FRAGILE = f'device.attributes["{DRIVER}"].m == 1'


@dataclass
class Devices:
    """The device objects of one cluster, and the names of claims by namespace."""

    objects: list[Obj] = field(default_factory=list)
    claims: dict[str, list[str]] = field(default_factory=lambda: {namespace: [] for namespace in NAMESPACES})


def make_devices(dice: Dice, nodes: list[Obj]) -> Devices:
    made = Devices()
    mine = selectors(f'device.driver == "{DRIVER}"')
    # A class with selectors behind a resource by which NodeResourcesBalancedAllocation scores crashes kube-scheduler.
    made.objects += [
        device_class("c", **({"extendedResourceName": GPU} if dice.chance(0.7) else {})),
        device_class("k", selectors=mine, **({"extendedResourceName": CARD} if dice.chance(0.8) else {})),
    ]
    for node in nodes:
        if dice.chance(0.75):
            made.objects += _pool(dice, node["metadata"]["name"])
    if dice.chance(0.3):
        zone = dice.pick([node["metadata"]["labels"].get(ZONE, "z1") for node in nodes])
        term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}
        shared = [_device(dice, f"net{number}") for number in range(2)]
        everywhere = {"allNodes": True} if dice.chance(0.4) else {"nodeSelector": {"nodeSelectorTerms": [term]}}
        made.objects.append(slice_("network", *shared, pool="network", **everywhere))
    for number in range(dice.randint(4, 8)):
        namespace = dice.pick(NAMESPACES[:2])
        made.objects.append(_claim(dice, f"devices-{number}", namespace))
        made.claims[namespace].append(f"devices-{number}")
    return made


def pod_claims(dice: Dice, devices: Devices, namespace: str) -> list[Obj]:
    names = dice.some(devices.claims[namespace], 1, 2)
    return [{"name": name, "resourceClaimName": name} for name in names]


def add_device_resources(dice: Dice, spec: Obj) -> None:
    """Have some of the containers ask for devices by the names of resources.

    Beside claims only for those that no node offers: otherwise kube-scheduler can never bind the pod.
    """
    names = [CARD, "deviceclass.resource.kubernetes.io/c"] + ([] if spec.get("resourceClaims") else [GPU])
    for container in dice.some([*spec["containers"], *spec.get("initContainers", [])], 1, 2):
        resources = container.setdefault("resources", {})
        quantity, name = str(dice.weighted({1: 6, 2: 2, 0: 0.5})), dice.pick(names)
        resources.setdefault("requests", {})[name] = quantity
        resources.setdefault("limits", {})[name] = quantity


def _pool(dice: Dice, node: str) -> list[Obj]:
    count = dice.weighted({1: 4, 2: 1})
    made = []
    for number in range(count):
        devices = [_device(dice, f"d{number}{index}") for index in range(dice.randint(1, 3))]
        made.append(slice_(f"{node}-{number}", *devices, pool=node, count=count, nodeName=node))
    if dice.chance(0.05):
        made.pop()
    return made


def _device(dice: Dice, name: str) -> Obj:
    fields: Obj = {"attributes": {"s": {"string": dice.pick("xy")}}}
    if dice.chance(0.93):
        fields["attributes"]["m"] = {"int": dice.randint(1, 3)}
    if dice.chance(0.5):
        fields["capacity"] = {"mem": {"value": str(dice.randint(2, 9))}}
    if dice.chance(0.25):
        fields["allowMultipleAllocations"] = True
    if dice.chance(0.1):
        fields["taints"] = [{"key": "t", "value": "v", "effect": dice.pick(("NoSchedule", "None"))}]
    return device(name, **fields)


def _claim(dice: Dice, name: str, namespace: str) -> Obj:
    requests = [_request(dice, f"r{number}") for number in range(dice.weighted({1: 5, 2: 2}))]
    constraints = []
    if dice.chance(0.25):
        constraints.append({dice.pick(("matchAttribute", "distinctAttribute")): f"{DRIVER}/{dice.pick('ms')}"})
    made = claim(*requests, name=name, constraints=constraints)
    return {**made, "metadata": {"name": name, "namespace": namespace}}


def _request(dice: Dice, name: str) -> Obj:
    if dice.chance(0.3):
        return request(name, firstAvailable=[{"name": f"s{number}", **_ask(dice)} for number in range(2)])
    return request(name, **_ask(dice))


def _ask(dice: Dice) -> Obj:
    fields: Obj = {"deviceClassName": dice.weighted({"c": 5, "k": 3, "gone": 0.3})}
    if dice.chance(0.08):
        fields["allocationMode"] = "All"
    else:
        fields["count"] = dice.weighted({1: 6, 2: 2})
    if dice.chance(0.5):
        fields["selectors"] = selectors(FRAGILE if dice.chance(0.08) else dice.pick(SELECTORS))
    if dice.chance(0.2):
        fields["capacity"] = {"requests": {"mem": str(dice.randint(1, 6))}}
    if dice.chance(0.2):
        fields["tolerations"] = [{"key": "t", "operator": "Exists"}]
    return ask(**fields)
