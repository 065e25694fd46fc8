"""Reads pod lists of the openb trace (Alibaba, 2023) and makes of them what the published experiments submit.

All pods sorted by name and shuffled; then clones of pods drawn from the whole list, until the next one would pass the
target, or pods drawn and taken out until the list does not exceed it. The stop test counts one GPU's share of a pod
that asks for several, as the authors' does. Pods arrive one by one and never end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from podium.kube.meta import Amount
from podium_lab.simulator.csv_rows import CsvRow, read_rows
from podium_lab.simulator.distributions import generator
from podium_lab.simulator.pods import FOREVER, PodArrival, PodTemplate, plain_spec
from podium_lab.simulator.scenario import OpenbPods, ScenarioError
from podium_plugins.gpu.request import COUNT, MILLI, MODEL, WHOLE, GpuRequest, read_request
from podium_plugins.gpu.typical_pods import PodType, most_of

COLUMNS = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
APART = 0.01
"""Seconds between arrivals; no figure depends on it."""


class OpenbPod(NamedTuple):
    """One line of a list."""

    name: str
    template: PodTemplate
    gpus: int
    milli: int
    created: float
    deleted: float


def arrivals(given: OpenbPods, path: Path, seed: int, capacity: int) -> Iterator[PodArrival]:
    """The pods as they arrive; `capacity` is the GPUs of the nodes, in thousandths."""
    pods = read_list(path)
    if given.times:
        for pod in sorted(pods, key=lambda each: each.created):
            yield PodArrival(pod.created, pod.name, pod.template, max(0.0, pod.deleted - pod.created))
        return
    for number, (pod, name) in enumerate(submitted(pods, given.target * capacity, seed)):
        yield PodArrival(APART * (number + 1), name, pod.template, FOREVER)


def submitted(pods: tuple[OpenbPod, ...], target: float, seed: int) -> Iterator[tuple[OpenbPod, str]]:
    """The list shuffled and brought to a GPU demand of `target` thousandths, with names."""
    rng = generator(seed, "arrivals")
    ordered = sorted(pods, key=lambda each: each.name)
    ordered = [ordered[i] for i in rng.permutation(len(ordered))]
    demand = sum(pod.gpus * pod.milli for pod in ordered)
    grows = demand < target and demand > 0
    while demand > target:
        gone = ordered.pop(int(rng.integers(len(ordered))))
        demand -= gone.gpus * gone.milli
    yield from ((pod, pod.name) for pod in ordered)
    clones = 0
    while grows:
        pod = pods[int(rng.integers(len(pods)))]
        if demand + pod.milli > target:
            return
        demand += pod.gpus * pod.milli
        clones += 1
        yield pod, f"{pod.name}-clone-{clones}"


@lru_cache(maxsize=8)
def read_list(path: Path) -> tuple[OpenbPod, ...]:
    """The pods of a list."""
    templates: dict[tuple[int, int, int, int, str], PodTemplate] = {}
    names: set[str] = set()

    def pod(row: CsvRow) -> OpenbPod:
        name = row.required("name")
        if name in names:
            raise row.error("name", "a name that no other row has")
        names.add(name)
        cpu, memory = row.whole("cpu_milli"), row.whole("memory_mib")
        count, milli = row.whole("num_gpu", most=64), row.whole("gpu_milli", most=WHOLE)
        if count > 1 and milli < WHOLE:
            raise row.error("gpu_milli", f"{WHOLE} for {count} GPUs")
        if not count or not milli:
            count = milli = 0
        models = "|".join(sorted({model for model in row.text("gpu_spec").split("|") if model}))
        key = (cpu, memory, count, milli, models)
        template = templates.get(key)
        if template is None:
            template = templates[key] = _template(*key)
        created = row.number("creation_time") if row.text("creation_time") else 0.0
        deleted = row.number("deletion_time") if row.text("deletion_time") else FOREVER
        return OpenbPod(name, template, count, milli, created, deleted)

    pods = tuple(read_rows(path, pod, required=COLUMNS))
    if not pods:
        raise ScenarioError(f"{path}:1: expected at least one pod below the first line")
    return pods


def typical(path: Path) -> tuple[PodType, ...]:
    """The typical pods of a list."""
    return most_of(_numbers(path))


def classes(path: Path) -> tuple[PodType, ...]:
    """All classes of pods of a list."""
    return tuple(PodType(cpu, request, pods) for (cpu, request), pods in _numbers(path).items())


def _numbers(path: Path) -> Counter[tuple[int, GpuRequest]]:
    return Counter((pod.template.cpu, read_request(pod.template.annotations)) for pod in read_list(path))


def _template(cpu: int, memory: int, count: int, milli: int, models: str) -> PodTemplate:
    requests: dict[str, Amount] = {"cpu": f"{cpu}m", "memory": f"{memory}Mi"}
    annotations = {}
    if count:
        annotations = {MILLI: str(milli), COUNT: str(count)}
        if models:
            annotations[MODEL] = models
    return PodTemplate(plain_spec(requests, requests), annotations=annotations)
