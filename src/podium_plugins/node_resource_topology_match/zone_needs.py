"""Works out what a pod needs of NUMA zones, once for all pods with one signature.

In pod scope the whole pod must fit one zone; in container scope each container, in the order in which the kubelet
starts them. For pods that are not Guaranteed the kubelet does not align cpu, memory and huge pages, so any zone will do
for these.

A request of 0 is no matter of zones, so that any zone will do for it. Scores count it like any other request.

Some containers hold resources of a zone for themselves, as the kubelet's managers hand them out
(`exclusive_requests`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final, NamedTuple

from podium.cluster import PodFacts
from podium.kube import (
    BEST_EFFORT,
    CPU,
    EPHEMERAL_STORAGE,
    GUARANTEED,
    MEMORY,
    MILLI,
    NANO,
    PODS,
    Container,
    Pod,
    exact_requests,
    parse_quantity,
    qos_class_of,
)
from podium_plugins.node_resource_topology_match.topology_object import MOST

ALWAYS_OFFERED: Final = (CPU, MEMORY, PODS, EPHEMERAL_STORAGE)
INIT, SIDECAR, APP = "init container", "sidecar container", "container"
_NOTE: Final = "NodeResourceTopologyMatch: needs"


class ZoneRequest(NamedTuple):
    """How much of one resource must be had in one zone."""

    resource: str
    amount: int
    counts: bool
    """The zone must have that much left; otherwise it need only list the resource."""
    optional: bool
    """Where no zone of a node lists the resource, it is not a matter of zones there."""
    offered: bool
    """Every node offers the resource."""


Request = tuple[ZoneRequest, ...]


class ContainerNeeds(NamedTuple):
    """One container: what it is, its name, and its request."""

    kind: str
    name: str
    request: Request

    @property
    def takes(self) -> bool:
        """Whether what it takes is gone for the containers after it."""
        return self.kind == APP


class ZoneNeeds(NamedTuple):
    """What a pod needs in each scope, and how much of every resource it takes in all."""

    guaranteed: bool
    indifferent: bool
    """No zone can be wrong: a pod without requests, other than for native resources."""
    whole: Request
    containers: tuple[ContainerNeeds, ...]
    amounts: tuple[tuple[str, int], ...]
    resources: tuple[str, ...]
    """Every resource that is asked for in either scope."""
    pod_requests: tuple[Request, ...]
    """What is scored in pod scope, requests of 0 too: the whole, unless it is nothing."""
    container_requests: tuple[Request, ...]
    """The same in container scope: the requests of all containers that have one."""

    @property
    def single(self) -> bool:
        """Whether there is one container, so that nothing depends on what it takes."""
        return len(self.containers) == 1


def needs_of(pod: Pod, facts: PodFacts) -> ZoneNeeds:
    needs: ZoneNeeds | None = facts.notes.get(_NOTE)
    if needs is None:
        needs = facts.notes[_NOTE] = _needs(pod)
    return needs


def is_native(resource: str) -> bool:
    """Whether Kubernetes itself defines a resource.

    >>> is_native("cpu"), is_native("kubernetes.io/batteries"), is_native("example.com/gpu")
    (True, True, False)
    """
    return "/" not in resource or "kubernetes.io/" in resource


def is_aligned_only_if_guaranteed(resource: str) -> bool:
    return resource in (CPU, MEMORY) or resource.startswith("hugepages-")


def _needs(pod: Pod) -> ZoneNeeds:
    qos, spec = qos_class_of(pod), pod.spec
    guaranteed = qos == GUARANTEED
    named = (
        *((SIDECAR if each.sidecar else INIT, each) for each in spec.init_containers),
        *((APP, each) for each in spec.containers),
    )
    scored = [_request(_container_request(each), guaranteed) for _kind, each in named]
    containers = tuple(
        ContainerNeeds(kind, each.name, _positive(request)) for (kind, each), request in zip(named, scored, strict=True)
    )
    together = _request(exact_requests(pod), guaranteed)
    whole = _positive(together)
    requested = dict.fromkeys(each.resource for request in (together, *scored) for each in request)
    devices = any(not is_native(resource) for resource in requested)
    amounts = tuple((each.resource, each.amount) for each in whole)
    return ZoneNeeds(
        guaranteed,
        qos == BEST_EFFORT and not devices,
        whole,
        containers,
        amounts,
        tuple(requested),
        (together,) if together else (),
        tuple(request for request in scored if request),
    )


def _container_request(container: Container) -> dict[str, int]:
    return {name: parse_quantity(amount) for name, amount in container.resources.requests.items()}


def _request(nanos: Mapping[str, int], guaranteed: bool) -> Request:
    return tuple(
        _zone_request(name, -(-nano // (MILLI if name == CPU else NANO)), guaranteed)
        for name, nano in nanos.items()
        if nano >= 0
    )


def _positive(request: Request) -> Request:
    return tuple(each for each in request if each.amount)


def _zone_request(name: str, amount: int, guaranteed: bool) -> ZoneRequest:
    counts = guaranteed or not is_aligned_only_if_guaranteed(name)
    optional = not counts or not is_native(name) or name in (EPHEMERAL_STORAGE, "storage")
    return ZoneRequest(name, min(amount, MOST + 1), counts, optional, name in ALWAYS_OFFERED)


def exclusive_requests(container: Container, guaranteed: bool, listed: Collection[str]) -> Iterator[tuple[str, int]]:
    """The resources that a container has for itself: devices that zones list, even 0 of one; of a Guaranteed pod also
    whole cpus, memory and huge pages. cpu in thousandths."""
    for name, amount in container.resources.requests.items():
        nano = parse_quantity(amount)
        if not is_native(name):
            if name in listed:
                yield name, -(-nano // NANO)
        elif nano > 0 and guaranteed and is_aligned_only_if_guaranteed(name):
            if name != CPU:
                yield name, -(-nano // NANO)
            elif nano % NANO == 0:
                yield name, nano // MILLI


def exclusive_containers(pod: Pod, listed: Collection[str]) -> Iterator[Container]:
    """The sidecars and app containers that have something for themselves."""
    guaranteed = qos_class_of(pod) == GUARANTEED
    for container in (*(each for each in pod.spec.init_containers if each.sidecar), *pod.spec.containers):
        if any(True for _ in exclusive_requests(container, guaranteed, listed)):
            yield container


def has_exclusive(pod: Pod, listed: Collection[str]) -> bool:
    return any(True for _ in exclusive_containers(pod, listed))
