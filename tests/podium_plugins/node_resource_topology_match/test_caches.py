"""The three caches: what is known of a node's zones between two reports of its agent."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from podium.kube import Pod
from podium_plugins.node_resource_topology_match.fingerprint import fingerprint
from tests.podium.engine.schedulers import Launched, on
from tests.together.zone_worlds import GPU, OVER_RESERVE, ZoneWorld, make_report, zone_pod
from tools.kit.builders import make_pod

TWO: list[dict[str, str | int]] = [{"cpu": 4, "memory": "8Gi"}, {"cpu": 4, "memory": "8Gi"}]
STALE = "0/1 nodes are available: 1 invalid node topology data."
NO_ZONE = "0/1 nodes are available: 1 cannot align container."


def pod(name: str, cpu: int = 3, **options: Any) -> Pod:
    return zone_pod({"cpu": cpu, "memory": "1Gi"}, name=name, **options)


def running(item: Pod) -> Pod:
    return replace(on(item, "n1"), status=replace(item.status, phase="Running"))


# Pass-through


def test_pass_through_knows_nothing_of_pods_placed_since() -> None:
    world = ZoneWorld({"n1": make_report(TWO)}, args={})
    for name in "abc":
        world.attempt(pod(name))
    assert [name for name, _node in world.bound] == ["a", "b", "c"], "which the kubelet will not all admit"
    world.set_report(make_report([{"cpu": 1, "memory": "8Gi"}] * 2))
    world.attempt(pod("d"))
    assert NO_ZONE in world.message
    world.set_report(make_report(TWO))
    world.pass_time(20)
    assert world.place("d") == "active"


# Discard-reserved


def test_discard_reserved_leaves_a_node_out_while_a_pod_is_on_its_way() -> None:
    launched = Launched()
    world = ZoneWorld({"n1": make_report(TWO)}, args={"discardReservedNodes": True}, launch=launched)
    first = pod("a", 1)
    world.attempt(first, pod("b", 1))
    assert world.message.startswith(STALE)
    launched.finish()
    world.add(on(first, "n1"))
    world.pass_time(20)
    assert world.node_of("b") is None
    assert world.place("b") == "active", "the binding woke it"
    world.try_next()
    launched.finish()
    assert [name for name, _node in world.bound] == ["a", "b"]


def test_discard_reserved_counts_a_node_again_when_the_pod_is_taken_back() -> None:
    launched = Launched()
    world = ZoneWorld({"n1": make_report(TWO)}, args={"discardReservedNodes": True}, launch=launched)
    from podium.framework import Status

    world.bind_answer = Status.error("no")
    world.attempt(pod("a", 1))
    launched.finish()
    world.bind_answer = None
    world.attempt(pod("b", 1))
    launched.finish()
    assert ("b", "n1") in world.bound


def test_discard_reserved_wins_over_over_reserve() -> None:
    world = ZoneWorld({"n1": make_report(TWO)}, args={"discardReservedNodes": True, **OVER_RESERVE}, launch=Launched())
    world.attempt(pod("a", 1), pod("b", 1))
    assert world.message.startswith(STALE)


# Over-reserve


def test_over_reserve_subtracts_pods_from_every_zone() -> None:
    world = ZoneWorld({"n1": make_report(TWO, pods=[])}, args=OVER_RESERVE)
    world.attempt(pod("a"), pod("b"))
    assert world.bound == [("a", "n1")]
    assert world.message.startswith(NO_ZONE), "one zone has 4 left, but which one is not known"
    world.attempt(pod("c", 1))
    assert ("c", "n1") in world.bound


def test_a_report_that_fits_the_running_pods_is_taken_over_and_wakes_who_waits() -> None:
    world = ZoneWorld({"n1": make_report(TWO, pods=[])}, args=OVER_RESERVE)
    first = pod("a")
    world.attempt(first, pod("b"))
    after = make_report([{"cpu": 1, "memory": "8Gi"}, {"cpu": 4, "memory": "8Gi"}], pods=[first])
    world.set_report(after)
    world.pass_time(20)
    if world.place("b") == "active":
        world.try_next()
    assert world.node_of("b") is None, "a is not running yet, so the report speaks of something else"
    world.add(running(first))
    world.pass_time(20)
    assert world.place("b") == "active"
    world.try_next()
    assert world.node_of("b") == "n1"


def test_pods_that_a_report_does_not_cover_go_on_counting() -> None:
    """In the original taking over a report forgets all pods that were placed since."""
    world = ZoneWorld({"n1": make_report(TWO, pods=[])}, args=OVER_RESERVE)
    world.attempt(pod("a"))
    world.set_report(make_report(TWO, pods=[]))  # the kubelet has not heard of a yet
    world.attempt(pod("b"))
    assert world.message.startswith(NO_ZONE)


def test_a_node_without_running_pods_is_synced_too() -> None:
    """In the original a node needs at least one running pod to be synced."""
    first = pod("a", node="n1", phase="Running")
    world = ZoneWorld({"n1": make_report([{"cpu": 1, "memory": "8Gi"}] * 2, pods=[first])}, args=OVER_RESERVE)
    world.add(first)
    world.delete(first)
    world.set_report(make_report(TWO, pods=[]))
    world.attempt(pod("b"))
    assert world.node_of("b") == "n1"


def test_reports_of_nodes_that_come_later_are_loaded() -> None:
    """In the original only reports that are there at the start are."""
    world = ZoneWorld({"n1": None}, args=OVER_RESERVE)
    world.set_report(make_report([{"cpu": 1, "memory": "8Gi"}], pods=[]))
    world.attempt(pod("a"))
    assert world.message.startswith(NO_ZONE)
    world.set_report(None)
    world.pass_time(20)
    assert world.place("a") == "active"


def test_a_pod_that_goes_before_any_report_covered_it_leaves_nothing() -> None:
    world = ZoneWorld({"n1": make_report(TWO, pods=[])}, args=OVER_RESERVE)
    first = pod("a")
    world.attempt(first, pod("b"))
    world.add(on(first, "n1"))
    world.delete(on(first, "n1"))
    world.pass_time(20)
    world.try_next()
    assert world.node_of("b") == "n1"


def test_pods_bound_before_a_restart_count_until_a_report_covers_them() -> None:
    bound = pod("a", node="n1", phase="Pending")
    for pods_first in (True, False):
        world = ZoneWorld({"n1": None}, args=OVER_RESERVE)
        if pods_first:
            world.add(bound)
        world.set_report(make_report(TWO, pods=[]))
        if not pods_first:
            world.add(bound)
        world.attempt(pod("b"))
        assert world.message.startswith(NO_ZONE)


def test_without_fingerprints_running_pods_are_taken_to_be_covered() -> None:
    bound = pod("a", node="n1", phase="Running")
    for pods_first in (True, False):
        world = ZoneWorld({"n1": None}, args=OVER_RESERVE)
        if pods_first:
            world.add(bound)
        world.set_report(make_report([{"cpu": 1, "memory": "8Gi"}, {"cpu": 4, "memory": "8Gi"}]))
        if not pods_first:
            world.add(bound)
        world.attempt(pod("b"))
        assert world.node_of("b") == "n1"
        assert "it has no fingerprint" in world.reports[-1]


def test_the_kubelets_settings_are_taken_over_at_once() -> None:
    for scope, expected in (("All", None), ("OnlyResources", "n1")):
        world = ZoneWorld(
            {"n1": make_report(TWO, pods=[], policy="none")}, args={**OVER_RESERVE, "cache": {"resyncScope": scope}}
        )
        world.add(pod("elsewhere", node="n1", phase="Running"))
        world.set_report(make_report(TWO, pods=[]))  # does not fit: a pod runs there
        world.attempt(pod("a", 5))
        assert world.node_of("a") == expected


# Fingerprints


@pytest.mark.parametrize(
    ("method", "attribute", "fits"),
    [
        ("Autodetect", "", False),
        ("Autodetect", "with-exclusive-resources", True),
        ("OnlyExclusiveResources", "", True),
        ("All", "with-exclusive-resources", False),
    ],
)
def test_fingerprints_may_cover_exclusive_resources_only(method: str, attribute: str, fits: bool) -> None:
    exclusive, shared = pod("a", node="n1", phase="Running"), make_pod("b", node="n1", status={"phase": "Running"})
    attributes = {"nodeTopologyPodsFingerprintMethod": attribute} if attribute else {}
    first = make_report([{"cpu": 1, "memory": "8Gi"}], pods=[exclusive, shared], attributes={})
    world = ZoneWorld({"n1": first}, args={**OVER_RESERVE, "cache": {"resyncMethod": method}})
    world.add(exclusive, shared)
    world.set_report(make_report(TWO, pods=[exclusive], attributes=attributes))
    world.attempt(pod("c", 4))
    assert (world.node_of("c") == "n1") is fits


def test_the_annotation_is_the_other_place_of_a_fingerprint() -> None:
    world = ZoneWorld({"n1": make_report([{"cpu": 1, "memory": "8Gi"}], pods=[pod("gone")])}, args=OVER_RESERVE)
    report = make_report(TWO)
    report["metadata"]["annotations"] = {"topology.node.k8s.io/fingerprint": "pfp0v001ef46db3751d8e999"}
    world.set_report(report)
    world.attempt(pod("a"))
    assert world.node_of("a") == "n1"


def test_a_fingerprint_in_the_annotation_covers_all_pods_whatever_the_method() -> None:
    shared = make_pod("b", node="n1", status={"phase": "Running"})
    for pods, fits in (([shared], True), ([], False)):
        world = ZoneWorld(
            {"n1": make_report([{"cpu": 1, "memory": "8Gi"}], pods=[pod("gone")])},
            args={**OVER_RESERVE, "cache": {"resyncMethod": "OnlyExclusiveResources"}},
        )
        world.add(shared)
        report = make_report(TWO)
        report["metadata"]["annotations"] = {"topology.node.k8s.io/fingerprint": fingerprint(pods)}
        world.set_report(report)
        world.attempt(pod("a", 4))
        assert (world.node_of("a") == "n1") is fits


def test_of_several_fingerprints_the_first_counts() -> None:
    world = ZoneWorld({"n1": make_report([{"cpu": 1, "memory": "8Gi"}], pods=[pod("gone")])}, args=OVER_RESERVE)
    report = make_report(TWO, pods=[])
    report["attributes"].append({"name": "nodeTopologyPodsFingerprint", "value": fingerprint([pod("gone")])})
    world.set_report(report)
    world.attempt(pod("a", 4))
    assert world.node_of("a") == "n1"


def test_a_pod_that_asks_for_0_of_a_listed_device_has_it_for_itself() -> None:
    nothing = zone_pod({GPU: 0}, name="f", guaranteed=False, scheduler="other", node="n1", phase="Running")
    for zones, stale in (([{"cpu": 4, "memory": "8Gi", GPU: 1}], True), ([{"cpu": 4, "memory": "8Gi"}], False)):
        args = {**OVER_RESERVE, "cache": {"foreignPodsDetect": "OnlyExclusiveResources"}}
        world = ZoneWorld({"n1": make_report(zones, pods=[])}, args=args)
        world.add(nothing)
        world.attempt(pod("a", 1))
        assert (world.node_of("a") is None) is stale


def test_which_pods_run_is_for_the_informer_mode_to_say() -> None:
    for mode, fits in (("Dedicated", True), ("Shared", False)):
        lost = pod("a", node="n1", phase="Unknown")
        world = ZoneWorld(
            {"n1": make_report([{"cpu": 1, "memory": "8Gi"}], pods=[])},
            args={**OVER_RESERVE, "cache": {"informerMode": mode}},
        )
        world.add(lost)
        world.set_report(make_report(TWO, pods=[lost]))
        world.attempt(pod("b"))
        assert (world.node_of("b") == "n1") is fits


# Foreign pods


@pytest.mark.parametrize(
    ("detect", "exclusive", "stale"),
    [
        ("All", True, True),
        ("All", False, True),
        ("None", True, False),
        ("OnlyExclusiveResources", True, True),
        ("OnlyExclusiveResources", False, False),
    ],
)
@pytest.mark.parametrize("pod_first", [True, False])
def test_pods_of_other_schedulers_make_a_node_stale(detect: str, exclusive: bool, stale: bool, pod_first: bool) -> None:
    amounts: dict[str, str | int] = {"cpu": 1, "memory": "1Gi"}
    foreign = zone_pod(amounts, name="f", guaranteed=exclusive, scheduler="other", node="n1", phase="Running")
    world = ZoneWorld({"n1": None}, args={**OVER_RESERVE, "cache": {"foreignPodsDetect": detect}})
    if pod_first:
        world.add(foreign)
    world.set_report(make_report(TWO, pods=[]))
    if not pod_first:
        world.add(foreign)
    world.attempt(pod("a", 1))
    assert (world.node_of("a") is None) is stale
    if stale:
        assert world.message.startswith(STALE)
        world.set_report(make_report(TWO, pods=[foreign]))
        world.pass_time(20)
        world.try_next()
        assert world.node_of("a") == "n1"


def test_a_foreign_pod_that_is_not_running_yet_keeps_the_node_stale() -> None:
    world = ZoneWorld({"n1": make_report(TWO, pods=[])}, args=OVER_RESERVE)
    coming = pod("f", scheduler="other", node="n1", phase="Pending")
    world.add(coming)
    world.set_report(make_report(TWO, pods=[]))
    world.attempt(pod("a", 1))
    assert world.message.startswith(STALE)
    world.delete(coming)
    world.pass_time(20)
    world.try_next()
    assert world.node_of("a") == "n1"


def test_profiles_with_the_plugin_are_not_foreign_to_each_other() -> None:
    world = ZoneWorld({"n1": make_report(TWO, pods=[])}, args=OVER_RESERVE, profiles=("default-scheduler", "second"))
    world.attempt(pod("a", scheduler="second"), pod("b"))
    assert world.bound == [("a", "n1")]
    assert world.message.startswith(NO_ZONE), "a counts, and is not foreign"


def test_a_devices_zone_is_not_given_twice() -> None:
    zones: list[dict[str, str | int]] = [{"cpu": 8, "memory": "8Gi", GPU: 1}, {"cpu": 8, "memory": "8Gi", GPU: 1}]
    world = ZoneWorld({"n1": make_report(zones, pods=[])}, args=OVER_RESERVE)
    for name in "ab":
        world.attempt(zone_pod({"cpu": 1, "memory": "1Gi", GPU: 1}, name=name))
    assert world.bound == [("a", "n1")]
