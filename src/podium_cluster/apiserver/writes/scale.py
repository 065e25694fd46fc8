"""Reads and sets the scale of a workload: how many replicas it should have and has, in one form for every kind
(autoscaling/v1)."""

from __future__ import annotations

from typing import Any, Final

from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.errors import bad_request, invalid, invalid_value
from podium_cluster.apiserver.kind import Kind
from podium_cluster.apiserver.kinds import rules_of
from podium_cluster.apiserver.kinds.replica_sets import SCALE_RECORD
from podium_cluster.apiserver.store import storage_form
from podium_cluster.apiserver.store.collection import Stored
from podium_cluster.apiserver.write_context import WriteContext, WriteOptions
from podium_cluster.apiserver.writes import patch
from podium_cluster.apiserver.writes.conflict import modified
from podium_cluster.apiserver.writes.update import replace

SCALE: Final = SCALE_RECORD.kind
_DEFAULT_PATHS = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}


def scale_of(kind: Kind, obj: JsonObject) -> JsonObject:
    """The Scale of a workload."""
    paths = _paths(kind)
    metadata = obj["metadata"]
    fields = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    status: JsonObject = {"replicas": _read(obj, paths["statusReplicasPath"]) or 0}
    if selector := _selector(kind, obj, paths):
        status["selector"] = selector
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {field: metadata[field] for field in fields if field in metadata},
        "spec": {"replicas": replicas} if (replicas := _read(obj, paths["specReplicasPath"])) else {},
        "status": status,
    }


def set_scale(context: WriteContext, kind: Kind, stored: Stored, wanted: JsonObject, options: WriteOptions) -> Stored:
    """Write the replicas that a Scale asks for into the workload."""
    metadata = wanted.get("metadata") or {}
    if metadata.get("name", stored.name) != stored.name:
        raise bad_request(
            f"the name of the object ({metadata['name']}) does not match the name on the URL ({stored.name})"
        )
    version = metadata.get("resourceVersion")
    if version and version != str(stored.revision):
        raise modified(kind, stored.name)
    replicas = (wanted.get("spec") or {}).get("replicas", 0)
    if not isinstance(replicas, int) or replicas < 0:
        why = "must be greater than or equal to 0"
        raise invalid(SCALE, stored.name, [invalid_value("spec.replicas", replicas, why)])
    obj = storage_form.decoded(stored, kind)
    *steps, last = _paths(kind)["specReplicasPath"].strip(".").split(".")
    target = obj
    for step in steps:
        target = target.setdefault(step, {})
    target[last] = replicas
    obj = patch.tracked(context.clock, kind, stored, obj, "scale", options)
    return replace(context, kind, rules_of(kind), stored, obj, "", options)


def _paths(kind: Kind) -> dict[str, str]:
    own: dict[str, str] | None = getattr(kind, "scale_paths", None)
    return own or _DEFAULT_PATHS


def _selector(kind: Kind, obj: JsonObject, paths: dict[str, str]) -> str:
    """The pods that are counted, as a selector in text."""
    if kind.custom:
        path = paths.get("labelSelectorPath")
        return str(_read(obj, path) or "") if path else ""
    selector = (obj.get("spec") or {}).get("selector") or {}
    if kind.group == "":
        return ",".join(f"{key}={value}" for key, value in sorted(selector.items()))
    terms = [(key, f"{key}={value}") for key, value in (selector.get("matchLabels") or {}).items()]
    for expression in selector.get("matchExpressions") or ():
        key, values = expression["key"], ",".join(sorted(expression.get("values") or ()))
        written = {"In": f"{key} in ({values})", "NotIn": f"{key} notin ({values})", "Exists": key}
        terms.append((key, written.get(expression["operator"], f"!{key}")))
    return ",".join(text for _, text in sorted(terms))


def _read(obj: JsonObject, path: str) -> Any:
    found: Any = obj
    for step in path.strip(".").split("."):
        found = found.get(step) if isinstance(found, dict) else None
    return found
