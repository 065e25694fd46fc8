"""Runs a plugin that reads measured load the way the engine does, and tells what it gives each node."""

from __future__ import annotations

import random
from typing import Any

import msgspec

from podium.cluster import Cluster
from podium.config.field import FieldPath
from podium.engine.decide import score
from podium.engine.explain import Unwritten
from podium.framework import Handle, ManualClock
from podium.framework.cycle import Cycle
from podium.framework.handle import Driver, EngineState
from podium.framework.profile import ProfileRuntime
from podium.load.readings import LoadSource
from tests.podium.framework.runtimes import setup
from tools.kit.builders import make_node, make_pod


def scores_of(plugin: str, args: msgspec.Struct, load: LoadSource, nodes: list[str]) -> list[int]:
    """The normalised score of each node."""
    config, registry = setup(plugin, args={plugin: msgspec.to_builtins(args, enc_hook=str)})
    cluster = Cluster()
    for name in nodes:
        cluster.set_node(make_node(name))
    handle = Handle(
        Driver(clock=ManualClock(100.0), writer=Unwritten(), rng=random.Random(0), load=load),
        EngineState(cluster=cluster),
    )
    runtime = ProfileRuntime(config.profiles[0], registry, handle)
    table = score(runtime, Cycle(make_pod(), cluster), cluster.order.rows)
    return [int(each) for each in table.by_plugin[plugin]]


def problems_of(kind: type[msgspec.Struct], args: dict[str, Any]) -> list[str]:
    """The fields that validation finds fault with."""
    decoded: Any = msgspec.convert(args, kind)
    return [str(error.path) for error in decoded.validate(FieldPath())]
