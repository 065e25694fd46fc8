"""Jobs: pods that run to an end, as many at a time as allowed, until enough have succeeded or too many have failed.

A pod that has ended is counted exactly once, whatever happens meanwhile: its uid is noted in the status, then the
finalizer that kept it is taken off, then it is counted. After failures new pods wait 10 s, 20 s, 40 s … up to 10
minutes. A Job that is decided first says so (SuccessCriteriaMet, FailureTarget) and is Complete or Failed when its last
pod is gone. Left out: podFailurePolicy, successPolicy and backoffLimitPerIndex.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from podium.apiserver.controllers import conditions
from podium.apiserver.controllers.deletion_order import in_deletion_order
from podium.apiserver.controllers.indexes import format_indexes, parse_indexes
from podium.apiserver.controllers.ownership import claimed_pods, selector_of
from podium.apiserver.controllers.pod_making import create_pod, delete_pod, pod_from
from podium.apiserver.controllers.pods import Key, PodView, seconds
from podium.apiserver.controllers.world import Object, World, copied, key_of, number
from podium.apiserver.store import Change

FINALIZER = "batch.kubernetes.io/job-tracking"
INDEX = "batch.kubernetes.io/job-completion-index"
INDEX_VARIABLE = "JOB_COMPLETION_INDEX"
MANAGER = "kubernetes.io/job-controller"
BURST = 50
SETTLE_SECONDS = 0.1
FIRST_BACKOFF, LAST_BACKOFF = 10.0, 600.0
MAX_UNCOUNTED = 500


class Backoff(msgspec.Struct):
    failures: int = 0
    last: float = 0.0

    def remaining(self, now: float) -> float:
        if not self.failures:
            return 0.0
        return self.last + min(LAST_BACKOFF, FIRST_BACKOFF * 2.0 ** min(self.failures - 1, 30)) - now


class Counts(msgspec.Struct):
    """A Job's pods, by what they mean for it."""

    active: list[PodView]
    terminating: int
    succeeded: list[PodView]
    failed: list[PodView]
    """Ended and not yet counted."""


