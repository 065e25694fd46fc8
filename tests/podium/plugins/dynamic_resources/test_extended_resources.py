"""Extended resources that device classes stand behind: devices instead of what nodes offer, in a claim of the pod's."""

from typing import Any

import pytest
from msgspec.structs import replace

from podium.framework import Resource, Status
from podium.kube import DeviceClass, Pod, ResourceClaim
from podium.kube.devices import DeviceSelectorSpec
from podium.kube.extended_resources import CLAIM_ANNOTATION, device_needs
from podium.placement.devices.uses import DeviceResourceNames
from podium.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from podium.plugins.node_resources_fit import NodeResourcesFit
from tests.podium.engine.schedulers import Launched, World
from tests.podium.placement.devices import worlds
from tests.podium.placement.devices.worlds import device, selectors
from tests.podium.plugins.ask import hint_of, raw_scores
from tests.podium.plugins.dynamic_resources.test_scheduling import PREEMPTION, claim, class_of_devices, slice_of
from tools.kit.builders import build, make_cluster, make_node, make_plugin, make_pod

CARD = "example.com/card"
ROOM: dict[str, Any] = {"cpu": "8", "memory": "8Gi", "pods": 9}
IMPLICIT = "deviceclass.resource.kubernetes.io/c"


def asking(name: str = "p1", count: int = 1, resource: str = CARD, **spec: Any) -> Pod:
    return make_pod(name, requests={"cpu": "1", resource: str(count)}, spec=spec)


def world(*objects: Any, offered: dict[str, dict[str, Any]] | None = None, **options: Any) -> World:
    nodes = {"n1": {}, "n2": {}} if offered is None else offered
    made = World(
        nodes=[make_node(name, allocatable={**ROOM, **more}) for name, more in nodes.items()],
        default=True,
        **options,
    )
    made.add(class_of_devices(extendedResourceName=CARD), *objects)
    return made


def made_claims(made: World) -> list[ResourceClaim]:
    return [each for each in made.cluster.objects.resource_claims if CLAIM_ANNOTATION in each.annotations]


def devices_of(found: ResourceClaim) -> list[tuple[str, str]]:
    assert found.status.allocation is not None
    return [(each.request, each.device) for each in found.status.allocation.devices.results]


def test_devices_meet_a_resource_that_no_node_offers() -> None:  # S8
    made = world(slice_of("s", device("e0"), device("e1")))
    made.attempt(asking(count=2))
    assert made.bound == [("p1", "n1")]
    (found,) = made_claims(made)
    assert found.name.startswith("p1-extended-resources-")
    assert devices_of(found) == [("container-0-request-1", "e0"), ("container-0-request-1", "e1")]
    assert [user.name for user in found.status.reserved_for] == ["p1"]
    (mapping,) = made.mappings["p1"]
    assert (mapping.container_name, mapping.resource_name, mapping.request_name) == ("c", CARD, "container-0-request-1")


def test_the_class_can_be_asked_for_by_its_own_name() -> None:
    made = world(slice_of("s", device("e0")))
    made.attempt(asking(resource=IMPLICIT))
    assert devices_of(made_claims(made)[0]) == [("container-0-request-1", "e0")]


def test_a_node_that_offers_the_resource_needs_no_devices() -> None:
    made = world(slice_of("s", device("e0")), offered={"n1": {}, "n2": {CARD: 3}})
    made.attempt(asking(count=2))
    assert made.bound == [("p1", "n2")]
    assert not made_claims(made)


def test_what_is_said_where_neither_node_nor_devices_suffice() -> None:
    made = world(slice_of("s", device("e0")), offered={"n1": {}, "n2": {CARD: 1}})
    made.attempt(asking(count=2))
    assert made.message == (
        f"0/2 nodes are available: 1 Insufficient {CARD}, 1 cannot allocate all claims. "
        "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
    )


def test_without_a_class_it_is_a_resource_like_any_other() -> None:
    made = world(slice_of("s", device("e0")))
    made.attempt(asking(resource="example.com/other"))
    assert made.message.startswith("0/2 nodes are available: 2 Insufficient example.com/other. preemption: ")


