"""Decides which events may make room for a pod that did not fit.

A pod that leaves or shrinks helps if it held something on a node. A node that comes or grows helps if the pod would fit
it when empty and something the pod asks for, or the number of pods it takes, has grown.
"""

from __future__ import annotations

from podium.kube import Node, Pod
from podium.kube.requests import PODS, fit_requests, offered, requested


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


def offers_more(pod: Pod, before: Node | None, after: Node) -> bool:
    """Whether a new or changed node may have room."""
    wanted = {name: amount for name, amount in fit_requests(pod).items() if amount}
    offers = offered(after.status.allocatable)
    if offers.get(PODS, 0) < 1 or any(amount > offers.get(name, 0) for name, amount in wanted.items()):
        return False
    if before is None:
        return True
    offered_before = offered(before.status.allocatable)
    return any(offers.get(name, 0) > offered_before.get(name, 0) for name in (PODS, *wanted))
