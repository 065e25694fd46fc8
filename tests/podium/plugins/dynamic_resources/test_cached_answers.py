"""What nodes answered is kept from pod to pod: it must be what each node answers when it is asked by itself."""

import random
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from podium.cluster import Cluster, NodeInfo, Nodes
from podium.framework import Cycle, Status
from podium.framework.answers import NodeFailedError
from podium.kube import DeviceClass, Node, Pod, ResourceClaim, ResourceSlice
from podium.kube.devices import Allocation
from podium.placement.devices import node_answers
from podium.placement.devices.allocator import search
from podium.plugins.dynamic_resources import DynamicResources
from podium.plugins.dynamic_resources.plugin import NAME
from tests.podium.placement.devices import worlds
from tests.podium.placement.devices.worlds import device, random_world, slice_
from tools.kit.builders import build, make_cluster, make_node, make_plugin, make_pod
from tools.kit.effort import seeds

CARD = "example.com/card"
LABELS: tuple[dict[str, str], ...] = (
    {"zone": "z1", "region": "r1"},
    {"zone": "z2", "region": "r1"},
    {"zone": "z1"},
    {},
)


def node(number: int, labels: dict[str, str], **offered: Any) -> Node:
    return make_node(f"n{number}", labels=labels, allocatable={"cpu": "4", "pods": 9, **offered})


class Changing:
    """A cluster with devices to which things happen, and two plugins: one that keeps answers, and one asked afresh."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        world = random_world(seed)
        self.cluster = make_cluster([node(number, labels) for number, labels in enumerate(LABELS, start=1)])
        objects = self.cluster.objects
        for each in world.slices:
            objects.resource_slices.set(each["metadata"]["name"], build(ResourceSlice, each))
        for each in world.classes:
            each["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
            if each["metadata"]["name"] == "c":
                each["spec"]["extendedResourceName"] = CARD
            objects.device_classes.set(each["metadata"]["name"], build(DeviceClass, each))
        for number, each in enumerate(world.in_use):
            objects.resource_claims.set(f"ns/used{number}", build(ResourceClaim, each))
        names = []
        for each in world.claims:
            names.append(each["metadata"]["name"])
            objects.resource_claims.set(f"ns/{names[-1]}", build(ResourceClaim, each))
        self.plugin = make_plugin(DynamicResources, self.cluster)
        listed = [{"name": name, "resourceClaimName": name} for name in names]
        self.pods = [
            make_pod("claims", metadata={"namespace": "ns"}, spec={"resourceClaims": listed}),
            make_pod("resources", metadata={"namespace": "ns"}, requests={CARD: "1"}),
            make_pod("both", metadata={"namespace": "ns"}, requests={CARD: "2"}, spec={"resourceClaims": listed[:1]}),
        ]
        self.given = 0

    def change(self) -> None:
        dice, objects = self.dice, self.cluster.objects
        what = dice.choice(("give", "give", "give", "take", "slice", "label", "node", "class", "offer", "own"))
        number = dice.randint(1, len(LABELS))
        slices, claims = list(objects.resource_slices), list(objects.resource_claims)
        match what:
            case "give":
                self._give()
            case "take":
                gone = dice.choice(claims)
                if gone.name.startswith(("used", "given")):
                    objects.resource_claims.discard(gone.key)
            case "slice" if slices:
                each = dice.choice(slices)
                devices = each.spec.devices[1:] or each.spec.devices
                objects.resource_slices.set(each.name, replace(each, spec=replace(each.spec, devices=devices)))
            case "label":
                self.cluster.set_node(node(number, dice.choice(LABELS)))
            case "node":
                if f"n{number}" in self.cluster.row_of:
                    self.cluster.remove_node(f"n{number}")
                else:
                    self.cluster.set_node(node(number, LABELS[number - 1]))
            case "class":
                known = objects.device_classes.get("k")
                assert known is not None
                objects.device_classes.set("k", replace(known, metadata=replace(known.metadata, labels={"x": "y"})))
            case "offer":
                self.cluster.set_node(node(number, LABELS[number - 1], **{CARD: dice.choice(("0", "1"))}))
            case "own":
                made = slice_(f"own{number}", device("o1"), device("o2"), pool=f"own{number}", nodeName=f"n{number}")
                objects.resource_slices.set(f"own{number}", build(ResourceSlice, made))

    def _give(self) -> None:
        """Have a claim come into use as a pod's would, on a node that has the devices."""
        _statuses, found = together(self.plugin, self.pods[0], self.cluster)
        for allocations in found.values():
            for allocation in allocations or ():
                self.given += 1
                claim = build(ResourceClaim, worlds.claim(name=f"given{self.given}"))
                status = replace(claim.status, allocation=allocation)
                self.cluster.objects.resource_claims.set(claim.key, replace(claim, status=status))
            return


