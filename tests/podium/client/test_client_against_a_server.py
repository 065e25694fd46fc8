"""Requests against a real API server: verbs, watches, every kind of credentials, and what it says to wrong ones."""

import asyncio
import json
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
import uvloop
import yaml

from podium.client import (
    APPLY_PATCH,
    JSON_PATCH,
    STRATEGIC_MERGE_PATCH,
    ApiError,
    Client,
    load_access,
    missing_rule,
)
from podium.client import access as access_module
from tools.testbed import ControlPlane
from tools.testbed.objects import make_node, make_pod


def kubeconfig(plane: ControlPlane, path: Path, user: dict[str, Any]) -> str:
    """A kubeconfig for that server with `user` as the user's fields."""
    content = yaml.safe_load(plane.kubeconfig_path.read_text())
    content["users"][0]["user"] = user
    path.write_text(yaml.safe_dump(content))
    return str(path)


def whoami(answer: bytes) -> tuple[str, list[str]]:
    info = msgspec.json.decode(answer)["status"]["userInfo"]
    return info.get("username", ""), info.get("groups", [])


async def ask_who(client: Client) -> tuple[str, list[str]]:
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    return whoami(await client.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", review))


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_objects_are_created_read_changed_and_deleted(empty_control_plane: ControlPlane, new_loop: Any) -> None:
    async def main() -> None:
        async with Client(load_access(str(empty_control_plane.kubeconfig_path))) as client:
            created = msgspec.json.decode(await client.post("/api/v1/nodes", make_node("n")))
            assert created["metadata"]["name"] == "n"
            await client.patch("/api/v1/nodes/n", {"metadata": {"labels": {"a": "b"}}})
            await client.patch("/api/v1/nodes/n", {"metadata": {"labels": {"c": "d"}}}, STRATEGIC_MERGE_PATCH)
            await client.patch("/api/v1/nodes/n", [{"op": "remove", "path": "/metadata/labels/a"}], JSON_PATCH)
            applied = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "annotations": {"e": "f"}}}
            await client.patch("/api/v1/nodes/n", applied, APPLY_PATCH, {"fieldManager": "test"})
            node = msgspec.json.decode(await client.get("/api/v1/nodes/n"))
            assert node["metadata"]["labels"] == {"c": "d"}
            assert node["metadata"]["annotations"] == {"e": "f"}
            node["metadata"]["labels"] = {"a": "c"}
            await client.put("/api/v1/nodes/n", node)
            found = msgspec.json.decode(await client.get("/api/v1/nodes", {"labelSelector": "a in (c)"}))
            assert [item["metadata"]["name"] for item in found["items"]] == ["n"]
            with pytest.raises(ApiError) as refused:
                await client.put("/api/v1/nodes/n", node)
            assert refused.value.conflict
            with pytest.raises(ApiError) as refused:
                await client.delete("/api/v1/nodes/n", {"preconditions": {"uid": "another"}})
            assert refused.value.conflict
            await client.delete("/api/v1/nodes/n")
            with pytest.raises(ApiError, match='nodes "n" not found') as refused:
                await client.get("/api/v1/nodes/n")
            assert refused.value.not_found
            assert refused.value.details["kind"] == "nodes"
            with pytest.raises(ApiError) as refused:
                await client.post("/api/v1/nodes", {"metadata": {"name": "N!"}})
            assert refused.value.invalid

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(main())


