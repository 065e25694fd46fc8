"""An embedded cluster in virtual time for tests: API, controllers, nodes, and a binder that stands in for a scheduler.

def test_…() -> None:
    async def story(cluster: Embedded) -> None:
        cluster.create(deployment("web", replicas=3))
        await cluster.until(lambda: len(cluster.running()) == 3)

    in_embedded_cluster(story, nodes=2)
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from podium.kube.decode import decode_json
from podium.kube.node import Node
from podium.kube.pod import Pod
from podium.kube.toleration import untolerated
from podium.placement.required_nodes import RequiredNodes
from podium_cluster.apiserver.api import EmbeddedApi
from podium_cluster.apiserver.kind import Kind
from podium_cluster.apiserver.kinds import NODE, POD
from podium_cluster.apiserver.store.collection import ObjectChange
from podium_cluster.controllers import Controllers
from podium_cluster.kubelets import Kubelets, NodeShape
from tools.kit.virtual_time import run_virtually

Object = dict[str, Any]
START = 1_800_000_000.0


class LoopClock:
    def now(self) -> float:
        return START + asyncio.get_running_loop().time()


class Embedded:
    def __init__(self, seed: int, *, binds: bool = True, speed: float = 1.0) -> None:
        self.clock = LoopClock()
        rng = random.Random(seed)
        self.api = EmbeddedApi(clock=self.clock, rng=rng)
        self.kubelets = Kubelets(self.api, self.clock, rng, speed=speed)
        self.controllers = Controllers(self.api, self.clock, heartbeats=self.kubelets)
        self.history: list[bytes] = []
        self.api.store.listen(lambda change: self.history.append(change.type.encode() + change.new.raw))
        if binds:
            self.api.store.listen(self._pod_changed, POD)
            self.api.store.listen(self._node_changed, NODE)

    def kind(self, name: str) -> Kind:
        return next(kind for kind in self.api.kinds if kind.kind == name)

    def create(self, obj: Object) -> Object:
        return self.api.create(self.kind(obj["kind"]), obj)

    def get(self, kind: str, name: str, namespace: str = "default") -> Object:
        return self.api.get(self.kind(kind), namespace if self.kind(kind).namespaced else "", name)

    def find(self, kind: str, name: str, namespace: str = "default") -> Object | None:
        stored = self.api.store.get(self.kind(kind), namespace if self.kind(kind).namespaced else "", name)
        return stored.decode() if stored is not None else None

    def list(self, kind: str, namespace: str | None = None) -> list[Object]:
        return self.api.list(self.kind(kind), namespace)

    def change(self, kind: str, name: str, change: Callable[[Object], object], namespace: str = "default") -> Object:
        obj = self.get(kind, name, namespace)
        change(obj)
        return self.api.update(self.kind(kind), obj)

    def delete(self, kind: str, name: str, namespace: str = "default", **options: Any) -> None:
        self.api.delete(self.kind(kind), namespace if self.kind(kind).namespaced else "", name, **options)

    def phases(self) -> dict[str, str]:
        return {pod["metadata"]["name"]: pod["status"]["phase"] for pod in self.list("Pod")}

    def running(self) -> Iterable[Object]:
        return [pod for pod in self.list("Pod") if pod["status"]["phase"] == "Running"]

    def events(self) -> set[tuple[str, str, str]]:
        found = self.list("Event")
        return {(event["involvedObject"]["name"], event["reason"], event["message"]) for event in found}

    async def until(self, holds: Callable[[], object], *, seconds: float = 300.0) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while not holds():
            assert loop.time() < end, f"not within {seconds} s: pods {self.phases()}"
            await asyncio.sleep(0.05)

    def _pod_changed(self, change: ObjectChange) -> None:
        if change.type != "DELETED" and not change.new.fields[0]:
            asyncio.get_running_loop().call_soon(self._bind, change.new.namespace, change.new.name)

    def _node_changed(self, change: ObjectChange) -> None:
        for stored in self.api.store.items(POD):
            self._pod_changed(ObjectChange("MODIFIED", stored, None))

    def _bind(self, namespace: str, name: str) -> None:
        """To the fitting node with the fewest pods: where a scheduler would be."""
        stored = self.api.store.get(POD, namespace, name)
        if stored is None or stored.fields[0]:
            return
        pod = decode_json(Pod, stored.raw)
        nodes = [decode_json(Node, each.raw) for each in self.api.store.items(self.kind("Node"))]
        fitting = [
            node.name
            for node in nodes
            if RequiredNodes(pod).matches(node) and untolerated(node.taints, pod.spec.tolerations) is None
        ]
        busy = dict.fromkeys(fitting, 0)
        for each in self.api.store.items(POD):
            if each.fields[0] in busy:
                busy[each.fields[0]] += 1
        if fitting and not pod.terminating:
            self.api.bind(namespace, name, {"target": {"kind": "Node", "name": min(busy, key=lambda n: (busy[n], n))}})


def in_embedded_cluster(
    story: Callable[[Embedded], Awaitable[None]],
    *,
    nodes: int = 3,
    seed: int = 1,
    binds: bool = True,
    speed: float = 1.0,
    shape: NodeShape | None = None,
) -> Embedded:
    """Runs the story in virtual time and gives the cluster back as it was left."""

    async def main() -> Embedded:
        cluster = Embedded(seed, binds=binds, speed=speed)
        async with cluster.controllers, cluster.kubelets:
            cluster.kubelets.add_nodes([shape or NodeShape(count=nodes)])
            await story(cluster)
        return cluster

    return run_virtually(main())


def template(labels: dict[str, str], annotations: dict[str, str] | None = None, **spec: Any) -> Object:
    metadata: Object = {"labels": labels}
    if annotations:
        metadata["annotations"] = annotations
    container = {"name": "main", "image": "app:1", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}
    defaults = {"restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "containers": [container]}
    return {"metadata": metadata, "spec": {**defaults, **spec}}


def deployment(name: str = "web", replicas: int = 3, **spec: Any) -> Object:
    labels = {"app": name}
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}}
    defaults: Object = {"selector": {"matchLabels": labels}, "template": template(labels), "strategy": rolling}
    defaults |= {"progressDeadlineSeconds": 600, "revisionHistoryLimit": 10}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"replicas": replicas, **defaults, **spec},
    }


def replica_set(name: str = "web", replicas: int = 3, **spec: Any) -> Object:
    labels = {"app": name}
    defaults: Object = {"selector": {"matchLabels": labels}, "template": template(labels)}
    metadata = {"name": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": metadata,
        "spec": {"replicas": replicas, **defaults, **spec},
    }


def job(name: str = "work", annotations: dict[str, str] | None = None, **spec: Any) -> Object:
    labels = {"batch.kubernetes.io/job-name": name}
    pods = template(labels, annotations, restartPolicy="Never")
    defaults: Object = {"parallelism": 1, "backoffLimit": 6, "completionMode": "NonIndexed", "suspend": False}
    defaults |= {"selector": {"matchLabels": labels}, "template": pods, "podReplacementPolicy": "TerminatingOrFailed"}
    if "parallelism" not in spec:
        defaults["completions"] = 1
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": {**defaults, **spec}}


def stateful_set(name: str = "db", replicas: int = 3, **spec: Any) -> Object:
    labels = {"app": name}
    defaults: Object = {"selector": {"matchLabels": labels}, "template": template(labels), "serviceName": name}
    defaults |= {"podManagementPolicy": "OrderedReady", "revisionHistoryLimit": 10}
    defaults |= {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name},
        "spec": {"replicas": replicas, **defaults, **spec},
    }


def daemon_set(name: str = "agent", **spec: Any) -> Object:
    labels = {"app": name}
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}}
    defaults: Object = {"selector": {"matchLabels": labels}, "template": template(labels), "updateStrategy": rolling}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name},
        "spec": {"revisionHistoryLimit": 10, **defaults, **spec},
    }
