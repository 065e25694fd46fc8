"""Reads AppGroups (appgroup.diktyo.x-k8s.io): workloads of one application, what they depend on, and their order.

A pod says by its labels which AppGroup it belongs to, and which of its workloads it is of. AppGroups are looked for in
the namespaces that a plugin is given: the first that has one of that name counts, wherever the pod itself is.

An AppGroup whose spec cannot be read counts as one without dependencies; a dependency with a cost outside 0…10000 does
not count; an order that cannot be read, or names a workload twice, counts as none. Each is reported on the object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import msgspec

from podium import Handle, custom_reference
from podium.kube import Pod

API_VERSION: Final = "appgroup.diktyo.x-k8s.io/v1alpha1"
RESOURCE: Final = "appgroups.appgroup.diktyo.x-k8s.io"
APP_GROUP_LABEL: Final = "appgroup.diktyo.x-k8s.io"
"""The label of a pod that names its AppGroup."""
WORKLOAD_LABEL: Final = "appgroup.diktyo.x-k8s.io.workload"
"""The label of a pod that has the selector of its workload."""
HIGHEST_COST: Final = 10_000
"""The highest that the API accepts as maxNetworkCost."""
MOST_LISTED: Final = 3
"""How many problems of an object are said."""
INVALID: Final = "InvalidAppGroup"
"""The reason of events on AppGroups."""

OnChange = Callable[[str], None]
"""Called with the name of an AppGroup whose order changed."""


class WorkloadRef(msgspec.Struct, frozen=True):
    selector: str


class _Dependency(msgspec.Struct, frozen=True, rename="camel"):
    workload: WorkloadRef
    max_network_cost: int = 0


class _Workload(msgspec.Struct, frozen=True):
    workload: WorkloadRef
    dependencies: tuple[_Dependency, ...] = ()


class _Spec(msgspec.Struct, frozen=True):
    workloads: tuple[_Workload, ...] = ()


class _Place(msgspec.Struct, frozen=True):
    workload: WorkloadRef
    index: int = 0


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    topology_order: tuple[_Place, ...] = ()


class Dependency(msgspec.Struct, frozen=True):
    """Pods with this selector are to be near: at most so expensive to reach."""

    selector: str
    max_network_cost: int


class AppGroup(msgspec.Struct, frozen=True):
    """What scheduling reads of an AppGroup."""

    dependencies: dict[str, tuple[Dependency, ...]] = {}
    """By the selector of the workload that depends."""
    order: dict[str, int] = {}
    """The place of each workload in topological order, by selector."""


class AppGroups:
    """The AppGroups of one cluster, by "namespace/name"."""

    def __init__(self, handle: Handle, on_order: OnChange | None = None) -> None:
        self._groups: dict[str, AppGroup] = {}
        self._handle = handle
        self._on_order = on_order
        self._reported_missing: set[str] = set()
        handle.cluster.objects.custom_store(RESOURCE).follow(self._changed)

    def of_pod(self, pod: Pod, namespaces: Sequence[str]) -> AppGroup | None:
        """The pod's AppGroup; None where it names none, or none that is there, which is reported."""
        name = pod.metadata.labels.get(APP_GROUP_LABEL)
        if not name:
            return None
        for namespace in namespaces:
            found = self._groups.get(f"{namespace}/{name}")
            if found is not None:
                return found
        if name not in self._reported_missing:
            self._reported_missing.add(name)
            where = ", ".join(namespaces)
            what = "placed" if self._on_order is None else "sorted"
            self._handle.report(f"AppGroup {name}: not found in {where}; its pods are {what} as if they named none")
        return None

    def _changed(self, key: str, _before: Any, after: Any) -> None:
        known = self._groups.pop(key, None)
        name = key.partition("/")[2]
        found, wrong = None, ""
        if after is not None:
            self._reported_missing.discard(name)
            found, wrong = read_app_group(after)
            self._groups[key] = found
        regarding, problems = custom_reference(API_VERSION, "AppGroup", key, after), self._handle.problems
        if wrong:
            problems.set(regarding, INVALID, wrong)
        else:
            problems.clear(regarding)
        if self._on_order is not None and (known is None or found is None or known.order != found.order):
            self._on_order(name)


def read_app_group(item: Any) -> tuple[AppGroup, str]:
    """An AppGroup from the API's data, and what is wrong with it, "" where nothing is.

    >>> group, wrong = read_app_group({"spec": {"workloads": [{"workload": {"selector": "p1"},
    ...     "dependencies": [{"workload": {"selector": "p2"}, "maxNetworkCost": -1}]}]}})
    >>> group.dependencies, wrong[:39]
    ({}, 'p1 depends on p2 with maxNetworkCost -1')
    """
    dependencies, of_spec = _read_dependencies(item.get("spec") or {})
    order, of_status = _read_order(item.get("status") or {})
    return AppGroup(dependencies, order), listed((*of_spec, *of_status))


def _read_dependencies(written: Any) -> tuple[dict[str, tuple[Dependency, ...]], list[str]]:
    found: dict[str, tuple[Dependency, ...]] = {}
    problems: list[str] = []
    try:
        spec = msgspec.convert(written, _Spec)
    except msgspec.ValidationError as error:
        return found, [f"spec: {error}; it counts as one without dependencies until that is put right"]
    for workload in spec.workloads:
        readable = tuple(_readable(workload, problems))
        if readable:
            selector = workload.workload.selector
            found[selector] = (*found.get(selector, ()), *readable)
    return found, problems


def _readable(workload: _Workload, problems: list[str]) -> Iterable[Dependency]:
    for each in workload.dependencies:
        if 0 <= each.max_network_cost <= HIGHEST_COST:
            yield Dependency(each.workload.selector, each.max_network_cost)
        else:
            problems.append(
                f"{workload.workload.selector} depends on {each.workload.selector} with maxNetworkCost "
                f"{each.max_network_cost}; the dependency does not count, write a number from 0 to {HIGHEST_COST}"
            )


def _read_order(written: Any) -> tuple[dict[str, int], list[str]]:
    try:
        status = msgspec.convert(written, _Status)
    except msgspec.ValidationError as error:
        return {}, [f"status: {error}; its workloads have no order until that is put right"]
    order = {place.workload.selector: place.index for place in status.topology_order}
    if len(order) != len(status.topology_order):
        return {}, ["status.topologyOrder names a workload twice; its workloads have no order until that is put right"]
    return order, []


def listed(problems: Sequence[str]) -> str:
    """Problems as one note, the first few of them."""
    more = f"; and {len(problems) - MOST_LISTED} more" if len(problems) > MOST_LISTED else ""
    return "; also: ".join(problems[:MOST_LISTED]) + more
