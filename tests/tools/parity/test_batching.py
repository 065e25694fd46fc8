"""Pods in a row that fill nodes, decided by kube-scheduler with a profile that batches, and by Podium.

Where the scores of kube-scheduler grew too old between two pods, the story is told again.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from podium.kube import Node, Pod
from tests.podium.engine.schedulers import World
from tests.podium.run.crowd import until
from tests.podium.run.exposition import Family, families_of
from tests.podium.run.test_metrics_against_kube_scheduler import scrape
from tools.kit.builders import build
from tools.kit.real_rules import REAL_RULES
from tools.testbed import ControlPlane
from tools.testbed.apiclient import Object

SEEDS = range(4)
TRIES = 5
NO_DEFAULTS = {"PodTopologySpread": {"defaultingType": "List"}}
CONFIG = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "parallelism": 1,  # with more, feasible nodes come in the order in which they happen to be found
    "profiles": [{"pluginConfig": [{"name": name, "args": args} for name, args in NO_DEFAULTS.items()]}],
}
Outcome = tuple[dict[str, str], dict[str, float]]
"""The node of each pod, and how often hints were given and taken."""


def make_nodes(dice: random.Random) -> list[Object]:
    found = []
    for number in range(dice.randint(5, 12)):
        room = {"cpu": str(dice.choice((2, 2, 2, 4))), "memory": dice.choice(("4Gi", "4Gi", "8Gi")), "pods": "20"}
        taint = {"key": "t", "value": "v", "effect": "PreferNoSchedule"}
        labels = {"tier": dice.choice(("a", "b", "c")), "topology.kubernetes.io/zone": dice.choice(("x", "y"))}
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"n{number:02}", "labels": labels}}
        spec = {"taints": [taint]} if dice.random() < 0.3 else {}
        found.append({**node, "spec": spec, "status": {"allocatable": room, "capacity": room}})
    return found


def make_pods(dice: random.Random, nodes: int) -> list[Object]:
    """Runs of pods that fill a node, by cpu or by a port, with some that leave room in between."""
    found: list[Object] = []
    while len(found) < nodes:
        container: Object = {"name": "c", "image": "i", "resources": {"requests": {"cpu": dice.choice(("2", "1500m"))}}}
        spec: Object = {"containers": [container]}
        kind = dice.random()
        if kind < 0.3:
            container["resources"]["requests"]["cpu"] = "100m"
            container["ports"] = [{"containerPort": 80, "hostPort": dice.choice((80, 81))}]
        elif kind < 0.45:
            container["resources"]["requests"]["cpu"] = "500m"
        if dice.random() < 0.4:
            wanted = {"key": "tier", "operator": "In", "values": [dice.choice("abc")]}
            term = {"weight": dice.choice((1, 50)), "preference": {"matchExpressions": [wanted]}}
            spec["affinity"] = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}
        for _ in range(dice.randint(2, 5)):
            metadata = {"name": f"p{len(found):02}", "namespace": "default"}
            found.append({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    return found[:nodes]


def by_kube_scheduler(plane: ControlPlane, nodes: list[Object], pods: list[Object]) -> Outcome | None:
    """None where scores grew too old on the way."""
    plane.wipe()
    client = plane.client
    scheduler = plane.start_scheduler(CONFIG)

    def metrics() -> dict[str, Family]:
        return families_of(scrape(f"{scheduler.url}/metrics", plane.token))

    client.create_all(nodes, in_order=True)
    until(lambda: metrics()["scheduler_cache_size"].value(type="nodes") == len(nodes), "nodes are known", scheduler)
    client.create_all(pods, in_order=True)
    client.poll("Pod", lambda found: all("nodeName" in pod["spec"] or _failed(pod) for pod in found), timeout=120)
    families = metrics()
    scheduler.stop()
    flushes = families.get("scheduler_batch_cache_flushed_total")
    if flushes is not None and flushes.values.get(_labels(reason="expired")):
        return None
    names = {pod["metadata"]["name"]: pod["spec"].get("nodeName", "") for pod in client.list("Pod")}
    return names, _attempts(families["scheduler_batch_attempts_total"])


def _failed(pod: Object) -> bool:
    return any(condition["status"] == "False" for condition in pod["status"].get("conditions", ()))


def _labels(**labels: str) -> frozenset[tuple[str, str]]:
    return frozenset({"profile": "default-scheduler", **labels}.items())


def _attempts(family: Family) -> dict[str, float]:
    return {dict(labels)["result"]: value for labels, value in family.values.items()}


def by_podium(nodes: list[Object], pods: list[Object]) -> Outcome:
    world = World(
        default=True,
        args=NO_DEFAULTS,
        parity=True,
        nodes=[_decoded(Node, node) for node in nodes],
        rules=REAL_RULES,
        gates=REAL_RULES.gates,
    )
    world.add(*(_decoded(Pod, pod) for pod in pods))
    while world.scheduler.schedule_one() is not None:
        pass
    names = {pod["metadata"]["name"]: "" for pod in pods} | dict(world.bound)
    attempts = world.scheduler.batches["default-scheduler"].attempts
    return names, {result: number for result, number in attempts.items()}  # noqa: C416 (mypy tells them apart)


def _decoded(kind: type[Any], obj: Object) -> Any:
    return build(kind, {**obj, "metadata": {**obj["metadata"], "uid": obj["metadata"]["name"]}})


@pytest.mark.parametrize("seed", SEEDS)
def test_pods_in_a_row_take_the_nodes_that_kube_scheduler_gives_them(
    seed: int, empty_control_plane: ControlPlane
) -> None:
    dice = random.Random(seed)
    nodes = make_nodes(dice)
    pods = make_pods(dice, len(nodes))
    for _ in range(TRIES):
        theirs = by_kube_scheduler(empty_control_plane, nodes, pods)
        if theirs is not None:
            break
    else:
        pytest.skip(f"kube-scheduler took longer than half a second for {len(pods)} pods, {TRIES} times")
    assert by_podium(nodes, pods) == theirs
