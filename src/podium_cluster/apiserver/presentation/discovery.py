"""Answers what the server is asked about itself: its kinds, its version and its health.

Kinds are listed in two forms: the old one, a document for each group and version, and the aggregated one, everything in
one document, which clients ask for in their Accept header. Both are made again only when a kind has come or gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import groupby
from typing import Final

import msgspec

from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.errors import method_not_allowed, no_such_resource
from podium_cluster.apiserver.kind import Kind, Kinds, Subresource
from podium_cluster.apiserver.messages import ApiRequest, ApiResponse
from podium_cluster.apiserver.presentation.objects import wants_aggregated_discovery
from podium_cluster.apiserver.presentation.openapi import OpenApi

VERSION: Final = {
    "major": "1",
    "minor": "37",
    "emulationMajor": "1",
    "emulationMinor": "37",
    "minCompatibilityMajor": "1",
    "minCompatibilityMinor": "36",
    "gitVersion": "v1.37.1+podium",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "",
    "platform": "",
}
_OPEN_API_2_PROTOBUF: Final = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
_HEALTH: Final = ("/healthz", "/livez", "/readyz")
_DOCUMENTS_LIMIT: Final = 256
_encode = msgspec.json.Encoder().encode


class Discovery:
    """The documents about the kinds served now, each made once until a kind comes or goes."""

    def __init__(self, kinds: Kinds, writable: Callable[[], bool]) -> None:
        self._kinds = kinds
        self._writable = writable
        self._openapi = OpenApi(kinds)
        self._documents: dict[tuple[int, str, str], ApiResponse] = {}

    def answer(self, request: ApiRequest) -> ApiResponse | None:
        """The answer to a request that is about the server itself, None for one about objects."""
        path = request.path
        if path.startswith(_HEALTH):
            return _health(request, path, self._writable)
        steps = [step for step in path.split("/") if step]
        if steps and len(steps) > {"api": 2, "apis": 3}.get(steps[0], len(steps)):
            return None
        make = _documents(steps, request.accept)
        if make is None:
            return _other(self._kinds, self._openapi, request, path.rstrip("/") or "/")
        if request.method != "GET":
            raise method_not_allowed()
        key = (self._kinds.generation, path, wants_aggregated_discovery(request.accept))
        document = self._documents.get(key)
        if document is None:
            if len(self._documents) > _DOCUMENTS_LIMIT:
                self._documents.clear()
            document = self._documents[key] = make(self._kinds)
        return document


def _documents(steps: list[str], accept: str) -> Callable[[Kinds], ApiResponse] | None:
    match steps:
        case ["api" | "apis" as root] if version := wants_aggregated_discovery(accept):
            return lambda kinds: _aggregated(kinds, core=root == "api", version=version)
        case ["api"]:
            return lambda kinds: _json({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []})
        case ["apis"]:
            return _groups
        case ["api", version]:
            return lambda kinds: _resources(kinds, "", version)
        case ["apis", group]:
            return lambda kinds: _group(kinds, group)
        case ["apis", group, version]:
            return lambda kinds: _resources(kinds, group, version)
    return None


def _other(kinds: Kinds, openapi: OpenApi, request: ApiRequest, path: str) -> ApiResponse | None:
    if path.startswith("/openapi/v3"):
        document = openapi.answer(path)
        return not_found_page() if document is None else ApiResponse(200, document)
    if path == "/openapi/v2":
        return _open_api_2(request.accept)
    if path == "/version":
        return _json(VERSION)
    if path == "/":
        groups = dict.fromkeys(kind.group for kind in kinds if kind.group)
        versions = dict.fromkeys(f"/apis/{kind.api_version}" for kind in kinds if kind.group)
        named = [f"/apis/{group}" for group in groups]
        rest = ["/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/readyz", "/version"]
        return _json({"paths": ["/api", "/api/v1", "/apis", *sorted([*named, *versions]), *rest]})
    if not path.startswith(("/api/", "/apis/")):
        return not_found_page()
    return None


def _open_api_2(accept: str) -> ApiResponse:
    """A document without any types: who finds none there leaves checking to the server, and the rest read version 3."""
    if _OPEN_API_2_PROTOBUF in accept:
        return ApiResponse(200, b"\x0a\x032.0\x12\x00", _OPEN_API_2_PROTOBUF.replace("@", "."))  # "@" is no media type
    info = {"title": "Kubernetes", "version": VERSION["gitVersion"]}
    return _json({"swagger": "2.0", "info": info, "paths": {}, "definitions": {}})


def not_found_page() -> ApiResponse:
    """The answer to a path outside of the API."""
    return ApiResponse(404, b"404 page not found\n", "text/plain; charset=utf-8")


def _health(request: ApiRequest, path: str, writable: Callable[[], bool]) -> ApiResponse:
    """A server that cannot write is alive, and not ready."""
    text = "text/plain; charset=utf-8"
    root, _, check = path.strip("/").partition("/")
    if check and check not in ("ping", "etcd", "log", "informer-sync", "shutdown"):
        return not_found_page()
    if root == "readyz" and check in ("", "etcd") and not writable():
        shown = "[+]ping ok\n[+]log ok\n[-]etcd failed: reason withheld\nreadyz check failed\n"
        return ApiResponse(
            500, shown.encode() if not check else b"internal server error: nothing can be written\n", text
        )
    if "verbose" in request.query and not check:
        return ApiResponse(200, f"[+]ping ok\n[+]log ok\n[+]etcd ok\n{root} check passed\n".encode(), text)
    return ApiResponse(200, b"ok", text)


def _json(document: JsonObject) -> ApiResponse:
    return ApiResponse(200, _encode(document))


def _groups(kinds: Kinds) -> ApiResponse:
    names = dict.fromkeys(kind.group for kind in kinds if kind.group)
    return _json({"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group_of(kinds, name) for name in names]})


def _group(kinds: Kinds, name: str) -> ApiResponse:
    if not any(kind.group == name for kind in kinds):
        return not_found_page()
    return _json({"kind": "APIGroup", "apiVersion": "v1", **_group_of(kinds, name)})


def _group_of(kinds: Kinds, name: str) -> JsonObject:
    versions = [{"groupVersion": f"{name}/{version}", "version": version} for version in _versions(kinds, name)]
    return {"name": name, "versions": versions, "preferredVersion": versions[0]}


def _versions(kinds: Kinds, group: str) -> list[str]:
    return list(dict.fromkeys(kind.version for kind in kinds if kind.group == group))


def _resources(kinds: Kinds, group: str, version: str) -> ApiResponse:
    found = [kind for kind in kinds if kind.group == group and kind.version == version]
    if not found:
        if any(kind.group == group for kind in kinds):
            raise no_such_resource()
        return not_found_page()
    entries = [entry for kind in found for entry in _entries(kind)]
    entries.sort(key=lambda entry: str(entry["name"]))
    head: JsonObject = {"kind": "APIResourceList", **({"apiVersion": "v1"} if group else {})}
    return _json({**head, "groupVersion": found[0].api_version, "resources": entries})


def _entries(kind: Kind) -> Iterable[JsonObject]:
    yield {
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": kind.verbs,
        **({"shortNames": kind.short_names} if kind.short_names else {}),
        **({"categories": kind.categories} if kind.categories else {}),
    }
    for part in kind.parts:
        yield {
            "name": f"{kind.plural}/{part.name}",
            "singularName": "",
            "namespaced": kind.namespaced,
            **({"group": part.group} if part.group else {}),
            **({"version": part.version} if part.version else {}),
            "kind": part.kind or kind.kind,
            "verbs": part.verbs,
        }


def _aggregated(kinds: Kinds, *, core: bool, version: str) -> ApiResponse:
    chosen = [kind for kind in kinds if (kind.group == "") == core]
    names = dict.fromkeys(kind.group for kind in chosen)
    items = [_aggregated_group(name, [kind for kind in chosen if kind.group == name]) for name in names]
    api_version = f"apidiscovery.k8s.io/{version}"
    document = {"kind": "APIGroupDiscoveryList", "apiVersion": api_version, "metadata": {}, "items": items}
    content_type = f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
    return ApiResponse(200, _encode(document), content_type)


def _aggregated_group(name: str, kinds: list[Kind]) -> JsonObject:
    versions = []
    order = list(dict.fromkeys(kind.version for kind in kinds))
    by_version = sorted(kinds, key=lambda kind: order.index(kind.version))
    for version, members in groupby(by_version, key=lambda kind: kind.version):
        resources = sorted((_aggregated_resource(kind) for kind in members), key=lambda entry: str(entry["resource"]))
        versions.append({"version": version, "resources": resources, "freshness": "Current"})
    return {"metadata": {"name": name} if name else {}, "versions": versions}


def _aggregated_resource(kind: Kind) -> JsonObject:
    return {
        "resource": kind.plural,
        "responseKind": _response_kind(kind, kind.group, kind.version, kind.kind),
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": kind.verbs,
        **({"shortNames": kind.short_names} if kind.short_names else {}),
        **({"categories": kind.categories} if kind.categories else {}),
        **({"subresources": [_aggregated_part(kind, part) for part in kind.parts]} if kind.parts else {}),
    }


def _aggregated_part(kind: Kind, part: Subresource) -> JsonObject:
    own = part.kind and part.version
    group, version = (part.group, part.version) if own else (kind.group, kind.version)
    response = _response_kind(kind, group, version, part.kind or kind.kind)
    return {"subresource": part.name, "responseKind": response, "verbs": part.verbs}


def _response_kind(kind: Kind, group: str, version: str, name: str) -> JsonObject:
    """Built-in kinds leave out the group and version where they are those of the resource."""
    if not kind.custom and (group, version) == (kind.group, kind.version):
        group = version = ""
    return {"group": group, "version": version, "kind": name}
