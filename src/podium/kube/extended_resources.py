"""Turns the extended resources of a pod into requests for devices, where device classes stand behind their names.

All of a pod's go into one claim that the scheduler makes for it. Containers are numbered, init containers first. Those
that stay (app containers, sidecars) get a request each: `container-<number>-request-<number of the resource among the
container's>`. Init containers that end use the devices of those that come with or after them first; of what they lack,
only the largest request is kept, and all use it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from kubecel.quantity import NANO, parse
from podium.kube.devices import DeviceClaim, DeviceRequest, DeviceSubRequest, ResourceClaim, ResourceClaimSpec
from podium.kube.meta import ObjectMeta, OwnerReference
from podium.kube.pod import Container, ExtendedResourceRequestMapping, Pod
from podium.kube.requests import fit_requests, is_extended_resource_name

DEVICE_CLASS_PREFIX: Final = "deviceclass.resource.kubernetes.io/"
"""A resource of this prefix and the name of a class stands for that class, whatever else it is called."""
CLAIM_ANNOTATION: Final = "resource.kubernetes.io/extended-resource-claim"
IN_MEMORY: Final = "<extended-resources>"
"""The name of the claim until it is created; no object can have it."""


def is_device_resource_name(name: str) -> bool:
    """Whether a device class may stand behind a resource."""
    return is_extended_resource_name(name) or name.startswith(DEVICE_CLASS_PREFIX)


def is_for_extended_resources(claim: ResourceClaim) -> bool:
    return claim.annotations.get(CLAIM_ANNOTATION) == "true"


def owning_pods(claim: ResourceClaim) -> list[tuple[str, str]]:
    """The names and uids of the pods that a claim was made for."""
    return [(owner.name, owner.uid) for owner in claim.metadata.owner_references if owner.controller]


def claim_in_memory(pod: Pod) -> ResourceClaim:
    """The claim of a pod's extended resources before it is created and before a node says what it asks for."""
    owner = OwnerReference(api_version="v1", kind="Pod", name=pod.name, uid=pod.uid, controller=True)
    metadata = ObjectMeta(
        namespace=pod.namespace,
        name=IN_MEMORY,
        uid=f"{pod.uid}{IN_MEMORY}",
        generate_name=f"{pod.name}-extended-resources-",
        owner_references=(owner,),
        annotations={CLAIM_ANNOTATION: "true"},
    )
    return ResourceClaim(metadata=metadata)


def created(claim: ResourceClaim) -> ResourceClaim:
    """The claim as a driver without an API server creates it: by a name of its own."""
    if claim.name != IN_MEMORY:
        return claim
    return replace(claim, metadata=replace(claim.metadata, name=f"{claim.metadata.generate_name}0"))


class DeviceNeeds(NamedTuple):
    """What containers ask for of devices, and which request each one's resources are met by."""

    requests: tuple[DeviceRequest, ...]
    mappings: tuple[ExtendedResourceRequestMapping, ...]

    def within(self, claim: ResourceClaim) -> ResourceClaim:
        return replace(claim, spec=ResourceClaimSpec(devices=DeviceClaim(requests=self.requests)))


def device_needs(pod: Pod, class_names: Mapping[str, str]) -> DeviceNeeds:
    """The requests for the resources in `class_names`, with the class behind each."""
    requests: list[DeviceRequest] = []
    mappings: list[ExtendedResourceRequestMapping] = []
    for resource in sorted(class_names):
        needs = _needs(pod, resource, class_names[resource])
        requests += needs.requests
        mappings += needs.mappings
    return DeviceNeeds(tuple(sorted(requests, key=lambda each: each.name)), tuple(mappings))


def _needs(pod: Pod, resource: str, class_name: str) -> DeviceNeeds:
    containers = (*pod.spec.init_containers, *pod.spec.containers)
    ending = [number for number, each in enumerate(pod.spec.init_containers) if not each.sidecar]
    staying: dict[int, DeviceRequest] = {}
    mappings: list[ExtendedResourceRequestMapping] = []
    for number, container in enumerate(containers):
        if number not in ending:
            wanted = _wanted(container, resource)
            if wanted:
                staying[number] = _request(number, container, resource, class_name, wanted)
                mappings.append(_mapping(container, resource, staying[number]))
    largest: DeviceRequest | None = None
    own: list[tuple[int, str]] = []
    for number in ending:
        container = containers[number]
        later = (request for at, request in sorted(staying.items()) if at >= number)
        used, lacking = _reused(later, _wanted(container, resource))
        mappings += [_mapping(container, resource, request) for request in used]
        if lacking > 0:
            request = _request(number, container, resource, class_name, lacking)
            own.append((len(mappings), request.name))
            mappings.append(_mapping(container, resource, request))
            if largest is None or _count(largest) < lacking:
                largest = request
    for at, _name in own:
        assert largest is not None
        mappings[at] = replace(mappings[at], request_name=largest.name)
    return DeviceNeeds((*((largest,) if largest else ()), *staying.values()), tuple(mappings))


def _reused(offered: Iterable[DeviceRequest], wanted: int) -> tuple[list[DeviceRequest], int]:
    """The requests of others that a container uses, and how many devices it lacks then."""
    used: list[DeviceRequest] = []
    for request in offered:
        if wanted <= 0:
            break
        used.append(request)
        wanted -= _count(request)
    return used, wanted


def _wanted(container: Container, resource: str) -> int:
    """How many devices a container asks for; a fraction is none."""
    amount = parse(container.resources.requests.get(resource, 0))
    return 0 if amount % NANO else amount // NANO


def _request(number: int, container: Container, resource: str, class_name: str, count: int) -> DeviceRequest:
    position = sorted(container.resources.requests).index(resource)
    exactly = DeviceSubRequest(device_class_name=class_name, count=count)
    return DeviceRequest(name=f"container-{number}-request-{position}", exactly=exactly)


def _count(request: DeviceRequest) -> int:
    return request.exactly.count if request.exactly else 0


def _mapping(container: Container, resource: str, request: DeviceRequest) -> ExtendedResourceRequestMapping:
    return ExtendedResourceRequestMapping(
        container_name=container.name, resource_name=resource, request_name=request.name
    )


def wanted_names(requests: Mapping[str, int]) -> Sequence[str]:
    """The resources of a pod that device classes may stand behind."""
    return [name for name, amount in requests.items() if amount and is_device_resource_name(name)]


def wanted_device_resources(pod: Pod) -> Sequence[str]:
    """The resources that a pod asks for and that device classes may stand behind; most pods ask for none."""
    spec = pod.spec
    holders = (*(each.resources for each in (*spec.containers, *spec.init_containers)), spec.resources)
    amounts = (*(each.requests for each in holders if each is not None), spec.overhead)
    for requests in amounts:
        for name in requests:
            if "/" in name:  # as in the name of each such resource; only then it is worth to add up
                return wanted_names(fit_requests(pod))
    return ()
