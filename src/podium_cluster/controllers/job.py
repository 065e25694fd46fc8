"""Runs Jobs: pods that end, as many at a time as allowed, until enough have succeeded or too many have failed.

A pod that has ended is counted exactly once, whatever happens meanwhile: its uid is noted in the status, then the
finalizer that kept it is taken off, then it is counted. After failures new pods wait 10 s, 20 s, 40 s … up to 10
minutes. A Job that is decided first says so (SuccessCriteriaMet, FailureTarget) and is Complete or Failed when its last
pod is gone. Left out: podFailurePolicy, successPolicy and backoffLimitPerIndex.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.store.collection import ObjectChange
from podium_cluster.controllers import conditions
from podium_cluster.controllers.context import ControllerContext, copied, key_of, number
from podium_cluster.controllers.job_pods import (
    FINALIZER,
    Counts,
    complete,
    counted,
    ended,
    finished,
    format_indexes,
    free_indexes,
    index_of,
    is_failed,
    new_pod,
    parse_indexes,
    restarted_too_often,
    suspended,
    too_many,
    wanted,
)
from podium_cluster.controllers.ownership import claimed_pods, create_pod, delete_pod, selector_of
from podium_cluster.controllers.pods import Key, PodView, seconds

MANAGER = "kubernetes.io/job-controller"
BURST = 50
SETTLE_SECONDS = 0.1
FIRST_BACKOFF, LAST_BACKOFF = 10.0, 600.0
MAX_UNCOUNTED = 500


class JobBackoff(msgspec.Struct):
    failures: int = 0
    last: float = 0.0

    def remaining(self, now: float) -> float:
        if not self.failures:
            return 0.0
        return self.last + min(LAST_BACKOFF, FIRST_BACKOFF * 2.0 ** min(self.failures - 1, 30)) - now


class Jobs:
    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._recorder = context.recorder("job-controller")
        self._lane = context.lane("Job", self.sync)
        self._orphans = context.lane("OrphanedJobPod", self._release_orphan)
        self._backoffs: dict[str, JobBackoff] = {}
        context.watch("Job", self._job_changed)
        context.watch_pods(self._pod_changed)

    def sync(self, key: Key) -> None:
        job = self._context.get("Job", *key)
        if job is None or job["spec"].get("managedBy", MANAGER) != MANAGER:
            return
        status: JsonObject = copied(job.get("status") or {})
        if finished(status):
            self._backoffs.pop(job["metadata"]["uid"], None)
            self._expire(key, job, status)
            return
        now = self._context.now()
        selector = selector_of(job["spec"])
        if selector.nothing or selector.empty:  # its pods could not be distinguished from others
            return
        pods = claimed_pods(self._context, job, selector)
        counts = counted(job, pods)
        uncounted = status.setdefault("uncountedTerminatedPods", {})
        if not status.get("startTime") and not suspended(job):
            status["startTime"] = self._context.timestamp()
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
                delete_pod(self._context, self._recorder, job, pod)
            counts.terminating += active
            active = ready = 0
        elif "deletionTimestamp" not in job["metadata"]:
            wait = backoff.remaining(now)
            change = self._manage(key, job, counts, succeeded, done, wait)
            active += change
            if change < 0:
                counts.terminating -= change
                ready = max(0, ready + change)
            if complete(job, succeeded, active):
                verdict = ("SuccessCriteriaMet", "CompletionsReached", "Reached expected number of succeeded pods")
            else:
                self._note_suspension(job, status)
        status |= {"active": active, "ready": ready, "terminating": counts.terminating}
        self._track(key, job, status, pods, counts, done, verdict, indexed)

    # What has to be done.

    def _verdict(
        self, key: Key, job: JsonObject, status: JsonObject, pods: Sequence[PodView], failed: int, now: float
    ) -> tuple[str, str, str] | None:
        """The condition that decides the Job: its type, reason and message."""
        for kind in ("SuccessCriteriaMet", "FailureTarget"):
            condition = conditions.condition(status, kind)
            if condition is not None and condition["status"] == "True":
                return kind, condition.get("reason", ""), condition.get("message", "")
        limit = number(job["spec"], "backoffLimit", 6)
        if failed > limit or restarted_too_often(job, pods, limit):
            return "FailureTarget", "BackoffLimitExceeded", "Job has reached the specified backoff limit"
        deadline, started = job["spec"].get("activeDeadlineSeconds"), seconds(status.get("startTime"))
        if deadline is not None and started is not None and not suspended(job):
            if now - started >= deadline:
                return "FailureTarget", "DeadlineExceeded", "Job was active longer than specified deadline"
            self._lane.add_after(key, deadline - (now - started))
        return None

    def _manage(self, key: Key, job: JsonObject, counts: Counts, succeeded: int, done: set[int], wait: float) -> int:
        """Creates or deletes pods; returns by how many the active ones have changed."""
        gone = too_many(job, counts.active, succeeded, self._context.now())
        if gone:
            for pod in gone[:BURST]:
                self._take_off_finalizer(pod)
                delete_pod(self._context, self._recorder, job, pod)
            return -len(gone[:BURST])
        missing = wanted(job, succeeded, len(counts.active)) - len(counts.active)
        if job["spec"].get("podReplacementPolicy") == "Failed":
            missing -= counts.terminating
        if missing <= 0 or suspended(job):
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
            if create_pod(self._context, self._recorder, job, new) is None:
                break
            created += 1
        return created

    def _noted(self, job: JsonObject, counts: Counts, now: float) -> JobBackoff:
        """How long to wait after failures; a success forgets those before it."""
        uncounted = (job.get("status") or {}).get("uncountedTerminatedPods") or {}
        backoff = self._backoffs.setdefault(job["metadata"]["uid"], JobBackoff())
        fresh = [pod for pod in counts.failed if pod.metadata.uid not in (uncounted.get("failed") or ())]
        if counts.succeeded:
            latest = max(ended(pod, now) for pod in counts.succeeded)
            fresh = [pod for pod in fresh if ended(pod, now) > latest]
            backoff.failures = 0
        if fresh:
            backoff.failures += len(fresh)
            backoff.last = max(ended(pod, now) for pod in fresh)
        return backoff

    # Counting and finishing.

    def _track(
        self,
        key: Key,
        job: JsonObject,
        status: JsonObject,
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

    def _may_finish(self, job: JsonObject) -> bool:
        pods = self._context.pods.owned_by(job["metadata"]["uid"])
        return not any(FINALIZER in pod.metadata.finalizers or (pod.terminating and not pod.finished) for pod in pods)

    def _finish(self, job: JsonObject, status: JsonObject, verdict: tuple[str, str, str]) -> None:
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

    def _note_suspension(self, job: JsonObject, status: JsonObject) -> None:
        paused, condition = suspended(job), conditions.condition(status, "Suspended")
        if (condition is not None and condition["status"] == "True") == paused or (condition is None and not paused):
            return
        what = "suspended" if paused else "resumed"
        new = self._condition("Suspended", f"Job{what.title()}", f"Job {what}")
        new["status"] = "True" if paused else "False"
        status["conditions"] = [new if each is condition else each for each in status.get("conditions") or ()]
        if condition is None:
            status["conditions"].append(new)
        if paused:
            status.pop("startTime", None)
        else:
            status["startTime"] = self._context.timestamp()
        self._recorder.normal(job, what.title(), new["message"])

    def _condition(self, kind: str, reason: str, message: str) -> JsonObject:
        time = self._context.timestamp()
        new = {"type": kind, "status": "True", "lastProbeTime": time, "lastTransitionTime": time}
        return new | {"reason": reason, "message": message}

    def _written(self, job: JsonObject, status: JsonObject) -> JsonObject:
        status = {f: v for f, v in status.items() if v or f in ("ready", "terminating", "uncountedTerminatedPods")}
        return job if status == job.get("status") else self._context.update_status("Job", job, status)

    def _take_off_finalizer(self, pod: PodView) -> None:
        obj = self._context.get("Pod", *pod.key)
        if obj is None or obj["metadata"]["uid"] != pod.metadata.uid:
            return
        remaining = [each for each in obj["metadata"].get("finalizers") or () if each != FINALIZER]
        if len(remaining) != len(obj["metadata"].get("finalizers") or ()):
            obj["metadata"]["finalizers"] = remaining
            if not remaining:
                del obj["metadata"]["finalizers"]
            self._context.update("Pod", obj)

    def _expire(self, key: Key, job: JsonObject, status: JsonObject) -> None:
        """A finished Job with a time to live is deleted when that has passed, with its pods."""
        ttl = job["spec"].get("ttlSecondsAfterFinished")
        if ttl is None or "deletionTimestamp" in job["metadata"]:
            return
        ended = next(each for each in status["conditions"] if each["type"] in ("Complete", "Failed"))
        wait = (seconds(ended["lastTransitionTime"]) or 0.0) + ttl - self._context.now()
        if wait > 0:
            self._lane.add_after(key, wait)
        else:
            self._context.delete("Job", *key, propagation="Foreground")

    # Who is looked at when something changes.

    def _job_changed(self, change: ObjectChange) -> None:
        if change.type != "DELETED":
            self._lane.add(key_of(change))
            return
        self._backoffs.pop(change.new.uid, None)
        for pod in self._context.pods.owned_by(change.new.uid):
            self._orphans.add(pod.key)

    def _pod_changed(self, old: PodView | None, new: PodView | None) -> None:
        for pod in (old, new):
            owner = pod.metadata.controller if pod is not None else None
            if pod is not None and owner is not None and owner.kind == "Job":
                self._lane.add_after((pod.metadata.namespace, owner.name), SETTLE_SECONDS)
        if new is not None and FINALIZER in new.metadata.finalizers:
            self._orphans.add(new.key)

    def _release_orphan(self, key: Key) -> None:
        """A pod whose Job is gone has nothing to wait for."""
        pod = self._context.pods.all.get(key)
        if pod is None or FINALIZER not in pod.metadata.finalizers:
            return
        owner = pod.metadata.controller
        if owner is not None and owner.kind == "Job":
            job = self._context.api.store.get(self._context.kind("Job"), key[0], owner.name)
            if job is not None and job.uid == owner.uid and not finished(job.decode().get("status") or {}):
                return
        self._take_off_finalizer(pod)


def _total(status: JsonObject, uncounted: JsonObject, field: str) -> int:
    return number(status, field) + len(uncounted.get(field) or ())


def _note(uncounted: JsonObject, field: str, pod: PodView) -> None:
    if pod.metadata.uid not in (uncounted.get(field) or ()):
        uncounted.setdefault(field, []).append(pod.metadata.uid)
