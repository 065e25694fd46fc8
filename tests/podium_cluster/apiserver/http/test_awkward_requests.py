"""Whatever is wrong with a request, the answer is one of the API's own: never an exception that nobody foresaw."""

import random
from typing import Any, Final

import msgspec
import pytest

from podium.framework.clock import ManualClock
from podium_cluster.apiserver.api import EmbeddedApi
from podium_cluster.apiserver.http.handler import RequestHandler
from podium_cluster.apiserver.messages import ApiRequest, ApiResponse
from tests.podium_cluster.apiserver.contract.objects import DEPLOYMENTS, NODES, PODS, binding
from tests.podium_cluster.apiserver.contract.session import APPLY, JSON_PATCH, MERGE, STRATEGIC, Object
from tests.podium_cluster.apiserver.contract.test_custom import definition, thing
from tests.podium_cluster.apiserver.contract.test_random_objects import BUDGET, BUDGETS, DEPLOYMENT, NODE, POD, changed

DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
THINGS: Final = "/apis/z.example.com/v1/namespaces/{ns}/things"
OBJECTS: Final[tuple[tuple[str, Object], ...]] = (
    (DEFINITIONS, definition("z.example.com")),
    (PODS, POD),
    (DEPLOYMENTS, DEPLOYMENT),
    (NODES, NODE),
    (BUDGETS, BUDGET),
    (THINGS, thing("z.example.com", parts=[{"name": "a", "weight": 1}])),
)
SCALE: Final = {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": {"name": "d"}, "spec": {"replicas": 3}}
EVICTION: Final = {
    "kind": "Eviction",
    "apiVersion": "policy/v1",
    "metadata": {"name": "p"},
    "deleteOptions": {"gracePeriodSeconds": 3, "preconditions": {"uid": "x"}, "dryRun": ["All"]},
}
PARTS: Final[tuple[tuple[str, str, Object], ...]] = (
    ("POST", f"{PODS}/p/binding", binding("p", "n", uid="x")),
    ("POST", "/api/v1/namespaces/{ns}/bindings", binding("p", "n", uid="x")),
    ("POST", f"{PODS}/p/eviction", EVICTION),
    ("PUT", f"{DEPLOYMENTS}/d/scale", SCALE),
    ("PUT", f"{PODS}/p/status", POD),
    ("DELETE", f"{PODS}/p", {"gracePeriodSeconds": 3, "preconditions": {"uid": "x"}, "propagationPolicy": "Orphan"}),
)


@pytest.fixture(scope="module")
def api() -> EmbeddedApi:
    made = EmbeddedApi(clock=ManualClock(1_700_000_000.0), rng=random.Random(0))
    for path, obj in OBJECTS:
        assert send(made, "POST", path, obj).status == 201
    return made


def send(
    api: EmbeddedApi, method: str, path: str, body: Any, content_type: str = "application/json", query: str = ""
) -> ApiResponse:
    data = body if isinstance(body, bytes) else msgspec.json.encode(body)
    target = path.replace("{ns}", "default") + query
    answer = RequestHandler(api).handle(ApiRequest(method, target, data, content_type, "application/json", "test"))
    assert isinstance(answer, ApiResponse)
    return answer


def check(answer: ApiResponse) -> None:
    found = msgspec.json.decode(answer.body)
    assert "Internal error occurred" not in found.get("message", ""), found["message"]
    assert answer.status < 400 or (found["kind"], found["code"]) == ("Status", answer.status)


@pytest.mark.parametrize("seed", range(0, 800, 100))
def test_objects_and_patches(api: EmbeddedApi, seed: int) -> None:
    for each in range(seed, seed + 100):
        rng = random.Random(each)
        path, obj = rng.choice(OBJECTS)
        name = obj["metadata"]["name"]
        body = changed(rng, obj)
        query = "?dryRun=All&fieldManager=m"
        check(send(api, "POST", path, body, query=query))
        check(send(api, "PUT", f"{path}/{name}", body, query=query))
        for kind in (MERGE, STRATEGIC, APPLY):
            check(send(api, "PATCH", f"{path}/{name}", body, kind, query))


def test_parts_of_objects(api: EmbeddedApi) -> None:
    for seed in range(300):
        rng = random.Random(seed)
        method, path, obj = rng.choice(PARTS)
        check(send(api, method, path, changed(rng, obj), query="?dryRun=All"))


def test_bodies_of_every_sort(api: EmbeddedApi) -> None:
    bodies = (
        b"",
        b"{",
        b"[]",
        b"[1]",
        b"null",
        b'"x"',
        b"5",
        b"\xff\xfe",
        b"{}",
        b'{"metadata": []}',
        b"a: [",
        b"\x00" * 9,
    )
    for path, obj in OBJECTS:
        name = obj["metadata"]["name"]
        for body in bodies:
            for kind in (
                "application/json",
                "application/yaml",
                "application/vnd.kubernetes.protobuf",
                "text/plain",
                "",
            ):
                check(send(api, "POST", path, body, kind))
                check(send(api, "PUT", f"{path}/{name}", body, kind))
            for kind in (MERGE, STRATEGIC, JSON_PATCH, APPLY, "application/json"):
                check(send(api, "PATCH", f"{path}/{name}", body, kind, "?dryRun=All&fieldManager=m"))


def test_json_patches_of_every_sort(api: EmbeddedApi) -> None:
    paths = (
        "",
        "/",
        "/metadata",
        "/metadata/labels/a",
        "/spec",
        "/spec/containers/0",
        "/spec/-",
        "/kind",
        "x",
        "/spec/0/x",
    )
    for seed in range(300):
        rng = random.Random(seed)
        path, obj = rng.choice(OBJECTS)
        operation: Object = {"op": rng.choice(["add", "remove", "replace", "move", "copy", "test", "x"])}
        operation |= {"path": rng.choice(paths), "from": rng.choice(paths), "value": rng.choice([1, "x", None, {}, []])}
        name = obj["metadata"]["name"]
        check(send(api, "PATCH", f"{path}/{name}", [operation], JSON_PATCH, "?dryRun=All"))