def test_a_class_that_comes_wakes_pods_that_ask_for_its_resource() -> None:
    made = world(slice_of("s", device("e0")))
    made.attempt(asking(resource="example.com/other"))
    made.add(class_of_devices("c2", extendedResourceName="example.com/unheard"))
    assert made.place("p1") == "unschedulable"
    made.add(class_of_devices("c3", extendedResourceName="example.com/other"))
    made.pass_time(20)
    made.try_next()
    assert made.bound == [("p1", "n1")]


def test_pods_of_one_template_see_that_a_class_came() -> None:
    made = world(slice_of("s", *(device(f"e{number}") for number in range(4))))
    pods = [asking(f"p{number}", resource="example.com/other") for number in range(3)]
    made.attempt(*pods)
    assert not made.bound
    made.add(class_of_devices("c3", extendedResourceName="example.com/other"))
    made.pass_time(20)
    for _ in pods:
        made.try_next()
    assert [node for _name, node in made.bound] == ["n1"] * 3
    given = [found for each in made_claims(made) for _request, found in devices_of(each)]
    assert sorted(given) == ["e0", "e1", "e2"]


def test_devices_in_flight_are_not_given_twice() -> None:
    launched = Launched()
    made = world(slice_of("s", device("e0")), launch=launched)
    made.attempt(asking(), asking("p2"))
    assert "2 cannot allocate all claims" in made.message
    launched.finish()
    assert made.bound == [("p1", "n1")]


def test_a_claim_left_from_a_failed_attempt_is_deleted_first() -> None:
    made = world(slice_of("s", device("e0")))
    waiting = asking()
    left = worlds.claim(name="left")
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p1", "uid": waiting.uid, "controller": True}
    left["metadata"] |= {
        "namespace": "default",
        "annotations": {CLAIM_ANNOTATION: "true"},
        "ownerReferences": [owner],
    }
    made.add(build(ResourceClaim, left))
    made.attempt(waiting)
    assert made.message == (
        "0/2 nodes are available: 2 cannot schedule extended resource claim. deletion of ResourceClaim completed, "
        + PREEMPTION.format(2)
    )
    assert not made_claims(made)
    made.pass_time(400)
    made.try_next()
    assert made.bound == [("p1", "n1")]


def test_a_failed_binding_deletes_the_claim_again() -> None:
    made = world(slice_of("s", device("e0")))
    made.bind_answer = Status.error("no")
    made.attempt(asking())
    assert not made.bound
    assert not made_claims(made)


def test_a_user_claim_beside_a_resource_that_the_node_offers_cannot_be_bound() -> None:  # S9
    made = world(claim("cl"), slice_of("s", device("e0")), offered={"n1": {CARD: 3}})
    made.attempt(asking(resourceClaims=[{"name": "cl", "resourceClaimName": "cl"}]))
    problem = "nil or empty request mappings, no update of pod default/p1 ExtendedResourceClaimStatus"
    assert made.message == f'running PreBind plugin "DynamicResources": {problem}'
    assert not made_claims(made)


def test_user_claims_and_resources_share_the_devices_of_a_node() -> None:
    made = world(claim("cl"), slice_of("s", device("e0"), device("e1")))
    made.attempt(asking(resourceClaims=[{"name": "cl", "resourceClaimName": "cl"}]))
    assert devices_of(made_claims(made)[0]) == [("container-0-request-1", "e1")]
    found = made.cluster.objects.resource_claims.get("default/cl")
    assert found is not None
    assert devices_of(found) == [("r", "e0")]


def test_a_resource_that_is_ignored_and_offered_nowhere_does_not_fit_beside_one_by_devices() -> None:
    made = world(
        slice_of("s", device("e0")),
        args={"NodeResourcesFit": {"ignoredResources": ["example.com/ignored"]}},
    )
    made.attempt(make_pod("p1", requests={CARD: "1", "example.com/ignored": "1"}))
    assert made.message.startswith("0/2 nodes are available: 2 cannot fit resource. preemption: ")


def containers(*requests: dict[str, int]) -> list[dict[str, Any]]:
    return [
        {"name": f"x{number}", "resources": {"requests": {name: str(each) for name, each in wanted.items()}}}
        for number, wanted in enumerate(requests)
    ]


