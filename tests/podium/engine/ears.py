"""A pod that waits, and a plugin that notes every event it hears on that pod's behalf."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, NamedTuple

from podium.cluster import NodeInfo
from podium.framework import Action, Cycle, Interest, Plugin, Resource
from podium.kube import Pod
from tests.podium.engine.schedulers import World
from tools.kit.builders import make_node, make_pod

CUSTOM = "widgets.example.com"
RESOURCES = [value for name, value in vars(Resource).items() if name.isupper() and value not in (Resource.ANY, "Pod")]


class Heard(NamedTuple):
    event: str
    before: Any
    after: Any
    nodes: frozenset[str]
    """The nodes the cluster had when it was heard."""


class Ears(Plugin):
    """Turns away the pod called "listener" and wakes it for nothing."""

    events: ClassVar[list[Heard]] = []
    resources = (f"{CUSTOM}/v1",)

    def interests(self) -> Iterable[Interest]:
        for resource in (*RESOURCES, CUSTOM):
            for action in (*Action, Action.UPDATE):
                yield Interest(resource, action, self._listener(f"{resource} {action.name}"))

    def _listener(self, event: str) -> Any:
        def listen(_pod: Pod, before: Any, after: Any) -> bool:
            cluster = self.handle.cluster
            nodes = frozenset(cluster.names[row] for row in cluster.order.rows)
            self.events.append(Heard(event, before, after, nodes))
            return False

        return listen

    def filter_node(self, cycle: Cycle, _node: NodeInfo) -> bool:
        return cycle.pod.name != "listener"


def listening(*plugins: type[Plugin] | str, **options: Any) -> World:
    """A world with one node, in which a pod waits."""
    world = World(Ears, *plugins, nodes=[make_node("n1")], **options)
    world.attempt(make_pod("listener"))
    assert world.place("listener") == "unschedulable"
    Ears.events.clear()
    return world


def heard() -> list[str]:
    """The events heard since the last time; a particular update is not told as a general one, too."""
    events = list(dict.fromkeys(each.event for each in Ears.events))
    Ears.events.clear()
    particular = {event.partition(" ")[0] for event in events if " UPDATE_" in event}
    return [event for event in events if not (event.endswith(" UPDATE") and event.partition(" ")[0] in particular)]
