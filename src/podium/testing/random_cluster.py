"""Makes small random clusters, and changes one part of them at a time.

Nodes, pods and other objects take labels, annotations, resources and names from a few words, so that a plugin that
reads one of them meets it soon.

Also makes random objects of the kinds that plugins may read beside nodes and pods, as the API writes them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from podium.framework.depends_on import NodePart
from podium.framework.plugin import Plugin
from podium.kube import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    DeviceClass,
    Namespace,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodDisruptionBudget,
    PriorityClass,
    ReplicaSet,
    ReplicationController,
    ResourceSlice,
    Service,
    StatefulSet,
    StorageClass,
    VolumeAttachment,
)
from podium.testing.builders import node, pod
from podium.testing.trial_cluster import TrialCluster

ZONE: Final = "topology.kubernetes.io/zone"
CLAIMS: Final = tuple(f"data-{number}" for number in range(6))
_SECONDS: Final = (1.0, 40.0, 600.0, 7 * 3600.0, 24 * 3600.0)
_CPU: Final = ("100m", "500m", "1", "2")
Sample = Callable[[random.Random, Sequence[str], Sequence[str], Sequence[str]], Mapping[str, Any]]
"""(generator, words, names of nodes, names of claims) → an object."""
_DRIVERS: Final = ("disk.example.com", "net.example.com")
_CLASSES: Final = ("fast", "late")


class PartChange(NamedTuple):
    """What was changed in a world."""

    part: str
    words: str
    """What happened, in the past tense."""
    node: str = ""
    """Of a part of a node: of which."""
    level: NodePart = NodePart.ANYTHING
    """Of a part of a node: the least `node` that declares it for that node."""


class RandomCluster:
    """A cluster with the plugin, and random objects in it that can be changed."""

    def __init__(
        self,
        plugin: type[Plugin],
        objects: Iterable[Any],
        args: Mapping[str, Any] | None,
        words: Sequence[str],
        rng: random.Random,
    ) -> None:
        given = list(objects)
        self.rng = rng
        self.words = words
        self.keys = [word for word in words if len(word) > 1] or ["app"]
        self.resources = [word for word in words if "/" in word and "." in word.partition("/")[0]]
        self.custom = [each.partition("/")[0] for each in plugin.resources]
        self.numbers = count()
        self.nodes: dict[str, Node] = {each.name: each for each in given if isinstance(each, Node)}
        self.placed: dict[str, Pod] = {each.key: each for each in given if isinstance(each, Pod) and each.node_name}
        self.others: dict[tuple[type, str], Any] = {}
        while len(self.nodes) < 4:
            made = self._node(f"n{len(self.nodes)}")
            self.nodes[made.name] = made
        for _ in range(rng.randint(0, 6)):
            made_pod = self._pod(rng.choice(list(self.nodes)))
            self.placed[made_pod.key] = made_pod
        rest = [each for each in given if not isinstance(each, Node | Pod)]
        self.cluster = TrialCluster(plugin, objects=[*self.nodes.values(), *rest], args=args)
        self.cluster.add(list(self.placed.values()))
        for kind in SAMPLES:
            for _ in range(rng.randint(0, 2)):
                self._set(kind)

    # One part at a time

    def change_node(self) -> PartChange:
        name = self.rng.choice(list(self.nodes))
        known = self.nodes[name]
        fresh = self._node(name)
        what = self.rng.choice(
            ("labels", "annotations", "taints", "allocatable", "unschedulable", "images", "conditions")
        )
        metadata, spec, status = known.metadata, known.spec, known.status
        if what == "labels":
            metadata = replace(metadata, labels={**self._some(metadata.labels), **fresh.metadata.labels})
        elif what == "annotations":
            metadata = replace(metadata, annotations={**self._some(metadata.annotations), **fresh.metadata.annotations})
        elif what == "taints":
            spec = replace(spec, taints=fresh.spec.taints)
        elif what == "unschedulable":
            spec = replace(spec, unschedulable=not spec.unschedulable)
        elif what == "allocatable":
            status = replace(status, allocatable={**status.allocatable, **fresh.status.allocatable})
        elif what == "images":
            status = replace(status, images=fresh.status.images)
        else:
            status = replace(status, conditions=fresh.status.conditions)
        self.nodes[name] = replace(known, metadata=metadata, spec=spec, status=status)
        self.cluster.add([self.nodes[name]])
        return PartChange("node object", f"the {what} of node {name} changed", name, NodePart.OBJECT)

    def add_or_remove_node(self) -> PartChange:
        empty = [name for name in self.nodes if not any(each.node_name == name for each in self.placed.values())]
        if len(self.nodes) > 4 and empty and self.rng.random() < 0.5:
            gone = self.rng.choice(empty)
            self.cluster.delete(self.nodes.pop(gone))
            return PartChange("node object", f"node {gone} went", gone)
        made = self._node(f"n{next(self.numbers) + 10}")
        self.nodes[made.name] = made
        self.cluster.add([made])
        return PartChange("node object", f"node {made.name} came", made.name)

    def change_totals(self) -> PartChange:
        """A pod comes, goes, or asks for more or less."""
        roll = self.rng.random()
        if self.placed and roll < 0.35:
            key = self.rng.choice(list(self.placed))
            gone = self.placed.pop(key)
            self.cluster.delete(gone)
            return PartChange("totals", f"pod {key} left node {gone.node_name}", gone.node_name, NodePart.TOTALS)
        if self.placed and roll < 0.55:
            key = self.rng.choice(list(self.placed))
            known = self.placed[key]
            containers = self._pod(known.node_name).spec.containers
            self._replace_pod(replace(known, spec=replace(known.spec, containers=containers)))
            return PartChange(
                "totals", f"pod {key} on node {known.node_name} was resized", known.node_name, NodePart.TOTALS
            )
        made = self._pod(self.rng.choice(list(self.nodes)))
        self.placed[made.key] = made
        self.cluster.add([made])
        return PartChange("totals", f"pod {made.key} came to node {made.node_name}", made.node_name, NodePart.TOTALS)

    def change_pods(self) -> PartChange:
        """A pod gives way to one that asks for the same and differs in all else, or gets other labels."""
        if not self.placed:
            return self.change_totals()
        key = self.rng.choice(list(self.placed))
        known = self.placed[key]
        fresh = self._pod(known.node_name)
        if self.rng.random() < 0.4:
            metadata = replace(known.metadata, labels=fresh.metadata.labels, annotations=fresh.metadata.annotations)
            self._replace_pod(replace(known, metadata=metadata))
            words = f"the labels of pod {key} on node {known.node_name} changed"
        else:
            self.cluster.delete(self.placed.pop(key))
            spec = replace(known.spec, volumes=fresh.spec.volumes, priority=fresh.spec.priority)
            other = replace(fresh, spec=spec, status=known.status)
            self.placed[other.key] = other
            self.cluster.add([other])
            words = f"pod {other.key} took the place of pod {key} on node {known.node_name}"
        return PartChange("pods", words, known.node_name, NodePart.PODS)

    def change_kind(self, kind: type) -> PartChange:
        names = [key for known, key in self.others if known is kind]
        if names and self.rng.random() < 0.3:
            key = self.rng.choice(names)
            self.cluster.delete(self.others.pop((kind, key)))
            return PartChange("kinds", f"{kind.__name__} {key} went")
        return PartChange("kinds", f"{kind.__name__} {self._set(kind)} came or changed")

    def change_custom(self, resource: str) -> PartChange:
        texts = {self.rng.choice(self.words): self.rng.choice(self.words) for _ in range(4)}
        key = self.rng.choice([word for word in self.words if word.count("/") == 1] + ["default/x", *CLAIMS])
        data = {
            "metadata": {"name": key.rpartition("/")[2], "resourceVersion": str(next(self.numbers)), "labels": texts},
            "data": texts,
            "spec": {**texts, "nodes": self.rng.sample(list(self.nodes), 2)},
        }
        self.cluster.set_custom(resource, key, None if self.rng.random() < 0.2 else data)
        return PartChange("kinds", f"{resource} {key} came, changed or went")

    def change_clock(self) -> PartChange:
        seconds = self.rng.choice(_SECONDS)
        self.cluster.clock.advance(seconds)
        return PartChange("clock", f"{seconds:g} seconds passed")

    def change_load(self) -> PartChange:
        for series in self.cluster.load.followed:
            values = {
                name: self.rng.choice((0.1, 0.5, 5.0, 50.0, 95.0)) for name in self.nodes if self.rng.random() < 0.8
            }
            self.cluster.load.set(series, values, self.cluster.clock.now())
        return PartChange("load", "other load was measured")

    def changes(self, declared_kinds: Iterable[type]) -> list[Callable[[], PartChange]]:
        """Every part, in the order in which the most telling comes first."""
        kinds = [kind for kind in SAMPLES if kind not in set(declared_kinds)]
        made: list[Callable[[], PartChange]] = [
            *([self.change_clock] * 3),
            *([self.change_node] * 8),
            *([self.add_or_remove_node] * 2),
            *([self.change_pods] * 6),
            *([self.change_totals] * 6),
        ]
        made += [lambda kind=kind: self.change_kind(kind) for kind in kinds for _ in range(2)]  # type: ignore[misc]
        made += [lambda name=name: self.change_custom(name) for name in self.custom for _ in range(4)]  # type: ignore[misc]
        if self.cluster.load.followed:
            made += [self.change_load] * 2
        return made

    # Random objects

    def _node(self, name: str) -> Node:
        rng = self.rng
        return node(
            name,
            cpu=rng.choice((1, 2, 4, 16)),
            memory=rng.choice(("1Gi", "8Gi", "64Gi")),
            pods=rng.choice((3, 10, 110)),
            labels={ZONE: rng.choice("ab"), **self._texts()},
            annotations=self._texts(),
            taints=[{"key": rng.choice(self.keys), "effect": "NoSchedule"}] if rng.random() < 0.4 else [],
            resources={each: rng.randint(0, 8) for each in self.resources if rng.random() < 0.7},
            spec={"unschedulable": rng.random() < 0.2},
            status={
                "images": [
                    {"names": [f"{image}:latest"], "sizeBytes": rng.choice((10, 300, 900)) << 20}
                    for image in ("app", *self.keys[:3])
                    if rng.random() < 0.4
                ],
                "conditions": [
                    {"type": kind, "status": rng.choice(("True", "False"))} for kind in ("Ready", "MemoryPressure")
                ],
            },
        )

    def _pod(self, on: str) -> Pod:
        rng, number = self.rng, next(self.numbers)
        spec: dict[str, Any] = {"volumes": claim_volumes(rng.sample(CLAIMS, rng.randint(0, 2)))}
        if rng.random() < 0.3:
            spec["priorityClassName"] = rng.choice(self.words)
        return pod(
            f"placed-{number}",
            namespace=rng.choice(("default", "default", "other")),
            cpu=rng.choice((None, *_CPU)),
            memory=rng.choice((None, "100Mi", "1Gi")),
            resources={each: rng.randint(0, 2) for each in self.resources if rng.random() < 0.4},
            labels=self._texts(),
            annotations=self._texts(),
            on=on,
            priority=rng.choice((0, 0, 10, 1000)),
            spec=spec,
        )

    def _replace_pod(self, changed: Pod) -> None:
        version = str(next(self.numbers))
        self.placed[changed.key] = replace(changed, metadata=replace(changed.metadata, resource_version=version))
        self.cluster.add([self.placed[changed.key]])

    def _set(self, kind: type) -> str:
        data = SAMPLES[kind](self.rng, self.words, list(self.nodes), CLAIMS)
        made: Any = msgspec.convert(data, kind)
        self.others[kind, made.key] = made
        self.cluster.add([made])
        return str(made.key)

    def _texts(self) -> dict[str, str]:
        return {key: self.rng.choice((*self.words, "true", "1")) for key in self.keys if self.rng.random() < 0.35}

    def _some(self, texts: Mapping[str, str]) -> dict[str, str]:
        return {key: text for key, text in texts.items() if key == ZONE or self.rng.random() < 0.6}


def claim_volumes(names: Iterable[str]) -> list[dict[str, Any]]:
    return [{"name": f"v{number}", "persistentVolumeClaim": {"claimName": name}} for number, name in enumerate(names)]


def _metadata(rng: random.Random, words: Sequence[str], name: str = "", *, namespaced: bool = False) -> dict[str, Any]:
    texts = {word: rng.choice(words) for word in rng.sample(list(words), min(3, len(words)))}
    named = {"name": name or rng.choice((*words, "x", "y")), "labels": texts, "annotations": texts}
    return {**named, "uid": f"uid-{named['name']}", **({"namespace": "default"} if namespaced else {})}


def _selector(rng: random.Random, words: Sequence[str]) -> dict[str, str]:
    return {"app": rng.choice(words)}


def _claim(rng: random.Random, words: Sequence[str], _nodes: Sequence[str], claims: Sequence[str]) -> Mapping[str, Any]:
    number = rng.randrange(len(claims))
    bound = rng.random() < 0.8
    return {
        "metadata": {
            **_metadata(rng, words, claims[number], namespaced=True),
            "annotations": {"pv.kubernetes.io/bind-completed": "yes"} if bound else {},
        },
        "spec": {
            "volumeName": f"pv-{number}" if bound else "",
            "storageClassName": rng.choice(_CLASSES),
            "accessModes": [rng.choice(("ReadWriteOnce", "ReadWriteOncePod", "ReadWriteMany"))],
            "resources": {"requests": {"storage": "1Gi"}},
        },
        "status": {"phase": "Bound" if bound else "Pending"},
    }


def _volume(
    rng: random.Random, words: Sequence[str], _nodes: Sequence[str], claims: Sequence[str]
) -> Mapping[str, Any]:
    number = rng.randrange(len(claims))
    zone = "topology.kubernetes.io/zone"
    metadata = _metadata(rng, words, f"pv-{number}")
    if rng.random() < 0.6:
        metadata["labels"] = {zone: rng.choice("ab")}
    terms = [{"matchExpressions": [{"key": zone, "operator": "In", "values": [rng.choice("ab")]}]}]
    return {
        "metadata": metadata,
        "spec": {
            "capacity": {"storage": rng.choice(("1Gi", "5Gi"))},
            "storageClassName": rng.choice(_CLASSES),
            "accessModes": ["ReadWriteOnce"],
            "claimRef": {"namespace": "default", "name": claims[number], "uid": f"uid-{claims[number]}"},
            "csi": {"driver": rng.choice(_DRIVERS), "volumeHandle": f"handle-{number}"},
            **({"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}} if rng.random() < 0.5 else {}),
        },
    }


def _storage_class(rng: random.Random, words: Sequence[str], *_rest: Sequence[str]) -> Mapping[str, Any]:
    return {
        "metadata": _metadata(rng, words, rng.choice(_CLASSES)),
        "provisioner": rng.choice(_DRIVERS),
        "volumeBindingMode": rng.choice(("Immediate", "WaitForFirstConsumer")),
    }


def _csi_node(
    rng: random.Random, words: Sequence[str], nodes: Sequence[str], _claims: Sequence[str]
) -> Mapping[str, Any]:
    name = rng.choice(list(nodes))
    drivers = [{"name": each, "nodeID": name, "allocatable": {"count": rng.randint(0, 3)}} for each in _DRIVERS]
    return {"metadata": _metadata(rng, words, name), "spec": {"drivers": drivers}}


def _selecting(rng: random.Random, words: Sequence[str], *_rest: Sequence[str]) -> Mapping[str, Any]:
    return {
        "metadata": _metadata(rng, words, namespaced=True),
        "spec": {"selector": {"matchLabels": _selector(rng, words)}, "replicas": rng.randint(0, 5)},
    }


def _selecting_plainly(rng: random.Random, words: Sequence[str], *_rest: Sequence[str]) -> Mapping[str, Any]:
    return {"metadata": _metadata(rng, words, namespaced=True), "spec": {"selector": _selector(rng, words)}}


def _named(**fields: Callable[[random.Random], Any]) -> Sample:
    def sample(rng: random.Random, words: Sequence[str], *_rest: Sequence[str]) -> Mapping[str, Any]:
        return {"metadata": _metadata(rng, words), **{name: make(rng) for name, make in fields.items()}}

    return sample


def _namespace(rng: random.Random, words: Sequence[str], *_rest: Sequence[str]) -> Mapping[str, Any]:
    return {"metadata": _metadata(rng, words, rng.choice(("default", "other")))}


def _attachment(
    rng: random.Random, words: Sequence[str], nodes: Sequence[str], claims: Sequence[str]
) -> Mapping[str, Any]:
    source = {"persistentVolumeName": f"pv-{rng.randrange(len(claims))}"}
    return {
        "metadata": _metadata(rng, words),
        "spec": {"attacher": rng.choice(_DRIVERS), "nodeName": rng.choice(list(nodes)), "source": source},
    }


def _capacity(rng: random.Random, words: Sequence[str], *_rest: Sequence[str]) -> Mapping[str, Any]:
    return {
        "metadata": _metadata(rng, words, namespaced=True),
        "storageClassName": rng.choice(_CLASSES),
        "capacity": rng.choice(("1Gi", "100Gi")),
        "nodeTopology": {"matchLabels": {"topology.kubernetes.io/zone": rng.choice("ab")}},
    }


def _slice(rng: random.Random, words: Sequence[str], nodes: Sequence[str], _claims: Sequence[str]) -> Mapping[str, Any]:
    name = rng.choice(list(nodes))
    return {
        "metadata": _metadata(rng, words, f"slice-{name}"),
        "spec": {
            "driver": _DRIVERS[0],
            "nodeName": name,
            "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": f"d{number}"} for number in range(rng.randint(0, 3))],
        },
    }


SAMPLES: Final[dict[type, Sample]] = {
    PersistentVolumeClaim: _claim,
    PersistentVolume: _volume,
    StorageClass: _storage_class,
    CSINode: _csi_node,
    CSIDriver: lambda rng, words, *_rest: {"metadata": _metadata(rng, words, rng.choice(_DRIVERS))},
    CSIStorageCapacity: _capacity,
    VolumeAttachment: _attachment,
    Service: _selecting_plainly,
    ReplicaSet: _selecting,
    ReplicationController: _selecting_plainly,
    StatefulSet: _selecting,
    PodDisruptionBudget: _selecting,
    Namespace: _namespace,
    PriorityClass: _named(value=lambda rng: rng.randint(0, 1000)),
    DeviceClass: _named(),
    ResourceSlice: _slice,
}
"""Every kind that changes under a plugin that does not declare it."""
