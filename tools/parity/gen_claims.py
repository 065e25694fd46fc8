"""Random resource claims, and how pods ask for devices: by claims, or by the names of resources.

Every claim can be had by several pods, and most devices by one: so claims are shared, run out, and limit the nodes of
later pods.
"""

from typing import TYPE_CHECKING

from tests.podium.placement.devices.worlds import DRIVER, ask, claim, request, selectors
from tools.parity.dice import CARD, GPU, Dice, Obj

if TYPE_CHECKING:
    from tools.parity.gen_devices import Devices

ADMIN_NAMESPACE = "alpha"
"""Where claims may ask for devices that are in use."""
SELECTORS = (
    f'device.attributes["{DRIVER}"].s == "x"',
    f'device.attributes["{DRIVER}"].?m.orValue(0) >= 2',
    "device.allowMultipleAllocations",
    f'has(device.capacity["{DRIVER}"].mem)',
    f'device.capacity["{DRIVER}"].?mem.orValue(quantity("0")).isGreaterThan(quantity("3"))',
    f'device.attributes["{DRIVER}"].?v.orValue(semver("0.0.0")).isGreaterThan(semver("1.2.3"))',
    'device.attributes["example.com"].?ok.orValue(true)',
    f'device.driver == "{DRIVER}" && device.attributes["{DRIVER}"].all(name, name.size() <= 5)',
    f'cel.bind(a, device.attributes["{DRIVER}"], a.?s.orValue("") in ["w", "z"] || a.?m.orValue(0) == 1)',
)
FRAGILE = f'device.attributes["{DRIVER}"].m == 1'


def make_claim(dice: Dice, name: str, namespace: str, *, admin: bool) -> Obj:
    requests = [_request(dice, f"r{number}") for number in range(dice.weighted({1: 5, 2: 2, 3: 0.5}))]
    if admin and namespace == ADMIN_NAMESPACE and "exactly" in requests[0] and dice.chance(0.4):
        requests[0]["exactly"]["adminAccess"] = True
    names = [each["name"] for each in requests]
    constraints = []
    for _ in range(dice.weighted({0: 6, 1: 2, 2: 0.5})):
        kind, attribute = dice.pick(("matchAttribute", "distinctAttribute")), f"{DRIVER}/{dice.pick('msv')}"
        constraints.append({kind: attribute, **({"requests": [dice.pick(names)]} if dice.chance(0.4) else {})})
    config = [_config(**({"requests": names[:1]} if dice.chance(0.5) else {}))] if dice.chance(0.15) else []
    made = claim(*requests, name=name, constraints=constraints, config=config)
    return {**made, "metadata": {"name": name, "namespace": namespace}}


def in_use(name: str, namespace: str, result: Obj, node: str | None) -> Obj:
    """A claim that has a device, and no pod that uses it."""
    results = [{"request": "r", **result}]
    allocation: Obj = {"devices": {"results": results}, "allocationTimestamp": "2024-01-01T00:00:00Z"}
    if node is not None:
        only = {"key": "metadata.name", "operator": "In", "values": [node]}
        allocation["nodeSelector"] = {"nodeSelectorTerms": [{"matchFields": [only]}]}
    made = claim(name=name)
    return {
        **made,
        "metadata": {"name": name, "namespace": namespace},
        "status": {"allocation": allocation},
    }


def pod_claims(dice: Dice, devices: "Devices", namespace: str) -> list[Obj]:
    names = dice.some(devices.claims[namespace], 1, dice.weighted({1: 3, 2: 1}))
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


def _config(**fields: object) -> Obj:
    return {"opaque": {"driver": DRIVER, "parameters": {"p": "x"}}, **fields}


def _request(dice: Dice, name: str) -> Obj:
    if dice.chance(0.35):
        count = dice.weighted({2: 3, 3: 1})
        return request(name, firstAvailable=[{"name": f"s{number}", **_ask(dice)} for number in range(count)])
    return request(name, **_ask(dice))


def _ask(dice: Dice) -> Obj:
    fields: Obj = {"deviceClassName": dice.weighted({"c": 5, "k": 3, "gone": 0.15})}
    if dice.chance(0.08):
        fields["allocationMode"] = "All"
    else:
        fields["count"] = dice.weighted({1: 6, 2: 2})
    if dice.chance(0.5):
        fields["selectors"] = selectors(FRAGILE if dice.chance(0.06) else dice.pick(SELECTORS))
    if dice.chance(0.25):
        amounts = {"mem": str(dice.randint(1, 6))}
        if dice.chance(0.1):
            amounts = {"bw": dice.pick(("1", "1500m", "1Gi"))}
        fields["capacity"] = {"requests": amounts}
    if dice.chance(0.2):
        fields["tolerations"] = [{"key": "t", "operator": "Exists"}]
    return ask(**fields)
