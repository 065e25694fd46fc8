"""A scheduler with QosAware in place of PrioritySort and DefaultPreemption, and controllers with their pods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from podium.kube import Condition, Pod, PodStatus
from podium.kube.meta import format_time
from podium_plugins.qos_aware import QosAware
from tests.podium.engine.schedulers import World
from tools.kit.builders import make_node, make_pod

MARGIN, MINIMUM = 30.0, 30.0
ARGS = {"safetyMargin": "30s", "minimumRunningTime": "30s", "acceptablePreemptionOverhead": 0.5}


class QosWorld(World):
    """Nodes of one CPU each; pods ask for one. What is written to the API comes back as a watch would bring it."""

    def __init__(self, nodes: int = 1, args: Mapping[str, Any] | None = None, **options: Any) -> None:
        every = [make_node(f"n{i + 1}", cpu=1) for i in range(nodes)]
        given = {"QosAware": {**ARGS, **(args or {})}}
        self.known: dict[str, Pod] = {}
        self.gone: list[str] = []
        super().__init__("NodeResourcesFit", nodes=every, args=given, sorter=QosAware, **options)

    @property
    def plugin(self) -> QosAware:
        plugin = self.scheduler.profiles["default-scheduler"].plugins["QosAware"]
        assert isinstance(plugin, QosAware)
        return plugin

    def pod(self, name: str, slo: object = "0.8", controller: str = "", **options: Any) -> Pod:
        """A pod that is created now."""
        annotations = {"slo": str(slo), "controller": controller or name.partition("-")[0]}
        annotations |= options.pop("annotations", {})
        created = format_time(self.clock.now())
        metadata = {"annotations": annotations, "creationTimestamp": created, **options.pop("metadata", {})}
        return make_pod(name, requests={"cpu": 1}, metadata=metadata, **options)

    def come(self, name: str, slo: object = "0.8", **options: Any) -> Pod:
        pod = self.known[name] = self.pod(name, slo, **options)
        self.add(pod)
        return pod

    def run(self, seconds: float = 0.0) -> None:
        """Let time pass a second at a time, and try whatever is ready."""
        for _ in range(int(seconds) + 1):
            while self.scheduler.schedule_one() is not None:
                self._answer()
            if seconds >= 1:
                self.pass_time(1.0)
                seconds -= 1

    def _answer(self) -> None:
        """Bring back what was written: pods that are bound start at once, pods that are evicted are gone."""
        bound, self.bound = self.bound, []
        for name, node in bound:
            self.known[name] = started(self.known[name], node, self.clock.now())
            self.add(self.known[name])
        for name in self.evicted[len(self.gone) :]:
            self.gone.append(name)
            self.delete(self.known[name])


def started(pod: Pod, node: str, now: float) -> Pod:
    """The pod as the API shows it once it runs."""
    when = format_time(now)
    scheduled = Condition(type="PodScheduled", status="True", last_transition_time=when)
    status = PodStatus(phase="Running", start_time=when, conditions=(scheduled,))
    return replace(pod, spec=replace(pod.spec, node_name=node), status=status)
