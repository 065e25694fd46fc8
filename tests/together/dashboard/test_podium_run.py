"""The dashboard of `podium run` on a real API server: on loopback for whoever reaches it, elsewhere for its users.

"Elsewhere" is 0.0.0.0: that is not loopback, so TLS and reviews apply, and this machine reaches it all the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from tests.podium.run.crowd import until
from tools.testbed import ControlPlane
from tools.testbed.connections import ConnectionPool
from tools.testbed.objects import make_namespace, make_node, make_pod
from tools.testbed.ports import LOOPBACK, free_port
from tools.testbed.processes import Component

RBAC = "rbac.authorization.k8s.io"
API = "/dashboard/api/v1/"
SECRET = "secret-pod"
ANSWERS = [
    "snapshot",
    "queue",
    "groups",
    "qos",
    "policy",
    "differences",
    "configuration",
    "timeline",
    "search?q=e",
    "nodes/a",
    "nodes/b",
    "pods/shop/web",
    "pods/shop/web/explain",
    "pods/shop/large",
    "pods/shop/large/explain",
    f"pods/bank/{SECRET}",
    f"pods/bank/{SECRET}/explain",
    f"pods/bank/{SECRET}-waits/explain",
]


@pytest.fixture
def plane(empty_control_plane: ControlPlane) -> Iterator[ControlPlane]:
    plane = empty_control_plane
    for name in ("shop", "bank"):
        if not any(each["metadata"]["name"] == name for each in plane.client.list("Namespace")):
            plane.client.create(make_namespace(name))
    plane.client.create_all([make_node("a", cpu="4"), make_node("b", cpu="4")])
    plane.client.create_all(
        [
            make_pod("web", namespace="shop", cpu="1"),
            make_pod("large", namespace="shop", cpu="99"),
            make_pod(SECRET, namespace="bank", cpu="1"),
            make_pod(f"{SECRET}-waits", namespace="bank", cpu="99"),
        ]
    )
    yield plane
    for kind, name in (("ClusterRole", "paths"), ("ClusterRoleBinding", "paths")):
        plane.kubectl("delete", kind, name, "--ignore-not-found")
    plane.kubectl("delete", "role,rolebinding", "viewer", "-n", "shop", "--ignore-not-found")


def _started(plane: ControlPlane, address: str) -> Component:
    scheduler = plane.start_podium(flags=[f"--dashboard={address}"])
    until(lambda: _tried(plane), "all pods are tried", scheduler)
    return scheduler


def _tried(plane: ControlPlane) -> bool:
    return all(each["status"].get("conditions") for each in plane.client.list("Pod"))


def _grant(plane: ControlPlane, kind: str, name: str, rule: dict[str, Any], user: str, namespace: str = "") -> None:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    plane.client.create({"apiVersion": f"{RBAC}/v1", "kind": kind, "metadata": metadata, "rules": [rule]})
    account = {"kind": "ServiceAccount", "name": user, "namespace": "shop"}
    reference = {"apiGroup": RBAC, "kind": kind, "name": name}
    binding = {"apiVersion": f"{RBAC}/v1", "kind": f"{kind}Binding", "metadata": metadata}
    plane.client.create({**binding, "subjects": [account], "roleRef": reference})


def _token(plane: ControlPlane, account: str) -> str:
    known = {each["metadata"]["name"] for each in plane.client.list("ServiceAccount", "shop")}
    if account not in known:
        plane.client.create(
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account, "namespace": "shop"}}
        )
    return plane.kubectl("create", "token", account, "-n", "shop").strip()


def _asked(pool: ConnectionPool, name: str, token: str = "") -> tuple[int, str]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    answer = pool.request("GET", f"{API}{name}", headers=headers)
    return answer.status, answer.body.decode()


def test_on_loopback_whoever_reaches_it_sees_what_the_scheduler_decides(plane: ControlPlane) -> None:
    port = free_port()
    scheduler = _started(plane, f"{LOOPBACK}:{port}")
    assert f"serving the dashboard on http://{LOOPBACK}:{port}/dashboard/" in scheduler.log_text()
    with closing(ConnectionPool(f"http://{LOOPBACK}:{port}", ca_path=None)) as pool:
        page = pool.request("GET", "/dashboard/")
        assert (page.status, b"<html" in page.body) == (200, True)
        for name in ANSWERS:
            assert _asked(pool, name)[0] == 200, name
        snapshot = json.loads(_asked(pool, "snapshot")[1])
        assert snapshot["names"] == ["a", "b"]
        assert sum(snapshot["pods"]) == 2
        queue = json.loads(_asked(pool, "queue")[1])
        assert {each["pod"] for each in queue["pods"]} == {"shop/large", f"bank/{SECRET}-waits"}
        said = json.loads(_asked(pool, "pods/shop/large/explain")[1])["explanation"]["message"]
        condition = plane.client.get("Pod", "large", "shop")["status"]["conditions"][0]
        assert condition["message"].startswith(said)
    scheduler.stop()


def test_elsewhere_it_asks_who_looks_and_shows_what_the_api_server_would(plane: ControlPlane) -> None:
    port = free_port()
    tokens = {name: _token(plane, name) for name in ("nobody", "eva", "paths")}
    _grant(plane, "Role", "viewer", {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}, "eva", "shop")
    _grant(plane, "ClusterRole", "paths", {"nonResourceURLs": ["/dashboard"], "verbs": ["get"]}, "paths")
    scheduler = _started(plane, f"0.0.0.0:{port}")
    assert "serving the dashboard on https://" in scheduler.log_text()
    with closing(ConnectionPool(f"https://{LOOPBACK}:{port}", ca_path=None)) as pool:
        assert pool.request("GET", "/dashboard/").status == 200
        for name in ANSWERS:
            assert _asked(pool, name)[0] == 401, name
            assert _asked(pool, name, "no-token-of-this-cluster")[0] in (401, 429), name
            assert _asked(pool, name, tokens["nobody"])[0] == 403, name
            assert _asked(pool, name, tokens["paths"])[0] == 200, name

        of_eva = {name: _asked(pool, name, tokens["eva"]) for name in ANSWERS}
        foreign = {name: of_eva.pop(name) for name in ANSWERS if "bank" in name}
        no_such_pod = _asked(pool, "pods/bank/no-such-pod", tokens["eva"])
        for name, (status, body) in foreign.items():
            pod = name.split("/")[2]
            assert (status, body.replace(pod, "no-such-pod")) == no_such_pod, name
        assert {status for status, _body in of_eva.values()} == {200}
        assert [name for name, (_status, body) in of_eva.items() if SECRET in body] == []
        snapshot = json.loads(of_eva["snapshot"][1])
        assert sum(snapshot["pods"]) == 2, "the pods of others are in the sums"
        queue = json.loads(of_eva["queue"][1])
        assert ([each["pod"] for each in queue["pods"]], queue["hidden"]) == (["shop/large"], 1)
    scheduler.stop()


def test_a_browser_signs_in_with_a_token_and_keeps_it_in_a_cookie(plane: ControlPlane) -> None:
    port = free_port()
    token = _token(plane, "eva")
    _grant(plane, "Role", "viewer", {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}, "eva", "shop")
    scheduler = _started(plane, f"0.0.0.0:{port}")
    with closing(ConnectionPool(f"https://{LOOPBACK}:{port}", ca_path=None)) as pool:
        typed = {"Content-Type": "application/json"}
        wrong = pool.request("POST", "/dashboard/login", b'{"token": "wrong"}', headers=typed)
        assert wrong.status == 401
        right = pool.request("POST", "/dashboard/login", json.dumps({"token": token}).encode(), headers=typed)
        assert right.status == 204
        cookie = right.headers["Set-Cookie"]
        assert {"HttpOnly", "SameSite=Strict", "Secure", "Path=/dashboard"} <= set(cookie.split("; "))
        answer = pool.request("GET", f"{API}queue", headers={"Cookie": cookie.split(";")[0]})
        assert answer.status == 200
        assert SECRET not in answer.body.decode()
    scheduler.stop()
