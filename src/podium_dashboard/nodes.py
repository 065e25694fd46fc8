"""Shows a node: what it offers, who is on it, which devices it has, and what came and went."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from podium.cluster import PlacedPod
from podium.kube import Node
from podium.kube.requests import requested
from podium.run.dashboard import SchedulerView
from podium_dashboard.access import Viewer
from podium_dashboard.columns import ALWAYS_SHOWN, is_ready
from podium_dashboard.pods import owner_of, timeline_of
from podium_dashboard.records import (
    DashboardState,
    MeasuredValue,
    NodeDetails,
    NodeDevice,
    NodePodRow,
    NodeResource,
)


def node_details(name: str, state: DashboardState, viewer: Viewer) -> Callable[[SchedulerView], NodeDetails | None]:
    """Reads a node; None where the scheduler knows none of that name."""

    def take(view: SchedulerView) -> NodeDetails | None:
        cluster = view.engine.cluster
        row = cluster.row_of.get(name)
        node = None if row is None else cluster.nodes[row]
        if row is None or node is None:
            return None
        placed = sorted(cluster.pods_on[row].values(), key=lambda each: each.pod.key)
        seen = [each for each in placed if viewer.sees(each.pod.namespace)]
        hidden: Counter[str] = Counter()
        for each in placed:
            if not viewer.sees(each.pod.namespace):
                hidden.update(requested(each.pod))
        return NodeDetails(
            state=state,
            node=name,
            cordoned=node.unschedulable,
            ready=is_ready(node),
            labels=node.labels,
            taints=[f"{taint.key}{f'={taint.value}' if taint.value else ''}:{taint.effect}" for taint in node.taints],
            conditions=list(_conditions(node)),
            resources=list(_resources(view, row, node)),
            pod_count=int(cluster.resources.pod_count[row]),
            allowed_pods=int(cluster.resources.allowed_pods[row]),
            pods=[_pod_row(each) for each in seen],
            hidden_pods=len(placed) - len(seen),
            hidden_requests=dict(hidden),
            measured=list(_measured(view, name)),
            devices=_devices(view, name, viewer),
            timeline=timeline_of(view, viewer, lambda entry: entry.where == name),
        )

    return take


def _conditions(node: Node) -> Iterator[str]:
    for condition in node.status.conditions:
        as_it_should_be = "True" if condition.type == "Ready" else "False"
        if condition.status != as_it_should_be:
            yield f"{condition.type} is {condition.status}" + (f": {condition.reason}" if condition.reason else "")


def _resources(view: SchedulerView, row: int, node: Node) -> Iterator[NodeResource]:
    resources = view.engine.cluster.resources
    names = [*ALWAYS_SHOWN, *(name for name in sorted(node.status.allocatable) if name not in (*ALWAYS_SHOWN, "pods"))]
    for name in names:
        offered, requested = int(resources.allocatable_of(name)[row]), int(resources.requested_of(name)[row])
        if offered or requested or name in ALWAYS_SHOWN:
            yield NodeResource(name=name, allocatable=offered, requested=requested)


def _pod_row(placed: PlacedPod) -> NodePodRow:
    pod = placed.pod
    return NodePodRow(
        pod=pod.key, requests=requested(pod), priority=pod.priority, owner=owner_of(pod), assumed=placed.assumed
    )


def _measured(view: SchedulerView, name: str) -> Iterator[MeasuredValue]:
    for each in view.followed:
        value = each.readings.of(name)
        if value is not None:
            age = max(0.0, view.now - each.readings.time_of(name))
            yield MeasuredValue(
                query=str(each.series.query), source=each.series.source.kind, value=value, age_seconds=round(age, 3)
            )


def _devices(view: SchedulerView, name: str, viewer: Viewer) -> list[NodeDevice]:
    """The devices of its own ResourceSlices, each with the claim that has it."""
    objects = view.engine.cluster.objects
    holders: dict[tuple[str, str, str], str] = {}
    for claim in objects.resource_claims:
        allocation = claim.status.allocation
        for result in () if allocation is None else allocation.devices.results:
            shown = claim.key if viewer.sees(claim.namespace) else "a claim of another namespace"
            holders[result.driver, result.pool, result.device] = shown
    found = []
    for each in objects.resource_slices:
        spec = each.spec
        if spec.node_name == name:
            for device in spec.devices:
                holder = holders.get((spec.driver, spec.pool.name, device.name), "")
                found.append(NodeDevice(driver=spec.driver, pool=spec.pool.name, device=device.name, claim=holder))
    return sorted(found, key=lambda device: (device.driver, device.pool, device.device))
