"""What is compared between kube-controller-manager and the embedded controllers, and a stand-in for kubelets on both.

Names that are made up, uids, versions and times are put aside; the rest must be equal: the pods' whole specs, labels,
annotations and owners, the statuses of their owners, and the events.
"""

from __future__ import annotations

import json
import re
import time
from typing import Any

from podium.kube.meta import format_time
from tools.testbed.apiclient import ApiClient, ApiError

Object = dict[str, Any]

KINDS = ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "ControllerRevision", "PodDisruptionBudget")
HASHES = ("pod-template-hash", "controller-revision-hash", "controller.kubernetes.io/hash")
ENDS = "test/ends"
_CHANCE = {"uid", "resourceVersion", "creationTimestamp", "managedFields", "selfLink", "generateName"}
_UID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")


def play(client: ApiClient) -> None:
    """What a scheduler and kubelets would do now: pods run at once, end if their label says so, and go if deleted."""
    for pod in client.list("Pod"):
        meta, phase = pod["metadata"], pod["status"].get("phase")
        try:
            if "deletionTimestamp" in meta:
                client.delete("Pod", meta["name"])
            elif "nodeName" not in pod["spec"]:
                client.bind(meta["name"], _node_of(pod))
            elif phase == "Pending":
                _set_phase(client, pod, "Running")
            elif phase == "Running" and ENDS in meta.get("labels", {}):
                _set_phase(client, pod, meta["labels"][ENDS])
        except ApiError as error:
            if error.code not in (404, 409):
                raise


def _set_phase(client: ApiClient, pod: Object, phase: str) -> None:
    ready = {"type": "Ready", "status": "True" if phase == "Running" else "False"}
    ready["lastTransitionTime"] = format_time(time.time())
    client.set_status({**pod, "apiVersion": "v1", "kind": "Pod", "status": {"phase": phase, "conditions": [ready]}})


def _node_of(pod: Object) -> str:
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if required:
        return str(required["nodeSelectorTerms"][0]["matchFields"][0]["values"][0])
    return "node-0"


def picture(client: ApiClient) -> Object:
    """Everything that is compared."""
    found: Object = {}
    for kind in (*KINDS, "Pod"):
        objects = [_plain(obj, kind) for obj in client.list(kind)]
        found[kind] = sorted(objects, key=lambda obj: json.dumps(obj, sort_keys=True))
    events = client.list("Event")
    found["events"] = sorted(
        {
            (event["involvedObject"]["kind"], event["type"], event["reason"], _without_names(event["message"]))
            for event in events
            if event["involvedObject"]["kind"] in KINDS
        }
    )
    return found


def _plain(obj: Object, kind: str) -> Object:
    obj = _without_chance(obj)
    if kind == "Pod":
        for field in ("nodeName", "priority", "preemptionPolicy"):  # the test bed's API server sets no priorities
            obj["spec"].pop(field, None)
        phase = obj["status"].get("phase")
        obj["status"] = {"phase": phase}
        obj["metadata"].pop("generation", None)
    if obj["metadata"].get("ownerReferences") or kind == "ControllerRevision":
        obj["metadata"]["name"] = _without_names(obj["metadata"]["name"])
    return obj


def _without_chance(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {}
        for key, inner in value.items():
            if key in _CHANCE or key.endswith(("Time", "Timestamp")):
                continue
            if key in HASHES or key in ("currentRevision", "updateRevision"):
                kept[key] = "HASH"
            else:
                kept[key] = _without_chance(inner)
        return kept
    if isinstance(value, list):
        return [_without_chance(inner) for inner in value]
    return _without_names(value) if isinstance(value, str) else value


def _without_names(text: str) -> str:
    """Without uids, and without what was made up of "web-5d4f8c7b9-x2x7k"."""
    text = _UID.sub("UID", text)
    return re.sub(
        r"\b(web|db|agent|work|indexed|failing|paused)(-\d+)?-[bcdfghjklmnpqrstvwxz2456789]{5,10}(-[a-z0-9]{5})?\b",
        r"\1\2-*",
        text,
    )
