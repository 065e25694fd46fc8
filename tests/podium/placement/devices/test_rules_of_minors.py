"""What Kubernetes 1.36 and 1.37 allocate otherwise than the minor before, vector by vector."""

from typing import Any

import pytest

from podium.kube.versions.devices import BEFORE_1_36, BEFORE_1_37, NEWEST, DeviceRules
from tests.podium.placement.devices.worlds import (
    DRIVER,
    Obj,
    World,
    ask,
    claim,
    device,
    device_class,
    numbered,
    request,
    selectors,
    slice_,
    used,
)

DISTINCT: Obj = {"constraints": [{"distinctAttribute": f"{DRIVER}/m"}]}
HINT = (
    "consider using CEL optional chaining (.? followed by orValue()) "
    "or guarding the check with has() for optional fields"
)
CONFIG = {"opaque": {"driver": DRIVER, "parameters": {}}}


def three(*values: int) -> Obj:
    return slice_("s", *(numbered(f"d{number}", value) for number, value in enumerate(values, 1)))


def shareable(name: str = "d1", bandwidth: str = "10", **policy: Any) -> Obj:
    value = {"value": bandwidth, **({"requestPolicy": policy} if policy else {})}
    return device(name, allowMultipleAllocations=True, capacity={"bw": value})


def wanting(amount: str, **fields: Any) -> Obj:
    return claim(request(capacity={"requests": {"bw": amount}}, **fields))


def in_range(**valid: str) -> Obj:
    return slice_("s", shareable(bandwidth="18E", default=valid["min"], validRange=valid))


def counting(amount: str, *groups: str, **fields: Any) -> Obj:
    """A device that takes its share of the counter `mem`."""
    use: Obj = {"counterSet": "set", "counters": {"mem": {"value": amount}}}
    return device("d1", consumesCounters=[use | ({"compatibilityGroups": list(groups)} if groups else {})], **fields)


def counters(amount: str, node: str = "n1") -> Obj:
    sets = [{"name": "set", "counters": {"mem": {"value": amount}}}]
    return slice_("c", count=2, nodeName=node, sharedCounters=sets)


THREE_DISTINCT = [claim(request(count=3), **DISTINCT)]
VECTORS = [
    ("V20 one value twice", World([three(1, 2, 1)], THREE_DISTINCT), ["r=d1", "r=d2", "r=d3"], None),
    ("V20 three values", World([three(1, 2, 3)], THREE_DISTINCT), ["r=d1", "r=d2", "r=d3"], ["r=d1", "r=d2", "r=d3"]),
    (
        "V21 two requests",
        World([three(1)], [claim(request("r", count=20), request("q", count=13))]),
        "claim ns/cl: number of requested devices 33 exceeds the claim limit of 32",
        "claim ns/cl, request q: adding 13 devices exceeds the claim limit of 32, with 20 already accounted for",
    ),
    (
        "V21 one request",
        World([three(1)], [claim(request("r", count=33))]),
        "claim ns/cl: number of requested devices 33 exceeds the claim limit of 32",
        "claim ns/cl, request r: adding 33 devices exceeds the claim limit of 32, with 0 already accounted for",
    ),
    (
        "V22",
        World([three(1)], [claim(request(selectors=selectors(f'device.attributes["{DRIVER}"].nope == 1')))]),
        "claim ns/cl: selector #0: CEL runtime error: no such key: nope",
        f"claim ns/cl: selector #0 on device {DRIVER}/p/d1: CEL runtime error: no such key: nope. {HINT}",
    ),
    (
        "V23",
        World(
            [slice_("s", shareable("d1"), shareable("d2"))],
            [wanting("4", allocationMode="All")],
            in_use=[used("d1", shareID="u", consumedCapacity={"bw": "8"})],
        ),
        ["r=d2"],
        None,
    ),
    (
        "V24",
        World([in_range(min="1", step="2")], [wanting("9223372036854775807")]),
        ["r=d1"],
        f'claim ns/cl, request r: checking capacity for device {DRIVER}/p/d1: capacity "bw": capacity request cannot '
        "be represented in the device's range arithmetic: request 9223372036854775807 is not a representable milli "
        "value",
    ),
    (
        "V27",
        World(
            [
                slice_("s", counting("4Gi", allowMultipleAllocations=True), count=2),
                counters("4Gi"),
            ],
            [claim(request())],
            in_use=[used("d1", shareID="u")],
        ),
        None,
        ["r=d1"],
    ),
    (
        "V28",
        World(
            [slice_("other", device("x"), pool="q"), counters("1", "n2")],
            [claim(request(allocationMode="All"))],
        ),
        f"claim ns/cl, request r: asks for all devices, but resource pool {DRIVER}/p is currently being updated",
        ["r=q/x"],
    ),
    (
        "V30",
        World(
            [
                slice_("s", counting("1", "g"), count=2),
                counters("4"),
            ],
            [claim(request())],
        ),
        ["r=d1"],
        None,
    ),
    (
        "derived attributes",
        World([three(1)], [claim(request(derivedAttributes=[{"name": "x.example.com/a", "expression": "1"}]))]),
        ["r=d1"],
        "claim ns/cl, request r: cannot handle request with derived attributes, the feature is disabled",
    ),
]


