"""Makes random objects of the kinds that plugins may read beside nodes and pods, as the API writes them."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from podium.kube import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    DeviceClass,
    Namespace,
    PersistentVolume,
    PersistentVolumeClaim,
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

Sample = Callable[[random.Random, Sequence[str], Sequence[str], Sequence[str]], Mapping[str, Any]]
"""(generator, words, names of nodes, names of claims) → an object."""
_DRIVERS: Final = ("disk.example.com", "net.example.com")
_CLASSES: Final = ("fast", "late")


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
