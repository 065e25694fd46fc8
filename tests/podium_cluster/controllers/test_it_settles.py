"""Whatever people and machines do to a cluster, it comes to rest as it was asked for when they let go of it."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from typing import Any

import pytest

from podium_cluster.apiserver.errors import StatusError
from podium_cluster.kubelets import NodeShape
from tests.podium_cluster.apiserver.embedded import (
    Embedded,
    daemon_set,
    deployment,
    in_embedded_cluster,
    job,
    replica_set,
    stateful_set,
)

Object = dict[str, Any]
STEPS = 80
HARMLESS = (404, 409, 429)
"""What was to be changed is gone, has changed, or may not be disturbed now."""


class Mischief:
    """Somebody who does things at random, and knows what ought to be there in the end."""

    def __init__(self, cluster: Embedded, rng: random.Random) -> None:
        self.cluster = cluster
        self.rng = rng
        self.owners: list[tuple[str, str]] = []
        self.number = 0

    def create(self) -> None:
        size, name = self.rng.randint(0, 5), f"x{self.number}"
        policy = self.rng.choice(["OrderedReady", "Parallel"])
        wishes = {"podium.dev/duration": "exp(10s)", "podium.dev/exit-code": "1@0.3"}
        mode = self.rng.choice(["Indexed", "NonIndexed"])
        work = job(name, wishes, completions=1 + size, parallelism=2, completionMode=mode)
        del work["spec"]["selector"]
        work["spec"]["template"]["metadata"]["labels"] = {"app": name}
        made = [
            deployment(name, replicas=size),
            replica_set(name, replicas=size),
            stateful_set(name, replicas=size, podManagementPolicy=policy),
            daemon_set(name),
            work,
        ]
        chosen = self.rng.choice(made)
        self.cluster.create(chosen)
        self.owners.append((chosen["kind"], name))

    def scale(self) -> None:
        kind, name = self.rng.choice(self.owners)
        if kind == "Job":
            self.cluster.change(kind, name, lambda obj: obj["spec"].update(suspend=not obj["spec"]["suspend"]))
        elif kind != "DaemonSet":
            self.cluster.change(kind, name, lambda obj: obj["spec"].update(replicas=self.rng.randint(0, 5)))

    def update(self) -> None:
        kind, name = self.rng.choice(self.owners)
        image = f"app:{self.rng.randint(1, 3)}"
        if kind != "Job":
            containers = "containers"
            self.cluster.change(
                kind, name, lambda obj: obj["spec"]["template"]["spec"][containers][0].update(image=image)
            )

    def delete(self) -> None:
        kind, name = self.owners.pop(self.rng.randrange(len(self.owners)))
        self.cluster.delete(kind, name, propagation=self.rng.choice(["Background", "Foreground", "Orphan"]))

    def disturb_a_pod(self) -> None:
        pod = self.rng.choice(self.cluster.list("Pod"))
        name, labels = pod["metadata"]["name"], pod["metadata"].get("labels", {})
        grace = self.rng.choice([None, 0, 5])
        ways: list[Callable[[], object]] = [
            lambda: self.cluster.delete("Pod", name, grace_seconds=grace),
            lambda: self.cluster.api.evict("default", name),
        ]
        if (
            "apps.kubernetes.io/pod-index" not in labels
        ):  # a pod that a StatefulSet has lost would keep its name for ever
            lost = {"lost": "yes"}
            ways.append(lambda: self.cluster.change("Pod", name, lambda obj: obj["metadata"].update(labels=lost)))
        self.rng.choice(ways)()

    def disturb_a_node(self) -> None:
        kubelets = self.cluster.kubelets
        name = self.rng.choice(list(kubelets.machines))
        ways: list[Callable[[], object]] = [
            lambda: kubelets.stop_node(name),
            lambda: kubelets.start_node(name),
            lambda: kubelets.add_nodes([NodeShape(name=f"n{self.number}")]),
            lambda: self.cluster.change("Node", name, lambda obj: obj["spec"].update(unschedulable=True)),
        ]
        if len(kubelets.machines) > 2:
            ways.append(lambda: self.cluster.delete("Node", name))
        self.rng.choice(ways)()

    async def go_on(self) -> None:
        for self.number in range(STEPS):
            acts = (self.create, self.scale, self.update, self.delete, self.disturb_a_pod, self.disturb_a_node)
            act = self.rng.choice(acts) if self.owners and self.cluster.list("Pod") else self.create
            try:
                act()
            except StatusError as error:
                assert error.code in HARMLESS, error
            await asyncio.sleep(self.rng.expovariate(1 / 6))

    def let_go(self) -> None:
        for name in list(self.cluster.kubelets.machines):
            self.cluster.kubelets.start_node(name)
            self.cluster.change("Node", name, lambda obj: obj["spec"].update(unschedulable=False))
        for kind, name in self.owners:
            if kind == "Job":
                self.cluster.change(kind, name, lambda obj: obj["spec"].update(suspend=False))


def unsettled(cluster: Embedded, kind: str, obj: Object) -> bool:
    status, wanted = obj["status"], obj["spec"].get("replicas")
    match kind:
        case "Deployment" | "StatefulSet":
            counts = [status.get(field, 0) for field in ("replicas", "updatedReplicas", "availableReplicas")]
        case "ReplicaSet":
            counts = [status["replicas"], status.get("availableReplicas", 0)]
        case "DaemonSet":
            wanted = len(cluster.kubelets.machines)
            counts = [status.get(field, 0) for field in ("numberReady", "updatedNumberScheduled")]
        case _:
            return not any(each["type"] in ("Complete", "Failed") for each in status.get("conditions", ()))
    return counts != [wanted] * len(counts)


@pytest.mark.parametrize("seed", range(6))
def test_it_settles(seed: int, caplog: pytest.LogCaptureFixture) -> None:
    async def story(cluster: Embedded) -> None:
        mischief = Mischief(cluster, random.Random(seed))
        await mischief.go_on()
        mischief.let_go()
        await asyncio.sleep(2500)
        found = {(kind, name): cluster.get(kind, name) for kind, name in mischief.owners}
        assert [key for key, obj in found.items() if unsettled(cluster, key[0], obj)] == []
        for pod in cluster.list("Pod"):
            assert "deletionTimestamp" not in pod["metadata"]
            for owner in pod["metadata"].get("ownerReferences", ()):
                assert cluster.get(owner["kind"], owner["name"])["metadata"]["uid"] == owner["uid"]
        for machine in cluster.kubelets.machines.values():
            amounts = [run.requests.get("cpu", 0) for run in machine.runs.values()]
            assert machine.used.get("cpu", 0) == sum(amounts)
        quiet = cluster.api.store.revision
        await asyncio.sleep(30)
        leases = 3 * len(cluster.kubelets.machines) + 5
        assert cluster.api.store.revision - quiet <= leases  # nobody writes the same again and again

    with caplog.at_level(logging.ERROR):
        in_embedded_cluster(story, nodes=3, seed=seed)
    assert caplog.records == []
