"""Reads workloads of the QoS broker: rows of 12, 17 or 18 columns without a header, each a deployment or a job.

A deployment is so many replicas, which are there until its lifetime is over, whether they run or not. A job runs
`completions` tasks of one duration, `parallelism` of them at a time: the next comes when one has ended. Rows of 12
columns are deployments of one pod. Pods carry the annotations that QosAware reads, and belong to a ReplicaSet or a Job.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from podium.kube.meta import Amount
from podium.simulator.csv_rows import CsvRow, read_rows
from podium.simulator.errors import ScenarioError
from podium.simulator.pods import FOREVER, JobTasks, PodArrival, PodOwner, PodTemplate, plain_spec
from podium.simulator.scenario import BrokerPods

WIDTHS = (12, 17, 18)
CLASSES = ("prod", "batch", "free", "lower", "opportunistic")
KINDS = ("deployment", "job")
APPROACHES = ("independent", "average", "concurrent", "aggregate")
MEMORY = 10**6
"""KiB in one unit of column 10."""


class Request(NamedTuple):
    """One row."""

    at: float
    name: str
    lifetime: float
    """Of a deployment, or of each task of a job."""
    template: PodTemplate
    pods: int
    parallel: int
    job: bool


def arrivals(given: BrokerPods, path: Path) -> Iterator[PodArrival]:
    """The pods as they arrive; the seed changes nothing."""
    found: list[PodArrival] = []
    for request in read_requests(path, given.priorities):
        at, name, first = request.at, request.name, min(request.pods, request.parallel)
        tasks = JobTasks(name, first, request.pods - first) if request.job else None
        until = FOREVER if request.job else at + request.lifetime
        lifetime = request.lifetime if request.job else FOREVER
        for index in range(first):
            found.append(PodArrival(at, f"{name}-{index}", request.template, lifetime, until=until, tasks=tasks))
    found.sort(key=lambda each: each.at)
    yield from found


def read_requests(path: Path, priorities: dict[str, int]) -> list[Request]:
    """The rows of a file."""
    names: dict[str, int] = {}

    def request(row: CsvRow) -> Request | None:
        if row.line == 1 and row.text("1") == "jid":
            return None
        at, task, lifetime = row.number("1"), row.required("2"), row.number("7")
        cpu, memory, klass, slo = row.number("9"), row.number("10"), row.one_of("11", CLASSES), row.number("12")
        kind, approach, replicas, completions = "deployment", "independent", 1, 0
        if row.has("17"):
            kind, approach = row.one_of("13", KINDS), row.one_of("16", APPROACHES)
            replicas, completions = row.whole("14", least=1), row.whole("15")
        if kind == "job":
            if row.text("18"):
                lifetime = row.number("18")
            completions = completions or replicas
        name = f"{klass}-{kind}-{approach}-{task}"
        names[name] = names.get(name, 0) + 1
        if names[name] > 1:
            name = f"{name}-{names[name]}"
        requests: dict[str, Amount] = {"cpu": f"{round(1000 * cpu)}m", "memory": f"{round(MEMORY * memory)}Ki"}
        annotations = {
            "slo": f"{slo:g}",
            "controller": name,
            "qosMeasuring": approach,
            "acceptablePreemptionOverhead": "0.05",
        }
        further = {"priorityClassName": f"{klass}-priority"}
        spec = plain_spec(requests, requests, priority=priorities.get(klass, 0), further=further)
        job = kind == "job"
        owner = PodOwner("Job" if job else "ReplicaSet", name, replicas)
        template = PodTemplate(spec, labels={"app": "nginx"}, annotations=annotations, owner=owner)
        return Request(at, name, lifetime, template, completions if job else replicas, replicas, job)

    rows = [each for each in read_rows(path, request, widths=WIDTHS) if each is not None]
    if not rows:
        raise ScenarioError(f"{path}:1: expected at least one row")
    return rows
