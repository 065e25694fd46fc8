"""Submits a recorded workload to a cluster at its times, and deletes it when its time is over.

Times are those of the workload; the speed says how many of its seconds pass in one. What the cluster refuses is said
and left out: the rest of the workload goes on.

Rows of a broker workload become Deployments and Jobs. Their pods carry the annotations that QosAware reads, and how
long they run, for nodes that have no containers (`podium up`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from podium.client import Access, ApiError, Client, ClientError
from podium.kube.json_object import JsonObject
from podium_lab.simulator.traces.broker import Request


class Submission(NamedTuple):
    """An object that comes at a time and goes at another, both in seconds of the workload."""

    at: float
    until: float
    collection: str
    """The path that it is posted to."""
    value: JsonObject

    @property
    def name(self) -> str:
        return str(self.value["metadata"]["name"])


async def play(
    access: Access,
    before: Iterable[Submission],
    submissions: Sequence[Submission],
    *,
    speed: float,
    leave: bool,
    say: Callable[[str], object],
) -> int:
    """Submit everything; how many objects were refused. `before` comes first, and stays."""
    async with Client(access) as client:
        for each in before:
            await _create(client, each, say, quiet=True)
        start = asyncio.get_running_loop().time()

        async def until(moment: float) -> None:
            await asyncio.sleep(max(0.0, start + moment / speed - asyncio.get_running_loop().time()))

        async def live(each: Submission) -> bool:
            await until(each.at)
            if not await _create(client, each, say):
                return False
            if not leave:
                await until(each.until)
                await _delete(client, each, say)
            return True

        return sum(not done for done in await asyncio.gather(*map(live, submissions)))


async def _create(client: Client, each: Submission, say: Callable[[str], object], *, quiet: bool = False) -> bool:
    try:
        await client.post(each.collection, each.value)
    except ApiError as error:
        if quiet and error.conflict:
            return True
        say(f"{each.name}: not created: {error.message}")
        return False
    except ClientError as error:
        say(f"{each.name}: not created: {error}")
        return False
    if not quiet:
        say(f"{each.at:g} s: {each.name}")
    return True


async def _delete(client: Client, each: Submission, say: Callable[[str], object]) -> None:
    try:
        await client.delete(f"{each.collection}/{each.name}", {"propagationPolicy": "Background"})
    except ApiError as error:
        if not error.not_found:
            say(f"{each.name}: not deleted: {error.message}")
    except ClientError as error:
        say(f"{each.name}: not deleted: {error}")


PRIORITIES: Final = {"prod": 11, "batch": 7, "free": 1, "opportunistic": 0, "lower": 0}
"""Class → value of its PriorityClass, as in the experiments."""
_APPS, _BATCH = "/apis/apps/v1/namespaces/default/deployments", "/apis/batch/v1/namespaces/default/jobs"


def priority_classes() -> list[Submission]:
    """The PriorityClasses that broker workloads name."""
    collection = "/apis/scheduling.k8s.io/v1/priorityclasses"
    head = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    return [
        Submission(0.0, 0.0, collection, {**head, "metadata": {"name": f"{name}-priority"}, "value": value})
        for name, value in PRIORITIES.items()
    ]


def submission(request: Request, scheduler_name: str, speed: float, end: float) -> Submission:
    """A row as a Deployment or a Job, from its submission to its end, or to that of the experiment."""
    spec: dict[str, Any] = msgspec.to_builtins(request.template.spec)
    spec.pop("priority", None)
    spec["schedulerName"] = scheduler_name
    container = spec["containers"][0]
    annotations = dict(request.template.annotations)
    labels = {**request.template.labels, "workload": request.name}
    metadata = {"name": request.name, "namespace": "default"}
    if not request.job:
        template = {"metadata": {"labels": labels, "annotations": annotations}, "spec": spec}
        wanted = {"replicas": request.parallel, "selector": {"matchLabels": labels}, "template": template}
        value = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": wanted}
        return Submission(request.at, min(end, request.at + request.lifetime), _APPS, value)
    seconds = request.lifetime / speed
    annotations["podium.dev/duration"] = f"{seconds:.3f}s"
    container["command"] = ["sleep", f"{seconds:g}"]
    spec["restartPolicy"] = "Never"
    template = {"metadata": {"labels": labels, "annotations": annotations}, "spec": spec}
    wanted = {"parallelism": request.parallel, "completions": request.pods, "template": template}
    value = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": wanted}
    return Submission(request.at, end, _BATCH, value)
