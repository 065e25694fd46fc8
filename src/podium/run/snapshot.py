"""Lists the cluster as it is now, and measures its load once, for an explanation of a live pod.

The user may not be allowed to see everything. Without pods and nodes there is no answer; any other kind that is
withheld is reported, and the answer is given without it.

Also finds out from a pod's events what its scheduler said of it last: that it fits nowhere, or that a plugin holds it.

A pod that waits at Permit looks like any other without a node: what holds it is known to its scheduler alone, which
says so in an event. The last event of the pod counts: a rejection or a failure comes as another one.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from podium.client import RESOURCES, ApiError, ApiResource, Client, ClientError
from podium.client.listing import list_all
from podium.client.reading import Reader
from podium.client.resource import GATED, NoSuchKindError, find_resource
from podium.cluster import Cluster
from podium.config import Registry, SchedulerConfig
from podium.config.feature_gates import NO_GATES, Gates
from podium.engine.explain import Unwritten
from podium.framework import Handle, Plugin, SystemClock
from podium.framework.handle import Driver, EngineState
from podium.framework.profile import ProfileRuntime
from podium.kube import CustomObject, KubeObject, Node, Pod
from podium.kube.bounds import UNDECODABLE
from podium.kube.custom_object import ThirdPartyObject
from podium.kube.meta import ObjectMeta
from podium.load.sources import Telemetry
from podium.serving.event_recorder import FAILED_SCHEDULING, WAITING_ON_PERMIT


async def fetch_objects(client: Client, tell: Callable[[str], None], gates: Gates = NO_GATES) -> list[KubeObject]:
    """Everything that scheduling reads with these gates on; raises ClientError where the server cannot be asked."""
    wanted = [resource for kind, resource in RESOURCES.items() if kind not in GATED or GATED[kind] in gates]
    lists = await asyncio.gather(*(_listed(client, resource, tell) for resource in wanted))
    return [each for items in lists for each in items]


async def fetch_custom_objects(
    client: Client, plugins: Iterable[type[Plugin]], tell: Callable[[str], None], others: Iterable[str] = ()
) -> list[CustomObject]:
    """What these plugins read as it is written, and other resources, as far as the server has them."""
    found: list[CustomObject] = []
    for name in sorted({*others, *(name.partition("/")[0] for plugin in plugins for name in plugin.resources)}):
        try:
            resource = await find_resource(client, name)
        except (NoSuchKindError, ApiError, *UNDECODABLE, LookupError, TypeError) as error:
            if isinstance(error, ApiError) and not (error.forbidden or error.not_found):
                raise
            tell(f"{name} are left out: {error if isinstance(error, NoSuchKindError) else 'the API server has none'}")
            continue
        for item in await _listed(client, resource, tell):
            metadata = msgspec.convert(item["metadata"], ObjectMeta)
            found.append(ThirdPartyObject(metadata=metadata, plural_group=name, whole=item))
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
        if resource.older and error.not_found:
            return await _listed(client, replace(resource, path=resource.older, older=""), tell)
        if resource.optional and error.not_found:
            return []
        if resource.type in (Pod, Node) or not (error.forbidden or error.not_found):
            raise
        tell(f"{resource.name} are left out: {error.message}")
        return []
    return [each.object for each in found if each.object is not None]


async def measure(
    config: SchedulerConfig, registry: Registry, nodes: Sequence[Node], client: Client | None
) -> Telemetry:
    """Ask every source that a plugin of any profile follows; `client` is for those behind the API server."""
    load = _following(config, registry, nodes, client)
    try:
        await load.refresh()
    finally:
        await load.close()
    return load


def _following(config: SchedulerConfig, registry: Registry, nodes: Sequence[Node], client: Client | None) -> Telemetry:
    """Plugins say what they follow when they are made, so all are made once."""
    clock, rng, cluster = SystemClock(), random.Random(), Cluster()
    for node in nodes:
        cluster.set_node(node)
    load = Telemetry(clock=clock, rng=rng, nodes=lambda: nodes, api=client, report=lambda _line: None)
    for profile in config.profiles:
        handle = Handle(Driver(clock=clock, writer=Unwritten(), rng=rng, load=load), EngineState(cluster=cluster))
        ProfileRuntime(profile, registry, handle)
    return load


class _Series(msgspec.Struct, rename="camel"):
    last_observed_time: str | None = None


class PodEvent(msgspec.Struct, rename="camel"):
    """What was said of a pod."""

    reason: str = ""
    message: str = ""
    event_time: str | None = None
    last_timestamp: str | None = None
    series: _Series | None = None

    @property
    def time(self) -> str:
        """Times of one API server compare as text, to the second; equal ones keep the server's order."""
        last = None if self.series is None else self.series.last_observed_time
        return (last or self.event_time or self.last_timestamp or "")[:19]

    @property
    def held(self) -> str | None:
        """What holds the pod at Permit, if that is what was said."""
        return self.message if self.reason == WAITING_ON_PERMIT else None

    @property
    def failed(self) -> str | None:
        """Why the pod got no node, if that is what was said."""
        return self.message if self.reason == FAILED_SCHEDULING else None


class _Events(msgspec.Struct):
    items: list[PodEvent] = []


async def last_event(client: Client, pod: Pod) -> PodEvent | None:
    """What was said last of a pod that has no node; None where nothing was, or events may not be listed."""
    if pod.node_name or not pod.uid:
        return None
    path = f"/api/v1/namespaces/{pod.namespace}/events?fieldSelector=involvedObject.uid%3D{pod.uid}"
    try:
        events = msgspec.json.decode(await client.get(path), type=_Events).items
    except ApiError as error:
        if error.forbidden or error.not_found:
            return None
        raise
    except UNDECODABLE as error:
        raise ClientError(f"events cannot be read: {error}") from None
    return max(events, key=lambda event: event.time, default=None)
