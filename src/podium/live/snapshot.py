"""Lists the cluster as it is now, for an explanation of a live pod.

The user may not be allowed to see everything. Without pods and nodes there is no answer; any other kind that is
withheld is reported, and the answer is given without it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from podium.client import RESOURCES, ApiError, ApiResource, Client
from podium.client.listing import list_all
from podium.client.reading import Reader
from podium.config.feature_gates import NO_GATES, Gate, Gates
from podium.framework import Plugin
from podium.kube import CustomObject, KubeObject, Node, Pod, PodGroup
from podium.kube.custom_object import CUSTOM_KINDS


async def fetch_objects(client: Client, tell: Callable[[str], None], gates: Gates = NO_GATES) -> list[KubeObject]:
    """Everything that scheduling reads with these gates on; raises ClientError where the server cannot be asked."""
    wanted = [
        resource for kind, resource in RESOURCES.items() if kind is not PodGroup or Gate.GENERIC_WORKLOAD in gates
    ]
    lists = await asyncio.gather(*(_listed(client, resource, tell) for resource in wanted))
    return [each for items in lists for each in items]


async def fetch_custom_objects(
    client: Client, plugins: Iterable[type[Plugin]], tell: Callable[[str], None]
) -> list[CustomObject]:
    """The custom resources that these plugins read, as far as the server has them."""
    wanted = {resource.partition("/")[0] for plugin in plugins for resource in plugin.resources}
    found: list[CustomObject] = []
    for (version, kind), name in CUSTOM_KINDS.items():
        if name in wanted:
            resource: ApiResource[Any] = ApiResource(f"/apis/{version}/{name.partition('.')[0]}", None)
            items = await _listed(client, resource, tell)
            found += [msgspec.convert({**item, "apiVersion": version, "kind": kind}, CustomObject) for item in items]
    return found


async def fetch_nodes(client: Client) -> list[Node]:
    """The cluster's nodes; raises ClientError where the server cannot be asked."""
    resource = RESOURCES[Node]
    found, _version = await list_all(client, resource, Reader(resource))
    return [each.object for each in found if each.object is not None]


async def _listed(client: Client, resource: ApiResource[Any], tell: Callable[[str], None]) -> list[Any]:
    try:
        found, _version = await list_all(client, resource, Reader(resource))
    except ApiError as error:
        if resource.type in (Pod, Node) or not (error.forbidden or error.not_found):
            raise
        tell(f"{resource.name} are left out: {error.message}")
        return []
    return [each.object for each in found if each.object is not None]
