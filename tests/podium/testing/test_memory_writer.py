"""What is written in memory is seen when it is delivered, or at once where that is asked for."""

from __future__ import annotations

import pytest

from podium.testing.memory_writer import MemoryWriter
from tools.kit.builders import make_pod


class _Removing(MemoryWriter):
    """Notes what happens, in its order."""

    def __init__(self, *, at_once: bool = False) -> None:
        super().__init__(at_once=at_once)
        self.order: list[str] = []

    def remove(self, pod: object) -> None:
        self.order.append(getattr(pod, "name", ""))

    def evict_two(self) -> None:
        victims = [make_pod("first"), make_pod("last")]
        self.evict(victims, make_pod("preemptor"), "n1", lambda _problem: self.order.append("let go"))


def test_an_eviction_is_seen_when_it_is_delivered() -> None:
    writer = _Removing()
    writer.evict_two()
    assert ([pod.name for pod in writer.victims], writer.order) == (["first", "last"], [])
    assert writer.deliver()
    assert writer.order == ["first", "let go", "last"]
    assert not writer.deliver()


def test_with_at_once_nothing_is_left_to_deliver() -> None:
    writer = _Removing(at_once=True)
    writer.evict_two()
    assert writer.order == ["first", "let go", "last"]
    assert not writer.deliver()


@pytest.mark.parametrize("at_once", [True, False])
def test_annotations_add_up(at_once: bool) -> None:
    writer = MemoryWriter(at_once=at_once)
    writer.annotate(make_pod("web"), {"a": "1"})
    writer.annotate(make_pod("web"), {"b": "2"})
    assert writer.annotated == {"default/web": {"a": "1", "b": "2"}}
