"""Brings the pods of all of a scenario's workloads into one stream, in the order they arrive.

What a cluster has beside nodes and pods is read here, too: PodGroups, quotas, volumes, services, budgets. Kinds that
the engine knows are decoded; objects of other groups are custom resources, which plugins follow by name
("podgroups.scheduling.x-k8s.io").
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from podium.config.durations import SECOND
from podium.config.field import FieldPath
from podium.engine.intake import Intake
from podium.kube import Node, Pod, decode_documents
from podium.kube.custom_object import CLUSTER_SCOPED, CUSTOM_KINDS
from podium.kube.documents import read_documents
from podium_lab.simulator.csv_rows import header_of
from podium_lab.simulator.pods import PodArrival
from podium_lab.simulator.reading import LoadedScenario, Source
from podium_lab.simulator.rules import listed
from podium_lab.simulator.scenario import AzurePods, BrokerPods, OpenbPods, PodSource, Scenario, ScenarioError
from podium_lab.simulator.traces import azure, broker, dump, generated, openb, vmr2l
from podium_plugins.gpu.typical_pods import PodType


def workloads(scenario: Scenario, source: Source) -> list[PodSource]:
    """The workloads, with the format of a bare CSV file found from its columns."""
    given = scenario.workload
    if isinstance(given, str):
        return [of_file(source.find(given))]
    return [each for _, each in listed(given, FieldPath())]


def file_oddities(loaded: LoadedScenario) -> Iterator[str]:
    """What the reader should know of files that can be run though something about them is odd."""
    for name in loaded.scenario.objects:
        path = loaded.source.find(name)
        for kind, number in sorted(left_out(path).items()):
            yield f"{path}: {number} of kind {kind} left out: nothing reads them here"
    duration = loaded.scenario.duration
    for each in workloads(loaded.scenario, loaded.source):
        if each.broker is not None:
            path = loaded.source.find(each.broker.file)
            found = broker.read_workload(path, each.broker.priorities)
            yield from found.oddities
            late = [row for row in found.requests if duration is not None and row.at - found.begin > duration / SECOND]
            if late:
                yield f"{path}:{late[0].line}: {len(late)} of {len(found.requests)} rows come after the end of the run"


def has_priorities(workload: PodSource) -> bool:
    """Whether some of its pods may be more important than others."""
    if workload.generate is not None:
        return any(shape.priority or "priority" in shape.spec for shape in workload.generate.shapes)
    return workload.broker is not None or workload.dump is not None


def typical_of(given: Iterable[PodSource], source: Source) -> tuple[PodType, ...]:
    """The typical pods of the first openb list there is; none where there is none."""
    lists = [each.openb.list for each in given if each.openb is not None]
    return openb.typical(source.find(lists[0])) if lists else ()


def classes_of(given: Iterable[PodSource], source: Source) -> tuple[PodType, ...]:
    """All classes of pods of that list."""
    lists = [each.openb.list for each in given if each.openb is not None]
    return openb.classes(source.find(lists[0])) if lists else ()


def of_file(path: Path) -> PodSource:
    """The workload of a CSV file, whose columns tell the format."""
    if path.is_dir():
        return PodSource(azure=AzurePods(folder=str(path.absolute())))
    first, name = header_of(path), str(path.absolute())
    if set(openb.COLUMNS) <= set(first):
        return PodSource(openb=OpenbPods(list=name))
    if set(azure.COLUMNS) <= set(first):
        return PodSource(azure=AzurePods(file=name))
    if len(first) in broker.WIDTHS:
        return PodSource(broker=BrokerPods(file=name))
    formats = f"{', '.join(openb.COLUMNS)} (openb); {', '.join(azure.COLUMNS)} (Azure); 12, 17 or 18 columns (broker)"
    raise ScenarioError(f"{path}:1: column 1: expected the columns of a workload: {formats}; got {len(first)} others")


def arrivals(loaded: LoadedScenario, seed: int, gpu_capacity: int) -> Iterator[PodArrival]:
    """All pods as they arrive; `gpu_capacity` is the GPUs of the nodes, in thousandths."""
    given = workloads(loaded.scenario, loaded.source)
    streams = [_stream(each, loaded.source, seed + 7919 * number, gpu_capacity) for number, each in enumerate(given)]
    if len(streams) == 1:
        return streams[0]
    named = [_numbered(stream, number) for number, stream in enumerate(streams)]
    return heapq.merge(*named, key=lambda arrival: arrival.at)


def _numbered(stream: Iterator[PodArrival], number: int) -> Iterator[PodArrival]:
    """The same with names that no other workload has."""
    return (arrival._replace(name=f"w{number}-{arrival.name}") for arrival in stream)


def _stream(workload: PodSource, source: Source, seed: int, gpu_capacity: int) -> Iterator[PodArrival]:
    if workload.generate is not None:
        return generated.arrivals(workload.generate, seed)
    if workload.openb is not None:
        return openb.arrivals(workload.openb, source.find(workload.openb.list), seed, gpu_capacity)
    if workload.azure is not None:
        given = workload.azure
        return azure.arrivals(given, source.find(given.file or given.folder or ""), seed)
    if workload.broker is not None:
        return broker.arrivals(workload.broker, source.find(workload.broker.file))
    if workload.vmr2l is not None:
        return vmr2l.arrivals(workload.vmr2l, source.find(workload.vmr2l.file), seed)
    assert workload.dump is not None, "exactly one workload is set"
    return dump.arrivals(workload.dump, source.find(workload.dump.file), seed)


class CustomItem(NamedTuple):
    """An object of a kind that only some plugin knows."""

    resource: str
    key: str
    value: dict[str, Any]


def set_objects(path: Path, intake: Intake) -> None:
    """Takes in the objects of a file; nodes and pods in it are left out, because they come from elsewhere."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise ScenarioError(f"{path}:1: not UTF-8 text; save the file as UTF-8") from None
    for known in decode_documents(text, str(path)).objects:
        if not isinstance(known, (Node, Pod)):
            intake.set(known)
    for custom in read_custom(text, str(path)):
        intake.set_custom(custom.resource, custom.key, custom.value)


