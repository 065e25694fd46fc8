"""A note that a dry run changes for the decision itself fails the pod, and names the plugin."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from podium.cluster import NodeInfo, PlacedPod
from podium.framework import Cycle, Plugin, Status
from podium.framework.notes import SharedNoteError
from podium.kube import Pod
from tests.podium.engine.schedulers import World
from tests.podium.framework.runtimes import cycle_of, make_runtime
from tools.kit.builders import make_cluster, make_node, make_pod


class Quota(Plugin):
    """Two pods of a namespace in the whole cluster, counted in a note that `note` makes."""

    note: Callable[[int], Any] = staticmethod(lambda number: {"pods": number})

    def pre_filter(self, cycle: Cycle) -> Status | None:
        pods = self.handle.cluster.pods.values()
        cycle.data[self.name] = self.note(sum(placed.pod.namespace == cycle.pod.namespace for placed in pods))
        return None

    def filter_node(self, cycle: Cycle, _node: NodeInfo) -> str | None:
        return "quota exceeded" if cycle.data[self.name]["pods"] >= 2 else None

    def add_pod(self, cycle: Cycle, placed: PlacedPod) -> None:
        cycle.data[self.name]["pods"] += placed.pod.namespace == cycle.pod.namespace

    def remove_pod(self, cycle: Cycle, placed: PlacedPod) -> None:
        cycle.data[self.name]["pods"] -= placed.pod.namespace == cycle.pod.namespace


class Clonable(Counter[str]):
    def clone(self) -> Clonable:
        return Clonable(self)


def crowded(quota: type[Plugin]) -> World:
    """Two nodes with one pod of low priority each, where the quota allows two."""
    world = World(quota, default=True, nodes=[make_node(name) for name in ("n1", "n2")])
    world.add(*(make_pod(f"low-{name}", node=name, priority=1) for name in ("n1", "n2")))
    return world


def test_a_note_without_clone_that_a_dry_run_changes_fails_the_pod_and_evicts_no_pod() -> None:
    world = crowded(Quota)
    for number in range(3):
        world.attempt(make_pod(f"high-{number}", priority=10))
        (reason, message) = world.failures[-1].reason, world.failures[-1].message
        assert reason == "SchedulerError"
        assert message == (
            'plugin "Quota" changed the note cycle.data["Quota"] in a dry run, so that the decision itself saw it '
            "changed: give the note a clone() method that returns a copy"
        )
    assert (world.evicted, world.bound) == ([], [])


def test_what_is_cached_for_the_signature_goes_with_the_note() -> None:
    class Telling(Quota):
        def answer_key(self, _pod: Pod) -> int:
            return len(self.handle.cluster.pods)

    world = crowded(Telling)
    for number in range(2):  # the second is decided by the cache, and its note is changed then
        world.attempt(make_pod(f"high-{number}", priority=10))
    world.add(make_node("n1", labels={"now": "changed"}))
    world.attempt(make_pod("high-2", priority=10))
    assert (world.evicted, world.bound, len(world.failures)) == ([], [], 3)


def test_a_note_with_clone_makes_room_by_evicting_one_pod() -> None:
    class Careful(Quota):
        note = staticmethod(lambda number: Clonable(pods=number))

    world = crowded(Careful)
    world.attempt(make_pod("high", priority=10))
    assert len(world.evicted) == 1


def test_so_does_a_note_that_is_replaced_and_not_changed() -> None:
    class Replacing(Quota):
        def add_pod(self, cycle: Cycle, placed: PlacedPod) -> None:
            cycle.data[self.name] = dict(cycle.data[self.name])
            super().add_pod(cycle, placed)

        def remove_pod(self, cycle: Cycle, placed: PlacedPod) -> None:
            cycle.data[self.name] = dict(cycle.data[self.name])
            super().remove_pod(cycle, placed)

    world = crowded(Replacing)
    world.attempt(make_pod("high", priority=10))
    assert len(world.evicted) == 1


@dataclass
class Tallied:
    pods: int = 0
    names: list[str] = field(default_factory=list)


class Slotted:
    __slots__ = ("pods",)

    def __init__(self) -> None:
        self.pods: set[str] = set()


def change_deep(note: Any) -> None:
    note["deep"][0]["er"] += 1


@pytest.mark.parametrize(
    ("note", "change"),
    [
        ({"pods": 1}, lambda note: note.update(pods=2)),
        ({"deep": [{"er": 1}]}, change_deep),
        ([1, 2], lambda note: note.append(3)),
        ({"a"}, lambda note: note.add("b")),
        (deque([1]), lambda note: note.append(1)),
        (Counter(a=1), lambda note: note.update("a")),
        (np.zeros(3), lambda note: note.__setitem__(1, 5.0)),
        (Tallied(), lambda note: setattr(note, "pods", 1)),
        (Tallied(), lambda note: note.names.append("x")),
        (Slotted(), lambda note: note.pods.add("x")),
    ],
    ids=lambda each: type(each).__name__,
)
def test_whatever_the_note_is_made_of_a_change_is_found(note: Any, change: Callable[[Any], None]) -> None:
    class Changes(Plugin):
        def pre_filter(self, cycle: Cycle) -> None:
            cycle.data["shared name"] = note

        def filter_node(self, _cycle: Cycle, _node: NodeInfo) -> bool:
            return True

        def add_pod(self, cycle: Cycle, _placed: PlacedPod) -> None:
            change(cycle.data["shared name"])

        def remove_pod(self, _cycle: Cycle, _placed: PlacedPod) -> None:
            """It leaves the note alone."""

    runtime = make_runtime(make_cluster([make_node("n1")]), Changes)
    cycle = cycle_of(runtime, make_pod("p"))
    runtime.run_pre_filter(cycle)
    placed = runtime.handle.cluster.stand_in(make_pod("q"), 0)
    runtime.remove_pod(cycle.clone(), placed)
    with pytest.raises(SharedNoteError, match=r'^plugin "Changes" changed the note cycle\.data\["shared name"\]'):
        runtime.add_pod(cycle.clone(), placed)
    runtime.add_pod(cycle, placed)  # not a dry run: the note is its own


def test_what_plugins_are_given_counts_by_identity_whatever_a_dry_run_does_to_it() -> None:
    class Keeps(Plugin):
        def pre_filter(self, cycle: Cycle) -> None:
            cycle.data["kept"] = [self, cycle.cluster, cycle.cluster.objects, cycle.pod, cycle.facts]

        def filter_node(self, _cycle: Cycle, _node: NodeInfo) -> bool:
            return True

        def add_pod(self, cycle: Cycle, placed: PlacedPod) -> None:
            self.last = placed
            cycle.cluster.labels_of_last = placed.pod.labels  # type: ignore[attr-defined]

        def remove_pod(self, cycle: Cycle, placed: PlacedPod) -> None:
            self.add_pod(cycle, placed)

    runtime = make_runtime(make_cluster([make_node("n1")]), Keeps)
    cycle = cycle_of(runtime, make_pod("p"))
    runtime.run_pre_filter(cycle)
    placed = runtime.handle.cluster.stand_in(make_pod("q"), 0)
    runtime.remove_pod(cycle.clone(), placed)
    runtime.add_pod(cycle.clone(), placed)


def test_a_trusted_plugin_is_not_checked_and_one_derived_from_it_is() -> None:
    class Trusted(Quota):
        trusted = True

    class Derived(Trusted):
        pass

    for plugin, checked in ((Trusted, False), (Derived, True)):
        world = crowded(plugin)
        world.attempt(make_pod("high", priority=10))
        assert any("changed the note" in failure.message for failure in world.failures) == checked


def test_a_pod_nominated_to_a_node_finds_it_too() -> None:
    world = World(Quota, default=True, nodes=[make_node("n1")])
    rival: Pod = make_pod("rival", priority=100)
    world.scheduler.nominator.nominate(rival, "n1")
    world.attempt(make_pod("p", priority=1))
    assert 'plugin "Quota" changed the note' in world.failures[-1].message
