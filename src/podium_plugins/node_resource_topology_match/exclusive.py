"""Decides which containers hold resources of a zone for themselves, as the kubelet's managers hand them out."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from kubecel.quantity import MILLI, NANO, parse
from podium.kube import Container, Pod
from podium.kube.pod_qos import GUARANTEED, qos_class_of
from podium.kube.requests import CPU
from podium_plugins.node_resource_topology_match.zone_needs import is_aligned_only_if_guaranteed, is_native


def exclusive_requests(container: Container, guaranteed: bool, listed: Collection[str]) -> Iterator[tuple[str, int]]:
    """The resources that a container has for itself: devices that zones list, even 0 of one; of a Guaranteed pod also
    whole cpus, memory and huge pages. cpu in thousandths."""
    for name, amount in container.resources.requests.items():
        nano = parse(amount)
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
