"""What the cluster state needs to know of a pod, worked out once.

Pods made from one template differ only in name, so everything derived from the spec (requests, host ports, compiled
affinity terms, used claims, disks) is kept per distinct specification and shared. The key is the encoded specification
itself: two pods with equal keys are the same to every plugin that reads only namespace, labels and spec.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, NamedTuple

import msgspec

from podium.cluster.attached import may_attach
from podium.cluster.disks import Disk, inline_disks
from podium.cluster.terms import parse_terms
from podium.kube import Container, Pod
from podium.kube.requests import nonzero_requested, requested
from podium.kube.validation import joined

KEPT_FACTS = 20_000

_encode = msgspec.msgpack.Encoder().encode


class HostPort(NamedTuple):
    ip: str
    protocol: str
    port: int


class PodFacts:
    """Derived once per distinct specification; `signature` tells specifications apart.

    Plugins keep in `notes`, under a key of their own (themselves, where their arguments matter), what they derive from
    the specification alone.
    """

    __slots__ = (
        "claims",
        "disks",
        "may_attach",
        "nonzero_cpu",
        "nonzero_memory",
        "notes",
        "ports",
        "requested",
        "signature",
        "terms",
        "terms_errors",
    )

    def __init__(self, pod: Pod, signature: bytes) -> None:
        self.signature = signature
        self.requested: tuple[tuple[str, int], ...] = tuple((n, v) for n, v in requested(pod).items() if v)
        self.nonzero_cpu, self.nonzero_memory = nonzero_requested(pod)
        self.ports = host_ports(pod)
        namespace = pod.namespace
        self.claims: tuple[str, ...] = tuple(
            f"{namespace}/{volume.persistent_volume_claim.claim_name}"
            for volume in pod.spec.volumes
            if volume.persistent_volume_claim is not None
        )
        self.disks: tuple[Disk, ...] = inline_disks(pod)
        self.may_attach = any(map(may_attach, pod.spec.volumes))
        self.notes: dict[object, Any] = {}
        self.terms, self.terms_errors = parse_terms(pod.spec.affinity, namespace)

    @property
    def terms_error(self) -> str | None:
        """What is wrong with the affinity terms, if anything is."""
        return joined(self.terms_errors.values()) if self.terms_errors else None


def host_ports(pod: Pod) -> tuple[HostPort, ...]:
    """The ports on the node that app containers and sidecars take."""
    spec = pod.spec
    holders: list[Container] = [*spec.containers, *(c for c in spec.init_containers if c.sidecar)]
    return tuple(
        HostPort(port.host_ip or "0.0.0.0", port.protocol or "TCP", port.host_port)
        for container in holders
        for port in container.ports
        if port.host_port > 0
    )


def signature(pod: Pod) -> bytes:
    """Equal for pods that scheduling cannot tell apart (name, node and times aside)."""
    spec = pod.spec
    if spec.node_name:
        spec = msgspec.structs.replace(spec, node_name="")
    meta = pod.metadata
    return _encode((meta.namespace, meta.labels, meta.annotations, meta.owner_references, spec))


def _resize_status(pod: Pod) -> bytes:
    """What requests depend on besides the spec: resources already granted, and resizes that cannot be met."""
    status = pod.status
    granted = [
        (c.name, c.resources, c.allocated_resources)
        for c in (*status.init_container_statuses, *status.container_statuses)
        if c.resources is not None or c.allocated_resources
    ]
    if not granted and status.resources is None and not status.allocated_resources:
        return b""
    infeasible = [(c.type, c.status, c.reason) for c in status.conditions if c.type == "PodResizePending"]
    return _encode((granted, status.resources, status.allocated_resources, infeasible))


class FactsCache:
    """Facts by signature, the oldest dropped."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[bytes, bytes], PodFacts] = OrderedDict()

    def of(self, pod: Pod) -> PodFacts:
        key = (signature(pod), _resize_status(pod))
        facts = self._kept.get(key)
        if facts is None:
            facts = self._kept[key] = PodFacts(pod, key[0])
            if len(self._kept) > KEPT_FACTS:
                self._kept.popitem(last=False)
        return facts
