"""Lists the cluster as it is now, for an explanation of a live pod.

The user may not be allowed to see everything. Without pods and nodes there is no answer; any other kind that is
withheld is reported, and the answer is given without it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from podium.client import RESOURCES, ApiError, ApiResource, Client
from podium.client.listing import list_all
from podium.client.reading import Reader
from podium.kube import KubeObject, Node, Pod


async def fetch_objects(client: Client, tell: Callable[[str], None]) -> list[KubeObject]:
    """Everything that scheduling reads; raises ClientError where the server cannot be asked."""
    lists = await asyncio.gather(*(_listed(client, resource, tell) for resource in RESOURCES.values()))
    return [each for items in lists for each in items]


async def fetch_nodes(client: Client) -> list[Node]:
    """The cluster's nodes; raises ClientError where the server cannot be asked."""
    resource = RESOURCES[Node]
    found, _version = await list_all(client, resource, Reader(resource))
    return [each.object for each in found if each.object is not None]


async def _listed(client: Client, resource: ApiResource[Any], tell: Callable[[str], None]) -> list[KubeObject]:
    try:
        found, _version = await list_all(client, resource, Reader(resource))
    except ApiError as error:
        if resource.type in (Pod, Node) or not (error.forbidden or error.not_found):
            raise
        tell(f"{resource.name} are left out: {error.message}")
        return []
    return [each.object for each in found if each.object is not None]
