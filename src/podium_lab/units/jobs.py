"""Runs units as an Indexed Job of Kubernetes, and watches the store fill.

The command makes one Job for a plan, or finds the one that an earlier command has made. The Job goes on when the
command is killed; an interrupt deletes it. What pods have stored by then stays.

Each index is a pod that takes its share of the units, and then helps others with theirs. Pods need nothing of the
Kubernetes API: they read the plan and its inputs from the store, and write results there. A pod that is evicted (a
spot node goes) is replaced without counting as a failure; one that crashes is replaced up to five times; one whose
input is wrong ends the Job.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from time import sleep
from typing import Any

import msgspec

from podium.client import ApiError, Client, load_access
from podium_lab.units.run import EngineOptions, JobOptions, OnNotice
from podium_lab.units.store import UnitStore
from podium_lab.units.unit import Unit, UnitError

EVERY = 1.0
"""Seconds between two looks at the store and the Job."""
PATIENCE = 10.0
"""Seconds without a result after which the command says why pods do not start."""


def run_jobs(
    missing: Sequence[Unit], store: UnitStore, options: EngineOptions, plan: str, on_notice: OnNotice
) -> Iterator[Unit]:
    """The units as their results appear; `on_notice` is called with why pods do not start."""
    jobs = _Jobs(options)
    waiting = {unit.key: unit for unit in missing}
    try:
        pods = min(options.workers, len(missing))
        name = jobs.running(plan) or jobs.create(job_of(plan, store.url, pods, options.jobs))
        ended, quiet, reason = False, 0.0, ""
        while True:
            for key in store.present().keys() & waiting.keys():
                quiet = 0.0
                yield waiting.pop(key)
            if not waiting or ended:
                break
            ended = jobs.ended(name)  # once more through the store after it: the last results come before the end
            if not ended:
                sleep(EVERY)
                quiet += EVERY
            if quiet == PATIENCE and (found := jobs.why_waiting(name)) != reason:
                quiet, reason = 0.0, found
                on_notice(f"Job {name}: {found}")
        if waiting:
            unit = next(iter(waiting.values()))
            raise UnitError(f"Job {name} has ended and {len(waiting)} units have no result, such as {unit.label}")
    finally:
        jobs.delete(plan)
        jobs.close()


class _Jobs:
    """The Jobs of one namespace."""

    def __init__(self, options: EngineOptions) -> None:
        access = load_access(options.jobs.kubeconfig, context=options.jobs.context)
        namespace = options.jobs.namespace or access.namespace or "default"
        self._namespace = namespace
        self._path = f"/apis/batch/v1/namespaces/{namespace}/jobs"
        self._pods = f"/api/v1/namespaces/{namespace}/pods"
        self._runner = asyncio.Runner()
        self._client = self._runner.run(_client(access))

    def close(self) -> None:
        self._runner.run(self._client.close())
        self._runner.close()

    def running(self, plan: str) -> str | None:
        """The Job of a plan that has not ended."""
        for job in self._list(plan):
            if not _condition(job, "Complete") and not _condition(job, "Failed"):
                return str(job["metadata"]["name"])
        return None

    def create(self, job: dict[str, Any]) -> str:
        made = msgspec.json.decode(self._runner.run(self._client.post(self._path, job)))
        return str(made["metadata"]["name"])

    def ended(self, name: str) -> bool:
        """Whether a Job is complete; raises UnitError where it has failed or is gone."""
        try:
            job = msgspec.json.decode(self._runner.run(self._client.get(f"{self._path}/{name}")))
        except ApiError as error:
            if not error.not_found:
                raise
            raise UnitError(f"Job {self._namespace}/{name} was deleted; start the same command again") from None
        failed = _condition(job, "Failed")
        if failed:
            words = self._last_words(name) or failed.get("message") or failed.get("reason") or "it failed"
            raise UnitError(f"Job {self._namespace}/{name} has failed: {words}")
        return bool(_condition(job, "Complete"))

    def delete(self, plan: str) -> None:
        """Delete the Jobs of a plan that still run, with their pods."""
        name = self.running(plan)
        if name is not None:
            options = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
            self._runner.run(self._client.delete(f"{self._path}/{name}", options))

    def _list(self, plan: str) -> list[dict[str, Any]]:
        selector = {"labelSelector": f"{PLAN_LABEL}={plan[:40]}"}
        found = msgspec.json.decode(self._runner.run(self._client.get(self._path, selector)))
        items: list[dict[str, Any]] = found["items"]
        return items

    def why_waiting(self, name: str) -> str:
        """Why a pod of a Job does not run, in the words of whoever holds it back; empty where all run."""
        selector = {"labelSelector": f"batch.kubernetes.io/job-name={name}"}
        pods = msgspec.json.decode(self._runner.run(self._client.get(self._pods, selector)))["items"]
        for status in (pod.get("status", {}) for pod in pods if pod["status"].get("phase") == "Pending"):
            states = [each.get("state", {}).get("waiting", {}) for each in status.get("containerStatuses", ())]
            for each in (*states, *status.get("conditions", ())):
                if each.get("message"):
                    return f"a pod is pending: {each['message']}"
        return "" if pods else "it has no pods yet; a suspended Job waits for its queue"

    def _last_words(self, name: str) -> str:
        """What a pod that failed has printed."""
        selector = {"labelSelector": f"batch.kubernetes.io/job-name={name}"}
        pods = msgspec.json.decode(self._runner.run(self._client.get(self._pods, selector)))["items"]
        for pod in pods:
            for container in pod.get("status", {}).get("containerStatuses", ()):
                ended = container.get("state", {}).get("terminated") or {}
                if container["name"] == CONTAINER and ended.get("exitCode") and ended.get("message"):
                    return str(ended["message"]).strip().splitlines()[-1]
        return ""


async def _client(access: Any) -> Client:
    return Client(access, user_agent="podium-units")


def _condition(job: dict[str, Any], kind: str) -> dict[str, Any] | None:
    conditions: list[dict[str, Any]] = job.get("status", {}).get("conditions") or []
    return next((each for each in conditions if each["type"] == kind and each["status"] == "True"), None)


PLAN_LABEL = "podium.dev/units-plan"
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
CONTAINER = "units"
BAD_INPUT = 2
"""The exit code that ends the Job."""
STORE = "/store"
USER = 65532
"""The user of Podium's image."""
KEPT_SECONDS = 3600
"""How long a Job that has ended stays to be looked at."""


