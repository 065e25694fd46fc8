"""Every plugin of ours decides the same when the checks that guard against mistakes of its author are on.

Trusted plugins are spared these checks. Here none is: the notes that dry runs share are compared, and QueueSort is
guarded, on random clusters with preemption.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from podium import packages
from podium.config.points import Point
from podium.framework import Plugin
from podium.kube import KINDS, decode_json
from podium.plugins.node_resources_fit import NodeResourcesFit
from podium_plugins import app_group
from podium_plugins.app_group import APP_GROUP_LABEL, WORKLOAD_LABEL
from podium_plugins.network_overhead import network_topology
from tests.podium.engine.schedulers import World
from tests.podium.framework.runtimes import REGISTRY
from tests.together.network_worlds import make_app_group, make_topology
from tools.parity.dice import Dice
from tools.parity.gen_cluster import make_cluster

ARGS: dict[str, dict[str, Any]] = {
    "Peaks": {"watcherAddress": "http://127.0.0.1:1"},
    "OnlineScore": {"prometheusAddress": "http://127.0.0.1:1"},
    "MeasuredLoad": {"prometheusAddress": "http://127.0.0.1:1"},
    "NodeMetadata": {
        "metadataKey": "rank",
        "metadataType": "Number",
        "metadataSource": "Label",
        "scoringStrategy": "Lowest",
    },
}
"""Arguments of plugins that do not start without."""
CLUSTERS = (("preemption", 1), ("affinity", 4))
PLANS = 2
"""Clusters whose pending pods come to the first of them."""
GROUP = make_app_group({"p1": [("p2", 5)], "p3": [("p1", 15), ("p2", 3)]}, ("p2", "p1"))


def test_all_plugins_of_ours_are_trusted_and_none_of_others() -> None:
    assert {name for name in packages.plugins() if not REGISTRY[name].trusted} == set()

    class Another(NodeResourcesFit):
        pass

    class Mine(Plugin):
        pass

    assert not Another.trusted
    assert not Mine.trusted


@pytest.mark.parametrize("name", list(packages.plugins()))
def test_a_plugin_decides_the_same_as_a_third_partys(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    trusted = [decisions(name, theme, seed) for theme, seed in CLUSTERS]
    for each in packages.plugins():
        monkeypatch.setattr(REGISTRY[each], "trusted", False)
    assert [decisions(name, theme, seed) for theme, seed in CLUSTERS] == trusted


def test_the_clusters_are_such_that_pods_are_evicted_and_others_find_no_node() -> None:
    found = [decisions("DefaultPreemption", theme, seed) for theme, seed in CLUSTERS]
    assert any(evicted for _bound, evicted, *_others in found)
    assert any(failures for _bound, _evicted, failures, *_others in found)


def decisions(name: str, theme: str, seed: int) -> list[Any]:
    """All that a scheduler with kube-scheduler's plugins and this one writes and says."""
    world = world_with(name)
    world.intake.set_custom(app_group.RESOURCE, "default/app", GROUP)
    world.intake.set_custom(network_topology.RESOURCE, "default/nt-default", make_topology())
    plans, dice = [make_cluster(seed, number, theme=theme) for number in range(PLANS)], Dice(f"{seed}")
    pods = [each.pod for each in plans[0].bound] + [each.plan.pod for plan in plans for each in plan.pending]
    for number, pod in enumerate(pods):
        metadata = pod["metadata"]
        metadata.update(name=f"p{number}", uid=f"uid-{number}", creationTimestamp="2026-01-01T00:00:00Z")
        labels = {APP_GROUP_LABEL: "app", WORKLOAD_LABEL: dice.choice(("p1", "p2", "p3"))}
        metadata["labels"] = {**metadata.get("labels", {}), **labels}
        metadata["annotations"] = {"slo": dice.choice(("0.1", "0.5", "0.9")), "controller": f"c{number % 4}"}
        pod["spec"].pop("schedulerName", None)
    for item in (*plans[0].objects, *pods):
        kind = KINDS.get((item["apiVersion"], item["kind"]))
        if kind is not None:
            world.add(decode_json(kind, json.dumps(item)))
    for _ in range(3):
        while world.scheduler.schedule_one() is not None:
            world.scheduler.tick()
        world.pass_time(30)
    assert world.bound
    return [world.bound, world.evicted, world.failures, world.nominated, world.annotated, world.gave_way, world.reports]


def world_with(name: str) -> World:
    points = REGISTRY[name].points
    ours, own = list(packages.plugins()), ("PrioritySort", "DefaultBinder")
    replaced = {name, *own, *(["DefaultPreemption"] if Point.POST_FILTER in points else ())}
    usual = [each for each in ours[: ours.index("NodeDeclaredFeatures")] if each not in replaced]
    sorts = Point.QUEUE_SORT in points
    return World(
        *usual,
        *([] if sorts or name in own else [name]),
        sorter=REGISTRY[name] if sorts else None,
        args={name: ARGS[name]} if name in ARGS else {},
    )
