"""A small synchronous Kubernetes client for tests: plain dictionaries in and out.

It is the tests' own hand on the API server, apart from the client that Podium ships, so that a mistake in one cannot
hide in the other. Two habits of the API server are smoothed over here: it drops `.status` when most kinds are created,
so `create` sets it in a second request; and an empty control plane finishes no deletions (no kubelet, no
garbage collector), so deletions ask for no grace period (wipe.py empties a control plane altogether).
"""

import threading
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import msgspec

from tools.testbed.connections import ConnectionPool
from tools.testbed.resources import DISCOVERY_ACCEPT, Resource, index_resources

Object = dict[str, Any]
Objects = list[Object]

MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"


class ApiError(Exception):
    """The server refused a request: `code` (404), `reason` ("NotFound") and its message."""

    def __init__(self, method: str, path: str, code: int, body: bytes) -> None:
        self.code = code
        try:
            status = msgspec.json.decode(body, type=dict[str, Any])
        except msgspec.DecodeError:
            status = {}
        self.reason: str = status.get("reason", "")
        self.message: str = status.get("message", body.decode(errors="replace"))
        super().__init__(f"{method} {path}: {code} {self.reason}: {self.message}")


class ApiClient:
    """Requests to one API server as one user. May be shared by threads; close it, or use it as a context manager."""

    def __init__(
        self, server: str, *, ca_path: Path | None, token: str, workers: int = 8, timeout: float = 60.0
    ) -> None:
        headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
        self._pool = ConnectionPool(server, ca_path=ca_path, headers=headers, timeout=timeout)
        self._workers = workers
        self._resources: dict[str, Resource] = {}
        self._discovery = threading.Lock()

    def __enter__(self) -> "ApiClient":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._pool.close()

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, str | int] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> bytes:
        """One request to any path, `body` as JSON; the bytes of the answer, or ApiError from status 400 on."""
        data = None if body is None else msgspec.json.encode(body)
        target = f"{path}?{urlencode(query)}" if query else path
        content_type = {} if data is None else {"Content-Type": "application/json"}
        response = self._pool.request(method, target, data, content_type | dict(headers or {}))
        if response.status >= 400:
            raise ApiError(method, target, response.status, response.body)
        return response.body

    def create(self, obj: Object) -> Object:
        """Create the object in its `metadata.namespace` (default: "default"), with its `.status` if it has one."""
        resource = self.resource_of(obj)
        created = self._json("POST", resource.path(_namespace_of(obj, resource)), obj)
        status = obj.get("status")
        if status and not _covers(created.get("status"), status):
            return self.set_status({**obj, "metadata": created["metadata"]})
        return created

    def create_all(self, objects: Iterable[Object], *, in_order: bool = False) -> Objects:
        """Create many, over several connections at once; `in_order` makes each one exist before the next is sent,
        which fixes the order in which a scheduler first hears of them. The answers are in the order given."""
        return self.for_each(self.create, objects, in_order=in_order)

    def get(self, kind: str, name: str, namespace: str = "default") -> Object:
        return self._json("GET", self.resource(kind).path(namespace, name))

    def list(
        self, kind: str, namespace: str | None = None, *, label_selector: str = "", field_selector: str = ""
    ) -> Objects:
        """All objects of the kind, of all namespaces unless one is named."""
        items: Objects = self.list_response(kind, namespace, label_selector, field_selector)["items"]
        return items

    def list_response(
        self, kind: str, namespace: str | None = None, label_selector: str = "", field_selector: str = ""
    ) -> Object:
        """The whole list object, for its `metadata.resourceVersion`; items lack apiVersion and kind, as served."""
        query = _given(labelSelector=label_selector, fieldSelector=field_selector)
        return self._json("GET", self.resource(kind).path(namespace), query=query)

    def replace(self, obj: Object, *, subresource: str | None = None) -> Object:
        """PUT the object, or one subresource of it; its `metadata.resourceVersion`, if set, must be current."""
        resource = self.resource_of(obj)
        path = resource.path(_namespace_of(obj, resource), obj["metadata"]["name"], subresource)
        return self._json("PUT", path, obj)

    def patch(
        self,
        kind: str,
        name: str,
        patch: Any,
        namespace: str = "default",
        *,
        subresource: str | None = None,
        patch_type: str = MERGE_PATCH,
    ) -> Object:
        path = self.resource(kind).path(namespace, name, subresource)
        return self._json("PATCH", path, patch, headers={"Content-Type": patch_type})

    def set_status(self, obj: Object) -> Object:
        """Merge the object's `.status` into what the server has; everything else of `obj` is only its address."""
        resource = self.resource_of(obj)
        path = resource.path(_namespace_of(obj, resource), obj["metadata"]["name"], "status")
        return self._json("PATCH", path, {"status": obj["status"]}, headers={"Content-Type": MERGE_PATCH})

    def bind(self, pod: str, node: str, namespace: str = "default") -> None:
        """Bind a pending pod to a node, as a scheduler does."""
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": pod, "namespace": namespace},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        self._json("POST", self.resource("v1/Pod").path(namespace, pod, "binding"), binding)

    def delete(self, kind: str, name: str, namespace: str = "default", *, grace_period_seconds: int = 0) -> None:
        """Delete one object, at once unless it says otherwise."""
        options = {"gracePeriodSeconds": grace_period_seconds}
        self._json("DELETE", self.resource(kind).path(namespace, name), options)

    def delete_all(self, kind: str, namespace: str | None = None, *, label_selector: str = "") -> None:
        """Delete every object of the kind, in all namespaces unless one is named; finalizers still hold."""
        resource = self.resource(kind)
        namespaces: Iterable[str | None] = [namespace]
        if resource.namespaced and namespace is None:  # the API deletes collections one namespace at a time
            listed = self.list(kind, label_selector=label_selector)
            namespaces = sorted({item["metadata"]["namespace"] for item in listed})
        for each in namespaces:
            query = _given(labelSelector=label_selector)
            self._json("DELETE", resource.path(each), {"gracePeriodSeconds": 0}, query=query)

    def watch(
        self,
        kind: str,
        namespace: str | None = None,
        *,
        resource_version: str = "",
        label_selector: str = "",
        field_selector: str = "",
        bookmarks: bool = False,
        timeout: float = 30.0,
    ) -> Generator[Object, None, None]:
        """The events (`type`, `object`) from `resource_version` on, until the server ends the watch after `timeout`
        or the caller closes it."""
        query = _given(
            watch="1",
            resourceVersion=resource_version,
            labelSelector=label_selector,
            fieldSelector=field_selector,
            allowWatchBookmarks="true" if bookmarks else "",
            timeoutSeconds=str(max(1, round(timeout))),
        )
        path = f"{self.resource(kind).path(namespace)}?{urlencode(query)}"
        with self._pool.stream(path, timeout=timeout + 10) as stream:
            if stream.status >= 400:
                raise ApiError("GET", path, stream.status, stream.read())
            while line := stream.readline():
                yield msgspec.json.decode(line, type=dict[str, Any])

    def poll(
        self,
        kind: str,
        until: Callable[[Objects], bool],
        namespace: str | None = None,
        *,
        timeout: float = 30.0,
        interval: float = 0.05,
    ) -> Objects:
        """List again and again until `until(items)` holds; the items, or TimeoutError."""
        deadline = time.monotonic() + timeout
        while True:
            items = self.list(kind, namespace)
            if until(items):
                return items
            if time.monotonic() > deadline:
                raise TimeoutError(f"{kind}: the {len(items)} listed objects were not as awaited after {timeout} s")
            time.sleep(interval)

    def for_each(
        self, call: Callable[[Object], Object], objects: Iterable[Object], *, in_order: bool = False
    ) -> Objects:
        """`call` on every object, several at a time unless `in_order`; for bulk status updates and the like."""
        if in_order:
            return [call(obj) for obj in objects]
        with ThreadPoolExecutor(self._workers) as threads:
            return list(threads.map(call, objects))

    def resource_of(self, obj: Object) -> Resource:
        return self.resource(f"{obj['apiVersion']}/{obj['kind']}")

    def resource(self, kind: str) -> Resource:
        """Where a kind is served; LookupError if it is not."""
        resource = self.find_resource(kind)
        if resource is None:
            raise LookupError(f"the API server serves no {kind}; is its version or feature gate enabled?")
        return resource

    def find_resource(self, kind: str) -> Resource | None:
        if kind not in self._resources:
            with self._discovery:  # a kind that is not known may be a custom one created since
                accept = {"Accept": DISCOVERY_ACCEPT}
                bodies = [self._json("GET", path, headers=accept) for path in ("/api", "/apis")]
                self._resources = index_resources(bodies)
        return self._resources.get(kind)

    def _json(self, method: str, path: str, body: Any = None, **options: Any) -> Object:
        return msgspec.json.decode(self.request(method, path, body, **options), type=dict[str, Any])


def _namespace_of(obj: Object, resource: Resource) -> str | None:
    namespace: str = obj["metadata"].get("namespace", "default")
    return namespace if resource.namespaced else None


def _given(**query: str) -> dict[str, str | int]:
    return {name: value for name, value in query.items() if value}


def _covers(have: Any, want: Any) -> bool:
    """Whether merging `want` into `have` would change nothing, so that a second request can be saved."""
    if isinstance(want, dict):
        return isinstance(have, dict) and all(_covers(have.get(key), value) for key, value in want.items())
    return bool(have == want)