def job_of(plan: str, url: str, pods: int, options: JobOptions) -> dict[str, Any]:
    """The Job of a plan whose store is at `url`."""
    volumes: list[dict[str, Any]] = [{"name": "tmp", "emptyDir": {}}]
    mounts: list[dict[str, Any]] = [{"name": "tmp", "mountPath": "/tmp"}]  # noqa: S108  a volume of the pod's own
    if "://" not in url:
        claim, _, inside = options.claim.partition(":")
        if not claim:
            raise UnitError(
                f"--engine kubernetes: --store {url} is a folder; give --claim, the claim that pods mount it from, "
                "or an object store such as s3://bucket/runs"
            )
        volumes.append({"name": "store", "persistentVolumeClaim": {"claimName": claim}})
        mounts.append({"name": "store", "mountPath": STORE, **({"subPath": inside} if inside else {})})
        url = STORE
    labels = {"app.kubernetes.io/name": "podium", "app.kubernetes.io/component": "units", PLAN_LABEL: plan[:40]}
    container = {
        "name": CONTAINER,
        "image": options.image,
        "command": ["python3", "-m", "podium_lab.units"],
        "args": ["--store", url, "--plan", plan, "--parts", str(pods)],
        "env": [{"name": "HOME", "value": "/tmp"}],  # noqa: S108
        "resources": {"requests": {"cpu": "1", "memory": "1Gi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": mounts,
    }
    if options.secret:
        container["envFrom"] = [{"secretRef": {"name": options.secret}}]
    pod = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "runAsGroup": USER,
            "fsGroup": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
        "volumes": volumes,
    }
    queue = {QUEUE_LABEL: options.local_queue} if options.local_queue else {}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"generateName": f"podium-units-{plan[:8]}-", "labels": {**labels, **queue}},
        "spec": {
            "completionMode": "Indexed",
            "completions": pods,
            "parallelism": pods,
            "backoffLimitPerIndex": 5,
            "podFailurePolicy": {
                "rules": [
                    {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
                    {
                        "action": "FailJob",
                        "onExitCodes": {"containerName": CONTAINER, "operator": "In", "values": [BAD_INPUT]},
                    },
                ]
            },
            "ttlSecondsAfterFinished": KEPT_SECONDS,
            **({"suspend": True} if options.local_queue else {}),  # Kueue starts it when its quota allows
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }


RIGHTS = (
    ("batch", "jobs", ("create", "get", "list", "delete")),
    ("", "pods", ("list",)),
)
"""What the command itself needs in the namespace of its Jobs: group, resource and verbs."""