class Jobs:
    def __init__(self, world: World) -> None:
        self._world = world
        self._recorder = world.recorder("job-controller")
        self._lane = world.lane("Job", self.sync)
        self._orphans = world.lane("OrphanedJobPod", self._release_orphan)
        self._backoffs: dict[str, Backoff] = {}
        world.watch("Job", self._job_changed)
        world.watch_pods(self._pod_changed)

    def sync(self, key: Key) -> None:
        job = self._world.get("Job", *key)
        if job is None or job["spec"].get("managedBy", MANAGER) != MANAGER:
            return
        status: Object = copied(job.get("status") or {})
        if finished(status):
            self._backoffs.pop(job["metadata"]["uid"], None)
            self._expire(key, job, status)
            return
        now = self._world.now()
        selector = selector_of(job["spec"])
        if selector.nothing or selector.empty:  # its pods would never be told from others
            return
        pods = claimed_pods(self._world, job, selector)
        counts = counted(job, pods)
        uncounted = status.setdefault("uncountedTerminatedPods", {})
        if not status.get("startTime") and not _suspended(job):
            status["startTime"] = self._world.timestamp()
        backoff = self._noted(job, counts, now)
        indexed = job["spec"].get("completionMode") == "Indexed"
        completions = job["spec"].get("completions")
        done = parse_indexes(status.get("completedIndexes", ""), completions or 0) if indexed else set()
        done |= {i for pod in counts.succeeded if (i := index_of(pod)) is not None and i < (completions or 0)}
        succeeded = len(done) if indexed else _total(status, uncounted, "succeeded") + len(counts.succeeded)
        failed = _total(status, uncounted, "failed") + len(counts.failed)
        verdict = self._verdict(key, job, status, pods, failed, now)
        active, ready = len(counts.active), sum(pod.ready for pod in counts.active)
        if verdict is not None:
            for pod in counts.active:
                delete_pod(self._world, self._recorder, job, pod)
            counts.terminating += active
            active = ready = 0
        elif "deletionTimestamp" not in job["metadata"]:
            wait = backoff.remaining(now)
            change = self._manage(key, job, counts, succeeded, done, wait)
            active += change
            if change < 0:
                counts.terminating -= change
                ready = max(0, ready + change)
            if _complete(job, succeeded, active):
                verdict = ("SuccessCriteriaMet", "CompletionsReached", "Reached expected number of succeeded pods")
            else:
                self._note_suspension(job, status)
        status |= {"active": active, "ready": ready, "terminating": counts.terminating}
        self._track(key, job, status, pods, counts, done, verdict, indexed)

    # What has to be done.

    def _verdict(
        self, key: Key, job: Object, status: Object, pods: Sequence[PodView], failed: int, now: float
    ) -> tuple[str, str, str] | None:
        """The condition that decides the Job: its type, reason and message."""
        for kind in ("SuccessCriteriaMet", "FailureTarget"):
            told = conditions.condition(status, kind)
            if told is not None and told["status"] == "True":
                return kind, told.get("reason", ""), told.get("message", "")
        limit = number(job["spec"], "backoffLimit", 6)
        if failed > limit or _restarted_too_often(job, pods, limit):
            return "FailureTarget", "BackoffLimitExceeded", "Job has reached the specified backoff limit"
        deadline, started = job["spec"].get("activeDeadlineSeconds"), seconds(status.get("startTime"))
        if deadline is not None and started is not None and not _suspended(job):
            if now - started >= deadline:
                return "FailureTarget", "DeadlineExceeded", "Job was active longer than specified deadline"
            self._lane.add_after(key, deadline - (now - started))
        return None

    def _manage(self, key: Key, job: Object, counts: Counts, succeeded: int, done: set[int], wait: float) -> int:
        """Creates or deletes pods; returns by how many the active ones have changed."""
        gone = too_many(job, counts.active, succeeded, self._world.now())
        if gone:
            for pod in gone[:BURST]:
                self._take_off_finalizer(pod)
                delete_pod(self._world, self._recorder, job, pod)
            return -len(gone[:BURST])
        missing = wanted(job, succeeded, len(counts.active)) - len(counts.active)
        if job["spec"].get("podReplacementPolicy") == "Failed":
            missing -= counts.terminating
        if missing <= 0 or _suspended(job):
            return 0
        if wait > 0:
            self._lane.add_after(key, wait)
            return 0
        indexes = free_indexes(job, counts.active, done) if job["spec"].get("completionMode") == "Indexed" else None
        created = 0
        for number_ in range(min(missing, BURST)):
            if indexes is not None and number_ >= len(indexes):
                break
            new = new_pod(job, None if indexes is None else indexes[number_])
            if create_pod(self._world, self._recorder, job, new) is None:
                break
            created += 1
        return created

    def _noted(self, job: Object, counts: Counts, now: float) -> Backoff:
        """How long to wait after failures; a success forgets those before it."""
        uncounted = (job.get("status") or {}).get("uncountedTerminatedPods") or {}
        backoff = self._backoffs.setdefault(job["metadata"]["uid"], Backoff())
        fresh = [pod for pod in counts.failed if pod.metadata.uid not in (uncounted.get("failed") or ())]
        if counts.succeeded:
            latest = max(_ended(pod, now) for pod in counts.succeeded)
            fresh = [pod for pod in fresh if _ended(pod, now) > latest]
            backoff.failures = 0
        if fresh:
            backoff.failures += len(fresh)
            backoff.last = max(_ended(pod, now) for pod in fresh)
        return backoff

    # Counting and finishing.

    def _track(
        self,
        key: Key,
        job: Object,
        status: Object,
        pods: Sequence[PodView],
        counts: Counts,
        done: set[int],
        verdict: tuple[str, str, str] | None,
        indexed: bool,
    ) -> None:
        deciding = verdict is not None or "deletionTimestamp" in job["metadata"]
        uncounted = status["uncountedTerminatedPods"]
        leaving = counts.succeeded + counts.failed
        if deciding:
            leaving = [pod for pod in pods if FINALIZER in pod.metadata.finalizers]
        leaving = leaving[:MAX_UNCOUNTED]
        for pod in leaving:
            if pod.phase == "Succeeded":
                if not indexed:
                    _note(uncounted, "succeeded", pod)
            elif is_failed(pod, job) or (verdict is not None and verdict[0] == "FailureTarget"):
                _note(uncounted, "failed", pod)
        if indexed:
            status["succeeded"] = len(done)
            status |= {"completedIndexes": format_indexes(done)} if done else {}
        if verdict is not None and conditions.condition(status, verdict[0]) is None:
            status.setdefault("conditions", []).append(self._condition(*verdict))
        job = self._written(job, status)
        for pod in leaving:
            self._take_off_finalizer(pod)
        status = copied(job["status"])
        uncounted = status.setdefault("uncountedTerminatedPods", {})
        for field in ("succeeded", "failed"):
            if uncounted.get(field):
                status[field] = number(status, field) + len(uncounted.pop(field))
        if verdict is not None and self._may_finish(job):
            self._finish(job, status, verdict)
            return
        self._written(job, status)
        if len(leaving) == MAX_UNCOUNTED:
            self._lane.add(key)

    def _may_finish(self, job: Object) -> bool:
        pods = self._world.pods.owned_by(job["metadata"]["uid"])
        return not any(FINALIZER in pod.metadata.finalizers or (pod.terminating and not pod.finished) for pod in pods)

    def _finish(self, job: Object, status: Object, verdict: tuple[str, str, str]) -> None:
        kind, reason, message = verdict
        complete = kind == "SuccessCriteriaMet"
        status |= {"active": 0, "ready": 0, "terminating": 0}
        final = self._condition("Complete" if complete else "Failed", reason, message)
        status["conditions"].append(final)
        if complete:
            status["completionTime"] = final["lastTransitionTime"]
        job = self._written(job, status)
        if complete:
            self._recorder.normal(job, "Completed", "Job completed")
        else:
            self._recorder.warning(job, reason, message)

    def _note_suspension(self, job: Object, status: Object) -> None:
        suspended, told = _suspended(job), conditions.condition(status, "Suspended")
        if (told is not None and told["status"] == "True") == suspended or (told is None and not suspended):
            return
        what = "suspended" if suspended else "resumed"
        new = self._condition("Suspended", f"Job{what.title()}", f"Job {what}")
        new["status"] = "True" if suspended else "False"
        status["conditions"] = [new if each is told else each for each in status.get("conditions") or ()]
        if told is None:
            status["conditions"].append(new)
        if suspended:
            status.pop("startTime", None)
        else:
            status["startTime"] = self._world.timestamp()
        self._recorder.normal(job, what.title(), new["message"])

    def _condition(self, kind: str, reason: str, message: str) -> Object:
        time = self._world.timestamp()
        new = {"type": kind, "status": "True", "lastProbeTime": time, "lastTransitionTime": time}
        return new | {"reason": reason, "message": message}

    def _written(self, job: Object, status: Object) -> Object:
        status = {f: v for f, v in status.items() if v or f in ("ready", "terminating", "uncountedTerminatedPods")}
        return job if status == job.get("status") else self._world.update_status("Job", job, status)

    def _take_off_finalizer(self, pod: PodView) -> None:
        obj = self._world.get("Pod", *pod.key)
        if obj is None or obj["metadata"]["uid"] != pod.metadata.uid:
            return
        kept = [each for each in obj["metadata"].get("finalizers") or () if each != FINALIZER]
        if len(kept) != len(obj["metadata"].get("finalizers") or ()):
            obj["metadata"]["finalizers"] = kept
            if not kept:
                del obj["metadata"]["finalizers"]
            self._world.update("Pod", obj)

    def _expire(self, key: Key, job: Object, status: Object) -> None:
        """A finished Job with a time to live is deleted when that has passed, with its pods."""
        ttl = job["spec"].get("ttlSecondsAfterFinished")
        if ttl is None or "deletionTimestamp" in job["metadata"]:
            return
        ended = next(each for each in status["conditions"] if each["type"] in ("Complete", "Failed"))
        wait = (seconds(ended["lastTransitionTime"]) or 0.0) + ttl - self._world.now()
        if wait > 0:
            self._lane.add_after(key, wait)
        else:
            self._world.delete("Job", *key, propagation="Foreground")

    # Who is looked at when something changes.

    def _job_changed(self, change: Change) -> None:
        if change.type != "DELETED":
            self._lane.add(key_of(change))
            return
        self._backoffs.pop(change.new.uid, None)
        for pod in self._world.pods.owned_by(change.new.uid):
            self._orphans.add(pod.key)

    def _pod_changed(self, old: PodView | None, new: PodView | None) -> None:
        for pod in (old, new):
            owner = pod.metadata.controller if pod is not None else None
            if pod is not None and owner is not None and owner.kind == "Job":
                self._lane.add_after((pod.metadata.namespace, owner.name), SETTLE_SECONDS)
        if new is not None and FINALIZER in new.metadata.finalizers:
            self._orphans.add(new.key)

    def _release_orphan(self, key: Key) -> None:
        """A pod whose Job is gone waits for nobody."""
        pod = self._world.pods.all.get(key)
        if pod is None or FINALIZER not in pod.metadata.finalizers:
            return
        owner = pod.metadata.controller
        if owner is not None and owner.kind == "Job":
            job = self._world.api.store.get(self._world.kind("Job"), key[0], owner.name)
            if job is not None and job.uid == owner.uid and not finished(job.decode().get("status") or {}):
                return
        self._take_off_finalizer(pod)


