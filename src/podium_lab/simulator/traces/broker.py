"""Reads workloads of the QoS broker: rows of 12, 17 or 18 columns without a header, each a deployment or a job.

A deployment is so many replicas, which are there until its lifetime is over, whether they run or not. A job runs
`completions` tasks of one duration, `parallelism` of them at a time: the next comes when one has ended. Rows of 12
columns are deployments of one pod. Pods carry the annotations that QosAware reads, and belong to a ReplicaSet or a Job.

What a file has that it should not, but can be run with, is an oddity: rows that are not in the order of their times,
rows of 17 columns among rows of 18, SLOs that no scheduler can read. It is reported, and counts as the reports say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from podium.kube.meta import Amount
from podium_lab.simulator.csv_rows import CsvRow, read_rows
from podium_lab.simulator.pods import FOREVER, JobTasks, PodArrival, PodOwner, PodTemplate, plain_spec
from podium_lab.simulator.scenario import BrokerPods, ScenarioError
from podium_plugins.qos.formulas import APPROACHES
from podium_plugins.qos.promise import DEFAULT_SLO, read_slo

WIDTHS = (12, 17, 18)
KINDS = ("deployment", "job")
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
    line: int
    width: int


class BrokerWorkload(NamedTuple):
    """The rows of a file, by time, and what is odd about it."""

    requests: list[Request]
    oddities: list[str]

    @property
    def begin(self) -> float:
        """When the first row comes."""
        return self.requests[0].at


def arrivals(given: BrokerPods, path: Path) -> Iterator[PodArrival]:
    """The pods as they arrive; the seed changes nothing."""
    for request in read_workload(path, given.priorities).requests:
        at, name, first = request.at, request.name, min(request.pods, request.parallel)
        tasks = JobTasks(name, first, request.pods - first) if request.job else None
        until = FOREVER if request.job else at + request.lifetime
        lifetime = request.lifetime if request.job else FOREVER
        for index in range(first):
            yield PodArrival(at, f"{name}-{index}", request.template, lifetime, until=until, tasks=tasks)


def read_workload(path: Path, priorities: Mapping[str, int]) -> BrokerWorkload:
    """A file. The classes that rows may have are those with priorities."""
    names: dict[str, int] = {}
    oddities: list[str] = []

    def request(row: CsvRow) -> Request | None:
        if row.text("1") == "jid":
            return None
        at, task, klass = row.number("1"), row.required("2"), row.one_of("11", tuple(priorities))
        cpu, memory, slo = row.number("9"), row.number("10"), row.required("12")
        kind, approach, replicas, completions = "deployment", "independent", 1, 0
        if row.has("17"):
            kind, approach = row.one_of("13", KINDS), row.one_of("16", APPROACHES)
            replicas = row.whole("14", least=1)
        job = kind == "job"
        if job:
            completions = row.whole("15") if row.text("15") else 0
            completions = completions or replicas
        lifetime = row.number("18") if job and row.text("18") else row.number("7")
        if read_slo(slo) is None:
            oddities.append(f'{path}:{row.line}: column 12: "{slo[:40]}" is no SLO from 0 to 1; {DEFAULT_SLO} counts')
        name = f"{klass}-{kind}-{approach}-{task}"
        names[name] = names.get(name, 0) + 1
        if names[name] > 1:
            name = f"{name}-{names[name]}"
        requests: dict[str, Amount] = {"cpu": f"{round(1000 * cpu)}m", "memory": f"{round(MEMORY * memory)}Ki"}
        annotations = {
            "slo": slo,
            "controller": name,
            "qosMeasuring": approach,
            "acceptablePreemptionOverhead": "0.05",
        }
        further = {"priorityClassName": f"{klass}-priority"}
        spec = plain_spec(requests, requests, priority=priorities[klass], further=further)
        owner = PodOwner("Job" if job else "ReplicaSet", name, replicas)
        template = PodTemplate(spec, labels={"app": "nginx"}, annotations=annotations, owner=owner)
        pods = completions if job else replicas
        return Request(at, name, lifetime, template, pods, replicas, job, row.line, row.width)

    rows = [each for each in read_rows(path, request, widths=WIDTHS) if each is not None]
    if not rows:
        raise ScenarioError(f"{path}:1: expected at least one row")
    oddities += _of_shape(path, rows)
    return BrokerWorkload(sorted(rows, key=lambda each: each.at), oddities)


def _of_shape(path: Path, rows: list[Request]) -> Iterator[str]:
    """What is odd about the widths and the order of rows."""
    width = max(each.width for each in rows)
    narrow = [each for each in rows if each.width < width]
    if narrow:
        first = f"{path}:{narrow[0].line}"
        if narrow[0].width == min(WIDTHS):
            raise ScenarioError(f"{first}: expected {width} fields as in other rows, got {narrow[0].width}")
        yield f"{first}: {narrow[0].width} fields, other rows have {width}; what lacks counts as empty"
    late = [row for before, row in pairwise(rows) if row.at < before.at]
    if late:
        yield f"{path}:{late[0].line}: the row before comes later; rows are taken in the order of their times"
