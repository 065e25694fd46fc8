"""Shares GPUs: a pod gets thousandths of one GPU, or whole GPUs, on one node (GpuShare).

    filter    the node's model is allowed, and at least `count` of its devices have `milli` left
    reserve   devices are chosen, by the GPU score of the profile (see `DeviceChooser`), else by `best_devices`
    preBind   the devices are written to the pod: alibabacloud.com/gpu-index: "0-3"

A node offers its GPUs as the resource alibabacloud.com/gpu-count and names their model in the label
alibabacloud.com/gpu-card-model; what pods ask for stands in annotations (see `podium_plugins.gpu.request`), because a
share must lie on one device, which a sum over the node cannot tell. A pod with an annotation that cannot be read is
unschedulable and says why.

Surprise: nothing but the annotation tells a container which device it has. Something on the node must act on it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Protocol, runtime_checkable

from podium import (
    SKIP,
    Action,
    Cycle,
    DependsOn,
    Effect,
    Handle,
    Interest,
    NodePart,
    Plugin,
    Resource,
    Status,
    Verdict,
    Write,
)
from podium.cluster import NodeInfo, Nodes
from podium.config.points import Point
from podium.kube import Node, Pod
from podium_plugins.gpu.devices import GpuDevices, best_devices, fits, request_of
from podium_plugins.gpu.request import COUNT, INDEX, MILLI, GpuRequest, write_devices

NAME = "GpuShare"
TOO_FEW = Status.unresolvable("node(s) had too few GPUs")
WRONG_MODEL = Status.unresolvable("node(s) had no GPU of an allowed model")
NOT_ENOUGH = Status.unschedulable("Insufficient alibabacloud.com/gpu-milli")


@runtime_checkable
class DeviceChooser(Protocol):
    """A score plugin that also says which device of the chosen node a sharing pod gets."""

    def choose_device(self, cycle: Cycle, row: int) -> int | None:
        """One device of the row, which the pod is counted on already as to cpu but not as to GPUs."""


class GpuShare(Plugin):
    name = NAME
    trusted = True
    depends_on = DependsOn(node=NodePart.PODS, claims=False)
    writes = (Write.ANNOTATIONS,)

    def __init__(self, args: None, handle: Handle) -> None:
        super().__init__(args, handle)
        self._devices = GpuDevices.of(handle.cluster)

    def interests(self) -> Iterable[Interest]:
        return [
            Interest(Resource.POD, Action.DELETE, frees_gpus, by_signature=True),
            Interest(
                Resource.NODE,
                Action.ADD | Action.UPDATE_NODE_ALLOCATABLE | Action.UPDATE_NODE_LABEL,
                has_gpus,
                by_signature=True,
            ),
        ]

    # Filter

    def pre_filter(self, cycle: Cycle) -> Status | None:
        request = request_of(cycle.pod, cycle.facts)
        if not isinstance(request, GpuRequest):
            return Status.unresolvable(str(request))
        return None if request.gpus else SKIP

    def filter(self, cycle: Cycle, nodes: Nodes) -> Verdict | None:
        request = _wanted(cycle)
        devices = self._devices
        rejections = [
            (nodes.pick(devices.counts()) < request.gpus, TOO_FEW),
            ((devices.free(nodes) >= request.milli).sum(axis=0) < request.gpus, NOT_ENOUGH),
        ]
        if request.models:
            rejections.insert(0, (~devices.has_model(nodes, request.models), WRONG_MODEL))
        return Verdict.first_of(*rejections)

    def filter_node(self, cycle: Cycle, node: NodeInfo) -> Status | None:
        request = _wanted(cycle)
        if request.models and self._devices.model_of(node.row) not in request.models:
            return WRONG_MODEL
        free = self._devices.free_on(node.row)
        if fits(free, request):
            return None
        return TOO_FEW if len(free) < request.gpus else NOT_ENOUGH

    # Placement

    def reserve(self, cycle: Cycle, node_name: str) -> Status | None:
        request = _wanted(cycle)
        if not request.gpus:
            return None
        account, uid, row = self._devices, cycle.pod.uid, cycle.cluster.row_of[node_name]
        account.lift(uid)
        devices = best_devices(account.free_on(row), request)
        if devices is None:
            return NOT_ENOUGH
        chooser = self._chooser if request.sharing else None
        if chooser is not None:
            device = chooser.choose_device(cycle, row)
            devices = devices if device is None else (device,)
        account.hold(uid, row, devices, request)
        return None

    def unreserve(self, cycle: Cycle, node_name: str) -> None:
        """Give the devices back, unless the pod turned out to be bound: then it holds what it says."""
        placed = cycle.cluster.pods.get(cycle.pod.uid)
        if placed is None or placed.assumed:
            self._devices.lift(cycle.pod.uid)

    def pre_bind_preflight(self, cycle: Cycle, node_name: str) -> Status | None:
        return None if _wanted(cycle).gpus else SKIP

    def pre_bind(self, cycle: Cycle, node_name: str) -> Effect:
        index = write_devices(self._devices.held_by(cycle.pod.uid))
        return self.handle.writer.annotate(cycle.pod, {INDEX: index})

    @cached_property
    def _chooser(self) -> DeviceChooser | None:
        """The GPU score that counts most in the profile; the first of equals."""
        runtime = self.handle.runtime
        choosers = [plugin for plugin in runtime.at(Point.SCORE) if isinstance(plugin, DeviceChooser)]
        return max(choosers, key=lambda plugin: runtime.weights[plugin.name], default=None)


def _wanted(cycle: Cycle) -> GpuRequest:
    request = request_of(cycle.pod, cycle.facts)
    assert isinstance(request, GpuRequest), "PreFilter turned the pod away"
    return request


def frees_gpus(_pod: Pod, before: Pod, _after: Pod | None) -> bool:
    """Whether a pod that goes may have held part of a GPU."""
    return bool(before.node_name or before.status.nominated_node_name) and any(
        key in before.annotations for key in (MILLI, COUNT)
    )


def has_gpus(_pod: Pod, _before: Node | None, after: Node) -> bool:
    """Whether a node that comes or changes has GPUs at all."""
    return COUNT in after.status.allocatable
