"""The scale of a workload: how many replicas it should have and has, in one form for every kind (autoscaling/v1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from podium.apiserver import bodies, checking, forms, patching
from podium.apiserver.errors import bad_request, invalid, invalid_value, method_not_allowed, modified
from podium.apiserver.kinds import Kind
from podium.apiserver.requests import Request, Response, Target
from podium.apiserver.rules import rules_of
from podium.apiserver.store import Stored
from podium.apiserver.writing import replace
from podium.kube.json_object import JsonObject

if TYPE_CHECKING:
    from podium.apiserver.api import Api
    from podium.apiserver.writing import Options


SCALE = Kind("autoscaling", "v1", "Scale", "scales", "scale", True)
_DEFAULT_PATHS = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}


def answer(api: Api, request: Request, target: Target, options: Options) -> Response:
    """GET, PUT or PATCH of `…/scale`."""
    kind, name = target.kind, target.name or ""
    if request.method not in ("GET", "PUT", "PATCH"):
        raise method_not_allowed()
    stored = api.stored(kind, target.namespace, name)
    current = scale_of(kind, forms.decoded(stored, kind))
    if request.method == "GET":
        return Response(200, msgspec.json.encode(current))
    if request.method == "PUT":
        asked = bodies.decoded(request.body, request.content_type, SCALE)
    else:
        media = bodies.media_type(request.content_type)
        asked = patching.merged(current, patching.decoded(request.body, media, SCALE), media, SCALE)
        options = msgspec.structs.replace(options, raw=None)
    checking.check_and_default(SCALE, asked, options)
    changed = set_scale(api, kind, stored, asked, options)
    return Response(200, msgspec.json.encode(scale_of(kind, forms.decoded(changed, kind))))


def scale_of(kind: Kind, obj: JsonObject) -> JsonObject:
    """The Scale of a workload."""
    paths = _paths(kind)
    metadata = obj["metadata"]
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    status: JsonObject = {"replicas": _read(obj, paths["statusReplicasPath"]) or 0}
    if selector := _selector(kind, obj, paths):
        status["selector"] = selector
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {field: metadata[field] for field in kept if field in metadata},
        "spec": {"replicas": replicas} if (replicas := _read(obj, paths["specReplicasPath"])) else {},
        "status": status,
    }


def set_scale(api: Api, kind: Kind, stored: Stored, asked: JsonObject, options: Options) -> Stored:
    """Write the replicas that a Scale asks for into the workload."""
    metadata = asked.get("metadata") or {}
    if metadata.get("name", stored.name) != stored.name:
        raise bad_request(
            f"the name of the object ({metadata['name']}) does not match the name on the URL ({stored.name})"
        )
    version = metadata.get("resourceVersion")
    if version and version != str(stored.revision):
        raise modified(kind, stored.name)
    replicas = (asked.get("spec") or {}).get("replicas", 0)
    if not isinstance(replicas, int) or replicas < 0:
        why = "must be greater than or equal to 0"
        raise invalid(SCALE, stored.name, [invalid_value("spec.replicas", replicas, why)])
    obj = forms.decoded(stored, kind)
    *steps, last = _paths(kind)["specReplicasPath"].strip(".").split(".")
    place = obj
    for step in steps:
        place = place.setdefault(step, {})
    place[last] = replicas
    obj = patching.tracked(api, kind, stored, obj, "scale", options)
    return replace(api, kind, rules_of(kind), stored, obj, "", options)


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
