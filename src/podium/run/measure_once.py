"""Measures once what the plugins of a configuration would see if a scheduler ran with it now."""

from __future__ import annotations

import random
from collections.abc import Sequence

from podium.client import Client
from podium.cluster import Cluster
from podium.config import Registry, SchedulerConfig
from podium.engine.explain import Unwritten
from podium.framework import Handle, SystemClock
from podium.framework.handle import Driver, EngineState
from podium.framework.profile import ProfileRuntime
from podium.kube import Node
from podium.load.sources import Telemetry


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
