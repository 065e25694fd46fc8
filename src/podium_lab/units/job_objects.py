"""Makes the Indexed Job that runs the units of a plan.

Each index is a pod that takes its share of the units, and then helps others with theirs. Pods need nothing of the
Kubernetes API: they read the plan and its inputs from the store, and write results there. A pod that is evicted (a
spot node goes) is replaced without counting as a failure; one that crashes is replaced up to five times; one whose
input is wrong ends the Job.
"""

from __future__ import annotations

from typing import Any

from podium_lab.units.errors import UnitError
from podium_lab.units.run import JobOptions

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
