"""Keeps the status of AppGroups (appgroup.diktyo.x-k8s.io): how many of their pods run, and the order of workloads.

The order is that of `spec.topologySortingAlgorithm` over what workloads depend on; TopologicalSort reads it. Workloads
that neither depend on others nor are depended on have no place in it. Where workloads depend on each other in a circle
there is no such order: then it is that of `spec.workloads`, and `status.message` and an event name the circle.

Differs from scheduler-plugins: workloads are found by their name, so that a selector that is not the name does not undo
the order; the order follows the spec at once, not after 24 hours.

The algorithms that AppGroups name put each workload before those it depends on. A graph is {workload: its dependencies,
in their order}, with the workloads in theirs.

    KahnSort    takes a workload that nothing left depends on, the one found last first
    TarjanSort  goes down from each workload, and places it in the last free position when all below it are placed
    Reverse…    the same list from its end
    Alternate…  first, last, second, second-last and so on

Differs from the original: where several workloads could begin, the order in which they are written decides, not chance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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

RECOMPUTED_AFTER: Final = 24 * 3600.0
"""Seconds after which `topologyCalculationTime` is written again."""
_REMEMBERED: Final = 1000
SHOWN: Final = 8
"""The most workloads of a circle that are named."""

Graph = Mapping[str, Sequence[str]]


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


# Topological order


class CycleError(ValueError):
    """Workloads that depend on each other in a circle: no order has each before those it depends on."""


def kahn(graph: Graph) -> list[str]:
    """
    >>> kahn({"p1": ["p2", "p3"], "p2": ["p4"], "p3": ["p4"], "p4": []})
    ['p1', 'p3', 'p2', 'p4']
    """
    waiting_for = dict.fromkeys(graph, 0)
    for dependencies in graph.values():
        for each in dependencies:
            waiting_for[each] += 1
    free = [name for name in reversed(list(graph)) if not waiting_for[name]]
    order = []
    while free:
        name = free.pop()
        order.append(name)
        for each in graph[name]:
            waiting_for[each] -= 1
            if not waiting_for[each]:
                free.append(each)
    if len(order) < len(graph):
        raise CycleError(_circle(graph))
    return order


def tarjan(graph: Graph) -> list[str]:
    """
    >>> tarjan({"p1": ["p2", "p3"], "p2": ["p4"], "p3": ["p4"], "p4": []})
    ['p1', 'p3', 'p2', 'p4']
    """
    placed: dict[str, None] = {}
    for start in graph:
        path: dict[str, None] = {}
        steps = [(start, iter(graph[start]))] if start not in placed else []
        path[start] = None
        while steps:
            name, dependencies = steps[-1]
            below = next((each for each in dependencies if each not in placed), None)
            if below is None:
                steps.pop()
                path.pop(name)
                placed[name] = None
            elif below in path:
                raise CycleError(_circle(graph))
            else:
                path[below] = None
                steps.append((below, iter(graph[below])))
    return list(reversed(placed))


def alternate(order: Sequence[str]) -> list[str]:
    """
    >>> alternate(["a", "b", "c", "d", "e"])
    ['a', 'e', 'b', 'd', 'c']
    """
    left, right = list(order), list(reversed(order))
    return [(right if number % 2 else left)[number // 2] for number in range(len(order))]


def _reversed(order: Sequence[str]) -> list[str]:
    return list(reversed(order))


ALGORITHMS: Final[Mapping[str, tuple[Callable[[Graph], list[str]], Callable[[Sequence[str]], list[str]]]]] = {
    "KahnSort": (kahn, list),
    "TarjanSort": (tarjan, list),
    "ReverseKahn": (kahn, _reversed),
    "ReverseTarjan": (tarjan, _reversed),
    "AlternateKahn": (kahn, alternate),
    "AlternateTarjan": (tarjan, alternate),
}
"""How to sort, and what to do with the list."""


def sort(graph: Graph, algorithm: str) -> list[str]:
    """The workloads in the order of the algorithm; KahnSort's for one that is unknown. Raises CycleError."""
    order, arrange = ALGORITHMS.get(algorithm, ALGORITHMS["KahnSort"])
    return arrange(order(graph))


def _circle(graph: Graph) -> str:
    """One circle of the graph, in words; of a long one, its ends."""
    above: dict[str, list[str]] = {name: [] for name in graph}
    for name, dependencies in graph.items():
        for each in dependencies:
            above[each].append(name)
    waiting_for = {name: len(dependencies) for name, dependencies in graph.items()}
    ends = [name for name, count in waiting_for.items() if not count]
    while ends:  # what is on no circle, and leads to none
        name = ends.pop()
        del waiting_for[name]
        for each in above[name]:
            waiting_for[each] -= 1
            if not waiting_for[each]:
                ends.append(each)
    name = next(iter(waiting_for))
    path: dict[str, None] = {}
    while name not in path:
        path[name] = None
        name = next(each for each in graph[name] if each in waiting_for)
    circle = [*list(path)[list(path).index(name) :], name]
    if len(circle) > SHOWN:
        circle = [*circle[: SHOWN - 2], f"… {len(circle) - SHOWN + 1} more", name]
    return " → ".join(circle)
