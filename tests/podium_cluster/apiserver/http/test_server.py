"""The API over HTTP: what only shows there."""

import gzip
import http.client
import json
import socket
import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from podium_cluster.apiserver.http.server import MOST_HEADERS, MOST_WARNED, warning_headers
from tests.podium_cluster.apiserver.server import EmbeddedServer
from tools.testbed.apiclient import ApiError


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedServer]:
    with EmbeddedServer() as started:
        yield started


class Answer:
    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self.headers = dict(response.getheaders())
        self.body = response.read()

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def ask(
    server: EmbeddedServer, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
) -> Answer:
    parts = urlsplit(server.server)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=30)
    try:
        connection.request(method, path, body, headers or {})
        return Answer(connection.getresponse())
    finally:
        connection.close()


def config_map(name: str, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, **fields}


JSON = {"Content-Type": "application/json"}
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.mark.parametrize(
    ("method", "path", "status", "message"),
    [
        ("GET", "/nothing", 404, "404 page not found\n"),
        ("GET", "/apis/nobody/v1", 404, "404 page not found\n"),
        ("GET", "/apis/apps/v9", 404, "the server could not find the requested resource"),
        ("GET", "/api/v1/nonsense", 404, "the server could not find the requested resource"),
        ("GET", "/api/v1/namespaces/default/nodes", 404, "the server could not find the requested resource"),
        ("PUT", CONFIG_MAPS, 405, "the server does not allow this method on the requested resource"),
        ("POST", "/api/v1/configmaps", 405, "the server does not allow this method on the requested resource"),
        ("GET", f"{CONFIG_MAPS}/none", 404, 'configmaps "none" not found'),
    ],
)
def test_paths_that_lead_nowhere(server: EmbeddedServer, method: str, path: str, status: int, message: str) -> None:
    answer = ask(server, method, path)
    told = answer.json["message"] if answer.headers["Content-Type"] == "application/json" else answer.body.decode()
    assert (answer.status, told) == (status, message)


def test_formats_that_are_not_spoken(server: EmbeddedServer) -> None:
    refused = ask(server, "POST", CONFIG_MAPS, b"a: b", {"Content-Type": "text/plain"})
    assert (refused.status, refused.json["reason"]) == (415, "UnsupportedMediaType")
    refused = ask(server, "PATCH", f"{CONFIG_MAPS}/kube", b"{}", JSON)
    assert (refused.status, refused.json["message"]) == (415, "415: Unsupported Media Type")
    refused = ask(server, "GET", CONFIG_MAPS, headers={"Accept": "text/html"})
    assert (refused.status, refused.json["reason"]) == (406, "NotAcceptable")
    accepted = ask(
        server, "GET", CONFIG_MAPS, headers={"Accept": "application/vnd.kubernetes.protobuf,application/json"}
    )
    assert accepted.status == 200


def test_yaml_is_read_too(server: EmbeddedServer) -> None:
    body = b"metadata:\n  name: from-yaml\ndata:\n  when: '2026-01-01'\n"
    made = ask(server, "POST", CONFIG_MAPS, body, {"Content-Type": "application/yaml"})
    assert (made.status, made.json["data"]) == (201, {"when": "2026-01-01"})


def test_a_body_that_is_too_large_is_refused_unread(server: EmbeddedServer) -> None:
    refused = ask(server, "POST", CONFIG_MAPS, b"x" * ((3 << 20) + 1), JSON)
    assert (refused.status, refused.json["message"]) == (413, "Request entity too large: limit is 3145728")


def test_a_large_answer_is_packed_for_those_who_ask(server: EmbeddedServer) -> None:
    server.client.create(config_map("large", data={"text": "a" * 300_000}))
    plain = ask(server, "GET", f"{CONFIG_MAPS}/large")
    packed = ask(server, "GET", f"{CONFIG_MAPS}/large", headers={"Accept-Encoding": "gzip"})
    assert packed.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed.body) == plain.body
    assert len(packed.body) < len(plain.body) / 50
    server.client.delete("ConfigMap", "large")


