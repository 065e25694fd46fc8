"""What `podium explain` says of devices: those that a node would give, and why there are none."""

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from podium.engine.explain import explain
from podium.kube import ResourceClaim
from podium.kube.devices import DeviceConstraint
from tests.podium.placement.devices import worlds
from tests.podium.placement.devices.worlds import DRIVER, device, numbered, request, selectors
from tests.podium.plugins.dynamic_resources.test_scheduling import claim, class_of_devices, pod, slice_of
from tools.kit.builders import build, make_node, make_pod


def test_each_feasible_node_has_the_devices_it_would_give() -> None:
    slices = [slice_of("s1", device("d1"), device("d2")), slice_of("s2", device("d3"), nodeName="n2")]
    objects = [make_node("n1"), make_node("n2"), class_of_devices(), *slices, claim("cl", request(count=2))]
    data = explain(objects, pod()).to_data()
    assert data["selected"] == "n1"
    given = {"claim": "default/cl", "request": "r", "driver": DRIVER, "pool": "s1"}
    assert {node["name"]: node.get("devices") for node in data["nodes"]} == {
        "n1": [{**given, "device": "d1"}, {**given, "device": "d2"}],
        "n2": None,
    }


def lines(wanted: dict[str, Any], *objects: Any, nodes: Sequence[str] = ("n1", "n2")) -> list[str]:
    """What is said of a pod with a claim that asks for this."""
    made = [make_node(name) for name in nodes]
    return explain([*made, class_of_devices(), claim("cl", wanted), *objects], pod()).notes


NODE_2 = {"nodeName": "n2"}


def test_each_request_says_what_it_finds_on_which_node() -> None:
    wanted = request(selectors=selectors(f'device.attributes["{DRIVER}"].m == 2'), count=2)
    slices = slice_of("s1", numbered("d1", 1), numbered("d2", 2)), slice_of("s2", numbered("d3", 2), **NODE_2)
    assert lines(wanted, *slices, nodes=("n1", "n2", "n3", "n4")) == [
        "claim default/cl, request r: wants 2 of class c; of 3 devices 2 match, on 2 nodes; 2 would do",
        "  n1: 1 of 2 devices would do; 1 rejected by selector #0 of the request"
        f' (device.attributes["{DRIVER}"].m == 2)',
        "  n2: 1 of 1 devices would do",
        "  n3, n4: no devices",
        "it would fit on n1 if request r of claim default/cl had no selectors",
        "it would fit on n1, n2 if request r of claim default/cl wanted 1 instead of 2",
    ]


def test_devices_in_use_and_taints_are_named_with_what_would_unblock_the_pod() -> None:
    tainted = device("d2", taints=[{"key": "sick", "value": "very", "effect": "NoSchedule"}])
    slices = slice_of("s1", device("d1")), slice_of("s2", tainted, **NODE_2)
    result = {"request": "r", "driver": DRIVER, "pool": "s1", "device": "d1"}
    holder = claim("holder", request(), allocation={"devices": {"results": [result]}})
    assert lines(request(), *slices, holder) == [
        "claim default/cl, request r: wants 1 of class c; of 2 devices 2 match, on 2 nodes; 0 would do",
        "  n1: 0 of 1 devices would do; 1 in use by claim default/holder",
        "  n2: 0 of 1 devices would do; 1 with the taint sick=very:NoSchedule",
        "it would fit on n1 if claim default/holder gave back its devices",
        "it would fit on n2 if it tolerated the taint sick=very:NoSchedule",
    ]


def test_a_constraint_says_which_values_there_are() -> None:
    objects = [make_node("n1"), class_of_devices(), slice_of("s1", numbered("d1", 1), numbered("d2", 2))]
    constraints = [{"matchAttribute": f"{DRIVER}/m"}]
    wanted = build(ResourceClaim, worlds.claim(request(count=2), name="cl", constraints=constraints))
    wanted = replace(wanted, metadata=replace(wanted.metadata, namespace="default"))
    assert explain([*objects, wanted], pod()).notes == [
        "claim default/cl, request r: wants 2 of class c; of 2 devices 2 match, on 1 node; 2 would do",
        "  n1: 2 of 2 devices would do",
        f"claim default/cl, constraint #0: wants the same {DRIVER}/m on each device of r",
        "  n1: 1 with 1; 1 with 2",
        f"it would fit on n1 if claim default/cl had no constraint #0 ({DRIVER}/m)",
        "it would fit on n1 if request r of claim default/cl wanted 1 instead of 2",
    ]


