"""Computes the use of nodes and pods that metrics.k8s.io serves, for `kubectl top` and for measured load.

As metrics-server does, a number holds for 15 seconds: who asks twice within them gets the same. Nodes that are stopped
and pods that do not run have none.
"""

from __future__ import annotations

from collections.abc import Mapping

from podium.framework.clock import Clock
from podium.kube.json_object import JsonObject
from podium.kube.meta import format_time
from podium_cluster.apiserver.api import EmbeddedApi
from podium_cluster.apiserver.kind import Kind
from podium_cluster.apiserver.kinds import POD
from podium_cluster.apiserver.store.selection import parse_label_selector
from podium_cluster.kubelets.machines import NODE_CPU, NODE_MEMORY, Machine, PodRun

WINDOW = 15.0
VERBS = ("get", "list")
NODE_METRICS = Kind("metrics.k8s.io", "v1beta1", "NodeMetrics", "nodes", "", False, verbs=VERBS)
POD_METRICS = Kind("metrics.k8s.io", "v1beta1", "PodMetrics", "pods", "", True, verbs=VERBS)


def serve_metrics(api: EmbeddedApi, clock: Clock, machines: Mapping[str, Machine]) -> None:
    """Adds metrics.k8s.io to what the API serves."""
    api.computed[NODE_METRICS] = NodeMetrics(clock, machines)
    api.computed[POD_METRICS] = PodMetrics(api, clock, machines)
    api.kinds.add(NODE_METRICS)
    api.kinds.add(POD_METRICS)


class NodeMetrics:
    def __init__(self, clock: Clock, machines: Mapping[str, Machine]) -> None:
        self._clock = clock
        self._machines = machines

    def get(self, namespace: str, name: str) -> JsonObject | None:
        machine = self._machines.get(name)
        return self._metrics(machine) if machine is not None and machine.stopped_at is None else None

    def list(self, namespace: str, label_selector: str) -> list[JsonObject]:
        selector = parse_label_selector(label_selector)
        chosen = (self._machines[name] for name in sorted(self._machines))
        return [
            self._metrics(machine)
            for machine in chosen
            if machine.stopped_at is None and selector.matches(machine.node.labels)
        ]

    def _metrics(self, machine: Machine) -> JsonObject:
        moment = _moment(self._clock)
        cpu, memory = NODE_CPU, float(NODE_MEMORY)
        for run in machine.runs.values():
            used = use_of(run, moment)
            cpu, memory = cpu + used[0], memory + used[1]
        capacity = machine.capacity
        cpu = min(cpu, capacity.get("cpu", 0) / 1000)
        memory = min(memory, float(capacity.get("memory", 0)))
        metadata = {"name": machine.name, "labels": dict(machine.node.labels)}
        return _metrics("NodeMetrics", metadata, moment) | {"usage": _usage(cpu, memory)}


class PodMetrics:
    def __init__(self, api: EmbeddedApi, clock: Clock, machines: Mapping[str, Machine]) -> None:
        self._api = api
        self._clock = clock
        self._machines = machines

    def get(self, namespace: str, name: str) -> JsonObject | None:
        stored = self._api.store.get(POD, namespace, name)
        machine = self._machines.get(stored.fields[0]) if stored is not None else None
        run = machine.runs.get((namespace, name)) if machine is not None and machine.stopped_at is None else None
        return None if stored is None or run is None or run.usage is None else self._metrics(run, stored.labels)

    def list(self, namespace: str, label_selector: str) -> list[JsonObject]:
        selector = parse_label_selector(label_selector)
        found = []
        for stored in self._api.store.items(POD, namespace or None):
            machine = self._machines.get(stored.fields[0])
            if machine is None or machine.stopped_at is not None or not selector.matches(stored.labels):
                continue
            run = machine.runs.get((stored.namespace, stored.name))
            if run is not None and run.usage is not None:
                found.append(self._metrics(run, stored.labels))
        return found

    def _metrics(self, run: PodRun, labels: dict[str, str]) -> JsonObject:
        moment = _moment(self._clock)
        cpu, memory = use_of(run, moment)
        metadata: JsonObject = {"name": run.key[1], "namespace": run.key[0]}
        if labels:
            metadata["labels"] = dict(labels)
        share = _usage(cpu / len(run.containers), memory / len(run.containers))
        containers = [{"name": name, "usage": share} for name in run.containers]
        return _metrics("PodMetrics", metadata, moment) | {"containers": containers}


def use_of(run: PodRun, moment: float) -> tuple[float, float]:
    """Cores and bytes that the pod uses."""
    if run.usage is None:
        return 0.0, 0.0
    return run.usage.cpu.at(moment), run.usage.memory.at(moment)


def _moment(clock: Clock) -> float:
    return clock.now() // WINDOW * WINDOW


def _metrics(kind: str, metadata: JsonObject, moment: float) -> JsonObject:
    time = format_time(moment)
    head = {"kind": kind, "apiVersion": NODE_METRICS.api_version}
    return head | {"metadata": metadata | {"creationTimestamp": time}, "timestamp": time, "window": f"{int(WINDOW)}s"}


def _usage(cpu: float, memory: float) -> dict[str, str]:
    return {"cpu": f"{int(cpu * 1e9)}n", "memory": f"{int(memory / 1024)}Ki"}
