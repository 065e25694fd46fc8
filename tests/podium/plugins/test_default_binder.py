from __future__ import annotations

from podium.framework import Cycle, Status
from podium.kube import Pod
from podium.plugins.default_binder import DefaultBinder
from podium.testing.memory_writer import MemoryWriter
from tools.kit.builders import make_cluster, make_node, make_plugin, make_pod


def test_binding_goes_through_the_drivers_writer() -> None:
    cluster = make_cluster([make_node("a")])
    plugin = make_plugin(DefaultBinder, cluster)
    assert plugin.bind(Cycle(make_pod("web"), cluster), "a") is None
    writer = plugin.handle.writer
    assert isinstance(writer, MemoryWriter)
    assert [(pod.key, node) for pod, node in writer.placements] == [("default/web", "a")]


def test_what_the_writer_answers_is_the_outcome() -> None:
    class Refusing(MemoryWriter):
        def bind(self, pod: Pod, node_name: str) -> Status:
            return Status.error(f"{pod.name} cannot be bound to {node_name}")

    cluster = make_cluster([make_node("a")])
    plugin = make_plugin(DefaultBinder, cluster)
    plugin.handle.writer = Refusing()
    assert plugin.bind(Cycle(make_pod("web"), cluster), "a") == Status.error("web cannot be bound to a")
