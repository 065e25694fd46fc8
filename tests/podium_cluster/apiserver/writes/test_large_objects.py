"""Objects of thousands of entries are written, or refused, in time and words that grow no faster than they do."""

import json
import random
from collections.abc import Callable
from typing import Any, Final

import pytest

from podium.framework.clock import ManualClock
from podium_cluster.apiserver.api import EmbeddedApi
from podium_cluster.apiserver.http.handler import RequestHandler
from podium_cluster.apiserver.messages import ApiRequest, ApiResponse
from podium_cluster.apiserver.writes.patches.apply import MOST_VALUES
from tools.fuzz.limits import cpu_limit

Object = dict[str, Any]
PODS: Final = "/api/v1/namespaces/default/pods"
DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
LISTS: Final = "/apis/example.com/v1/namespaces/default/lists"
APPLY: Final = "application/apply-patch+yaml"


@pytest.fixture
def handler() -> RequestHandler:
    return RequestHandler(EmbeddedApi(clock=ManualClock(1_700_000_000.0), rng=random.Random(0)))


def written(handler: RequestHandler, path: str, body: Object, method: str = "POST") -> ApiResponse:
    content_type = APPLY if method == "PATCH" else "application/json"
    with cpu_limit():
        found = handler.handle(ApiRequest(method, path, json.dumps(body).encode(), content_type))
    assert isinstance(found, ApiResponse)
    return found


def pod(metadata: Object | None = None, resources: Object | None = None, **spec: Any) -> Object:
    container = {"name": "c", "image": "i", "resources": resources or {}}
    return {"metadata": {"name": "a", **(metadata or {})}, "spec": {"containers": [container], **spec}}


def definition(versions: int = 1, schema: Object | None = None, **names: Any) -> Object:
    of_version = {"served": True, "schema": {"openAPIV3Schema": schema or {"type": "object"}}}
    names = {"plural": "lists", "singular": "list", "kind": "List", "listKind": "ListList", **names}
    return {
        "metadata": {"name": "lists.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": names,
            "versions": [{"name": f"v{at + 1}", "storage": at == 0, **of_version} for at in range(versions)],
        },
    }


def spread(at: int) -> Object:
    return {"maxSkew": 1, "topologyKey": f"k{at}", "whenUnsatisfiable": "DoNotSchedule"}


LARGE: dict[str, tuple[str, Callable[[int], Object], int]] = {
    "spread constraints": (PODS, lambda n: pod(topologySpreadConstraints=[spread(at) for at in range(n)]), 12_000),
    "claims": (
        PODS,
        lambda n: pod(
            resources={"claims": [{"name": f"c{at}"} for at in range(n)]},
            resourceClaims=[{"name": f"c{at}", "resourceClaimName": "x"} for at in range(n)],
        ),
        20_000,
    ),
    "owners": (
        PODS,
        lambda n: pod({
            "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": f"u{at}"} for at in range(n)]
        }),
        20_000,
    ),
    "versions": (DEFINITIONS, lambda n: definition(n, shortNames=[f"s{at}" for at in range(n)]), 8_000),
}  # fmt: skip


@pytest.mark.parametrize("what", LARGE)
def test_many_entries_take_no_time_that_grows_with_their_square(handler: RequestHandler, what: str) -> None:
    path, make, entries = LARGE[what]
    assert written(handler, path, make(entries)).status == 201


def test_what_refers_to_nothing_is_not_answered_with_all_there_is_for_each(handler: RequestHandler) -> None:
    claims = [{"name": f"missing-{at}"} for at in range(4_000)]
    there = [{"name": f"c{at}", "resourceClaimName": "x"} for at in range(4_000)]
    found = written(handler, PODS, pod(resources={"claims": claims}, resourceClaims=there))
    assert found.status == 422
    assert len(found.body) < 12_000_000


def items(count: int) -> Object:
    entries = [{"k": str(at)} for at in range(count)]
    return {"apiVersion": "example.com/v1", "kind": "List", "metadata": {"name": "a"}, "spec": entries}


@pytest.fixture
def with_lists(handler: RequestHandler) -> RequestHandler:
    """With a kind that is a list of objects told apart by the key `k`."""
    entry = {"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}}}
    spec = {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": entry}
    schema = {"type": "object", "properties": {"spec": spec}}
    assert written(handler, DEFINITIONS, definition(1, schema)).status == 201
    return handler


def test_a_list_of_keyed_entries_is_applied_in_linear_time(with_lists: RequestHandler) -> None:
    most = MOST_VALUES // 2 - 100
    assert written(with_lists, f"{LISTS}/a?fieldManager=m", items(most), "PATCH").status == 201
    assert written(with_lists, f"{LISTS}/a?fieldManager=m", items(most - 1), "PATCH").status == 200


def test_an_object_of_too_many_values_is_not_applied(with_lists: RequestHandler) -> None:
    found = written(with_lists, f"{LISTS}/a?fieldManager=m", items(MOST_VALUES), "PATCH")
    assert (found.status, b"at most 20000 values" in found.body) == (413, True)
    assert written(with_lists, LISTS, items(MOST_VALUES)).status == 201
    assert written(with_lists, f"{LISTS}/a?fieldManager=m", items(1), "PATCH").status == 413


def test_defaults_that_make_a_small_object_huge_are_refused(handler: RequestHandler) -> None:
    """As kube-apiserver refuses it: a store takes no object of hundreds of megabytes."""
    entry = {"type": "object", "properties": {f"p{at}": {"type": "string", "default": "x" * 50} for at in range(400)}}
    schema = {"type": "object", "properties": {"spec": {"type": "array", "items": entry}}}
    assert written(handler, DEFINITIONS, definition(1, schema)).status == 201
    found = written(handler, LISTS, items(0) | {"spec": [{}] * 20_000})
    assert (found.status, b"the defaults of the definition" in found.body) == (413, True)
    assert written(handler, LISTS, items(0) | {"spec": [{}] * 100}).status == 201
