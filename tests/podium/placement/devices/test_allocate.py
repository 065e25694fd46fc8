"""The devices that claims get: the acceptance vectors, and what holds in every random world."""

from typing import Any

import msgspec
import pytest

from podium.kube.decode import decode_json
from podium.kube.devices import DeviceClass, ResourceClaim
from podium.kube.meta import ObjectMeta
from podium.kube.node import Node
from podium.kube.versions.devices import BEFORE_1_37
from podium.placement.devices import DeviceInventory, DeviceTally, allocate
from podium.placement.devices.allocator import _Search
from tests.podium.placement.devices.worlds import (
    DRIVER,
    Obj,
    World,
    ask,
    claim,
    device,
    device_class,
    numbered,
    random_world,
    request,
    selectors,
    slice_,
    used,
)
from tools.kit.effort import seeds

MEMORY = f'device.capacity["{DRIVER}"].memory.compareTo(quantity("{{}}")) >= 0'
M = f'device.attributes["{DRIVER}"].m'
FOREIGN: Obj = {"driver": "other.com"}


def counted(name: str, amount: str) -> Obj:
    return device(name, consumesCounters=[{"counterSet": "set", "counters": {"memory": {"value": amount}}}])


def shareable(name: str, value: str = "10", **policy: Any) -> Obj:
    capacity = {"bw": {"value": value, **({"requestPolicy": policy} if policy else {})}}
    return device(name, allowMultipleAllocations=True, capacity=capacity)


def wanting(amount: str, name: str = "bw") -> Obj:
    return {"capacity": {"requests": {name: amount}}}


def devices_of(*slices: Obj, claims: list[Obj] | None = None, **world: Any) -> list[str] | str | None:
    return World(list(slices), claims or [claim()], **world).devices()


COUNTERS = slice_(
    "counters", sharedCounters=[{"name": "set", "counters": {"memory": {"value": "8Gi"}}}], count=2, nodeName="n1"
)
PARTS = slice_("parts", counted("whole", "8Gi"), counted("h1", "4Gi"), counted("h2", "4Gi"), count=2)
TAINTED = device("d1", taints=[{"key": "k", "effect": "NoSchedule"}])
MATCH: Obj = {"constraints": [{"matchAttribute": f"{DRIVER}/m"}]}
DISTINCT: Obj = {"constraints": [{"distinctAttribute": f"{DRIVER}/m"}]}
PLAIN = slice_("s", device("d1"), device("d2"))
SIZED = slice_(
    "s",
    device("small", capacity={"memory": {"value": "10Gi"}}),
    device("large", capacity={"memory": {"value": "40Gi"}}),
)
POLICY: Obj = {"default": "2", "validRange": {"min": "2", "max": "6", "step": "2"}}


def test_devices_are_taken_as_listed() -> None:
    assert devices_of(slice_("s", device("z"), device("a"))) == ["r=z"]  # A1


def test_pools_come_by_name_and_slices_too() -> None:  # A2
    slices = [
        slice_("s1", device("d1"), pool="b"),
        slice_("s3", device("d3"), pool="a", count=2),
        slice_("s2", device("d2"), pool="a", count=2),
    ]
    assert devices_of(*slices, claims=[claim(request(count=3))]) == ["r=a/d2", "r=a/d3", "r=b/d1"]


def test_pools_with_binding_conditions_come_last() -> None:  # A3
    slices = [slice_("a", device("d1", bindingConditions=["x"]), pool="a"), slice_("b", device("d2"), pool="b")]
    assert devices_of(*slices) == ["r=b/d2"]


def test_a_later_request_makes_an_earlier_one_choose_otherwise() -> None:  # A4
    slices = slice_(
        "s",
        device("big", capacity={"memory": {"value": "2Gi"}}),
        device("small", capacity={"memory": {"value": "1Gi"}}),
    )
    requests = [
        request("r0", selectors=selectors(MEMORY.format("1Gi"))),
        request("r1", selectors=selectors(MEMORY.format("2Gi"))),
    ]
    assert devices_of(slices, claims=[claim(*requests)]) == ["r0=small", "r1=big"]


def test_the_first_alternative_that_works_is_taken() -> None:  # A5, A6
    alternatives = [{"name": "a", **ask(selectors=selectors("false"))}, {"name": "b", **ask(count=2)}]
    four = slice_("s", *(device(f"d{number}") for number in range(1, 5)))
    assert devices_of(four, claims=[claim(request(firstAvailable=alternatives))]) == ["r/b=d1", "r/b=d2"]
    x, y = selectors(f'{M} == "x"'), selectors(f'{M} == "y"')
    both = slice_("s", numbered("d1", "x"), numbered("d2", "y"))
    first = request(firstAvailable=[{"name": "a", **ask(selectors=x)}, {"name": "b", **ask(selectors=y)}])
    assert devices_of(both, claims=[claim(first, request("q", selectors=x))]) == ["r/b=d2", "q=d1"]


