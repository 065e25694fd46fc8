"""Finds what kind of change an update was.

Plugins wait for particular changes: a taint gone, a label set, a request lowered. An object that came or went is one
event. An update becomes one event for each kind of difference that scheduling knows, in a fixed order; a pod that
changed in no such way gives a general update, a node none at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kubecel.quantity import parse
from podium.framework.events import Action, Event, Resource
from podium.kube import Node, Pod
from podium.kube.requests import pod_requests


def node_events(before: Node | None, after: Node | None) -> list[Event]:
    """The events a node's change stands for, None meaning that it did not exist or no longer does.

    >>> [event.label for event in node_events(None, Node())]
    ['NodeAdd']
    """
    if before is None or after is None:
        return [added_or_deleted(Resource.NODE, before, after)]
    return [Event(Resource.NODE, action) for action in _node_changes(before, after)]


def pod_events(before: Pod | None, after: Pod | None, waiting: str = Resource.UNSCHEDULED_POD) -> list[Event]:
    """The events a pod's change stands for; `waiting` is what a pod that has no node is called in them.

    >>> [event.label for event in pod_events(Pod(), Pod())]
    ['UnscheduledPodUpdate']
    """
    latest = before if after is None else after
    assert latest is not None, "a pod that neither was nor is cannot have changed"
    resource = Resource.ASSIGNED_POD if latest.spec.node_name else waiting
    if before is None or after is None:
        return [added_or_deleted(resource, before, after)]
    events = [Event(resource, action) for action in _pod_changes(before, after)]
    return events or [Event(resource, Action.UPDATE)]


def added_or_deleted(resource: str, before: Any, after: Any) -> Event:
    """The event for any other kind of object, of which only coming, going and changing are distinguished."""
    return Event(resource, Action.ADD if before is None else Action.DELETE if after is None else Action.UPDATE)


def _node_changes(before: Node, after: Node) -> Iterator[Action]:
    if before.spec.unschedulable and not after.spec.unschedulable:
        yield Action.UPDATE_NODE_TAINT
    if _allocatable_changed(before, after):
        yield Action.UPDATE_NODE_ALLOCATABLE
    if before.labels != after.labels:
        yield Action.UPDATE_NODE_LABEL
    if before.spec.taints != after.spec.taints:
        yield Action.UPDATE_NODE_TAINT
    if _condition_statuses(before) != _condition_statuses(after):
        yield Action.UPDATE_NODE_CONDITION
    if before.annotations != after.annotations:
        yield Action.UPDATE_NODE_ANNOTATION
    if before.status.declared_features != after.status.declared_features:
        yield Action.UPDATE_NODE_DECLARED_FEATURE


def _allocatable_changed(before: Node, after: Node) -> bool:
    """By amount: "1000m" and "1" are the same."""
    old, new = before.status.allocatable, after.status.allocatable
    if old == new:
        return False
    return old.keys() != new.keys() or any(parse(old[name]) != parse(new[name]) for name in old)


def _condition_statuses(node: Node) -> dict[str, str]:
    """Heartbeats and messages come and go without meaning."""
    return {condition.type: condition.status for condition in node.status.conditions}


def _pod_changes(before: Pod, after: Pod) -> Iterator[Action]:
    if before.labels != after.labels:
        yield Action.UPDATE_POD_LABEL
    if _asks_for_less(before, after):
        yield Action.UPDATE_POD_SCALE_DOWN
    if before.spec.scheduling_gates and not after.spec.scheduling_gates:
        yield Action.UPDATE_POD_GATES_ELIMINATED
    if len(before.spec.tolerations) != len(after.spec.tolerations):  # The API lets them only be added to.
        yield Action.UPDATE_POD_TOLERATION
    if _claims(before) != _claims(after):
        yield Action.UPDATE_POD_GENERATED_CLAIM


def _asks_for_less(before: Pod, after: Pod) -> bool:
    """Whether any request went down or away. Most updates touch none, so that is looked at before adding up."""
    if _what_requests_depend_on(before) == _what_requests_depend_on(after):
        return False
    now = pod_requests(after, use_status=True)
    return any(name not in now or amount > now[name] for name, amount in pod_requests(before, use_status=True).items())


def _what_requests_depend_on(pod: Pod) -> tuple[Any, ...]:
    spec, status = pod.spec, pod.status
    containers = (*status.container_statuses, *status.init_container_statuses)
    return (
        spec.containers,
        spec.init_containers,
        spec.resources,
        spec.overhead,
        [(each.name, each.resources, each.allocated_resources) for each in containers],
        status.resources,
        status.allocated_resources,
        [condition.reason for condition in status.conditions if condition.type == "PodResizePending"],
    )


def _claims(pod: Pod) -> tuple[Any, ...]:
    return pod.status.resource_claim_statuses, pod.status.extended_resource_claim_status
