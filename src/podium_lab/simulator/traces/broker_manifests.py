"""Writes the rows of a broker workload as the objects that a cluster takes: Deployments and Jobs.

Pods carry the annotations that QosAware reads, and how long they run, for nodes that have no containers (`podium up`).
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from podium_lab.simulator.traces.broker import Request
from podium_lab.workload_player import Submission

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