def test_requests_of_init_containers_sidecars_and_containers() -> None:  # S10
    first, sidecar, second, app = containers({"r": 1}, {"r": 1}, {"r": 2}, {"q": 1})
    inits = [first, {**sidecar, "restartPolicy": "Always"}, second]
    pod = make_pod("p", spec={"initContainers": inits, "containers": [app]})
    needs = device_needs(pod, {"r": "c", "q": "k"})
    exact = [(each.name, each.exactly) for each in needs.requests if each.exactly]
    assert [(name, each.device_class_name, each.count) for name, each in exact] == [
        ("container-1-request-0", "c", 1),
        ("container-2-request-0", "c", 2),
        ("container-3-request-0", "k", 1),
    ]
    assert [(each.container_name, each.resource_name, each.request_name) for each in needs.mappings] == [
        ("x3", "q", "container-3-request-0"),
        ("x1", "r", "container-1-request-0"),
        ("x0", "r", "container-1-request-0"),
        ("x2", "r", "container-2-request-0"),
    ]


def test_init_containers_share_the_largest_request_of_theirs() -> None:
    inits, app = containers({"r": 2}, {"r": 4}, {"r": 3}), containers({"a": 1, "r": 1})
    needs = device_needs(make_pod("p", spec={"initContainers": inits, "containers": app}), {"r": "c"})
    wanted = [(each.name, each.exactly.count) for each in needs.requests if each.exactly]
    assert wanted == [("container-1-request-0", 3), ("container-3-request-1", 1)]
    assert [each.request_name for each in needs.mappings] == [
        "container-3-request-1",
        *("container-3-request-1", "container-1-request-0") * 3,
    ]


def test_requests_sort_as_texts() -> None:
    pod = make_pod("p", spec={"containers": containers(*({"r": 1} for _ in range(11)))})
    names = [each.name for each in device_needs(pod, {"r": "c"}).requests]
    assert names.index("container-10-request-0") == names.index("container-2-request-0") - 1


def of_age(name: str, resource: str | None, second: int = 0) -> DeviceClass:
    made = class_of_devices(name, **({"extendedResourceName": resource} if resource else {}))
    return replace(made, metadata=replace(made.metadata, creation_timestamp=f"2026-01-01T00:00:{second:02}Z"))


class TestNames:
    """Which class a resource stands for."""

    def test_the_newer_class_wins_and_the_first_name_among_equals(self) -> None:
        names = DeviceResourceNames()
        for each in (of_age("b", "x", 1), of_age("c", "x", 1), of_age("a", "x", 0)):
            names.class_changed(each.name, None, each)
        assert _behind(names, "x") == "b"
        names.class_changed("a2", None, of_age("a2", "x", 1))
        assert _behind(names, "x") == "a2"
        names.class_changed("z", None, of_age("z", "x", 2))
        assert _behind(names, "x") == "z"

    def test_a_class_that_loses_is_not_known_by_its_own_name(self) -> None:
        names = DeviceResourceNames()
        names.class_changed("a", None, of_age("a", "x"))
        names.class_changed("b", None, of_age("b", "x"))
        assert _behind(names, "deviceclass.resource.kubernetes.io/b") is None
        assert _behind(names, "deviceclass.resource.kubernetes.io/a") == "a"

    def test_a_change_that_leaves_the_name_is_not_noticed(self) -> None:
        names = DeviceResourceNames()
        old = of_age("a", "x")
        new = replace(old, spec=replace(old.spec, selectors=(DeviceSelectorSpec(),)))
        names.class_changed("a", None, old)
        names.class_changed("a", old, new)
        assert names.class_of("x") is old
        renamed = of_age("a", "y")
        names.class_changed("a", new, renamed)
        assert (_behind(names, "x"), _behind(names, "y")) == (None, "a")

    def test_deleting_any_class_takes_its_name_away(self) -> None:
        names = DeviceResourceNames()
        names.class_changed("a", None, of_age("a", "x"))
        names.class_changed("b", None, of_age("b", "x"))
        names.class_changed("b", of_age("b", "x"), None)
        assert _behind(names, "x") is None


def _behind(names: DeviceResourceNames, resource: str) -> str | None:
    found = names.class_of(resource)
    return found.name if found else None


