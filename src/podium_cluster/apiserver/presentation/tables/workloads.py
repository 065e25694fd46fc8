"""Tabulates the kinds that make pods: Deployments, ReplicaSets, StatefulSets, DaemonSets, Jobs, and their revisions."""

from collections.abc import Callable
from datetime import datetime
from typing import Final

from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.presentation.tables.columns import (
    AGE,
    CONTAINERS,
    IMAGES,
    NAME,
    SELECTOR,
    Cells,
    KindTable,
    TableColumn,
    Tables,
    integer,
)
from podium_cluster.apiserver.presentation.tables.formats import (
    NONE,
    age,
    bare_selector,
    condition,
    containers,
    human_duration,
    instant,
    labels,
    selector,
)

_TEMPLATE: Final = (CONTAINERS, IMAGES, SELECTOR)
_REPLICAS: Final = (
    NAME,
    integer("Desired", "How many pods there should be."),
    integer("Current", "How many pods there are."),
    integer("Ready", "How many pods are ready."),
    AGE,
    *_TEMPLATE,
)
_DEPLOYMENT: Final = (
    NAME,
    TableColumn("Ready", "How many of the wanted pods are ready."),
    TableColumn("Up-to-date", "How many pods have the newest template."),
    TableColumn("Available", "How many pods have been ready for long enough."),
    AGE,
    *_TEMPLATE,
)
_STATEFUL_SET: Final = (NAME, TableColumn("Ready", "How many of the wanted pods are ready."), AGE, CONTAINERS, IMAGES)
_DAEMON_SET: Final = (
    NAME,
    integer("Desired", "How many nodes should run the pod."),
    integer("Current", "How many of them run it."),
    integer("Ready", "How many of them run it and it is ready."),
    integer("Up-to-date", "How many of them run the newest template."),
    integer("Available", "How many of them run it, ready for long enough."),
    TableColumn("Node Selector", "The labels a node must have."),
    AGE,
    *_TEMPLATE,
)
_JOB: Final = (
    NAME,
    TableColumn("Status", "What the job is doing."),
    TableColumn("Completions", "How many of the wanted pods have succeeded."),
    TableColumn("Duration", "How long the job took, or is taking."),
    AGE,
    *_TEMPLATE,
)
_REVISION: Final = (
    NAME,
    TableColumn("Controller", "The object whose revision this is."),
    TableColumn("Revision", "The number of the revision."),
    AGE,
)
_SCALE: Final = (
    TableColumn("Name", "The name of the object that is scaled."),
    integer("Desired", "How many pods there should be."),
    integer("Available", "How many pods there are."),
    AGE,
)
# The first that holds is the job's status.
_JOB_ENDS: Final = (("Complete", "Complete"), ("Failed", "Failed"))
_JOB_STATES: Final = ("Suspended", "FailureTarget", "SuccessCriteriaMet")


def _replicas(select: Callable[[JsonObject], str]) -> Callable[[JsonObject, datetime], Cells]:
    def cells(obj: JsonObject, now: datetime) -> Cells:
        spec, status = obj.get("spec") or {}, obj.get("status") or {}
        counts = [spec.get("replicas") or 0, status.get("replicas", 0), status.get("readyReplicas", 0)]
        return [obj["metadata"]["name"], *counts, age(obj, now), *containers(spec.get("template")), select(spec)]

    return cells


def _deployment(obj: JsonObject, now: datetime) -> Cells:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    return [
        obj["metadata"]["name"],
        f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}",
        status.get("updatedReplicas", 0),
        status.get("availableReplicas", 0),
        age(obj, now),
        *containers(spec.get("template")),
        bare_selector(spec.get("selector")),
    ]


def _stateful_set(obj: JsonObject, now: datetime) -> Cells:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    ready = f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}"
    return [obj["metadata"]["name"], ready, age(obj, now), *containers(spec.get("template"))]


def _daemon_set(obj: JsonObject, now: datetime) -> Cells:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    template = spec.get("template") or {}
    return [
        obj["metadata"]["name"],
        status.get("desiredNumberScheduled", 0),
        status.get("currentNumberScheduled", 0),
        status.get("numberReady", 0),
        status.get("updatedNumberScheduled", 0),
        status.get("numberAvailable", 0),
        labels((template.get("spec") or {}).get("nodeSelector")),
        age(obj, now),
        *containers(template),
        selector(spec.get("selector")),
    ]


def _job(obj: JsonObject, now: datetime) -> Cells:
    spec = obj.get("spec") or {}
    return [
        obj["metadata"]["name"],
        _job_status(obj),
        _completions(obj),
        _duration(obj, now),
        age(obj, now),
        *containers(spec.get("template")),
        selector(spec.get("selector")),
    ]


def _job_status(obj: JsonObject) -> str:
    conditions = (obj.get("status") or {}).get("conditions")
    for kind, word in _JOB_ENDS:
        if condition(conditions, kind) == "True":
            return word
    if obj["metadata"].get("deletionTimestamp"):
        return "Terminating"
    return next((kind for kind in _JOB_STATES if condition(conditions, kind) == "True"), "Running")


def _completions(obj: JsonObject) -> str:
    spec, succeeded = obj.get("spec") or {}, (obj.get("status") or {}).get("succeeded", 0)
    if spec.get("completions") is not None:
        return f"{succeeded}/{spec['completions']}"
    parallelism = spec.get("parallelism") or 0
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _duration(obj: JsonObject, now: datetime) -> str:
    status = obj.get("status") or {}
    if not status.get("startTime"):
        return ""
    end = instant(status["completionTime"]) if status.get("completionTime") else now
    return human_duration((end - instant(status["startTime"])).total_seconds())


def _revision(obj: JsonObject, now: datetime) -> Cells:
    owners = obj["metadata"].get("ownerReferences") or ()
    owner = next((each for each in owners if each.get("controller")), None)
    name = NONE
    if owner is not None:
        group = owner["apiVersion"].rpartition("/")[0]
        kind = f"{owner['kind']}.{group}" if group else owner["kind"]
        name = f"{kind.lower()}/{owner['name']}"
    return [obj["metadata"]["name"], name, obj.get("revision", 0), age(obj, now)]


def _scale(obj: JsonObject, now: datetime) -> Cells:
    replicas = (obj.get("spec") or {}).get("replicas", 0)
    return [obj["metadata"]["name"], replicas, (obj.get("status") or {}).get("replicas", 0), age(obj, now)]


TABLES: Final[Tables] = {
    ("", "ReplicationController"): KindTable(_REPLICAS, _replicas(lambda spec: labels(spec.get("selector")))),
    ("apps", "ReplicaSet"): KindTable(_REPLICAS, _replicas(lambda spec: selector(spec.get("selector")))),
    ("apps", "Deployment"): KindTable(_DEPLOYMENT, _deployment),
    ("apps", "StatefulSet"): KindTable(_STATEFUL_SET, _stateful_set),
    ("apps", "DaemonSet"): KindTable(_DAEMON_SET, _daemon_set),
    ("apps", "ControllerRevision"): KindTable(_REVISION, _revision),
    ("batch", "Job"): KindTable(_JOB, _job),
    ("autoscaling", "Scale"): KindTable(_SCALE, _scale),
}
