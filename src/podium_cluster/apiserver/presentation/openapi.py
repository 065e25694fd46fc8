"""Makes OpenAPI v3 documents as far as clients read them: kubectl validates, patches and explains by them.

One document per group and version, made from the field facts and from the schemas of custom kinds when it is first
asked for, and kept until kinds come or go. The index gives each a hash in its address, so that kubectl may keep its
copy. There are no descriptions, and operations say only what clients look up: the kind, the parameters, the types.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from podium_cluster.apiserver.kind import Kind, Kinds
from podium_cluster.apiserver.schema.custom import CustomKind
from podium_cluster.apiserver.schema.fields import facts_version, type_facts, type_names

ROOT: Final = "/openapi/v3"
_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."
_WRITE: Final = ("dryRun", "fieldManager", "fieldValidation")
_LIST: Final = ("allowWatchBookmarks", "continue", "fieldSelector", "labelSelector", "limit", "resourceVersion")
_WATCH: Final = ("resourceVersionMatch", "sendInitialEvents", "timeoutSeconds", "watch")
_DELETE: Final = ("dryRun", "gracePeriodSeconds", "orphanDependents", "propagationPolicy")
_TYPES: Final = {"limit": "integer", "timeoutSeconds": "integer", "gracePeriodSeconds": "integer"} | dict.fromkeys(
    ("allowWatchBookmarks", "force", "orphanDependents", "sendInitialEvents", "watch"), "boolean"
)
_PATCHES: Final = ("apply-patch+yaml", "json-patch+json", "merge-patch+json", "strategic-merge-patch+json")
# operation of a path, verb of a kind, action, parameters
_COLLECTION_OPERATIONS: Final = (
    ("get", "list", "list", (*_LIST, *_WATCH)),
    ("post", "create", "post", _WRITE),
    ("delete", "deletecollection", "deletecollection", (*_LIST[1:], *_DELETE)),
)
_OBJECT_OPERATIONS: Final = (
    ("get", "get", "get", ()),
    ("put", "update", "put", _WRITE),
    ("delete", "delete", "delete", _DELETE),
    ("patch", "patch", "patch", (*_WRITE, "force")),
)
_OWN_FACTS: Final = ("x-go-type", "x-embedded", "x-omit-zero", "x-always", "x-null")


class OpenApi:
    """The documents for the kinds served now."""

    def __init__(self, kinds: Kinds) -> None:
        self._kinds = kinds
        self._generation = -1
        self._answers: dict[str, bytes | None] = {}

    def answer(self, path: str) -> bytes | None:
        """What a GET of /openapi/v3 or of a path below is answered with, as JSON; None where nothing is."""
        if self._generation != self._kinds.generation:
            self._answers.clear()
            self._generation = self._kinds.generation
        key = path.removeprefix(ROOT).strip("/")
        if key not in self._answers:
            self._answers[key] = self._index() if not key else self._document(key)
        return self._answers[key]

    def _index(self) -> bytes:
        paths = {}
        for group_version, kinds in self._by_group_version().items():
            hashed = [
                facts_version(),
                group_version,
                *(kind.definition for kind in kinds if isinstance(kind, CustomKind)),
            ]
            digest = (
                hashlib.sha512(msgspec.json.encode([*hashed, sorted(kind.plural for kind in kinds)]))
                .hexdigest()
                .upper()
            )
            paths[group_version] = {"serverRelativeURL": f"{ROOT}/{group_version}?hash={digest}"}
        return msgspec.json.encode({"paths": paths})

    def _document(self, group_version: str) -> bytes | None:
        kinds = self._by_group_version().get(group_version)
        if kinds is None:
            return None
        schemas: dict[str, Any] = {}
        paths: dict[str, Any] = {}
        for kind in kinds:
            paths.update(_paths(kind))
            if isinstance(kind, CustomKind):
                schemas.update(_custom_types(kind, kind.schema.openapi))
        schemas.update(_types_reached(_names_in(paths) | _names_in(schemas), set(schemas)))
        major, minor, _ = facts_version().removeprefix("v").split(".")
        return msgspec.json.encode(
            {
                "openapi": "3.0.0",
                "info": {"title": "Kubernetes", "version": f"{major}.{minor}"},
                "paths": dict(sorted(paths.items())),
                "components": {"schemas": dict(sorted(schemas.items()))},
            }
        )

    def _by_group_version(self) -> dict[str, list[Kind]]:
        """ "api/v1" or "apis/apps/v1" -> the kinds there."""
        found: dict[str, list[Kind]] = {}
        for kind in self._kinds:
            if not kind.custom and (kind.group, kind.version, kind.kind) not in type_names():
                continue
            found.setdefault(f"apis/{kind.api_version}" if kind.group else f"api/{kind.version}", []).append(kind)
        return found


def type_name(kind: Kind) -> str:
    """The full name of a kind's type: "io.k8s.api.core.v1.Pod", "com.example.v1.Thing"."""
    if not kind.custom:
        return type_names()[kind.group, kind.version, kind.kind]
    return ".".join([*reversed(kind.group.split(".")), kind.version, kind.kind])