@pytest.mark.parametrize("bad", [{"count": 2}, {"twice": True}])
def test_unusable_pools_are_passed_over(bad: Obj) -> None:  # A7
    devices = [device("d1")] * (2 if bad.pop("twice", False) else 1)
    slices = [slice_("a", *devices, pool="a", **bad), slice_("b", device("d2"), pool="b")]
    assert devices_of(*slices) == ["r=b/d2"]


def test_all_devices_need_every_pool_to_be_complete() -> None:  # A8
    foreign = slice_("o", device("d1"), pool="a", count=2, **FOREIGN)
    mine = device_class(selectors=selectors(f'device.driver == "{DRIVER}"'))
    found = devices_of(PLAIN, foreign, claims=[claim(request(allocationMode="All"))], classes=[mine])
    state = "resource pool other.com/a is currently being updated"
    assert found == f"claim ns/cl, request r: asks for all devices, but {state}"


def test_contradicting_slices_make_the_node_unusable() -> None:  # A9
    error = "invalid resource pools were encountered"
    assert devices_of(slice_("s1", device("d1"), count=2), slice_("s2", device("d1"), count=2)) == error
    assert devices_of(slice_("s", counted("d1", "1"))) == error


def test_a_newer_generation_elsewhere_makes_a_pool_obsolete() -> None:  # A10
    old = slice_("s1", device("d1"), count=2)
    assert devices_of(old, slice_("s2", device("d2"), generation=2, nodeName="n2")) is None
    assert devices_of(slice_("s1", device("d1")), slice_("s2", device("d2"), generation=2)) == ["r=d2"]


def test_constraints_hold_between_devices() -> None:  # A11, A13, A14
    three = slice_("s", numbered("d1", 1), numbered("d2", 2), numbered("d3", 2))
    assert devices_of(three, claims=[claim(request(count=2), **MATCH)]) == ["r=d2", "r=d3"]
    pairs = slice_("s", numbered("d1", 1), numbered("d2", 1), numbered("d3", 2))
    assert devices_of(pairs, claims=[claim(request("a"), request("b"), **DISTINCT)]) == ["a=d1", "b=d3"]
    neighbours = slice_("s", numbered("d1", 1), numbered("d2", 2), numbered("d3", 1))
    three_distinct = [claim(request(count=3), **DISTINCT)]
    assert devices_of(neighbours, claims=three_distinct) is None
    assert devices_of(neighbours, claims=three_distinct, rules=BEFORE_1_37) == ["r=d1", "r=d2", "r=d3"]
    same = slice_("s", numbered("d1", 1), numbered("d2", 1))
    assert devices_of(same, claims=[claim(request(count=2), **DISTINCT)]) is None


def test_a_device_that_a_later_constraint_keeps_out_makes_an_earlier_distinct_one_forget() -> None:
    def typed(name: str, m: int, s: str) -> Obj:
        return device(name, attributes={"m": {"int": m}, "s": {"string": s}})

    same_m, other_s = {"matchAttribute": f"{DRIVER}/m"}, {"distinctAttribute": f"{DRIVER}/s"}
    offered = slice_("s", typed("d1", 2, "x"), typed("d2", 3, "w"), typed("d3", 2, "x"))
    # A habit before 1.37: trying d2 loses that x was taken, where the distinct constraint comes first.
    distinct_first = [claim(request(count=2), constraints=[other_s, same_m])]
    assert devices_of(offered, claims=distinct_first, rules=BEFORE_1_37) == ["r=d1", "r=d3"]
    assert devices_of(offered, claims=distinct_first) is None
    assert devices_of(offered, claims=[claim(request(count=2), constraints=[same_m, other_s])]) is None


def test_a_constraint_on_all_devices_that_fails_is_fatal() -> None:  # A12
    slices = slice_("s", numbered("d1", 1), numbered("d2", 2))
    found = devices_of(slices, claims=[claim(request(allocationMode="All"), **MATCH)])
    because = "because a claim constraint would not be satisfied"
    assert found == f"claim ns/cl, request r: cannot add device {DRIVER}/p/d2 {because}"


def test_admin_access_takes_devices_in_use() -> None:  # A15, A16
    one = slice_("s", device("d1"))
    normal, admin = claim(name="a"), claim(request(adminAccess=True), name="b")
    assert devices_of(one, claims=[normal, admin]) == ["r=d1", "r=d1"]
    assert devices_of(one, claims=[admin, normal]) is None
    found = World([one], [admin], in_use=[used("d1")]).allocate()
    assert isinstance(found, list)
    assert found[0]["devices"]["results"][0]["adminAccess"] is True


