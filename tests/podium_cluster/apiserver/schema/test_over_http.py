"""The same requests to the real API server and to the embedded one: the same answers about fields."""

import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec
import pytest

from tests.podium_cluster.apiserver.schema.custom_cases import definition, struct
from tests.podium_cluster.apiserver.server import EmbeddedServer
from tools.testbed.apiclient import ApiClient
from tools.testbed.cluster import ControlPlane
from tools.testbed.connections import ConnectionPool

SCHEMA = struct(
    spec=struct(size={"type": "integer", "minimum": 1, "default": 2}, name={"type": "string"}),
    status=struct(phase={"type": "string"}),
)
SCALE = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.replicas"}
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
THINGS = "/apis/example.com/v1/namespaces/default/things"
MAPS = "/api/v1/namespaces/default/configmaps"
JSON, YAML, MERGE = "application/json", "application/yaml", "application/merge-patch+json"

POD = '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]%s}}'
MAP = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m"%s},"data":{"a":"b"}}'
THING = '{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"t"},"spec":{%s}}'

REQUESTS = [
    ("POST", "/api/v1/namespaces/default/pods?dryRun=All&fieldValidation=Strict", JSON, POD % ',"foo":1'),
    ("POST", "/api/v1/namespaces/default/pods?dryRun=All&fieldValidation=Strict", JSON, POD % ',"nodeName":5'),
    ("POST", f"{MAPS}?fieldValidation=Bogus", JSON, MAP % ""),
    ("POST", f"{MAPS}?fieldValidation=Ignore", JSON, MAP % ',"foo":1'),
    ("PUT", f"{MAPS}/m", JSON, MAP % ',"foo":1'),
    ("PUT", f"{MAPS}/m?fieldValidation=Strict", JSON, MAP % ',"foo":1,"name":"m"'),
    ("PATCH", f"{MAPS}/m", MERGE, '{"data":{"a":"c","a":"d"}}'),
    ("PATCH", f"{MAPS}/m?fieldValidation=Warn", MERGE, '{"foo":1}'),
    ("POST", f"{MAPS}?dryRun=All", YAML, 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: "n"}\ndata: {"a": "b"}'),
    ("POST", f"{THINGS}?fieldValidation=Strict", JSON, THING % '"size":1,"foo":1,"size":2'),
    ("POST", THINGS, JSON, THING % '"size":0'),
    ("POST", THINGS, JSON, THING % '"foo":1'),
    ("POST", THINGS, JSON, THING % ""),
    ("GET", f"{THINGS}/t", JSON, ""),
    ("PATCH", f"{THINGS}/t", MERGE, '{"spec":{"size":7,"bar":1}}'),
    ("PATCH", f"{THINGS}/t/status", MERGE, '{"status":{"phase":"Ready"},"spec":{"size":9}}'),
    ("PATCH", f"{THINGS}/t/status", MERGE, '{"status":{"phase":5}}'),
    ("GET", f"{THINGS}/t/scale", JSON, ""),
    ("PATCH", f"{THINGS}/t/scale", MERGE, '{"spec":{"replicas":3}}'),
    ("PATCH", f"{THINGS}/t", "application/strategic-merge-patch+json", '{"spec":{"size":5}}'),
    ("GET", f"{THINGS}/t", JSON, ""),
    ("DELETE", f"{THINGS}/t", JSON, ""),
    ("GET", "/openapi/v3/apis/nowhere.example/v1", JSON, ""),
]


class Answer(NamedTuple):
    code: int
    body: Any
    warning: str | None


@pytest.fixture(scope="module")
def embedded() -> Iterator[EmbeddedServer]:
    with EmbeddedServer() as server:
        yield server


def answers(client: ApiClient, pool: ConnectionPool) -> list[Answer]:
    crd = definition(SCHEMA, subresources={"status": {}, "scale": SCALE})
    client.request("POST", DEFINITIONS, crd)
    while pool.request("GET", THINGS).status != 200:
        time.sleep(0.1)
    found = []
    for method, path, media, text in REQUESTS:
        answer = pool.request(method, path, text.encode() or None, {"Content-Type": media} if text else {})
        body = comparable(msgspec.json.decode(answer.body)) if answer.body.startswith(b"{") else None
        found.append(Answer(answer.status, body, answer.headers.get("Warning")))
    client.request("DELETE", f"{DEFINITIONS}/things.example.com")
    return found


def comparable(body: Any) -> Any:
    if isinstance(body, dict):
        changing = ("uid", "resourceVersion", "creationTimestamp", "managedFields")
        return {key: comparable(value) for key, value in body.items() if key not in changing}
    return [comparable(value) for value in body] if isinstance(body, list) else body


def test_both_servers_answer_alike(empty_control_plane: ControlPlane, embedded: EmbeddedServer) -> None:
    real = ConnectionPool(
        empty_control_plane.server,
        ca_path=empty_control_plane.ca_path,
        headers={"Authorization": f"Bearer {empty_control_plane.token}", "Accept": JSON},
    )
    own = ConnectionPool(embedded.server, ca_path=None, headers={"Accept": JSON})
    expected, found = answers(empty_control_plane.client, real), answers(embedded.client, own)
    real.close()
    own.close()
    for request, theirs, ours in zip(REQUESTS, expected, found, strict=True):
        assert ours == theirs, request
