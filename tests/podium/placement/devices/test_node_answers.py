"""What nodes answered is kept as long as nothing changes that their searches have looked at, and not longer."""

import random
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from podium.cluster import Cluster
from podium.framework.clock import ManualClock
from podium.kube import DeviceClass, Node, ResourceClaim, ResourceSlice
from podium.kube.devices import Allocation
from podium.placement.devices import (
    AllocationError,
    DeviceInventory,
    DevicePool,
    InvalidPoolsError,
    allocate,
    node_answers,
)
from podium.placement.devices.allocator import search
from podium.placement.devices.inventory import device_matches, node_matches
from podium.placement.devices.node_answers import SHORT, NodeAnswers, SearchTime
from podium.placement.devices.preparation import never
from podium.placement.devices.uses import DeviceUses, device_uses
from tests.podium.placement.devices.worlds import (
    DRIVER,
    Obj,
    ask,
    claim,
    device,
    device_class,
    request,
    selectors,
    slice_,
    used,
)
from tools.kit.builders import build, make_cluster, make_node
from tools.kit.effort import seeds

EVERYWHERE: Obj = {"allNodes": True}
SHARED_MEMORY: Obj = {"allowMultipleAllocations": True, "capacity": {"mem": {"value": "8"}}}


def make(nodes: int, *slices: Obj) -> tuple[Cluster, DeviceUses]:
    cluster = make_cluster([make_node(f"n{number}", labels={"half": str(number % 2)}) for number in range(nodes)])
    cluster.objects.device_classes.set("c", build(DeviceClass, device_class()))
    for each in slices:
        cluster.objects.resource_slices.set(each["metadata"]["name"], build(ResourceSlice, each))
    return cluster, device_uses(cluster.objects)


def asked(*requests: Obj, **devices: Any) -> list[ResourceClaim]:
    return [build(ResourceClaim, claim(*requests, **devices))]


def take(cluster: Cluster, pool: str, *devices: str, **fields: Any) -> None:
    """Have devices come into use."""
    name = f"{pool}-{'-'.join(devices)}"
    cluster.objects.resource_claims.set(f"ns/{name}", build(ResourceClaim, used(*devices, pool=pool, **fields)))


def give_back(cluster: Cluster, pool: str, *devices: str) -> None:
    cluster.objects.resource_claims.discard(f"ns/{pool}-{'-'.join(devices)}")