def test_warnings_come_as_headers(server: EmbeddedServer) -> None:
    made = ask(server, "POST", CONFIG_MAPS, b'{"metadata":{"name":"warned"},"spec":{}}', JSON)
    assert made.headers["Warning"] == '299 - "unknown field \\"spec\\""'


def test_a_list_in_chunks_is_of_one_moment(server: EmbeddedServer) -> None:
    client = server.client
    client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "chunks"}})
    for name in "abcde":
        client.create({**config_map(name), "metadata": {"name": name, "namespace": "chunks"}})
    path = "/api/v1/namespaces/chunks/configmaps"
    first = json.loads(client.request("GET", path, query={"limit": 2}))
    assert first["metadata"]["remainingItemCount"] == 3
    client.delete("ConfigMap", "c", "chunks")
    client.create({**config_map("bb"), "metadata": {"name": "bb", "namespace": "chunks"}})
    token, names = first["metadata"]["continue"], [item["metadata"]["name"] for item in first["items"]]
    while token:
        following = json.loads(client.request("GET", path, query={"limit": 2, "continue": token}))
        assert following["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
        names += [item["metadata"]["name"] for item in following["items"]]
        token = following["metadata"].get("continue", "")
    assert names == list("abcde")


def test_a_watch_streams_changes_until_its_time_is_up(server: EmbeddedServer) -> None:
    client = server.client
    version = client.list_response("ConfigMap", "default")["metadata"]["resourceVersion"]
    path = f"{CONFIG_MAPS}?watch=true&timeoutSeconds=2&resourceVersion={version}"
    answers: list[Answer] = []
    watching = threading.Thread(target=lambda: answers.append(ask(server, "GET", path)))
    watching.start()
    client.create(config_map("watched"))
    client.delete("ConfigMap", "watched")
    watching.join()
    events = [json.loads(line) for line in answers[0].body.splitlines()]
    assert [event["type"] for event in events] == ["ADDED", "DELETED"]
    assert answers[0].headers["Content-Type"] == "application/json"


def test_a_client_that_leaves_ends_its_watch(server: EmbeddedServer) -> None:
    parts = urlsplit(server.server)
    with socket.create_connection((parts.hostname or "", parts.port or 0)) as connection:
        connection.sendall(f"GET {CONFIG_MAPS}?watch=true HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        assert connection.recv(100).startswith(b"HTTP/1.1 200")
    server.client.create(config_map("after-leaving"))
    assert server.log_path.read_text() == ""


def test_questions_about_the_server_are_answered(server: EmbeddedServer) -> None:
    assert ask(server, "GET", "/readyz").body == b"ok"
    assert ask(server, "GET", "/version").json["minor"] == "37"
    groups = {group["name"] for group in ask(server, "GET", "/apis").json["groups"]}
    assert {"apps", "batch", "storage.k8s.io"} <= groups
    pods = [entry["name"] for entry in ask(server, "GET", "/api/v1").json["resources"] if "pods" in entry["name"]]
    assert pods == ["pods", "pods/binding", "pods/eviction", "pods/resize", "pods/status"]
    aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    found = ask(server, "GET", "/apis", headers={"Accept": aggregated})
    assert found.headers["Content-Type"] == aggregated
    assert found.json["items"][0]["metadata"]["name"] == "apps"


def test_everybody_may_do_everything(server: EmbeddedServer) -> None:
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    review = ask(server, "POST", path, b'{"spec":{"resourceAttributes":{"verb":"get","resource":"pods"}}}', JSON)
    assert (review.status, review.json["status"]) == (201, {"allowed": True})


def test_a_port_in_use_is_said_in_one_sentence(server: EmbeddedServer) -> None:
    port = urlsplit(server.server).port or 0
    with pytest.raises(RuntimeError, match=f"nothing can listen on 127.0.0.1:{port}: "):
        EmbeddedServer().start(port)


def test_the_scale_of_a_deployment(server: EmbeddedServer) -> None:
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
    server.client.create({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec})
    found = server.client.patch("Deployment", "web", {"spec": {"replicas": 5}}, subresource="scale")
    assert (found["kind"], found["spec"], found["status"]) == (
        "Scale",
        {"replicas": 5},
        {"replicas": 0, "selector": "app=web"},
    )
    assert server.client.get("Deployment", "web")["spec"]["replicas"] == 5
    with pytest.raises(ApiError, match="must be greater than or equal to 0"):
        server.client.patch("Deployment", "web", {"spec": {"replicas": -1}}, subresource="scale")


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "rebound.example:8001"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
    ],
)
@pytest.mark.parametrize(("method", "path"), [("GET", "/api/v1/secrets"), ("POST", CONFIG_MAPS), ("GET", "/version")])
def test_web_pages_are_refused(server: EmbeddedServer, method: str, path: str, headers: dict[str, str]) -> None:
    body = json.dumps(config_map("from-a-page")).encode() if method == "POST" else None
    refused = ask(server, method, path, body, {**JSON, **headers})
    assert (refused.status, refused.json["reason"]) == (403, "Forbidden")
    assert ask(server, "GET", f"{CONFIG_MAPS}/from-a-page").status == 404


