"""Random devices: classes, slices of nodes and of the network, and which devices are in use already.

Each cluster draws which rules its devices come under (`Rules`), so that some are plain and in others many rules meet:
devices that share counters, capacity that is handed out by a policy, devices that choose their nodes one by one, pools
that contradict themselves or are of several generations. Two classes stand behind extended resources: one that nodes
may offer themselves, and one that none does. No driver runs, so no device has conditions to wait for.
"""

from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from tests.podium.placement.devices.worlds import DRIVER, device, device_class, selectors, slice_
from tools.parity.dice import CARD, GPU, NAMESPACES, ZONE, Dice, Obj
from tools.parity.gen_claims import in_use, make_claim

OTHER_DRIVER = "net.example.com"
POLICIES = (
    {"default": "2", "validRange": {"min": "2", "max": "6", "step": "2"}},
    {"default": "1", "validRange": {"min": "1"}},
    {"default": "1", "validRange": {"min": "500m", "step": "250m"}},
    {"default": "1", "validValues": ["1", "3", "5"]},
    {"default": "1"},
)


@dataclass
class Rules:
    """Which rules the devices of one cluster come under."""

    partitions: bool
    policies: bool
    own_nodes: bool
    other_driver: bool
    contradictions: bool
    admin: bool

    @classmethod
    def drawn(cls, dice: Dice) -> "Rules":
        return cls(*(dice.chance(chance) for chance in (0.35, 0.4, 0.3, 0.3, 0.15, 0.3)))


@dataclass
class Devices:
    """The device objects of one cluster, and the names of claims by namespace."""

    objects: list[Obj] = field(default_factory=list)
    claims: dict[str, list[str]] = field(default_factory=lambda: {namespace: [] for namespace in NAMESPACES})


def make_devices(dice: Dice, nodes: list[Obj]) -> Devices:
    made, rules = Devices(), Rules.drawn(dice)
    mine = selectors(f'device.driver == "{DRIVER}"')
    # A class with selectors behind a resource by which NodeResourcesBalancedAllocation scores crashes kube-scheduler.
    made.objects += [
        device_class("c", **({"extendedResourceName": GPU} if dice.chance(0.7) else {})),
        device_class("k", selectors=mine, **({"extendedResourceName": CARD} if dice.chance(0.8) else {})),
    ]
    slices: list[Obj] = []
    for node in nodes:
        if dice.chance(0.75):
            slices += _pool(dice, rules, node["metadata"]["name"])
    if dice.chance(0.4):
        slices += _network(dice, rules, nodes)
    made.objects += slices
    for number in range(dice.randint(6, 14)):
        namespace = dice.pick(NAMESPACES[:2])
        made.objects.append(make_claim(dice, f"devices-{number}", namespace, admin=rules.admin))
        made.claims[namespace].append(f"devices-{number}")
    _use_some(dice, made, slices)
    made.objects += _taint_rules(dice, slices)
    return made


