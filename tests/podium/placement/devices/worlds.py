"""Makes slices, classes and claims for tests of the allocator, from short words or at random."""

import random
from typing import Any

import msgspec

from podium.kube.decode import decode_json
from podium.kube.devices import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from podium.kube.node import Node
from podium.kube.versions.devices import NEWEST, DeviceRules
from podium.placement.devices import AllocationError, DeviceInventory, DeviceTally, InvalidPoolsError, allocate

Obj = dict[str, Any]
DRIVER = "drv.example.com"


def device(name: str, **fields: Any) -> Obj:
    return {"name": name, **fields}


def numbered(name: str, value: Any, **fields: Any) -> Obj:
    """A device with the attribute `m`."""
    kind = "int" if isinstance(value, int) else "string"
    return device(name, attributes={"m": {kind: value}}, **fields)


def slice_(name: str, *devices: Obj, pool: str = "p", count: int = 1, generation: int = 1, **spec: Any) -> Obj:
    selection = {"nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection"} & set(spec)
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": name},
        "spec": {
            "driver": DRIVER,
            "pool": {"name": pool, "generation": generation, "resourceSliceCount": count},
            **({} if selection or "sharedCounters" in spec else {"nodeName": "n1"}),
            **({"devices": list(devices)} if devices else {}),
            **spec,
        },
    }


def selectors(*expressions: str) -> list[Obj]:
    return [{"cel": {"expression": expression}} for expression in expressions]


def request(name: str = "r", **fields: Any) -> Obj:
    if "firstAvailable" in fields:
        return {"name": name, **fields}
    return {"name": name, "exactly": ask(**fields)}


def ask(**fields: Any) -> Obj:
    mode = fields.get("allocationMode", "ExactCount")
    count = {"count": 1} if mode == "ExactCount" else {}
    return {"deviceClassName": "c", "allocationMode": mode, **count, **fields}


def claim(*requests: Obj, name: str = "cl", **devices: Any) -> Obj:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "ns", "uid": f"uid-{name}"},
        "spec": {"devices": {"requests": list(requests or (request(),)), **devices}},
    }