def test_a_node_wakes_a_pod_whose_resource_is_behind_a_class() -> None:
    cluster = make_cluster([])
    plugin = make_plugin(NodeResourcesFit, cluster)
    may_help = hint_of(plugin, Resource.NODE)
    unchanged = make_node("n", allocatable={"cpu": "8", "pods": 9})
    assert not may_help(asking(), None, unchanged)
    cluster.objects.device_classes.set("c", class_of_devices(extendedResourceName=CARD))
    assert may_help(asking(), None, unchanged)
    assert may_help(asking(), unchanged, unchanged)


def test_which_changes_of_classes_wake_a_pod() -> None:
    may_help = hint_of(make_plugin(NodeResourcesFit, make_cluster([])), Resource.DEVICE_CLASS)
    named, unnamed = class_of_devices("z", extendedResourceName=CARD), class_of_devices("z")
    assert may_help(asking(), None, named)
    assert may_help(asking(), unnamed, named)
    assert not may_help(asking(), named, named)
    assert not may_help(asking(), None, unnamed)
    assert may_help(asking(resource=IMPLICIT), None, class_of_devices())
    assert not may_help(asking(resource=IMPLICIT), named, class_of_devices())


@pytest.mark.parametrize(("kind", "expected"), [("MostAllocated", (50, 100)), ("LeastAllocated", (50, 0))])
def test_scores_count_the_devices_of_nodes(kind: str, expected: tuple[int, int]) -> None:
    cluster = make_cluster([make_node(name, allocatable={"cpu": "8", "pods": 9}) for name in ("n1", "n2", "n3")])
    objects = cluster.objects
    objects.device_classes.set("c", class_of_devices(extendedResourceName=CARD))
    objects.resource_slices.set("s1", slice_of("s1", *(device(f"e{number}") for number in range(4))))
    objects.resource_slices.set("s2", slice_of("s2", device("e0"), device("e1"), nodeName="n2"))
    objects.resource_claims.set("ns/used", build(ResourceClaim, worlds.used("e0", pool="s1")))
    objects.resource_claims.set("ns/too", build(ResourceClaim, worlds.used("e1", pool="s2")))
    strategy = {"type": kind, "resources": [{"name": CARD, "weight": 1}]}
    plugin = make_plugin(NodeResourcesFit, cluster, scoringStrategy=strategy)
    assert raw_scores(plugin, asking(), cluster) == dict(zip(("n1", "n2", "n3"), (*expected, 0), strict=True))


def test_balance_counts_the_devices_of_nodes() -> None:
    cluster = make_cluster([make_node(name, allocatable={"cpu": "2", "pods": 9}) for name in ("n1", "n2")])
    objects = cluster.objects
    objects.device_classes.set("c", class_of_devices(extendedResourceName=CARD))
    objects.resource_slices.set("s1", slice_of("s1", device("e0"), device("e1")))
    plugin = make_plugin(
        NodeResourcesBalancedAllocation, cluster, resources=[{"name": name, "weight": 1} for name in ("cpu", CARD)]
    )
    # On n1 half of the cpu and half of the devices: as even as before. On n2 cpu alone counts.
    assert raw_scores(plugin, asking(), cluster) == {"n1": 75, "n2": 75}
    objects.resource_claims.set("ns/used", build(ResourceClaim, worlds.used("e0", pool="s1")))
    assert raw_scores(plugin, asking(), cluster) == {"n1": 75, "n2": 75}
    objects.resource_claims.set("ns/used", build(ResourceClaim, worlds.used("e0", "e1", pool="s1")))
    assert raw_scores(plugin, asking(), cluster) == {"n1": 87, "n2": 75}


def test_a_class_whose_selectors_fail_counts_no_devices() -> None:
    cluster = make_cluster([make_node("n1", allocatable={"cpu": "2", "pods": 9})])
    wrong = selectors(f'device.attributes["{worlds.DRIVER}"].nope == 1')
    cluster.objects.device_classes.set("c", class_of_devices(extendedResourceName=CARD, selectors=wrong))
    cluster.objects.resource_slices.set("s1", slice_of("s1", device("e0")))
    strategy = {"type": "MostAllocated", "resources": [{"name": CARD, "weight": 1}]}
    assert raw_scores(make_plugin(NodeResourcesFit, cluster, scoringStrategy=strategy), asking(), cluster) == {"n1": 0}
