"""Keeps the status of AppGroups (appgroup.diktyo.x-k8s.io): how many of their pods run, and the order of workloads.

The order is that of `spec.topologySortingAlgorithm` over what workloads depend on; TopologicalSort reads it. Workloads
that neither depend on others nor are depended on have no place in it. Where workloads depend on each other in a circle
there is no such order: then it is that of `spec.workloads`, and `status.message` and an event name the circle.

Differs from scheduler-plugins: workloads are found by their name, so that a selector that is not the name does not undo
the order; the order follows the spec at once, not after 24 hours.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from kubecel.quantity import parse
from podium.client import ApiResource
from podium.controllers.controller import ReconcileResult, Related, RelatedCollection, invalid
from podium.framework.clock import Clock
from podium.kube import Pod
from podium.kube.json_object import JsonObject
from podium.kube.meta import Amount, format_time, parse_time
from podium_plugins.app_group import APP_GROUP_LABEL
from podium_plugins.controllers.topological_order import ALGORITHMS, CycleError, sort

RECOMPUTED_AFTER: Final = 24 * 3600.0
"""Seconds after which `topologyCalculationTime` is written again."""
_REMEMBERED: Final = 1000


class WorkloadReference(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A workload as AppGroups name it."""

    kind: str
    name: str
    selector: str
    api_version: str = ""
    namespace: str = ""


class WorkloadDependency(msgspec.Struct, frozen=True, rename="camel"):
    """A workload that another talks to."""

    workload: WorkloadReference
    min_bandwidth: Amount = 0
    max_network_cost: int = 0


class AppGroupWorkload(msgspec.Struct, frozen=True):
    """A workload of an AppGroup and what it depends on."""

    workload: WorkloadReference
    dependencies: tuple[WorkloadDependency, ...] = ()


class AppGroupSpec(msgspec.Struct, frozen=True, rename="camel"):
    """What the controllers read of an AppGroup."""

    workloads: tuple[AppGroupWorkload, ...] = ()
    topology_sorting_algorithm: str = ""


def read_workloads(item: JsonObject) -> AppGroupSpec:
    """Raises ValueError for one that cannot be meant."""
    spec = msgspec.convert(item.get("spec") or {}, AppGroupSpec)
    for each in spec.workloads:
        for dependency in each.dependencies:
            if parse(dependency.min_bandwidth) < 0:
                raise ValueError(f"minBandwidth {dependency.min_bandwidth} of {each.workload.name} is negative")
    return spec


def graph_of(spec: AppGroupSpec) -> dict[str, list[str]]:
    """What depends on what, by name, without workloads that have nothing to do with others."""
    graph: dict[str, list[str]] = {}
    for each in spec.workloads:
        if each.dependencies:
            below = graph.setdefault(each.workload.name, [])
            below += [dependency.workload.name for dependency in each.dependencies]
    for name in [name for below in graph.values() for name in below]:
        graph.setdefault(name, [])
    written = [each.workload.name for each in spec.workloads]
    known = dict.fromkeys(name for name in written if name in graph)
    return {name: graph[name] for name in [*known, *(name for name in graph if name not in known)]}


def topology_order(spec: AppGroupSpec) -> tuple[list[JsonObject], str]:
    """`status.topologyOrder`, sorted by selector, and what is wrong with the AppGroup (empty: nothing)."""
    references = {
        dependency.workload.name: dependency.workload for each in spec.workloads for dependency in each.dependencies
    }
    references |= {each.workload.name: each.workload for each in reversed(spec.workloads)}
    problem = ""
    try:
        names = sort(graph_of(spec), spec.topology_sorting_algorithm)
    except CycleError as circle:
        names = list(dict.fromkeys(each.workload.name for each in spec.workloads))
        problem = f"workloads depend on each other in a circle ({circle}): they are ordered as they are written"
    else:
        if spec.topology_sorting_algorithm not in ALGORITHMS:
            known = ", ".join(ALGORITHMS)
            name = spec.topology_sorting_algorithm
            problem = f'topologySortingAlgorithm "{name}" is unknown, and KahnSort is used; there are {known}'
    order: dict[str, JsonObject] = {}
    for index, name in enumerate(names, start=1):
        workload = references[name]
        order.setdefault(workload.selector, {"workload": msgspec.to_builtins(workload), "index": index})
    return [order[selector] for selector in sorted(order)], problem


def _label(pod: Pod) -> str | None:
    return pod.metadata.labels.get(APP_GROUP_LABEL)


def _name(group: JsonObject) -> str:
    return str(group["metadata"]["name"])


class AppGroupController:
    """A `Controller` of AppGroups. Pods belong to a group by its name, whatever their namespace."""

    name = "appgroup"
    kind = "AppGroup"
    resource: ApiResource[JsonObject] = ApiResource("/apis/appgroup.diktyo.x-k8s.io/v1alpha1/appgroups")
    written = ("appgroups", "appgroups/status")
    related = (RelatedCollection(ApiResource("/api/v1/pods", Pod, {"labelSelector": APP_GROUP_LABEL}), _label, _name),)
    fetched = None

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._orders: dict[tuple[str, int], tuple[list[JsonObject] | None, str]] = {}

    def reconcile(self, item: JsonObject, related: Related) -> ReconcileResult:
        before: dict[str, Any] = item.get("status") or {}
        running = sum(pod.status.phase == "Running" for pod in related["pods"])
        status: JsonObject = {} if before.get("runningWorkloads") == running else {"runningWorkloads": running}
        order, problem = self._order(item)
        if before.get("message", "") != problem:
            status["message"] = problem or None
        stated = invalid(problem) if problem else None
        if order is None:
            return ReconcileResult(status=status or None, problem=stated)
        now = self._clock.now()
        computed = before.get("topologyCalculationTime")
        age = RECOMPUTED_AFTER if not computed else now - parse_time(computed)
        if order != before.get("topologyOrder", []) or age >= RECOMPUTED_AFTER:
            status |= {"topologyOrder": order, "topologyCalculationTime": format_time(now)}
            age = 0.0
        return ReconcileResult(status=status or None, problem=stated, due=RECOMPUTED_AFTER - age)

    def _order(self, item: JsonObject) -> tuple[list[JsonObject] | None, str]:
        """The order of the workloads, None where they cannot be read, and what is wrong with them. It is computed once
        for each spec: an AppGroup with thousands of workloads is looked at whenever one of its pods changes."""
        metadata = item["metadata"]
        key = (metadata.get("uid", ""), metadata.get("generation", 0))
        found = self._orders.get(key)
        if found is None:
            try:
                found = topology_order(read_workloads(item))
            except ValueError as error:
                found = None, f"{error}; the order of its workloads stays as it is"
            if len(self._orders) >= _REMEMBERED:
                self._orders.clear()
            if all(key):
                self._orders[key] = found
        return found
