"""Who decided where a trained model scores."""

from __future__ import annotations

from podium.framework.clock import ManualClock
from podium.run.metrics import Metrics
from tests.podium.engine.schedulers import World
from tests.podium_plugins.gpu_share.gpu_worlds import TYPICAL, gpu_node, gpu_pod


def samples(world: World) -> dict[tuple[str, ...], float]:
    metrics = Metrics(ManualClock(), now=lambda: 0.0)
    metrics.attach(world.scheduler)
    return {
        tuple(sample.labels.values()): sample.value
        for family in metrics.families
        if family.name.startswith("podium_learned_decisions")
        for sample in family.collect().samples
    }


def test_decisions_are_counted_by_who_made_them() -> None:
    args = {"LearnedScore": {"policy": "readable", "knowledge": TYPICAL, "mostOutside": 1.0}}
    world = World("GpuShare", "LearnedScore", args=args)
    world.add(gpu_node("n1", 2, cpu=6), gpu_node("n2", 2, cpu=8))
    world.attempt(gpu_pod("a", 100, cpu=1))
    world.attempt(gpu_pod("b", 100, cpu=1))
    assert samples(world) == {("default-scheduler", "model"): 2.0}


def test_without_the_plugin_there_is_nothing_to_count() -> None:
    assert samples(World("GpuShare")) == {}