class Searches:
    """The nodes on which was searched."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.nodes: list[str] = []

        def counting(node: Node, *rest: Any) -> Any:
            self.nodes.append(node.name)
            return search(node, *rest)

        monkeypatch.setattr(node_answers, "search", counting)

    def since(self) -> list[str]:
        found, self.nodes = self.nodes, []
        return found


def given(answers: NodeAnswers, row: int) -> list[str] | None:
    found = answers.allocations(row)
    return None if found is None else [result.device for each in found for result in each.devices.results]


def test_nodes_with_devices_of_their_own_share_an_answer_that_does_not_come_to_these(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = [slice_(f"own{number}", device("o"), pool="own", nodeName=f"n{number}") for number in range(20)]
    cluster, uses = make(20, slice_("net", device("d1"), device("d2"), pool="net", **EVERYWHERE), *own)
    searches, answers = Searches(monkeypatch), NodeAnswers(cluster, uses)
    answers.refresh(asked(), lambda: never)
    assert (searches.since(), given(answers, 0), given(answers, 19)) == (["n0"], ["d1"], ["d1"])
    take(cluster, "net", "d1")
    answers.refresh(asked(), lambda: never)
    assert (searches.since(), given(answers, 0), given(answers, 19)) == (["n0"], ["d2"], ["d2"])
    take(cluster, "net", "d2")
    answers.refresh(asked(), lambda: never)
    assert (len(searches.since()), given(answers, 0), given(answers, 19)) == (20, ["o"], ["o"])


def test_a_pool_behind_the_first_solution_makes_nobody_search_again(monkeypatch: pytest.MonkeyPatch) -> None:
    own = [slice_(f"own{number}", device("o"), pool=f"a{number}", nodeName=f"n{number}") for number in range(20)]
    cluster, uses = make(20, slice_("net", device("d1"), device("d2"), pool="net", **EVERYWHERE), *own)
    searches, answers = Searches(monkeypatch), NodeAnswers(cluster, uses)
    answers.refresh(asked(), lambda: never)
    assert len(searches.since()) == 20
    take(cluster, "net", "d1")
    answers.refresh(asked(), lambda: never)
    assert (searches.since(), given(answers, 7)) == ([], ["o"])
    take(cluster, "a7", "o")
    answers.refresh(asked(), lambda: never)
    assert (searches.since(), given(answers, 7), given(answers, 8)) == (["n7"], ["d2"], ["o"])
    give_back(cluster, "net", "d1")
    answers.refresh(asked(), lambda: never)
    assert (searches.since(), given(answers, 7), given(answers, 8)) == (["n7"], ["d1"], ["o"])


def test_a_status_update_of_a_node_builds_nothing_anew() -> None:
    cluster, uses = make(2, slice_("net", device("d1"), **EVERYWHERE), slice_("own", device("o"), nodeName="n1"))
    node = cluster.nodes[1]
    assert node is not None
    seen = uses.inventory.devices(node)
    assert uses.inventory.devices(replace(node, status=replace(node.status))) is seen
    relabelled = replace(node, metadata=replace(node.metadata, labels={"half": "x"}))
    assert uses.inventory.devices(relabelled) is not seen


def test_an_error_is_met_on_a_device_that_was_in_use_when_others_were_looked_at() -> None:
    values = {"d0": 0, "d1": 1, "d2": 1, "d3": 5}
    devices = [device(name, attributes={"m": {"int": value}, "s": {"string": "x"}}) for name, value in values.items()]
    del devices[3]["attributes"]["s"]
    cluster, uses = make(1, slice_("s", *devices, nodeName="n0"))
    wanted = request(count=2, selectors=selectors(f'device.attributes["{DRIVER}"].s == "x"'))
    claims = asked(wanted, constraints=[{"matchAttribute": f"{DRIVER}/m"}])
    answers = NodeAnswers(cluster, uses)
    take(cluster, "p", "d3")
    answers.refresh(claims, lambda: never)
    assert (given(answers, 0), answers.errors) == (["d1", "d2"], {})
    give_back(cluster, "p", "d3")
    answers.refresh(claims, lambda: never)
    (error,) = answers.errors.values()
    assert error.startswith(
        "claim ns/cl: selector #0 on device drv.example.com/p/d3: CEL runtime error: no such key: s"
    )


def counting(name: str, *devices: str) -> list[Obj]:
    consumed = [{"counterSet": "set", "counters": {"n": {"value": "1"}}}]
    return [device(f"{name}{each}", consumesCounters=consumed) for each in devices]


def test_a_pool_that_is_short_of_counters_is_passed_over_until_they_are_given_back() -> None:
    sets = [{"name": "set", "counters": {"n": {"value": "2"}}}]
    pools = [
        each
        for name in "ab"
        for each in (
            slice_(f"{name}-set", pool=name, count=2, sharedCounters=sets, **EVERYWHERE),
            slice_(name, *counting(name, "1", "2", "3"), pool=name, count=2, **EVERYWHERE),
        )
    ]
    cluster, uses = make(1, *pools)
    answers, claims = NodeAnswers(cluster, uses), asked(request("q"), request("r", count=2))
    answers.refresh(claims, lambda: never)
    assert given(answers, 0) == ["a1", "a2", "b1"]
    take(cluster, "a", "a1", "a2")
    answers.refresh(claims, lambda: never)
    assert given(answers, 0) is None
    answers, two = NodeAnswers(cluster, uses), asked(request(count=2))
    answers.refresh(two, lambda: never)
    assert given(answers, 0) == ["b1", "b2"]
    give_back(cluster, "a", "a1", "a2")
    answers.refresh(two, lambda: never)
    assert given(answers, 0) == ["a1", "a2"]


def test_a_pool_that_is_short_for_one_node_may_not_be_for_another_that_sees_other_slices_of_it() -> None:
    sets = [{"name": "set", "counters": {"n": {"value": "1"}}}]
    cluster, uses = make(
        2,
        slice_("set", count=3, sharedCounters=sets, **EVERYWHERE),
        slice_("a", *counting("a", "1"), count=3, **EVERYWHERE),
        slice_("b", *counting("b", "1"), count=3, nodeName="n0"),
        slice_("c", device("c1"), count=3, nodeName="n1"),
    )
    take(cluster, "p", "b1")
    answers = NodeAnswers(cluster, uses)
    answers.refresh(asked(), lambda: never)
    assert (given(answers, 0), given(answers, 1)) == (None, ["a1"])


def _device(dice: random.Random, name: str, *, counted: bool) -> Obj:
    fields: Obj = {"attributes": {"m": {"int": dice.randint(1, 3)}}}
    if dice.random() < 0.1:
        fields["attributes"] = {}
    if dice.random() < 0.4:
        fields |= SHARED_MEMORY
    if counted:
        fields["consumesCounters"] = [{"counterSet": "set", "counters": {"n": {"value": str(dice.randint(1, 3))}}}]
    if dice.random() < 0.1:
        fields["taints"] = [{"key": "t", "effect": "NoSchedule"}]
    return device(name, **fields)


def _random_slices(dice: random.Random) -> list[Obj]:
    """Pools that all nodes see, that some do, and that one does, in one order of names; some in two ways at once."""
    slices = []
    for name in dice.sample("abcdefghij", 7):
        kind = dice.choice(("all", "half", "own", "own", "each", "both"))
        counted = dice.random() < 0.3
        devices = [_device(dice, f"{name}{number}", counted=counted) for number in range(dice.randint(1, 3))]
        count = 1 + counted + (kind == "both")
        node: Obj = {"nodeName": f"n{dice.randint(0, 4)}"}
        chosen: Obj = EVERYWHERE
        if kind == "half":
            expression = {"key": "half", "operator": "In", "values": [dice.choice("01")]}
            chosen = {"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
        elif kind == "own":
            chosen = node
        elif kind == "each":
            chosen = {"perDeviceNodeSelection": True}
            devices = [{**each, **dice.choice((EVERYWHERE, node))} for each in devices]
        slices.append(slice_(name, *devices, pool=name, count=count, **chosen))
        if kind == "both":
            slices.append(
                slice_(f"{name}-own", _device(dice, f"{name}x", counted=False), pool=name, count=count, **node)
            )
        if counted:
            sets = [{"name": "set", "counters": {"n": {"value": "4"}}}]
            slices.append(slice_(f"{name}-set", pool=name, count=count, sharedCounters=sets, **EVERYWHERE))
    return slices


def _random_claims(dice: random.Random) -> list[ResourceClaim]:
    def wanted() -> Obj:
        fields: Obj = {"count": dice.choice((1, 1, 2, 3))}
        if dice.random() < 0.3:
            fields["capacity"] = {"requests": {"mem": str(dice.choice((2, 4, 8)))}}
        if dice.random() < 0.4:
            expression = dice.choice((".?m.orValue(0) >= 2", ".m == 1", ".m < 3"))
            fields["selectors"] = selectors(f'device.attributes["{DRIVER}"]{expression}')
        if dice.random() < 0.1:
            return {"allocationMode": "All", **{key: each for key, each in fields.items() if key != "count"}}
        return fields

    requests = []
    for number in range(dice.randint(1, 2)):
        if dice.random() < 0.3:
            alternatives = [{"name": f"s{each}", **ask(**wanted())} for each in range(2)]
            requests.append(request(f"r{number}", firstAvailable=alternatives))
        else:
            requests.append(request(f"r{number}", **wanted()))
    kind = dice.choice(("matchAttribute", "distinctAttribute", "", ""))
    return asked(*requests, constraints=[{kind: f"{DRIVER}/m"}] if kind else [])


def _alone(
    cluster: Cluster, uses: DeviceUses, node: Node, claims: list[ResourceClaim]
) -> list[Allocation] | str | None:
    """What a node answers that is asked by itself, as if for the first time."""
    fresh = DeviceInventory(cluster.objects.resource_slices)
    try:
        return allocate(node, fresh.pools(node), claims, uses.classes, uses.tally)
    except InvalidPoolsError:
        return None
    except AllocationError as error:
        return str(error)


def _plain(found: list[Allocation] | str | None) -> Any:
    data = msgspec.to_builtins(found)
    for each in data if isinstance(data, list) else ():
        for result in each["devices"].get("results", ()):
            result.pop("shareID", None)
    return data


@pytest.mark.parametrize("seed", seeds(200))
def test_a_node_sees_the_pools_of_all_slices_that_choose_it(seed: int) -> None:
    slices = [build(ResourceSlice, each) for each in _random_slices(random.Random(seed))]
    inventory = DeviceInventory(slices)
    for number in range(5):
        node = make_node(f"n{number}", labels={"half": str(number % 2)})
        chosen = [each for each in slices if each.spec.shared_counters or _chosen(each, node)]
        own_first = sorted(chosen, key=lambda each: not each.spec.node_name)
        expected = sorted(inventory._gathered(own_first), key=lambda pool: pool.order)
        assert list(map(_shown, inventory.pools(node))) == list(map(_shown, expected))


def _chosen(each: ResourceSlice, node: Node) -> bool:
    if each.spec.per_device_node_selection:
        return any(device_matches(node, item) for item in each.spec.devices)
    spec = each.spec
    return node_matches(node, spec.node_name, all_nodes=spec.all_nodes, selector=spec.node_selector)


def _shown(pool: DevicePool) -> tuple[object, ...]:
    here, elsewhere = ([offered.id for offered in found] for found in (pool.devices, pool.elsewhere))
    return pool.id, here, elsewhere, pool.counters, pool.incomplete, pool.invalid


@pytest.mark.parametrize("seed", seeds(200))
def test_kept_answers_are_those_of_nodes_that_are_asked_by_themselves(seed: int) -> None:
    dice = random.Random(seed)
    cluster, uses = make(5, *_random_slices(dice))
    kinds = [_random_claims(dice) for _ in range(2)]
    kept = [NodeAnswers(cluster, uses) for _ in kinds]
    held: list[str] = []
    for step in range(12):
        for claims, answers in zip(kinds, kept, strict=True):
            answers.refresh(claims, lambda: never)
            for row, node in enumerate(cluster.nodes):
                assert node is not None
                found = answers.errors[row] if row in answers.errors else answers.allocations(row)
                assert _plain(found) == _plain(_alone(cluster, uses, node, claims)), node.name
        if held and dice.random() < 0.4:
            cluster.objects.resource_claims.discard(held.pop(dice.randrange(len(held))))
        elif dice.random() < 0.15:
            number = dice.randrange(5)
            cluster.set_node(make_node(f"n{number}", labels={"half": dice.choice("01")}))
        else:
            for allocation in kept[step % 2].allocations(dice.randrange(5)) or ():
                taken = build(ResourceClaim, claim(name=f"given{step}"))
                status = replace(taken.status, allocation=allocation)
                cluster.objects.resource_claims.set(taken.key, replace(taken, status=status))
                held.append(taken.key)


def test_a_search_may_take_all_of_the_time() -> None:
    clock = ManualClock(100.0)
    expired = SearchTime(clock.now, 10).begin()
    clock.advance(10)
    assert not expired()
    clock.advance(0.001)
    assert expired()


def test_searches_that_take_long_share_the_time() -> None:
    clock = ManualClock(100.0)
    time = SearchTime(clock.now, 10)
    time.begin()
    clock.advance(4)
    expired = time.begin()
    clock.advance(6)
    assert not expired()
    clock.advance(0.001)
    assert expired()


def test_short_searches_do_not_count_and_are_always_allowed() -> None:
    clock = ManualClock(100.0)
    time = SearchTime(clock.now, 10)
    for _ in range(1000):
        assert not time.begin()()
        clock.advance(SHORT / 2)
    time.begin()
    clock.advance(11)
    expired = time.begin()
    clock.advance(SHORT / 2)
    assert not expired()
    clock.advance(SHORT)
    assert expired()


def test_no_seconds_are_no_limit() -> None:
    clock = ManualClock(100.0)
    expired = SearchTime(clock.now, 0).begin()
    clock.advance(1e9)
    assert not expired()