@pytest.mark.parametrize("headers", [{}, {"Content-Type": ""}, {"Content-Type": "application/x-www-form-urlencoded"}])
@pytest.mark.parametrize(("method", "path"), [("POST", CONFIG_MAPS), ("DELETE", f"{CONFIG_MAPS}/untyped")])
def test_a_body_must_say_what_it_is(server: EmbeddedServer, method: str, path: str, headers: dict[str, str]) -> None:
    server.client.create(config_map("untyped"))
    refused = ask(server, method, path, b"{}", headers)
    assert (refused.status, refused.json["reason"]) == (415, "UnsupportedMediaType")
    assert ask(server, "DELETE", f"{CONFIG_MAPS}/untyped").status == 200, "without a body there is nothing to say"


def test_a_packed_body_is_taken_as_it_comes(server: EmbeddedServer) -> None:
    for body in (gzip.compress(b"{}"), b"\x1f\x8bnonsense", b"nonsense"):
        refused = ask(server, "POST", CONFIG_MAPS, body, {**JSON, "Content-Encoding": "gzip"})
        assert (refused.status, refused.json["reason"]) == (400, "BadRequest")


def test_very_many_warnings_are_no_more_headers_than_clients_read(server: EmbeddedServer) -> None:
    unknown = {f"f{number}": 1 for number in range(1000)}
    made = ask(server, "POST", CONFIG_MAPS, json.dumps(config_map("warned-often", **unknown)).encode(), JSON)
    assert made.status == 201


def test_a_few_warnings_are_sent_as_they_are() -> None:
    assert warning_headers(['unknown field "a"', "b", "b", ""]) == ['299 - "unknown field \\"a\\""', '299 - "b"']


def test_control_characters_never_reach_a_header() -> None:
    assert warning_headers(["a\r\nSet-Cookie: x\x1b[31m"]) == ['299 - "a  Set-Cookie: x [31m"']


def test_many_warnings_fit_into_the_headers_that_clients_read() -> None:
    sent = warning_headers(f"unknown field {number}" for number in range(100))
    assert len(sent) == MOST_HEADERS
    assert ", ".join(sent).count("299 - ") == 100


def test_long_warnings_are_cut_and_the_last_ones_dropped() -> None:
    sent = warning_headers(f"{number} {'x' * 5000}" for number in range(100))
    assert len(sent) == MOST_WARNED // 256
    assert all(len(value) < 300 for value in sent)