def counted(job: Object, pods: Sequence[PodView]) -> Counts:
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


def is_failed(pod: PodView, job: Object) -> bool:
    """A pod that was deleted counts as failed, unless only pods that did fail are replaced."""
    if pod.phase == "Failed":
        return True
    return job["spec"].get("podReplacementPolicy") != "Failed" and pod.terminating and pod.phase != "Succeeded"


def finished(status: Object) -> bool:
    done = (conditions.condition(status, kind) for kind in ("Complete", "Failed"))
    return any(each is not None and each["status"] == "True" for each in done)


def wanted(job: Object, succeeded: int, active: int) -> int:
    """How many pods should be active."""
    parallelism, completions = number(job["spec"], "parallelism", 1), job["spec"].get("completions")
    if completions is None:
        return active if succeeded else parallelism
    return max(0, min(parallelism, int(completions) - succeeded))


def too_many(job: Object, active: Sequence[PodView], succeeded: int, now: float) -> list[PodView]:
    """The active pods to delete: all while suspended, doubled indexes, and then those that cost least."""
    if _suspended(job):
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


def free_indexes(job: Object, active: Sequence[PodView], done: set[int]) -> list[int]:
    taken = done | {i for pod in active if (i := index_of(pod)) is not None}
    return [index for index in range(number(job["spec"], "completions")) if index not in taken]


