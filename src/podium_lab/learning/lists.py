"""Reads node and pod lists of the openb format, and makes of them the sequences that runs place.

Static: all pods shuffled, then clones, up to a demand of 130 % (see `traces/openb.py`), on nodes in an order
drawn from the seed: pod by pod what `podium simulate` submits. Mixes: lists drawn from a list with other shares of pods
without GPU (up to most of the pods), of sharing ones and of those with several GPUs, and fewer models named; they keep
a policy from fitting a few lists.

Lists are inputs of units: a unit that runs elsewhere gets a folder with them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from kubecel.quantity import milli, units
from podium.kube import Node
from podium_lab.learning.extra import LearningError
from podium_lab.learning.kernel import KernelPlan, plan_of
from podium_lab.learning.kernel_state import KernelNode, KernelPod
from podium_lab.simulator.distributions import generator
from podium_lab.simulator.nodes import openb_nodes
from podium_lab.simulator.pods import PodTemplate
from podium_lab.simulator.traces.openb import OpenbPod, read_list, submitted
from podium_lab.units.inputs import UnitInputs
from podium_lab.units.store import UnitStore
from podium_plugins.gpu.request import COUNT, MODEL, WHOLE, GpuRequest, read_request

NODE_LIST = "openb_node_list_gpu_node.csv"
MEBI = 1 << 20
TARGET = 1.3
MIX_PODS = 8152


class PodList(NamedTuple):
    """A list of pods by name, with what is known of it as a workload."""

    name: str
    path: Path
    pods: tuple[OpenbPod, ...]

    @property
    def workload(self) -> Counter[tuple[int, GpuRequest]]:
        return Counter((spec.cpu, spec.request) for spec in map(pod_spec, self.pods))

    @property
    def timed(self) -> bool:
        return all(pod.deleted < float("inf") for pod in self.pods)


def find_list(name: str, data: Path) -> PodList:
    """A list by its name (default), file name or path."""
    for path in (Path(name), data / name, data / f"openb_pod_list_{name}.csv"):
        if path.is_file():
            short = path.stem.removeprefix("openb_pod_list_")
            return PodList(short, path, read_list(path))
    raise LearningError(
        f"{name}: there is no such pod list, here or in {data}; write a path, or a name such as default"
    )


def find_lists(text: str, data: Path) -> dict[str, str]:
    """Lists as they were typed, by what rows call them: their names, or as typed where two have one name."""
    typed = dict.fromkeys(name for name in text.split(",") if name)
    if not typed:
        raise LearningError("--lists: names no list; write names or paths, such as default,pods.csv")
    names = {each: find_list(each, data).name for each in typed}
    several = {name for name, number in Counter(names.values()).items() if number > 1}
    return {each if name in several else name: each for each, name in names.items()}


def nodes_path(data: Path) -> Path:
    path = data / NODE_LIST
    if not path.is_file():
        raise LearningError(f"{path}: there is no such node list; --data names the folder that has {NODE_LIST}")
    return path


def find_nodes(data: Path) -> tuple[Node, ...]:
    return openb_nodes(nodes_path(data))


def node_specs(nodes: Iterable[Node]) -> tuple[KernelNode, ...]:
    return tuple(
        KernelNode(
            node.name,
            milli(node.status.allocatable["cpu"]),
            units(node.status.allocatable["memory"]) // MEBI,
            units(node.status.allocatable.get(COUNT, 0)),
            node.metadata.labels.get(MODEL, ""),
            units(node.status.allocatable["pods"]),
        )
        for node in nodes
    )


def pod_spec(pod: OpenbPod) -> KernelPod:
    template = pod.template
    lifetime = max(0.0, pod.deleted - pod.created)
    return KernelPod(template.cpu, template.memory // MEBI, _request(template), lifetime)


@lru_cache(maxsize=1 << 12)
def _request(template: PodTemplate) -> GpuRequest:
    return read_request(template.annotations)


def capacity_of(specs: Sequence[KernelNode]) -> int:
    return WHOLE * sum(spec.gpus for spec in specs)


def shuffled(specs: Sequence[KernelNode], seed: int) -> list[KernelNode]:
    """The nodes in the order of a seed, as `nodeOrder: shuffled` has it."""
    return [specs[i] for i in generator(seed, "order").permutation(len(specs))]


def static_plan(specs: Sequence[KernelNode], pods: tuple[OpenbPod, ...], seed: int) -> KernelPlan:
    """The static protocol of a seed."""
    target = TARGET * capacity_of(specs)
    return plan_of(shuffled(specs, seed), [pod_spec(pod) for pod, _ in submitted(pods, target, seed)])


def mix(pods: tuple[OpenbPod, ...], number: int) -> tuple[OpenbPod, ...]:
    """One of the mixes of a list."""
    rng = np.random.default_rng([number, 4711])
    groups = {0: rng.uniform(np.log(0.4), np.log(8)), 1: rng.uniform(np.log(0.4), np.log(6)), 2: 0.0}
    groups[3] = rng.uniform(np.log(0.5), np.log(15))
    weights = np.exp([groups[_mix_group(pod)] for pod in pods])
    share = rng.uniform()
    drawn = rng.choice(len(pods), MIX_PODS, p=weights / weights.sum())
    named = rng.uniform(size=MIX_PODS) < share
    return tuple(
        _renamed(pods[i], f"mix-{n:05d}", models=bool(whole))
        for n, (i, whole) in enumerate(zip(drawn, named, strict=True))
    )


def _mix_group(pod: OpenbPod) -> int:
    if not pod.gpus:
        return 0
    if pod.milli < WHOLE:
        return 1
    return 2 if pod.gpus == 1 else 3


_without_models: dict[int, OpenbPod] = {}


def _renamed(pod: OpenbPod, name: str, *, models: bool) -> OpenbPod:
    if models or MODEL not in pod.template.annotations:
        return pod._replace(name=name)
    plain = _without_models.get(id(pod))
    if plain is None:
        annotations = {key: value for key, value in pod.template.annotations.items() if key != MODEL}
        plain = _without_models[id(pod)] = pod._replace(
            template=PodTemplate(pod.template.spec, annotations=annotations)
        )
    return plain._replace(name=name)


NODES, LIST = "nodes", "list:"
"""Names of inputs: the node list, and each pod list as it was typed."""


def put_lists(data: Path, names: Iterable[str], store: UnitStore) -> dict[str, str]:
    """Put the node list and some pod lists into a store; their hashes by the names of inputs."""
    found = {NODES: store.put_input(nodes_path(data).read_bytes())}
    for name in names:
        digest = store.put_input(find_list(name, data).path.read_bytes())
        found[LIST + list_name(name, digest)] = digest
    return found


def list_name(name: str, digest: str) -> str:
    """What a unit calls a list: its name, or for a path what it holds, so that no result depends on where it lies.

    >>> list_name("default", "3fa9" * 16), list_name("mine/pods.csv", "3fa9" * 16)
    ('default', '3fa93fa93fa93fa9')
    """
    return digest[:16] if "/" in name or name.endswith(".csv") else name


def lists_folder(inputs: UnitInputs, digests: dict[str, str]) -> Path:
    """A folder that has the lists under the names that `find_list` knows."""
    lists = {name.removeprefix(LIST): digest for name, digest in digests.items() if name.startswith(LIST)}
    files = {f"openb_pod_list_{name}.csv": digest for name, digest in lists.items()}
    return inputs.folder({NODE_LIST: digests[NODES], **files})
