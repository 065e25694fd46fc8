"""Decides which events may make room for a pod that did not fit.

A pod that leaves or shrinks helps if it held something on a node. A node that comes or grows helps if the pod would fit
it when empty and something the pod asks for, or the number of pods it takes, has grown. Resources that a device class
stands behind count as grown on a node that offers none of them. A device class that comes, or takes another name, helps
pods that ask for it by its name.
"""

from __future__ import annotations

from collections.abc import Callable

from podium.kube import DeviceClass, Node, Pod
from podium.kube.extended_resources import DEVICE_CLASS_PREFIX
from podium.kube.requests import PODS, fit_requests, offered, pod_requests, requested
from podium.placement.devices.uses import DeviceResourceNames


def frees_resources(pod: Pod, before: Pod, after: Pod | None) -> bool:
    """Whether a pod's departure or its smaller requests may make room."""
    if after is None:
        return bool(before.node_name or before.status.nominated_node_name)
    if after.uid == pod.uid:
        return True
    if not after.node_name:
        return False
    was, is_now = requested(before), requested(after)
    wanted = (name for name, amount in requested(pod).items() if amount)
    return any(max(was.get(name, 0), 0) > max(is_now.get(name, 0), 0) for name in wanted)


def offers_more(resources: DeviceResourceNames) -> Callable[[Pod, Node | None, Node], bool]:
    def may_help(pod: Pod, before: Node | None, after: Node) -> bool:
        """Whether a new or changed node may have room."""
        wanted = {name: amount for name, amount in fit_requests(pod).items() if amount}
        offers = offered(after.status.allocatable)
        devices = [name for name in wanted if resources.class_of(name) is not None and offers.get(name, 0) <= 0]
        short = (amount > offers.get(name, 0) for name, amount in wanted.items() if name not in devices)
        if offers.get(PODS, 0) < 1 or any(short):
            return False
        if before is None or devices:
            return True
        offered_before = offered(before.status.allocatable)
        return any(offers.get(name, 0) > offered_before.get(name, 0) for name in (PODS, *wanted))

    return may_help


def names_resource(pod: Pod, before: DeviceClass | None, after: DeviceClass) -> bool:
    """Whether a device class now stands behind a resource of the pod."""
    name = after.spec.extended_resource_name or ""
    if before is not None and (before.spec.extended_resource_name or "") == name:
        return False
    requests = pod_requests(pod)
    return name in requests or (before is None and DEVICE_CLASS_PREFIX + after.name in requests)