@pytest.mark.parametrize(("name", "world", "before", "now"), VECTORS, ids=[each[0] for each in VECTORS])
def test_devices_of_a_vector(name: str, world: World, before: object, now: object) -> None:
    world.rules = BEFORE_1_37
    assert world.devices() == before
    world.rules = NEWEST
    assert world.devices() == now


@pytest.mark.parametrize(
    ("valid", "wanted", "before", "now"),
    [
        ({"min": "0", "step": "512"}, "600", "1Ki", "1024"),  # V25
        ({"min": "500m", "step": "250m"}, "600m", "1", "750m"),  # V26
        ({"min": "0", "step": "1Ki"}, "1500", "2Ki", "2Ki"),
        ({"min": "1", "step": "2"}, "2500m", "3", "3"),
    ],
)
def test_what_a_share_consumes(valid: dict[str, str], wanted: str, before: str, now: str) -> None:
    for rules, expected in ((BEFORE_1_37, before), (NEWEST, now)):
        found = World([in_range(**valid)], [wanting(wanted)], rules=rules).allocate()
        assert isinstance(found, list)
        assert found[0]["devices"]["results"][0]["consumedCapacity"] == {"bw": expected}


def test_a_configuration_is_copied_once_and_names_no_requests_where_it_covers_all() -> None:  # V29
    classes = [device_class("k1", config=[CONFIG]), device_class("k2", config=[CONFIG], selectors=selectors("false"))]
    alternatives = [{"name": "x", **ask(deviceClassName="k2")}, {"name": "y", **ask(deviceClassName="k1")}]
    requests = [request("a", deviceClassName="k1"), request("b", firstAvailable=alternatives)]
    of_claim = [CONFIG, *({**CONFIG, "requests": names} for names in (["b/y"], ["b/x"], ["a", "b"]))]
    found = World([three(1, 2)], [claim(*requests, config=of_claim)], classes).allocate()
    assert isinstance(found, list)
    written = [(each["source"], each.get("requests", [])) for each in found[0]["devices"]["config"]]
    assert written == [("FromClass", []), ("FromClaim", []), ("FromClaim", ["b/y"]), ("FromClaim", [])]


def rule(effect: str = "NoSchedule", **selector: str) -> Obj:
    spec = {"taint": {"key": "k", "value": "v", "effect": effect}, "deviceSelector": selector}
    return {"metadata": {"name": "rule"}, "spec": spec}


TOLERATING = claim(request(tolerations=[{"key": "k", "operator": "Exists"}]))


