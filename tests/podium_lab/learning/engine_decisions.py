"""Runs engine and plugins on an openb list and gives every decision, to be compared with the kernel's."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from podium.plugins import load_registry
from podium_lab.learning.kernel import KernelPlan, KernelRun
from podium_lab.simulator.profiles import configuration
from podium_lab.simulator.reading import load_scenario
from podium_lab.simulator.run import SimulatedRun
from podium_lab.simulator.traces.openb import OpenbPod, submitted
from podium_plugins.gpu.devices import GpuDevices

BASE = ("PrioritySort", "NodeResourcesFit", "GpuShare", "DefaultBinder")


class Placed(NamedTuple):
    """Where a pod went: "" for nowhere; whole GPUs and shares by their devices."""

    pod: str
    node: str
    devices: tuple[int, ...]


def engine_decisions(
    data: Path, nodes: str, pods: str, seed: int, plugin: str, args: dict[str, Any] | None = None
) -> list[Placed]:
    """Every decision of `podium simulate`, by the names of pods."""
    profile: dict[str, Any] = {
        "plugins": {
            "multiPoint": {"enabled": [{"name": name} for name in BASE], "disabled": [{"name": "*"}]},
            "score": {"enabled": [{"name": plugin}], "disabled": [{"name": "*"}]},
        }
    }
    if args is not None:
        profile["pluginConfig"] = [{"name": plugin, "args": args}]
    scenario = {
        "name": "decisions",
        "seeds": seed,
        "nodes": {"openb": nodes},
        "nodeOrder": "shuffled",
        "workload": {"openb": {"list": pods, "target": 1.3}},
        "unschedulable": "drop",
        "profiles": [{"name": "only", "profile": profile}],
    }
    loaded = load_scenario(msgspec.json.encode(scenario).decode(), "decisions.yaml", data=str(data))
    registry = load_registry()
    config = configuration(loaded, loaded.scenario.profiles[0], registry)
    run = SimulatedRun(loaded, "only", seed, config, registry)
    run.run()
    cluster = run._scheduler.cluster
    devices = GpuDevices.of(cluster)
    found = [
        Placed(placed.pod.metadata.name, cluster.names[placed.row], devices.held_by(uid))
        for uid, placed in cluster.pods.items()
    ]
    return sorted(found)


def kernel_decisions(plan: KernelPlan, run: KernelRun, pods: tuple[OpenbPod, ...], seed: int) -> list[Placed]:
    """Every decision of a static run of the kernel, likewise."""
    capacity = sum(plan.capacity.values())
    found = []
    for i, (pod, name) in enumerate(submitted(pods, 1.3 * capacity, seed)):
        if run.chosen[i] >= 0:
            bits = int(run.devices[i])
            devices: tuple[int, ...] = ()
            if pod.gpus:
                devices = (bits,) if pod.milli < 1000 else tuple(i for i in range(64) if bits >> i & 1)
            found.append(Placed(name, plan.specs[int(run.chosen[i])].name, devices))
    return sorted(found)