def _paths(kind: Kind) -> Iterator[tuple[str, Any]]:
    space = "{namespace}" if kind.namespaced else None
    collection = kind.path().rpartition("/")[0] + (f"/namespaces/{space}" if space else "") + f"/{kind.plural}"
    own = type_name(kind)
    listed = own + "List" if own + "List" in type_facts() or kind.custom else own
    operations = {
        operation: _operation(kind, action, parameters, own, listed if action == "list" else own)
        for operation, verb, action, parameters in _COLLECTION_OPERATIONS
        if verb in kind.verbs
    }
    yield collection, operations | _in_path("namespace" if space else "")
    if kind.namespaced and "list" in kind.verbs:
        everywhere = {"get": _operation(kind, "list", (*_LIST, *_WATCH), own, listed)}
        yield kind.path(), everywhere
    one = {
        operation: _operation(kind, action, parameters, own, own)
        for operation, verb, action, parameters in _OBJECT_OPERATIONS
        if verb in kind.verbs
    }
    if one:
        yield f"{collection}/{{name}}", one | _in_path("name", "namespace" if space else "")
    for part in kind.parts:
        shape = own
        if part.kind:
            shape = type_names()[
                part.group or ("" if part.kind == "Binding" else kind.group), part.version or "v1", part.kind
            ]
        yield (
            f"{collection}/{{name}}/{part.name}",
            {
                operation: _operation(kind, action, parameters, shape, shape)
                for operation, verb, action, parameters in (*_OBJECT_OPERATIONS, _COLLECTION_OPERATIONS[1])
                if verb in part.verbs
            }
            | _in_path("name", "namespace" if space else ""),
        )


def _operation(kind: Kind, action: str, parameters: Iterable[str], sent: str, answered: str) -> dict[str, Any]:
    operation: dict[str, Any] = {"parameters": [_parameter(name, "query") for name in parameters]}
    if action in ("post", "put"):
        operation["requestBody"] = {"content": {"*/*": {"schema": _reference(sent)}}, "required": True}
    elif action == "patch":
        body = {"schema": _reference(f"{_META}Patch")}
        ways = _PATCHES[:-1] if kind.custom else _PATCHES  # kubectl merges custom kinds otherwise
        operation["requestBody"] = {"content": {f"application/{each}": body for each in ways}, "required": True}
    elif action.startswith("delete"):
        operation["requestBody"] = {"content": {"*/*": {"schema": _reference(f"{_META}DeleteOptions")}}}
        answered = f"{_META}Status"
    operation["responses"] = {
        "200": {"description": "OK", "content": {"application/json": {"schema": _reference(answered)}}}
    }
    operation["x-kubernetes-action"] = action
    operation["x-kubernetes-group-version-kind"] = {"group": kind.group, "kind": kind.kind, "version": kind.version}
    return operation


def _parameter(name: str, location: str) -> dict[str, Any]:
    schema = {"type": _TYPES.get(name, "string"), "uniqueItems": True}
    return {"name": name, "in": location, **({"required": True} if location == "path" else {}), "schema": schema}


def _in_path(*names: str) -> dict[str, Any]:
    return {"parameters": [_parameter(name, "path") for name in names if name]}


def _custom_types(kind: Kind, schema: dict[str, Any]) -> dict[str, Any]:
    name = type_name(kind)
    own = {"group": kind.group, "kind": kind.kind, "version": kind.version}
    properties = {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"allOf": [_reference(f"{_META}ObjectMeta")]},
    }
    described = {"type": "object", **schema, "properties": {**schema.get("properties", {}), **properties}}
    listed = {
        "type": "object",
        "required": ["items"],
        "properties": {
            **properties,
            "items": {"type": "array", "items": _reference(name)},
            "metadata": {"allOf": [_reference(f"{_META}ListMeta")]},
        },
        "x-kubernetes-group-version-kind": [{**own, "kind": f"{kind.kind}List"}],
    }
    return {name: {**described, "x-kubernetes-group-version-kind": [own]}, f"{name}List": listed}


def _types_reached(names: set[str], there: set[str]) -> dict[str, Any]:
    """These types of the facts and all that they contain, as OpenAPI writes them."""
    found: dict[str, Any] = {}
    waiting = sorted(names - there)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = _as_openapi(type_facts()[name])
            waiting.extend(_names_in(found[name]))
    return found


def _as_openapi(facts: dict[str, Any]) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for key, value in facts.items():
        if key == "properties":
            schema[key] = {name: _as_openapi(field) for name, field in value.items()}
        elif key in ("items", "additionalProperties"):
            schema[key] = _as_openapi(value)
        elif key == "$ref":
            schema["allOf"] = [_reference(value)]
        elif key not in _OWN_FACTS:
            schema[key] = value
    return schema


_COMPONENTS: Final = "#/components/schemas/"


def _reference(name: str) -> dict[str, str]:
    return {"$ref": _COMPONENTS + name}


def _names_in(value: Any) -> set[str]:
    """The types that a piece of a document refers to."""
    found: set[str] = set()
    waiting = [value]
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, dict):
            reference = inner.get("$ref")
            if isinstance(reference, str):
                found.add(reference.removeprefix(_COMPONENTS))
            waiting.extend(inner.values())
        elif isinstance(inner, list):
            waiting.extend(inner)
    return found