def left_out(path: Path) -> Counter[str]:
    """The kinds of a file that nothing reads, and how many objects of each there are; nodes and pods among them."""
    text = path.read_text(encoding="utf-8-sig")
    decoded = decode_documents(text, str(path))
    custom = Counter(
        f"{each.value.get('apiVersion')} {each.value.get('kind')}" for each in read_custom(text, str(path))
    )
    elsewhere = Counter(type(each).__name__ for each in decoded.objects if isinstance(each, (Node, Pod)))
    return decoded.skipped - custom + elsewhere


def read_custom(text: str, source: str) -> Iterator[CustomItem]:
    """The custom resources of a file."""
    for document in read_documents(text, source):
        value = msgspec.json.decode(document.data)
        for item in value.get("items") or () if str(value.get("kind", "")).endswith("List") else (value,):
            group, _, version = str(item.get("apiVersion", "")).rpartition("/")
            known = CUSTOM_KINDS.get((str(item.get("apiVersion", "")), str(item.get("kind", ""))))
            builtin = "." not in group or (group.endswith(".k8s.io") and not group.endswith(".x-k8s.io"))
            if not version or (builtin and known is None):
                continue
            metadata = item.get("metadata") or {}
            if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str) or not metadata["name"]:
                raise ScenarioError(f"{source}:{document.line_of('$')}: {item.get('kind')}: expected metadata.name")
            key = f"{metadata.get('namespace') or 'default'}/{metadata['name']}"
            if item.get("kind") in CLUSTER_SCOPED:
                key = metadata["name"]
            yield CustomItem(known or f"{str(item.get('kind', '')).lower()}s.{group}", key, item)
