"""News of nodes and of everything that is not a pod, and what plugins that keep accounts are told."""

from __future__ import annotations

from typing import Any

import pytest

from podium.framework import Plugin
from podium.kube import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    Namespace,
    PersistentVolume,
    PersistentVolumeClaim,
    PodDisruptionBudget,
    Service,
    StorageClass,
    VolumeAttachment,
)
from tests.podium.engine.ears import CUSTOM, Ears, heard, listening
from tests.podium.engine.schedulers import World, on
from tests.podium.framework.runtimes import answering
from tools.kit.builders import build, make_node, make_pod

# Nodes


def test_a_new_node_is_in_the_cluster_when_it_is_told_of() -> None:
    world = listening()
    world.add(make_node("n2"))
    told = Ears.events[0]
    assert (told.event, told.before, told.after.name) == ("Node ADD", None, "n2")
    assert told.nodes == {"n1", "n2"}


def test_a_node_is_still_in_the_cluster_when_its_going_is_told_of() -> None:
    world = listening()
    world.delete(make_node("n1"))
    told = Ears.events[0]
    assert (told.event, told.before.name, told.after) == ("Node DELETE", "n1", None)
    assert told.nodes == {"n1"}
    assert len(world.cluster.order.rows) == 0


@pytest.mark.parametrize(
    ("change", "events"),
    [
        ({}, []),
        ({"cpu": 8}, ["Node UPDATE_NODE_ALLOCATABLE"]),
        ({"labels": {"a": "b"}}, ["Node UPDATE_NODE_LABEL"]),
        ({"taints": [{"key": "k", "effect": "NoSchedule"}]}, ["Node UPDATE_NODE_TAINT"]),
        ({"annotations": {"a": "b"}}, ["Node UPDATE_NODE_ANNOTATION"]),
        ({"features": ["F"]}, ["Node UPDATE_NODE_DECLARED_FEATURE"]),
        ({"unschedulable": True}, []),
        ({"cpu": 8, "labels": {"a": "b"}}, ["Node UPDATE_NODE_ALLOCATABLE", "Node UPDATE_NODE_LABEL"]),
    ],
)
def test_an_update_of_a_node_says_what_changed(change: dict[str, Any], events: list[str]) -> None:
    world = listening()
    world.add(make_node("n1", **change))
    assert heard() == events


def test_a_node_made_schedulable_again_lost_a_taint() -> None:
    world = listening()
    world.add(make_node("n1", unschedulable=True), make_node("n1"))
    assert heard() == ["Node UPDATE_NODE_TAINT"]


def test_a_node_that_comes_back_is_new() -> None:
    world = listening()
    world.delete(make_node("n1"))
    world.add(make_node("n1"))
    assert heard() == ["Node DELETE", "Node ADD"]


def test_what_is_not_known_cannot_go() -> None:
    world = listening()
    world.delete(make_node("n9"), make_pod("nobody"), build(Service, {"metadata": {"name": "s"}}))
    assert heard() == []
    assert len(world.cluster.order.rows) == 1


# Everything else


@pytest.mark.parametrize(
    ("kind", "resource"),
    [
        (PersistentVolume, "PersistentVolume"),
        (PersistentVolumeClaim, "PersistentVolumeClaim"),
        (StorageClass, "storage.k8s.io/StorageClass"),
        (CSINode, "storage.k8s.io/CSINode"),
        (CSIDriver, "storage.k8s.io/CSIDriver"),
        (CSIStorageCapacity, "storage.k8s.io/CSIStorageCapacity"),
        (VolumeAttachment, "storage.k8s.io/VolumeAttachment"),
        (Service, "Service"),
    ],
)
def test_objects_come_change_and_go(kind: type[Any], resource: str) -> None:
    world = listening()
    first = build(kind, {"metadata": {"name": "x", "namespace": "default", "resourceVersion": "1"}})
    second = build(kind, {"metadata": {"name": "x", "namespace": "default", "resourceVersion": "2"}})
    world.add(first, second)
    world.delete(second)
    told = [(each.before, each.after) for each in Ears.events]
    assert heard() == [f"{resource} ADD", f"{resource} UPDATE", f"{resource} DELETE"]
    assert told == [(None, first), (first, second), (second, None)]


@pytest.mark.parametrize("kind", [Namespace, PodDisruptionBudget])
def test_objects_that_no_plugin_waits_for_are_only_remembered(kind: type[Any]) -> None:
    world = listening()
    item: Any = build(kind, {"metadata": {"name": "x", "namespace": "default"}})
    world.add(item)
    assert heard() == []
    key, store = item.key, world.cluster.objects.store_of(kind)
    assert store is not None
    assert store.get(key) == item
    world.delete(item)
    assert store.get(key) is None


def test_custom_resources_come_change_and_go() -> None:
    world = listening()
    for value in ("one", "two", None):
        world.intake.set_custom(CUSTOM, "default/w", value)
    assert [(each.event.partition(" ")[2], each.before, each.after) for each in Ears.events] == [
        ("ADD", None, "one"),
        ("UPDATE", "one", "two"),
        ("DELETE", "two", None),
    ]
    assert world.cluster.objects.custom_store(CUSTOM).get("default/w") is None


def test_things_that_no_plugin_knows_are_passed_over() -> None:
    world = listening()
    world.add(object())
    world.delete(object())
    assert heard() == []


def test_a_first_list_is_taken_in_as_it_comes() -> None:
    world = World(default=True)
    world.scheduler.load([make_node("n1"), make_pod("a"), make_pod("b", node="n1")])
    assert (world.place("a"), world.node_of("b")) == ("active", "n1")


# Plugins that keep accounts


class Accounts(Plugin):
    """Counts the pods it knows, by what it is told."""

    told: list[tuple[str, Any, Any]]

    def pre_enqueue(self, _pod: Any) -> None:
        pass

    def observe(self, resource: str, before: Any, after: Any) -> None:
        self.told.append((resource, before, after))


def accounts() -> tuple[World, list[tuple[str, Any, Any]]]:
    world = World(Accounts, nodes=[make_node("n1")])
    Accounts.told = []
    return world, Accounts.told


def test_a_plugin_is_told_of_every_pod_from_coming_to_going() -> None:
    world, told = accounts()
    waiting = make_pod(metadata={"resourceVersion": "1"})
    bound = on(waiting, "n1")
    theirs = make_pod("theirs", spec={"schedulerName": "other"})
    world.add(waiting, bound, theirs)
    world.delete(bound)
    assert told == [
        ("Pod", None, waiting),
        ("Pod", waiting, bound),
        ("Pod", None, theirs),
        ("Pod", bound, None),
    ]


def test_a_pod_made_anew_is_told_as_one_going_and_one_coming() -> None:
    world, told = accounts()
    first, second = make_pod(), make_pod(metadata={"uid": "another"})
    world.add(first, second)
    assert told == [("Pod", None, first), ("Pod", first, None), ("Pod", None, second)]


def test_a_plugin_is_told_of_custom_resources_but_not_of_nodes() -> None:
    world, told = accounts()
    world.add(make_node("n2"))
    world.intake.set_custom(CUSTOM, "w", 1)
    assert told == [(CUSTOM, None, 1)]


def test_what_a_plugin_raises_when_told_is_reported_and_no_more() -> None:
    world = World(answering("X", pre_enqueue=None, observe=KeyError("x")), nodes=[make_node("n1")])
    world.attempt(make_pod())
    assert world.bound == [("p1", "n1")]
    assert [
        line.startswith("plugin \"X\" failed at Observe for pod default/p1: KeyError: 'x'") for line in world.reports
    ] == [True]
