"""Shows a dump: what `kubectl get -o json` printed, taken in by a scheduler that decides nothing.

Why each pod waits is found once, at the start, by the function behind `podium explain -A`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from podium.config.registry import Registry
from podium.config.resolved import SchedulerConfig
from podium.engine.explain import Unwritten, explain_waiting
from podium.engine.scheduler import Scheduler
from podium.framework import Nomination
from podium.framework.clock import Clock, SystemClock
from podium.framework.handle import Driver
from podium.kube import CustomObject, Pod
from podium.run.dashboard import Look, SchedulerView

T = TypeVar("T")


class _Unheard:
    """A scheduler that decides nothing has nothing to say."""

    def scheduled(self, pod: Pod, node_name: str) -> None:
        raise AssertionError(f"pod {pod.key} of a dump was placed on {node_name}")

    def failed(self, pod: Pod, reason: str, message: str, nomination: Nomination | None) -> None:
        raise AssertionError(f"pod {pod.key} of a dump was tried")


def view_of_objects(
    objects: Sequence[Any], config: SchedulerConfig, registry: Registry, clock: Clock | None = None
) -> SchedulerView:
    """A scheduler with these objects in its state, and why each pod of its own waits."""
    clock = clock or SystemClock()
    driver = Driver(clock=clock, writer=Unwritten(), rng=random.Random(0))
    engine = Scheduler(config, registry, driver, _Unheard())
    for each in sorted(objects, key=lambda item: isinstance(item, Pod)):
        if isinstance(each, CustomObject):
            engine.intake.set_custom(each.resource, each.key, each.data)
        else:
            engine.intake.set(_with_uid(each))
    messages = {
        each.pod: each.message or f"fits on {each.selected}" for each in explain_waiting(objects, config, registry)
    }
    return SchedulerView(engine, config, registry, clock.now(), messages=messages, objects=objects)


def _with_uid(item: Any) -> Any:
    """Pods go by uid; one that no API server has seen goes by its name."""
    from msgspec.structs import replace

    if not isinstance(item, Pod) or item.uid:
        return item
    return replace(item, metadata=replace(item.metadata, uid=item.key))


def look_at(view: SchedulerView) -> Look:
    """Asks a scheduler that nothing drives."""

    async def look(take: Callable[[SchedulerView], T]) -> T:
        return take(view)

    return look