def index_of(pod: PodView) -> int | None:
    text = pod.metadata.annotations.get(INDEX, "")
    return int(text) if text.isascii() and text.isdigit() else None


def new_pod(job: Object, index: int | None) -> Object:
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


def _complete(job: Object, succeeded: int, active: int) -> bool:
    completions = job["spec"].get("completions")
    return active == 0 and (succeeded > 0 if completions is None else succeeded >= completions)


def _suspended(job: Object) -> bool:
    return bool(job["spec"].get("suspend"))


def _restarted_too_often(job: Object, pods: Sequence[PodView], limit: int) -> bool:
    if job["spec"]["template"]["spec"].get("restartPolicy") != "OnFailure":
        return False
    alive = (pod for pod in pods if pod.phase in ("Running", "Pending"))
    restarts = sum(status.restart_count for pod in alive for status in pod.status.container_statuses)
    return restarts > 0 if limit == 0 else restarts >= limit


def _ended(pod: PodView, now: float) -> float:
    ready = pod.condition("Ready")
    since = seconds(ready.last_transition_time) if ready is not None and ready.status == "False" else None
    return since if since is not None else now


def _total(status: Object, uncounted: Object, field: str) -> int:
    return number(status, field) + len(uncounted.get(field) or ())


def _note(uncounted: Object, field: str, pod: PodView) -> None:
    if pod.metadata.uid not in (uncounted.get(field) or ()):
        uncounted.setdefault(field, []).append(pod.metadata.uid)
