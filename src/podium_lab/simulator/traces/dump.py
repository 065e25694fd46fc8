"""Reads pods from a kubectl dump: those with a node start there, the others arrive."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from podium.kube import Pod, decode_documents
from podium.kube.meta import parse_time
from podium_lab.simulator.distributions import generator, sampler
from podium_lab.simulator.pods import FOREVER, PodArrival, PodTemplate
from podium_lab.simulator.scenario import DumpedPods, ScenarioError


def arrivals(given: DumpedPods, path: Path, seed: int) -> Iterator[PodArrival]:
    """The pods as they arrive; finished ones are over and left out."""
    pods = [each for each in read_pods(path) if not each.finished]
    if given.arrive == "created":
        created = [0.0 if pod.metadata.creation_timestamp is None else _time(pod, path) for pod in pods]
        first = min(created, default=0.0)
        offsets = [0.0 if pod.node_name else at - first for pod, at in zip(pods, created, strict=True)]
    else:
        offsets = [0.0] * len(pods)
    draw = sampler(given.lifetime, generator(seed, "lifetimes"), time=True) if given.lifetime is not None else None
    found = [
        PodArrival(at, pod.name, _template(pod), FOREVER if draw is None else draw(), pod.node_name)
        for pod, at in zip(pods, offsets, strict=True)
    ]
    found.sort(key=lambda each: (each.at, not each.node_name))
    yield from found


def read_pods(path: Path) -> list[Pod]:
    """The pods of a dump; other kinds in it are left out."""
    objects = decode_documents(path.read_text(encoding="utf-8-sig"), str(path)).objects
    pods = [each for each in objects if isinstance(each, Pod)]
    if not pods:
        raise ScenarioError(f"{path}: has no pods; write it with kubectl get pods -A -o yaml")
    return pods


def _template(pod: Pod) -> PodTemplate:
    meta = pod.metadata
    return PodTemplate(
        replace(pod.spec, node_name=""),
        namespace=meta.namespace or "default",
        labels=meta.labels,
        annotations=meta.annotations,
        owner_references=meta.owner_references,
    )


def _time(pod: Pod, path: Path) -> float:
    try:
        return parse_time(pod.metadata.creation_timestamp or "")
    except ValueError as error:
        raise ScenarioError(f"{path}: pod {pod.key}: metadata.creationTimestamp: {error}") from None