Found = dict[str, list[Allocation] | None]


def together(plugin: DynamicResources, pod: Pod, cluster: Cluster) -> tuple[dict[str, Status | None], Found]:
    """What is said of each node, and what it would give, all nodes asked at once."""
    cycle = Cycle(pod, cluster)
    assert plugin.pre_filter(cycle) is None
    verdict = plugin.filter(cycle, Nodes(cluster))
    statuses: dict[str, Status | None] = {}
    found: Found = {}
    for row in cluster.order.rows.tolist():
        code = 0 if verdict is None else int(verdict.codes[row])
        name = cluster.names[row]
        statuses[name] = None if verdict is None or not code else verdict.status_of(code)
        found[name] = None if code else cycle.data[NAME].allocations(row, name)
    return statuses, found


def one_by_one(plugin: DynamicResources, pod: Pod, cluster: Cluster) -> tuple[dict[str, Status | None], Found]:
    cycle = Cycle(pod, cluster)
    assert plugin.pre_filter(cycle) is None
    statuses: dict[str, Status | None] = {}
    found: Found = {}
    for row in cluster.order.rows.tolist():
        name = cluster.names[row]
        try:
            statuses[name] = plugin.filter_node(cycle, NodeInfo(cluster, row))
        except NodeFailedError as error:
            statuses[name] = Status.error(str(error))
        found[name] = None if statuses[name] else cycle.data[NAME].found.get(name)
    return statuses, found


def plain(found: Found) -> Any:
    """Without the identifiers of shares, which differ each time."""
    data = msgspec.to_builtins(found)
    for allocations in data.values():
        for each in allocations or ():
            for result in each["devices"].get("results", ()):
                result.pop("shareID", None)
    return data


@pytest.mark.parametrize("seed", seeds(150))
def test_nodes_answer_the_same_whether_answers_are_kept_or_not(seed: int) -> None:
    world = Changing(seed)
    for _ in range(8):
        for pod in world.pods:
            statuses, found = together(world.plugin, pod, world.cluster)
            expected, given = one_by_one(world.plugin, pod, world.cluster)
            assert statuses == expected
            assert plain(found) == plain(given)
        world.change()


def test_only_nodes_that_see_a_changed_pool_are_searched_again(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = make_cluster([make_node(f"n{number}") for number in range(20)])
    objects = cluster.objects
    objects.device_classes.set("c", build(DeviceClass, worlds.device_class()))
    objects.resource_claims.set("ns/cl", build(ResourceClaim, worlds.claim()))
    for number in range(20):
        made = slice_(f"s{number}", device("d1"), device("d2"), pool=f"p{number}", nodeName=f"n{number}")
        objects.resource_slices.set(f"s{number}", build(ResourceSlice, made))
    plugin = make_plugin(DynamicResources, cluster)
    spec = {"resourceClaims": [{"name": "cl", "resourceClaimName": "cl"}]}
    pod = make_pod("p", metadata={"namespace": "ns"}, spec=spec)
    searched: list[str] = []

    def counting(asked: Node, *rest: Any) -> Any:
        searched.append(asked.name)
        return search(asked, *rest)

    monkeypatch.setattr(node_answers, "search", counting)
    together(plugin, pod, cluster)
    assert len(searched) == 20
    searched.clear()
    objects.resource_claims.set("ns/used", build(ResourceClaim, worlds.used("d1", pool="p7")))
    together(plugin, pod, cluster)
    assert searched == ["n7"]
