"""Decides about a Job's pods: which count, how many there should be, which go, and what the next one looks like.

Pure: the Job and its pods go in, decisions come out.

Completion indexes are written as an Indexed Job's status writes them: "0-4,7,9,10"; only three or more make a range.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from podium.kube.json_object import JsonObject
from podium.workloads.deletion_order import in_deletion_order
from podium_cluster.controllers import conditions
from podium_cluster.controllers.context import copied, number
from podium_cluster.controllers.ownership import pod_from
from podium_cluster.controllers.pods import PodView, seconds

FINALIZER = "batch.kubernetes.io/job-tracking"
INDEX = "batch.kubernetes.io/job-completion-index"
INDEX_VARIABLE = "JOB_COMPLETION_INDEX"


class Counts(msgspec.Struct):
    """A Job's pods, by what they mean for it."""

    active: list[PodView]
    terminating: int
    succeeded: list[PodView]
    failed: list[PodView]
    """Ended and not yet counted."""


def counted(job: JsonObject, pods: Sequence[PodView]) -> Counts:
    tracked = [pod for pod in pods if FINALIZER in pod.metadata.finalizers]
    uncounted = (job.get("status") or {}).get("uncountedTerminatedPods") or {}
    noted = {*(uncounted.get("succeeded") or ()), *(uncounted.get("failed") or ())}
    fresh = [pod for pod in tracked if pod.metadata.uid not in noted]
    return Counts(
        active=[pod for pod in pods if pod.active],
        terminating=sum(pod.terminating and not pod.finished for pod in pods),
        succeeded=[pod for pod in fresh if pod.phase == "Succeeded"],
        failed=[pod for pod in fresh if is_failed(pod, job)],
    )


def is_failed(pod: PodView, job: JsonObject) -> bool:
    """A pod that was deleted counts as failed, unless only pods that did fail are replaced."""
    if pod.phase == "Failed":
        return True
    return job["spec"].get("podReplacementPolicy") != "Failed" and pod.terminating and pod.phase != "Succeeded"


def finished(status: JsonObject) -> bool:
    done = (conditions.condition(status, kind) for kind in ("Complete", "Failed"))
    return any(each is not None and each["status"] == "True" for each in done)


def wanted(job: JsonObject, succeeded: int, active: int) -> int:
    """How many pods should be active."""
    parallelism, completions = number(job["spec"], "parallelism", 1), job["spec"].get("completions")
    if completions is None:
        return active if succeeded else parallelism
    return max(0, min(parallelism, int(completions) - succeeded))


def too_many(job: JsonObject, active: Sequence[PodView], succeeded: int, now: float) -> list[PodView]:
    """The active pods to delete: all while suspended, doubled indexes, and then those that cost least."""
    if suspended(job):
        return list(active)
    keep, gone = list(active), []
    if job["spec"].get("completionMode") == "Indexed":
        by_index: dict[int | None, list[PodView]] = {}
        for pod in active:
            by_index.setdefault(index_of(pod), []).append(pod)
        keep = []
        for index, pods in by_index.items():
            valid = index is not None and index < number(job["spec"], "completions")
            ordered = in_deletion_order(pods, (), now)
            gone += ordered[:-1] if valid else ordered
            keep += ordered[-1:] if valid else []
    surplus = len(active) - len(gone) - wanted(job, succeeded, len(active))
    if surplus > 0:
        gone += in_deletion_order(keep, (), now)[:surplus]
    return gone


def free_indexes(job: JsonObject, active: Sequence[PodView], done: set[int]) -> list[int]:
    taken = done | {i for pod in active if (i := index_of(pod)) is not None}
    return [index for index in range(number(job["spec"], "completions")) if index not in taken]


def index_of(pod: PodView) -> int | None:
    text = pod.metadata.annotations.get(INDEX, "")
    return int(text) if text.isascii() and text.isdigit() else None


def new_pod(job: JsonObject, index: int | None) -> JsonObject:
    pod = pod_from(job["spec"]["template"], job, finalizers=(FINALIZER,))
    if index is None:
        return pod
    meta, name = pod["metadata"], job["metadata"]["name"]
    meta["generateName"] = f"{name[: 58 - len(str(index)) - 2]}-{index}-"
    meta.setdefault("annotations", {})[INDEX] = str(index)
    meta.setdefault("labels", {})[INDEX] = str(index)
    pod["spec"]["hostname"] = f"{name}-{index}"
    variable = {"name": INDEX_VARIABLE, "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{INDEX}']"}}}
    for container in [*(pod["spec"].get("initContainers") or ()), *pod["spec"]["containers"]]:
        variables = container.setdefault("env", [])
        if all(each["name"] != INDEX_VARIABLE for each in variables):
            variables.append(copied(variable))
    return pod


def complete(job: JsonObject, succeeded: int, active: int) -> bool:
    completions = job["spec"].get("completions")
    return active == 0 and (succeeded > 0 if completions is None else succeeded >= completions)


def suspended(job: JsonObject) -> bool:
    return bool(job["spec"].get("suspend"))


def restarted_too_often(job: JsonObject, pods: Sequence[PodView], limit: int) -> bool:
    if job["spec"]["template"]["spec"].get("restartPolicy") != "OnFailure":
        return False
    alive = (pod for pod in pods if pod.phase in ("Running", "Pending"))
    restarts = sum(status.restart_count for pod in alive for status in pod.status.container_statuses)
    return restarts > 0 if limit == 0 else restarts >= limit


def ended(pod: PodView, now: float) -> float:
    ready = pod.condition("Ready")
    since = seconds(ready.last_transition_time) if ready is not None and ready.status == "False" else None
    return since if since is not None else now


def parse_indexes(text: str, completions: int) -> set[int]:
    """The indexes below `completions`; what cannot be read is left out.

    >>> sorted(parse_indexes("0-2,5", 10))
    [0, 1, 2, 5]
    """
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        if first.isdigit() and (last or first).isdigit():
            found.update(range(int(first), min(int(last or first), completions - 1) + 1))
    return found


def format_indexes(indexes: Iterable[int]) -> str:
    """
    >>> format_indexes({0, 1, 2, 5, 7, 8})
    '0-2,5,7,8'
    """
    runs: list[list[int]] = []
    for index in sorted(indexes):
        if runs and runs[-1][-1] == index - 1:
            runs[-1].append(index)
        else:
            runs.append([index])
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 2 else ",".join(map(str, run)) for run in runs)