def test_no_devices_at_all_and_pools_that_cannot_be_used_are_said() -> None:
    contradicting = [slice_of(name, device("d1"), pool="p", count=2) for name in ("s1", "s2")]
    assert lines(request(), *contradicting, nodes=("n1",))[1:] == [
        f"  n1: no devices; pool {DRIVER}/p contradicts itself",
        "it needs more devices: no single change of claims, taints and devices in use would do",
    ]


def test_a_claim_with_devices_says_where_they_can_be_used() -> None:
    chosen = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["gone"]}]}
    result = {"request": "r", "driver": DRIVER, "pool": "s1", "device": "d1"}
    allocation = {"devices": {"results": [result]}, "nodeSelector": {"nodeSelectorTerms": [chosen]}}
    users = [{"resource": "pods", "name": "other", "uid": "u"}]
    held = claim("cl", request(), allocation=allocation, reservedFor=users)
    assert explain([make_node("n1"), class_of_devices(), held], pod()).notes == [
        f"claim default/cl: has {DRIVER}/s1/d1, for use on no node that is here; reserved for other"
    ]


def test_resources_that_devices_stand_behind_are_explained_as_claims_are() -> None:
    objects = [make_node("n1"), class_of_devices(extendedResourceName="example.com/card"), slice_of("s1", device("d1"))]
    wanting = make_pod("p", requests={"example.com/card": 2})
    assert explain(objects, wanting).notes[:2] == [
        "claim default/<extended-resources>, request container-0-request-0: wants 2 of class c; "
        "of 1 devices 1 match, on 1 node; 1 would do",
        "  n1: 1 of 1 devices would do",
    ]


def test_many_nodes_are_summed_up() -> None:
    names = [f"n{number}" for number in range(40)]
    slices = [
        slice_of(f"s{name}", *map(device, devices(number % 8)), nodeName=name) for number, name in enumerate(names)
    ]
    found = lines(request(count=9), *slices, nodes=names)
    assert found[1:7] == [
        "  n7, n15, n23 and 2 more: 7 of 7 devices would do",
        "  n6, n14, n22 and 2 more: 6 of 6 devices would do",
        "  n5, n13, n21 and 2 more: 5 of 5 devices would do",
        "  n4, n12, n20 and 2 more: 4 of 4 devices would do",
        "  n3, n11, n19 and 2 more: 3 of 3 devices would do",
        "  15 more nodes, with no more devices that would do",
    ]


def devices(count: int) -> list[str]:
    return [f"d{number}" for number in range(count)]


class EagerClock:
    """A clock that moves whenever it is looked at."""

    def __init__(self) -> None:
        self.looks = 0

    def now(self) -> float:
        self.looks += 1
        return self.looks / 100


def test_one_search_that_takes_too_long_ends_the_attempt() -> None:
    nodes = [make_node(f"n{number}") for number in range(20)]
    devices = [numbered(f"d{number:02}", number % 9) for number in range(40)]
    slices = [slice_of(f"s{number}", *devices, nodeName=f"n{number}") for number in range(20)]
    hopeless = claim("cl", *(request(f"r{number}") for number in range(10)))
    differ = (DeviceConstraint(distinct_attribute=f"{DRIVER}/m"),)
    hopeless = replace(
        hopeless, spec=replace(hopeless.spec, devices=replace(hopeless.spec.devices, constraints=differ))
    )
    clock = EagerClock()
    explained = explain([*nodes, class_of_devices(), *slices, hopeless], pod(), clock=clock)
    assert (
        explained.message == 'running "DynamicResources" filter plugin: node n0: timed out trying to allocate devices'
    )
    assert clock.looks < 1100, "it may take ten seconds, and not for each of the nodes"


def test_what_was_not_tried_in_time_is_said() -> None:
    class Late:
        """A clock that jumps once the pod has been decided."""

        def __init__(self) -> None:
            self.looks = 0

        def now(self) -> float:
            self.looks += 1
            return 0.0 if self.looks < 20 else 100.0

    objects = [make_node("n1"), class_of_devices(), slice_of("s1", device("d1")), claim("cl", request(count=20))]
    notes = explain(objects, pod(), clock=Late()).notes
    assert notes[-1] == "there may be more that would do: nothing else was tried after 2 seconds"
    assert not any("it needs more devices" in line for line in notes)