def test_pods_are_bound(empty_control_plane: ControlPlane) -> None:
    async def main() -> None:
        async with Client(load_access(str(empty_control_plane.kubeconfig_path))) as client:
            await client.post("/api/v1/nodes", make_node("n"))
            for number in range(5):
                await client.post("/api/v1/namespaces/default/pods", make_pod(f"p{number}"))
            target = {"apiVersion": "v1", "kind": "Node", "name": "n"}
            await asyncio.gather(
                *(
                    client.post(
                        f"/api/v1/namespaces/default/pods/p{number}/binding",
                        {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": f"p{number}"}, "target": target},
                    )
                    for number in range(5)
                )
            )
            pods = msgspec.json.decode(await client.get("/api/v1/pods", {"fieldSelector": "spec.nodeName=n"}))
            assert len(pods["items"]) == 5

    asyncio.run(main())


def test_large_answers_come_whole_compressed_and_not(empty_control_plane: ControlPlane, tmp_path: Path) -> None:
    """Past 128 KiB the server compresses lists for those who ask for it; answers to writes come in chunks."""

    async def main() -> None:
        where = "/api/v1/namespaces/default/configmaps"
        access = load_access(str(empty_control_plane.kubeconfig_path))
        async with Client(access) as client:
            filling = {"data": {"k": "0123456789abcdef" * 20_000}}
            for name in ("a", "b"):
                answer = await client.post(where, {"metadata": {"name": name}, **filling})
                assert msgspec.json.decode(answer)["data"] == filling["data"]
            compressed = await client.get(where)
        access.route = access.route._replace(compression=False)
        async with Client(access) as client:
            plain = await client.get(where)
            for name in ("a", "b"):
                await client.delete(f"{where}/{name}")
        assert plain == compressed
        assert len(plain) > 600_000

    asyncio.run(main())


def test_a_watch_yields_bytes_as_they_come_and_its_end(empty_control_plane: ControlPlane) -> None:
    async def main() -> None:
        async with Client(load_access(str(empty_control_plane.kubeconfig_path))) as client:
            async with client.stream("/api/v1/nodes", {"watch": "true", "timeoutSeconds": "1"}) as chunks:
                await client.post("/api/v1/nodes", make_node("n"))
                events = b"".join([chunk async for chunk in chunks]).splitlines()
            assert msgspec.json.decode(events[0])["type"] == "ADDED"
            with pytest.raises(ApiError):
                async with client.stream("/api/v1/nodes", {"watch": "true", "resourceVersion": "wrong"}):
                    pass

    asyncio.run(main())


def test_a_certificate_says_who_asks_and_in_which_groups(empty_control_plane: ControlPlane) -> None:
    plane = empty_control_plane
    pair = plane.authority.issue("jane", organizations=("dev",))
    path = plane.write_kubeconfig(plane.folder / "jane.kubeconfig", certificate=pair)

    async def main() -> None:
        async with Client(load_access(str(path))) as client:
            assert await ask_who(client) == ("jane", ["dev", "system:authenticated"])

    asyncio.run(main())


def test_impersonation_is_another_user_to_the_server(empty_control_plane: ControlPlane, tmp_path: Path) -> None:
    plane = empty_control_plane
    user = {"token": plane.token, "as": "john", "as-groups": ["ops"], "as-user-extra": {"acme.com/x": ["why"]}}

    async def main() -> None:
        async with Client(load_access(kubeconfig(plane, tmp_path / "c", user))) as client:
            assert await ask_who(client) == ("john", ["ops", "system:authenticated"])

    asyncio.run(main())


def test_a_refusal_names_the_rule_to_add(empty_control_plane: ControlPlane) -> None:
    plane = empty_control_plane
    path = plane.write_kubeconfig(plane.folder / "poor.kubeconfig", certificate=plane.authority.issue("poor"))
    asked = {
        'apiGroups: [""], resources: ["pods/binding"], verbs: ["create"]': (
            "POST",
            "/api/v1/namespaces/default/pods/p/binding",
        ),
        'apiGroups: [""], resources: ["nodes"], verbs: ["list"]': ("GET", "/api/v1/nodes"),
        'apiGroups: [""], resources: ["nodes"], verbs: ["watch"]': ("WATCH", "/api/v1/nodes"),
        'apiGroups: ["coordination.k8s.io"], resources: ["leases"], verbs: ["get"]': (
            "GET",
            "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/podium",
        ),
        'apiGroups: [""], resources: ["pods/status"], verbs: ["patch"]': (
            "PATCH",
            "/api/v1/namespaces/default/pods/p/status",
        ),
        'nonResourceURLs: ["/metrics"], verbs: ["get"]': ("GET", "/metrics"),
    }

    async def main() -> None:
        async with Client(load_access(str(path))) as client:
            for rule, (verb, where) in asked.items():
                with pytest.raises(ApiError) as refused:
                    match verb:
                        case "POST":
                            await client.post(where, {"kind": "Binding", "apiVersion": "v1"})
                        case "PATCH":
                            await client.patch(where, {})
                        case "WATCH":
                            async with client.stream(where, {"watch": "1"}):
                                pass
                        case _:
                            await client.get(where)
                assert refused.value.forbidden
                assert missing_rule(refused.value) == rule

    asyncio.run(main())


def test_a_token_nobody_knows_is_told_without_showing_it(empty_control_plane: ControlPlane, tmp_path: Path) -> None:
    async def main() -> None:
        access = load_access(kubeconfig(empty_control_plane, tmp_path / "c", {"token": "s3cr3t"}))
        async with Client(access) as client:
            for ask in (client.get("/api/v1/nodes"), client.post("/api/v1/nodes", {})):
                with pytest.raises(ApiError, match="does not know the credentials it was given") as refused:
                    await ask
                assert refused.value.unauthorized
                assert "s3cr3t" not in str(refused.value)

    asyncio.run(main())


def test_an_expired_certificate_is_told_with_its_file_and_date(empty_control_plane: ControlPlane) -> None:
    plane = empty_control_plane
    pair = plane.authority.issue("late", lifetime=timedelta(minutes=-1))
    path = plane.write_kubeconfig(plane.folder / "late.kubeconfig", certificate=pair)

    async def main() -> None:
        async with Client(load_access(str(path))) as client:
            for ask in (client.get("/api/v1/nodes"), client.post("/api/v1/nodes", {})):
                with pytest.raises(
                    ApiError, match=r"late\.kubeconfig: user 'testbed': .* expired on \d{4}-"
                ) as refused:
                    await ask
                assert refused.value.unauthorized

    asyncio.run(main())


def test_a_token_file_is_followed_and_a_401_looks_at_once(empty_control_plane: ControlPlane, tmp_path: Path) -> None:
    """The client looks at most once a second, but when the server refuses it looks there and then."""
    plane = empty_control_plane
    token = tmp_path / "token"
    token.write_text("wrong")

    async def main() -> None:
        async with Client(load_access(kubeconfig(plane, tmp_path / "c", {"tokenFile": "token"}))) as client:
            client.access.due = float("inf")
            with pytest.raises(ApiError) as refused:
                await client.get("/api/v1/nodes")
            assert refused.value.unauthorized
            token.write_text(plane.token)
            assert (await ask_who(client))[0] == "admin"

    asyncio.run(main())


def test_an_exec_plugin_logs_in(
    empty_control_plane: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It gives a certificate first and a token when asked again: both change who asks without a new client."""
    monkeypatch.setattr(access_module, "LOOK_EVERY", 0.0)
    plane = empty_control_plane
    pair = plane.authority.issue("jane")
    as_jane = {"clientCertificateData": pair.certificate.read_text(), "clientKeyData": pair.key.read_text()}
    answers = [{**as_jane, "expirationTimestamp": "2020-01-01T00:00:00Z"}, {"token": plane.token}]
    plugin = tmp_path / "plugin"
    plugin.write_text(
        f"#!{sys.executable} -S\nimport json, os, sys\n"
        f"answers = json.loads({json.dumps(answers)!r})\n"
        f"cluster = json.loads(os.environ['KUBERNETES_EXEC_INFO'])['spec']['cluster']\n"
        f"assert cluster['server'] == {plane.server!r} and cluster['certificate-authority-data']\n"
        f"count = {str(tmp_path / 'count')!r}\n"
        "open(count, 'a').write('x')\n"
        "answer = answers[min(len(open(count).read()), 2) - 1]\n"
        "print(json.dumps({'apiVersion': sys.argv[1], 'kind': 'ExecCredential', 'status': answer}))\n"
    )
    plugin.chmod(0o755)
    version = "client.authentication.k8s.io/v1beta1"
    user = {"exec": {"command": "./plugin", "args": [version], "apiVersion": version, "provideClusterInfo": True}}

    async def main() -> None:
        async with Client(load_access(kubeconfig(plane, tmp_path / "c", user))) as client:
            assert (await ask_who(client))[0] == "jane"
            assert (await ask_who(client))[0] == "admin"

    asyncio.run(main())


def test_a_service_account_in_a_pod_asks_as_itself(
    empty_control_plane: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plane = empty_control_plane
    for name in ("KUBECONFIG", "POD_NAMESPACE", "HTTPS_PROXY", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", plane.server.rpartition(":")[2])

    async def main() -> None:
        async with Client(load_access(str(plane.kubeconfig_path))) as admin:
            accounts = "/api/v1/namespaces/default/serviceaccounts"
            await admin.post(accounts, {"metadata": {"name": "podium"}})
            request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
            answer = msgspec.json.decode(await admin.post(f"{accounts}/podium/token", request))
        (tmp_path / "token").write_text(answer["status"]["token"])
        (tmp_path / "ca.crt").write_bytes(plane.ca_path.read_bytes())
        (tmp_path / "namespace").write_text("default")
        async with Client(load_access(service_account=tmp_path)) as client:
            assert (await ask_who(client))[0] == "system:serviceaccount:default:podium"
            assert client.access.namespace == "default"
        async with Client(load_access(str(plane.kubeconfig_path))) as admin:
            await admin.delete(f"{accounts}/podium")

    asyncio.run(main())