def test_all_devices_are_all_or_none() -> None:  # A17
    every = [claim(request(allocationMode="All"))]
    assert devices_of(PLAIN, claims=every) == ["r=d1", "r=d2"]
    assert devices_of(PLAIN, claims=every, in_use=[used("d1")]) is None
    nothing = [claim(request(allocationMode="All", selectors=selectors("false")))]
    assert devices_of(PLAIN, claims=nothing) is None
    assert devices_of(slice_("s", TAINTED, device("d2")), claims=every) is None


def test_a_claim_has_at_most_32_devices() -> None:  # A18
    claims = [claim(request("a", count=20), request("b", count=13))]
    of_claim = "claim ns/cl: number of requested devices 33 exceeds the claim limit of 32"
    assert devices_of(PLAIN, claims=claims, rules=BEFORE_1_37) == of_claim


def test_taints_exclude_unless_they_are_tolerated() -> None:  # A19
    slices = slice_("s", TAINTED, device("d2"))
    assert devices_of(slices) == ["r=d2"]
    tolerating = claim(request(tolerations=[{"key": "k", "operator": "Exists"}]))
    assert devices_of(slices, claims=[tolerating]) == ["r=d1"]
    harmless = device("d1", taints=[{"key": "k", "effect": "None"}])
    assert devices_of(slice_("s", harmless, device("d2"))) == ["r=d1"]


def test_partitions_share_counters() -> None:  # A20
    assert devices_of(COUNTERS, PARTS, claims=[claim(request(count=2))]) == ["r=h1", "r=h2"]
    assert devices_of(COUNTERS, PARTS, in_use=[used("h1")]) == ["r=h2"]


def test_capacity_is_shared_until_it_is_used_up() -> None:  # A21, A22
    two = slice_("s", shareable("d1"), shareable("d2"))
    both = World([two], [claim(name="a"), claim(name="b")])
    assert both.devices() == ["r=d1", "r=d2"]
    found = both.allocate()
    assert isinstance(found, list)
    assert found[0]["devices"]["results"][0]["consumedCapacity"] == {"bw": "10"}
    one = slice_("s", shareable("d1"))
    four, six, seven = (claim(request(**wanting(amount)), name=f"c{amount}") for amount in "467")
    assert devices_of(one, claims=[four, six]) == ["r=d1", "r=d1"]
    assert devices_of(one, claims=[four, seven]) is None
    busy = used("d1", shareID="s", consumedCapacity={"bw": "7"})
    assert devices_of(two, claims=[four], in_use=[busy]) == ["r=d2"]


def test_capacity_is_rounded_by_the_policy() -> None:  # A23
    one = slice_("s", shareable("d1", **POLICY))
    claims = [claim(request(**wanting("3")), name="a"), claim(request(**wanting("1")), name="b"), claim(name="c")]
    found = World([one], claims).allocate()
    assert isinstance(found, list)
    assert [each["devices"]["results"][0]["consumedCapacity"]["bw"] for each in found] == ["4", "2", "2"]
    assert devices_of(one, claims=[claim(request(**wanting("7")))]) is None
    assert devices_of(one, claims=[claim(request(**wanting("1", "nope")))]) is None


def test_capacity_chooses_among_devices_that_are_not_shared() -> None:  # A24
    found = World([SIZED], [claim(request(**wanting("20Gi", "memory")))]).allocate()
    assert isinstance(found, list)
    result = found[0]["devices"]["results"][0]
    assert result["device"] == "large"
    assert "shareID" not in result
    assert "consumedCapacity" not in result


def test_a_shared_device_serves_two_requests_but_not_one_twice() -> None:  # A25
    one = slice_("s", shareable("d1"))
    assert devices_of(one, claims=[claim(request(count=2, **wanting("1")))]) is None
    twice = claim(request("a", **wanting("1")), request("b", **wanting("1")))
    assert devices_of(one, claims=[twice]) == ["a=d1", "b=d1"]