def device_class(name: str = "c", **spec: Any) -> Obj:
    return {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": name}, "spec": spec}


def used(*devices: str, pool: str = "p", **fields: Any) -> Obj:
    """A claim that has devices already."""
    results = [{"request": "r", "driver": DRIVER, "pool": pool, "device": each, **fields} for each in devices]
    allocated = claim(name="used")
    return {**allocated, "status": {"allocation": {"devices": {"results": results}}}}


class World:
    """What an allocation is made from."""

    def __init__(
        self,
        slices: list[Obj],
        claims: list[Obj],
        classes: list[Obj] | None = None,
        in_use: list[Obj] | None = None,
        labels: dict[str, str] | None = None,
        node: str = "n1",
        rules: DeviceRules = NEWEST,
        taint_rules: list[Obj] | None = None,
    ) -> None:
        self.rules = rules
        self.taint_rules = taint_rules or []
        self.slices = slices
        self.claims = claims
        self.classes = classes if classes is not None else [device_class()]
        self.in_use = in_use or []
        self.node: Obj = {"metadata": {"name": node, "labels": labels or {}}}

    def allocate(self) -> list[Obj] | str | None:
        """The allocations as they are written, the text of an error, or None."""
        tally = DeviceTally()
        for each in self.in_use:
            allocation = _typed(ResourceClaim, each).status.allocation
            assert allocation is not None
            tally.add(allocation)
        node = _typed(Node, self.node)
        classes = {each["metadata"]["name"]: _typed(DeviceClass, each) for each in self.classes}
        inventory = DeviceInventory(
            [_typed(ResourceSlice, each) for each in self.slices],
            rules=self.rules,
            taint_rules=[_typed(DeviceTaintRule, each) for each in self.taint_rules],
        )
        claims = [_typed(ResourceClaim, each) for each in self.claims]
        try:
            pools = inventory.pools(node)
            found = allocate(node, pools, claims, classes, tally, rules=self.rules, new_share=lambda: "share")
        except (AllocationError, InvalidPoolsError) as error:
            return str(error)
        return None if found is None else msgspec.json.decode(msgspec.json.encode(found), type=list[Obj])

    def devices(self) -> list[str] | str | None:
        """`request=pool/device` for each result of all claims; the pool only where it is not `p`."""
        found = self.allocate()
        if not isinstance(found, list):
            return found
        return [_short(result) for each in found for result in each["devices"].get("results", ())]


def _short(result: Obj) -> str:
    pool = "" if result["pool"] == "p" else f"{result['pool']}/"
    return f"{result['request']}={pool}{result['device']}"


def _typed(kind: Any, obj: Obj) -> Any:
    return decode_json(kind, msgspec.json.encode(obj))


def random_world(seed: int) -> World:
    """A small world in which most rules meet."""
    return _Maker(random.Random(seed)).world()


class _Maker:
    """Draws one world."""

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice

    def _chance(self, probability: float) -> bool:
        return self._dice.random() < probability

    def world(self) -> World:
        dice = self._dice
        slices = [each for pool in "ab"[: dice.randint(1, 2)] for each in self._pool(pool)]
        names = sorted({(s["spec"]["pool"]["name"], d["name"]) for s in slices for d in s["spec"].get("devices", ())})
        in_use: list[Obj] = []
        for pool, name in names:
            if self._chance(0.12):
                shared = {"shareID": f"s{len(in_use)}", "consumedCapacity": {"mem": "2"}} if self._chance(0.3) else {}
                in_use.append(used(name, pool=pool, **shared))
        claims = [self._claim(f"cl{number}") for number in range(dice.randint(1, 2))]
        classes = [
            device_class("c", **({"config": [_config("x")]} if self._chance(0.5) else {})),
            device_class("k", selectors=selectors('device.driver == "drv.example.com"'), config=[_config("y")]),
        ]
        return World(slices, claims, classes, in_use, labels={"zone": "z1", "region": "r1"})

    def _pool(self, name: str) -> list[Obj]:
        dice = self._dice
        count = dice.randint(1, 3)
        made = []
        counters = self._chance(0.25)
        for number in range(count):
            devices = [self._device(f"d{number}{index}", counters=counters) for index in range(dice.randint(1, 4))]
            if self._chance(0.03):
                devices.append(dict(devices[0]))
            made.append(self._slice(f"{name}{dice.randint(0, 9)}-{number}", name, count + counters, devices))
        if counters:
            sets = [{"name": "set", "counters": {"mem": {"value": str(dice.randint(2, 8))}, "n": {"value": "4"}}}]
            made.append(slice_(f"{name}-counters", pool=name, count=count + 1, sharedCounters=sets, nodeName="n1"))
        if self._chance(0.08):
            made.pop()
        return made

    def _slice(self, name: str, pool: str, count: int, devices: list[Obj]) -> Obj:
        dice = self._dice
        generation = 2 if self._chance(0.04) else 1
        selection: Obj = {}
        chosen = dice.random()
        if chosen < 0.12:
            selection = {"allNodes": True}
        elif chosen < 0.26:
            selection = {"nodeSelector": _selector(dice.choice(("zone", "region")), dice.choice(("z1", "r1", "z2")))}
        elif chosen < 0.34:
            selection = {"perDeviceNodeSelection": True}
            for each in devices:
                each.update(dice.choice(({"nodeName": "n1"}, {"nodeName": "n2"}, {"allNodes": True})))
        elif chosen < 0.38:
            selection = {"nodeName": "n2"}
        return slice_(name, *devices, pool=pool, count=count, generation=generation, **selection)

    def _device(self, name: str, *, counters: bool) -> Obj:
        dice = self._dice
        fields: Obj = {"attributes": {"m": {"int": dice.randint(1, 3)}, "s": {"string": dice.choice("xy")}}}
        if self._chance(0.1):
            del fields["attributes"]["m"]
        if self._chance(0.5):
            fields["capacity"] = {"mem": {"value": str(dice.randint(2, 9))}}
        if self._chance(0.3):
            fields["allowMultipleAllocations"] = True
            if "capacity" in fields and self._chance(0.5):
                fields["capacity"]["mem"]["requestPolicy"] = dice.choice(
                    (
                        {"default": "2", "validRange": {"min": "2", "max": "6", "step": "2"}},
                        {"default": "1", "validValues": ["1", "3", "5"]},
                        {"default": "1"},
                    )
                )
        if self._chance(0.12):
            fields["taints"] = [{"key": "t", "value": "v", "effect": dice.choice(("NoSchedule", "NoExecute", "None"))}]
        if self._chance(0.1):
            fields["bindingConditions"] = ["ready"]
            fields["bindingFailureConditions"] = ["broken"]
        if self._chance(0.05):
            fields["bindsToNode"] = True
        if counters and self._chance(0.7):
            consumed = {"mem": {"value": str(dice.randint(1, 4))}}
            unknown = "other" if self._chance(0.03) else "set"
            fields["consumesCounters"] = [{"counterSet": unknown, "counters": consumed}]
        return device(name, **fields)

    def _claim(self, name: str) -> Obj:
        dice = self._dice
        requests = [self._request(f"r{number}") for number in range(dice.randint(1, 3))]
        named = [each["name"] for each in requests]
        constraints = []
        if self._chance(0.4):
            kind = dice.choice(("matchAttribute", "distinctAttribute"))
            attribute = f"{DRIVER}/{dice.choice('ms')}"
            constraints.append({kind: attribute, **({"requests": [dice.choice(named)]} if self._chance(0.4) else {})})
        config = [_config("z", **({"requests": named[:1]} if self._chance(0.5) else {}))] if self._chance(0.3) else []
        return claim(*requests, name=name, constraints=constraints, config=config)

    def _request(self, name: str) -> Obj:
        dice = self._dice
        if self._chance(0.3):
            alternatives = [{"name": f"s{number}", **self._ask()} for number in range(dice.randint(1, 3))]
            return request(name, firstAvailable=alternatives)
        fields = self._ask()
        if self._chance(0.1):
            fields["adminAccess"] = True
        return {"name": name, "exactly": fields}

    def _ask(self) -> Obj:
        dice = self._dice
        fields: Obj = {"deviceClassName": dice.choice("cck")}
        if self._chance(0.12):
            fields["allocationMode"] = "All"
        else:
            fields["count"] = dice.choice((1, 1, 1, 2, 2, 3))
        if self._chance(0.5):
            fields["selectors"] = selectors(
                dice.choice(
                    (
                        f'device.attributes["{DRIVER}"].s == "x"',
                        f'device.attributes["{DRIVER}"].?m.orValue(0) >= 2',
                        f'device.attributes["{DRIVER}"].m == 1',
                        "device.allowMultipleAllocations",
                        f'has(device.capacity["{DRIVER}"].mem)',
                    )
                )
            )
        if self._chance(0.25):
            fields["capacity"] = {"requests": {"mem" if self._chance(0.9) else "nope": str(dice.randint(1, 7))}}
        if self._chance(0.2):
            fields["tolerations"] = [{"key": "t", "operator": dice.choice(("Exists", "Equal")), "effect": ""}]
        return ask(**fields)


def _selector(key: str, value: str) -> Obj:
    return {"nodeSelectorTerms": [{"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}]}


def _config(parameter: str, **fields: Any) -> Obj:
    return {"opaque": {"driver": DRIVER, "parameters": {"p": parameter}}, **fields}
