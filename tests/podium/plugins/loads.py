"""Plugins with measured load set by hand, as a load-watcher would tell it."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from podium.cluster import Cluster
from podium.framework import Plugin
from podium.kube import Node
from podium.load.readings import GivenLoad, Readings
from podium.load.series import Series
from podium.load.utilisation import watcher
from tools.kit.builders import build, make_handle

ADDRESS = "http://load-watcher:2020"
P = TypeVar("P", bound=Plugin)


def series(metric: str) -> Series:
    return Series(source=watcher(ADDRESS), query=metric)


def readings(load: GivenLoad, metric: str) -> Readings:
    return load.follow(series(metric))


def measured(kind: type[P], cluster: Cluster, load: GivenLoad, **args: Any) -> P:
    """A plugin that reads `load`, with arguments as a configuration would give them."""
    assert kind.Args is not None
    handle = make_handle(cluster)
    handle.load = load
    return kind(msgspec.convert({"watcherAddress": ADDRESS, **args}, kind.Args), handle)


def load_of(at: float = 1_000_000.0, /, **metrics: dict[str, float]) -> GivenLoad:
    """`load_of(cpu_avg={"n1": 30.0}, memory_std=…)`, measured until `at`."""
    load = GivenLoad()
    for name, values in metrics.items():
        set_load(load, name, values, at)
    return load


def set_load(load: GivenLoad, name: str, values: dict[str, float], at: float) -> None:
    resource, _, operator = name.partition("_")
    words = {"cpu": "CPU", "memory": "Memory", "avg": "AVG", "std": "STD", "latest": "Latest", "": ""}
    load.set(series(f"{words[resource]}/{words[operator]}"), values, at)


def machine(name: str, cpu: int = 4000, memory: int = 8 << 30, capacity: int | None = None) -> Node:
    """A node that offers cpu in thousandths and memory in bytes; `capacity` where it has more cpu than it offers."""
    has = {"cpu": f"{cpu if capacity is None else capacity}m", "memory": memory}
    offers = {"cpu": f"{cpu}m", "memory": memory, "pods": 110}
    return build(Node, {"metadata": {"name": name}, "status": {"capacity": has, "allocatable": offers}})