def _term(key: str, value: str) -> Obj:
    return {"nodeSelectorTerms": [{"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}]}


def test_the_nodes_of_an_allocation_are_those_of_all_its_devices() -> None:  # A26, A27
    region = slice_("a", device("d1"), pool="a", nodeSelector=_term("region", "r1"))
    zone = slice_("b", device("d2"), pool="b", nodeSelector=_term("zone", "z1"))
    everywhere = slice_("c", device("d3"), pool="c", allNodes=True)
    labels = {"region": "r1", "zone": "z1"}
    found = World([region, zone, everywhere], [claim(request(count=3))], labels=labels).allocate()
    assert isinstance(found, list)
    wanted = [_term(key, value)["nodeSelectorTerms"][0]["matchExpressions"][0] for key, value in labels.items()]
    assert found[0]["nodeSelector"]["nodeSelectorTerms"] == [{"matchExpressions": wanted}]
    here = {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]}
    local = slice_("b", device("d2"), pool="b")
    found = World([region, local], [claim(request(count=2))], labels=labels).allocate()
    assert isinstance(found, list)
    assert found[0]["nodeSelector"] == here
    bound = slice_("c", device("d3", bindsToNode=True), allNodes=True)
    found = World([bound], [claim()]).allocate()
    assert isinstance(found, list)
    assert found[0]["nodeSelector"] == here
    found = World([everywhere], [claim()]).allocate()
    assert isinstance(found, list)
    assert "nodeSelector" not in found[0]


def test_configurations_of_classes_come_before_those_of_the_claim() -> None:  # A28
    config = {"opaque": {"driver": DRIVER, "parameters": {}}}
    classes = [
        device_class("k1", config=[config]),
        device_class("k2", config=[config], selectors=selectors("false")),
    ]
    alternatives = [{"name": "x", **ask(deviceClassName="k2")}, {"name": "y", **ask(deviceClassName="k1")}]
    requests = [request("a", deviceClassName="k1"), request("b", firstAvailable=alternatives)]
    of_claim = [config, *({**config, "requests": names} for names in (["b/y"], ["b/x"], ["a", "b"]))]
    found = World([PLAIN], [claim(*requests, config=of_claim)], classes, rules=BEFORE_1_37).allocate()
    assert isinstance(found, list)
    written = [(each["source"], each.get("requests", [])) for each in found[0]["devices"]["config"]]
    assert written == [
        ("FromClass", ["a", "b/y"]),
        ("FromClaim", []),
        ("FromClaim", ["b/y"]),
        ("FromClaim", ["a", "b"]),
        ("FromClaim", ["a", "b"]),
    ]


def test_errors_of_selectors_end_the_attempt_only_where_they_are_met() -> None:  # A29
    wanting_m = claim(request(selectors=selectors(f"{M} == 1")))
    without, with_m = device("d2"), numbered("d1", 1)
    error = "claim ns/cl: selector #0: CEL runtime error: no such key: m"
    assert devices_of(slice_("s", without, with_m), claims=[wanting_m], rules=BEFORE_1_37) == error
    assert devices_of(slice_("s", without, with_m), claims=[wanting_m], in_use=[used("d2")]) == ["r=d1"]
    assert devices_of(slice_("s", with_m, without), claims=[wanting_m]) == ["r=d1"]


def test_a_missing_class_is_an_error() -> None:
    found = devices_of(PLAIN, classes=[])
    missing = 'could not retrieve device class c: deviceclass.resource.k8s.io "c" not found'
    assert found == f"claim ns/cl, request r: {missing}"


def test_a_search_that_takes_too_long_ends() -> None:
    node = Node(metadata=ObjectMeta(name="n1"))
    asked = decode_json(ResourceClaim, msgspec.json.encode(claim()))
    classes = {"c": decode_json(DeviceClass, msgspec.json.encode(device_class()))}
    with pytest.raises(TimeoutError):
        allocate(node, DeviceInventory([]).pools(node), [asked], classes, DeviceTally(), expired=lambda: True)


@pytest.mark.parametrize("seed", seeds(300))
def test_what_is_found_keeps_the_rules(seed: int) -> None:
    world = random_world(seed)
    found = world.allocate()
    if not isinstance(found, list):
        return
    offered = {
        (each["spec"]["driver"], each["spec"]["pool"]["name"], item["name"]): item
        for each in world.slices
        for item in each["spec"].get("devices", ())
    }
    taken: set[tuple[str, str, str]] = set()
    busy = {
        (result["driver"], result["pool"], result["device"])
        for each in world.in_use
        for result in each["status"]["allocation"]["devices"]["results"]
        if "shareID" not in result
    }
    for asked, given in zip(world.claims, found, strict=True):
        results = given["devices"].get("results", [])
        for result in results:
            key = (result["driver"], result["pool"], result["device"])
            assert key in offered
            if not result.get("adminAccess") and not offered[key].get("allowMultipleAllocations"):
                assert key not in taken | busy
                taken.add(key)
        for constraint in asked["spec"]["devices"].get("constraints", []):
            name = constraint.get("matchAttribute", "").partition("/")[2]
            if name and not constraint.get("requests"):
                keys = [(result["driver"], result["pool"], result["device"]) for result in results]
                assert len({str(offered[key]["attributes"][name]) for key in keys}) <= 1


def test_devices_that_a_constraint_rules_out_are_passed_over_without_effect(monkeypatch: pytest.MonkeyPatch) -> None:
    seeds = range(300)
    passing_over = [random_world(seed).allocate() for seed in seeds]
    monkeypatch.setattr(_Search, "_candidates", lambda self, _claim, _request, start: range(start, len(self._places)))
    assert [random_world(seed).allocate() for seed in seeds] == passing_over