def _taint_rules(dice: Dice, slices: list[Obj]) -> list[Obj]:
    """Taints on devices, pools, whole drivers or nothing; kube-scheduler knows them from 1.37 on."""
    made = []
    for number in range(dice.weighted({0: 3, 1: 2, 2: 1})):
        taint = {"key": dice.pick("tr"), "value": "v", "effect": dice.pick(("NoSchedule", "NoExecute", "None"))}
        spec: Obj = {"taint": taint}
        if slices and dice.chance(0.9):
            chosen = dice.pick(slices)["spec"]
            names = [each["name"] for each in chosen.get("devices", ())]
            device = {"device": dice.pick(names)} if names and dice.chance(0.6) else {}
            spec["deviceSelector"] = {"driver": chosen["driver"], "pool": chosen["pool"]["name"], **device}
            for field in [each for each in ("driver", "pool") if dice.chance(0.2)]:
                del spec["deviceSelector"][field]
        made.append({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceTaintRule", **_named(f"rule-{number}", spec)})
    return made


def _named(name: str, spec: Obj) -> Obj:
    return {"metadata": {"name": name}, "spec": spec}


def _pool(dice: Dice, rules: Rules, node: str) -> list[Obj]:
    """The slices of one node's pool."""
    count = dice.weighted({1: 4, 2: 1})
    partitions = rules.partitions and dice.chance(0.7)
    made = []
    for number in range(count):
        devices = [
            _device(dice, rules, f"d{number}{index}", partitions=partitions) for index in range(dice.randint(1, 3))
        ]
        if rules.contradictions and dice.chance(0.2):
            devices[-1] = {**devices[-1], "name": "d00"}
        spec: Obj = {"nodeName": node}
        if rules.own_nodes and dice.chance(0.5):
            spec = {"perDeviceNodeSelection": True}
            for each in devices:
                each.update({"nodeName": node} if dice.chance(0.7) else {"allNodes": True})
        generation = 2 if rules.contradictions and dice.chance(0.15) else 1
        made.append(
            slice_(f"{node}-{number}", *devices, pool=node, count=count + partitions, generation=generation, **spec)
        )
    if partitions:
        made.append(_counters(dice, node, count + 1, nodeName=node))
    if dice.chance(0.05):
        made.pop()
    driver = OTHER_DRIVER if rules.other_driver and dice.chance(0.3) else DRIVER
    for each in made:
        each["spec"]["driver"] = driver
    return made


def _counters(dice: Dice, pool: str, count: int, **nodes: Any) -> Obj:
    counters = {"mem": {"value": str(dice.randint(2, 8))}, "n": {"value": "4"}}
    return slice_(
        f"{pool}-counters", pool=pool, count=count, sharedCounters=[{"name": "set", "counters": counters}], **nodes
    )


def _network(dice: Dice, rules: Rules, nodes: list[Obj]) -> list[Obj]:
    """A pool that several nodes, or all of them, see."""
    zone = dice.pick([node["metadata"]["labels"].get(ZONE, "z1") for node in nodes])
    term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}
    spec: Obj = {"allNodes": True} if dice.chance(0.4) else {"nodeSelector": {"nodeSelectorTerms": [term]}}
    partitions = rules.partitions and dice.chance(0.5)
    shared = [_device(dice, rules, f"net{number}", partitions=partitions) for number in range(dice.randint(2, 4))]
    for each in shared:
        if dice.chance(0.1):
            each["bindsToNode"] = True
    made = [slice_("network", *shared, pool="network", count=1 + partitions, **spec)]
    return [*made, _counters(dice, "network", 2, **spec)] if partitions else made


def _device(dice: Dice, rules: Rules, name: str, *, partitions: bool) -> Obj:
    fields: Obj = {"attributes": {"s": {"string": dice.pick("xw")}}}
    if dice.chance(0.93):
        fields["attributes"]["m"] = {"int": dice.randint(1, 3)}
    if dice.chance(0.4):
        fields["attributes"]["v"] = {"version": dice.pick(("1.2.3", "2.0.0", "1.2.3-rc1"))}
    if dice.chance(0.2):
        fields["attributes"]["example.com/ok"] = {"bool": dice.chance(0.5)}
    if dice.chance(0.5):
        fields["capacity"] = {"mem": {"value": str(dice.randint(2, 9))}}
        if dice.chance(0.2):
            fields["capacity"]["bw"] = {"value": dice.pick(("1Gi", "1500m", "2k"))}
    if dice.chance(0.25 if not rules.policies else 0.5):
        fields["allowMultipleAllocations"] = True
        if "capacity" in fields and rules.policies and dice.chance(0.7):
            fields["capacity"]["mem"]["requestPolicy"] = dice.pick(POLICIES)
            fields["capacity"]["mem"]["value"] = str(dice.randint(6, 12))
    if dice.chance(0.1):
        effect = dice.pick(("NoSchedule", "NoExecute", "None"))
        fields["taints"] = [{"key": "t", "value": "v", "effect": effect}]
    if partitions and dice.chance(0.8):
        consumed = {"mem": {"value": str(dice.randint(1, 4))}}
        counter_set = "other" if rules.contradictions and dice.chance(0.1) else "set"
        fields["consumesCounters"] = [{"counterSet": counter_set, "counters": consumed}]
    return device(name, **fields)


def _use_some(dice: Dice, made: Devices, slices: list[Obj]) -> None:
    """Give some devices to claims that no pod uses; pods may name these, too."""
    for each in slices:
        spec = each["spec"]
        for offered in spec.get("devices", ()):
            if not dice.chance(0.06):
                continue
            number, namespace = len(made.objects), dice.pick(NAMESPACES[:2])
            shared: Obj = {}
            if offered.get("allowMultipleAllocations"):
                amounts = {name: "1" for name in offered.get("capacity", ()) if name == "mem"}
                shared = {"shareID": str(UUID(int=dice.getrandbits(128), version=4))}
                shared |= {"consumedCapacity": amounts} if amounts else {}
            result = {"driver": spec["driver"], "pool": spec["pool"]["name"], "device": offered["name"], **shared}
            made.objects.append(in_use(f"used-{number}", namespace, result, spec.get("nodeName")))
            if dice.chance(0.5):
                made.claims[namespace].append(f"used-{number}")