@pytest.mark.parametrize(
    ("taint_rule", "wanted", "expected"),
    [
        (rule(driver=DRIVER, device="d1"), claim(request()), ["r=d2"]),  # V31
        (rule(driver=DRIVER), claim(request()), None),
        (rule(), claim(request()), None),  # an empty selector chooses every device
        (rule(pool="other"), claim(request()), ["r=d1"]),
        (rule(effect="None"), claim(request()), ["r=d1"]),
        (rule(effect="NoExecute", device="d1"), claim(request()), ["r=d2"]),
        (rule(), TOLERATING, ["r=d1"]),
        ({"metadata": {"name": "all"}, "spec": {"taint": rule()["spec"]["taint"]}}, claim(request()), ["r=d1"]),  # V32
    ],
)
def test_a_taint_rule_keeps_claims_from_devices(taint_rule: Obj, wanted: Obj, expected: object) -> None:
    world = World([three(1, 2)], [wanted], taint_rules=[taint_rule])
    assert world.devices() == expected
    world.rules = BEFORE_1_37
    assert world.devices() == ["r=d1"]


def alternative(name: str, expression: str = "true", **fields: Any) -> Obj:
    return {"name": name, **ask(selectors=selectors(expression), **fields)}


def every(name: str, expression: str = "true") -> Obj:
    return alternative(name, expression, allocationMode="All")


IS_1, IS_2, IS_3, NONE = (f'device.attributes["{DRIVER}"].m {each}' for each in ("== 1", "== 2", "== 3", "> 9"))


@pytest.mark.parametrize(
    ("alternatives", "rules", "expected"),
    [
        # Behind the first device of "all", 1.35 goes on with the first alternative, which wants no second one.
        ([alternative("a", NONE), every("b")], BEFORE_1_36, ["r/b=d1"]),
        ([alternative("a", NONE), every("b")], BEFORE_1_37, ["r/b=d1", "r/b=d2", "r/b=d3"]),
        # Here it wants two, and finds its second device itself.
        ([alternative("a", IS_2, count=2), every("b")], BEFORE_1_36, ["r/b=d1", "r/a=d2"]),
        ([alternative("a", NONE, count=2), every("b")], BEFORE_1_36, None),
        # The devices of the second "all" are those of the first one in 1.35.
        ([every("a", NONE), every("b", IS_1)], BEFORE_1_36, None),
        ([every("a", NONE), every("b", IS_1)], BEFORE_1_37, ["r/b=d1"]),
        ([every("a", NONE), every("b", 'device.attributes["x.test"].gone')], BEFORE_1_36, None),
        ([alternative("a", NONE), every("b", IS_1)], BEFORE_1_36, ["r/b=d1"]),
    ],
)
def test_an_alternative_that_asks_for_all_devices_gets_those_that_its_minor_gives_it(
    alternatives: list[Obj], rules: DeviceRules, expected: object
) -> None:
    assert World([three(1, 2, 3)], [claim(request(firstAvailable=alternatives))], rules=rules).devices() == expected


@pytest.mark.parametrize(("rules", "expected"), [(BEFORE_1_36, ["r/c=d3"]), (BEFORE_1_37, ["r/b=d2"])])
def test_in_1_35_the_devices_of_the_third_all_are_its_own_and_those_of_the_second_are_not(
    rules: DeviceRules, expected: list[str]
) -> None:
    alternatives = [every("a", IS_1), every("b", IS_2), every("c", IS_3)]
    wanted = [claim(request(firstAvailable=alternatives))]
    assert World([three(1, 2, 3)], wanted, in_use=[used("d1")], rules=rules).devices() == expected


@pytest.mark.parametrize("value", ["1", f'device.attributes["{DRIVER}"].m'])
def test_before_1_37_whole_numbers_are_durations(value: str) -> None:
    wanted = [claim(request(selectors=selectors(f'duration({value}) == duration("1ns") || true')))]
    assert World([three(1)], wanted, rules=BEFORE_1_37).devices() == ["r=d1"]
    selected = selectors(f'duration({value}) < duration("1h")')
    found = World([three(1)], [claim(request(selectors=selected))]).devices()
    assert isinstance(found, str)
    assert "no matching overload" in found or "no such overload" in found
    assert World([three(1)], [claim(request(selectors=selected))], rules=BEFORE_1_37).devices() == ["r=d1"]
