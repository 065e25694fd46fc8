"""Holds a cluster, the shapes of pods and a policy as arrays that compiled code works on.

A shape is what a pod asks of cpu and GPUs; memory and the models it accepts are looked at when a node is chosen, so
that few shapes stand for many pods. Scores of (shape, node) are remembered and renewed for nodes that changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium_plugins.gpu.request import MOST_DEVICES, WHOLE, GpuRequest
from podium_plugins.gpu.terms import group_of, rank_of
from podium_plugins.gpu.typical_pods import PodType

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
NOT_FEASIBLE = -1e30


class KernelNode(NamedTuple):
    """A node of the cluster as the kernel sees it: thousandths of cpu, MiB of memory, GPUs of one model."""

    name: str
    cpu: int
    memory: int
    gpus: int
    model: str
    pods: int = 1001


class KernelPod(NamedTuple):
    """A pod as the kernel sees it: thousandths of cpu, MiB of memory, what it asks of GPUs, seconds it runs."""

    cpu: int
    memory: int
    request: GpuRequest
    lifetime: float = 0.0


class KernelNodes(NamedTuple):
    """What nodes have left; `version` counts the changes of each."""

    cpu: Ints
    memory: Ints
    slots: Ints
    free: Ints
    """int64[nodes, devices]"""
    gpus: Ints
    model: Ints
    type: Ints
    """Nodes of one type are equal while they are empty."""
    rank: Floats
    pods: Ints
    sizes: Ints
    """int64[nodes, sizes]: GPU pods by the whole GPUs they hold, 0 for shares."""
    version: Ints


class KernelShapes(NamedTuple):
    """What pods ask for, and which nodes they accept."""

    cpu: Ints
    gpus: Ints
    milli: Ints
    group: Ints
    allowed: Bools
    """bool[sets of models, models]; the first set accepts all, the last model is none."""


class KernelPods(NamedTuple):
    """A sequence of pods."""

    shape: Ints
    memory: Ints
    models: Ints
    """The set of models each accepts."""


class ClassTable(NamedTuple):
    """Typical pods for F and H: classes that differ in nothing but cpu stand together, cpus rising."""

    milli: Ints
    number: Ints
    """GPUs that a pod of the class asks for."""
    allowed: Bools
    """bool[classes, models]"""
    first: Ints
    """int64[classes + 1]: where the cpus of each begin."""
    cpu: Ints
    pods: Ints
    """Pods of the class that ask for at most that cpu."""
    gpu: Ints
    """The same, each counted by the GPU it asks for."""
    without_gpu: int
    all_pods: int
    all_gpu: int


class Numbering(NamedTuple):
    """The models of a cluster, and the sets of them that pods accept, by number."""

    models: dict[str, int]
    sets: dict[tuple[str, ...], int]

    def allowed(self) -> Bools:
        table = np.zeros((len(self.sets), len(self.models) + 1), dtype=np.bool_)
        for models, number in self.sets.items():
            table[number] = [not models or model in models for model in (*self.models, "")]
        return table


def numbering(nodes: Iterable[KernelNode], pods: Iterable[KernelPod]) -> Numbering:
    models = {model: i for i, model in enumerate(sorted({node.model for node in nodes if node.gpus and node.model}))}
    sets = dict.fromkeys(((), *(pod.request.models for pod in pods)))
    return Numbering(models, {each: i for i, each in enumerate(sets)})


def nodes_of(specs: Sequence[KernelNode], numbers: Numbering) -> KernelNodes:
    """An empty cluster, in this order of nodes."""
    types = {spec[1:]: 0 for spec in specs}
    types = {spec: i for i, spec in enumerate(types)}
    widest = max((spec.gpus for spec in specs), default=1)
    free = np.zeros((len(specs), max(widest, 1)), dtype=np.int64)
    for row, spec in zip(free, specs, strict=True):
        row[: spec.gpus] = WHOLE
    none = len(numbers.models)
    zeros = np.zeros(len(specs), dtype=np.int64)
    return KernelNodes(
        np.array([spec.cpu for spec in specs], dtype=np.int64),
        np.array([spec.memory for spec in specs], dtype=np.int64),
        np.array([spec.pods for spec in specs], dtype=np.int64),
        free,
        np.array([spec.gpus for spec in specs], dtype=np.int64),
        np.array([numbers.models.get(spec.model, none) for spec in specs], dtype=np.int64),
        np.array([types[spec[1:]] for spec in specs], dtype=np.int64),
        np.array([rank_of(spec.name) for spec in specs], dtype=np.float64),
        zeros.copy(),
        np.zeros((len(specs), MOST_DEVICES + 1), dtype=np.int64),
        zeros.copy(),
    )


def shapes_of(pods: Sequence[KernelPod], numbers: Numbering) -> tuple[KernelShapes, KernelPods]:
    """The shapes of some pods, and the pods in terms of them."""
    known: dict[tuple[int, int, int], int] = {}
    shape = [known.setdefault((pod.cpu, pod.request.gpus, pod.request.milli), len(known)) for pod in pods]
    cpu, gpus, milli = (np.array([each[i] for each in known], dtype=np.int64) for i in range(3))
    group = np.array([group_of(each[1], each[2]) for each in known], dtype=np.int64)
    sequence = KernelPods(
        np.array(shape, dtype=np.int64),
        np.array([pod.memory for pod in pods], dtype=np.int64),
        np.array([numbers.sets[pod.request.models] for pod in pods], dtype=np.int64),
    )
    return KernelShapes(cpu, gpus, milli, group, numbers.allowed()), sequence


def class_table(typical: Iterable[PodType], models: Mapping[str, int]) -> ClassTable:
    """Typical pods as arrays."""
    grouped: dict[tuple[int, int, tuple[str, ...]], dict[int, int]] = {}
    without_gpu = all_pods = all_gpu = 0
    for cpu, request, pods in typical:
        all_pods += pods
        all_gpu += pods * request.total
        if not request.gpus:
            without_gpu += pods
            continue
        by_cpu = grouped.setdefault((request.milli, request.gpus, request.models), {})
        by_cpu[cpu] = by_cpu.get(cpu, 0) + pods
    keys = sorted(grouped)
    cpus = [cpu for key in keys for cpu in sorted(grouped[key])]
    pods_up_to = [np.cumsum([grouped[key][cpu] for cpu in sorted(grouped[key])]) for key in keys]
    allowed = [[not key[2] or model in key[2] for model in (*models, "")] for key in keys]
    return ClassTable(
        np.array([key[0] for key in keys], dtype=np.int64),
        np.array([key[1] for key in keys], dtype=np.int64),
        np.array(allowed, dtype=np.bool_).reshape(len(keys), len(models) + 1),
        np.cumsum([0, *(len(grouped[key]) for key in keys)], dtype=np.int64),
        np.array(cpus, dtype=np.int64),
        np.concatenate([np.zeros(0, dtype=np.int64), *pods_up_to]).astype(np.int64),
        np.concatenate(
            [np.zeros(0, dtype=np.int64), *(each * key[0] * key[1] for key, each in zip(keys, pods_up_to, strict=True))]
        ).astype(np.int64),
        without_gpu,
        max(all_pods, 1),
        max(all_gpu, 1),
    )
