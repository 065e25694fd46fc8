"""Works out how much of each resource a node uses, with and without the pod: the start of scoring by resources.

A scoring plugin is configured with resources and weights. A resource counts on a node that offers some of it; an
extended resource, huge pages and the like only if the pod asks for it as well. `usage_on` is the one-node form, in
plain integers, of what `Nodes` gives as columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from podium.cluster import Cluster
from podium.cluster.resources import ALLOCATABLE, CPU, MEMORY, NONZERO, NUMBER, REQUESTED, Amounts
from podium.config.types import Int64
from podium.kube.extended_resources import wanted_names
from podium.kube.requests import is_scalar_resource_name

LINES_OF = {name: (ALLOCATABLE + number, REQUESTED + number) for name, number in NUMBER.items()}
"""Where a row's numbers tell what the node offers of a resource and what its pods ask for."""
_NONZERO_LINES = LINES_OF | {"cpu": (ALLOCATABLE + CPU, NONZERO), "memory": (ALLOCATABLE + MEMORY, NONZERO + 1)}


class ResourceSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A resource with its weight, as it is configured; a weight of 0 means 1."""

    name: str = ""
    weight: Int64 = 1

    def __post_init__(self) -> None:
        if self.weight == 0:
            msgspec.structs.force_setattr(self, "weight", 1)


DEFAULT_RESOURCES = (ResourceSpec(name="cpu"), ResourceSpec(name="memory"))


class Weighed(NamedTuple):
    """A resource that counts for a pod: how much the pod asks for, and its weight."""

    resource: str
    request: int
    weight: int


Usage = tuple[int, int, int, int]
"""One weighed resource on one node: allocatable, used, the pod's request, weight."""


def weigh(resources: Iterable[ResourceSpec], requests: Mapping[str, int]) -> tuple[Weighed, ...]:
    """The configured resources that count for a pod with these requests."""
    return tuple(
        Weighed(spec.name, requests.get(spec.name, 0), spec.weight)
        for spec in resources
        if requests.get(spec.name) or not is_scalar_resource_name(spec.name)
    )


def device_resources(weighed: Iterable[Weighed]) -> Sequence[str]:
    """Those of the resources that device classes may stand behind."""
    return wanted_names({each.resource: each.request for each in weighed})


def columns_of(weighed: Sequence[Weighed]) -> tuple[tuple[str, ...], Amounts, Amounts]:
    """The resources' names, and their requests and weights as columns of one entry each."""
    names, requests, weights = zip(*weighed, strict=True)
    return names, np.array(requests, dtype=np.int64)[:, None], np.array(weights, dtype=np.int64)[:, None]


def usage_on(cluster: Cluster, row: int, weighed: Iterable[Weighed], *, nonzero: bool) -> list[Usage]:
    """What a node offers and uses of those resources it has; `nonzero` counts defaults for pods without requests."""
    columns = cluster.resources
    numbers, lines_of = columns.on(row), _NONZERO_LINES if nonzero else LINES_OF
    usage: list[Usage] = []
    for resource, request, weight in weighed:
        lines = lines_of.get(resource)
        if lines is None:
            offered, used = columns.scalar_on(resource, row)
        else:
            offered, used = numbers[lines[0]], numbers[lines[1]]
        if offered:
            usage.append((offered, used, request, weight))
    return usage
