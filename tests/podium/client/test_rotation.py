"""Tokens, certificates and authorities that change while requests go on, against a TLS server that tells who asked."""

import asyncio
import logging
import shutil
import ssl
import sys
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from pathlib import Path

import pytest
import yaml
from aiohttp import web

from podium.client import Access, ApiError, Client, TimedOut, Unreachable, load_access
from podium.client import access as access_module
from podium.client import exec_plugin as exec_plugin_module
from podium.client.exec_plugin import ExecCommand, ExecCredentials
from tests.podium.client.conftest import Run
from tests.podium.client.servers import serving
from tools.testbed.certificates import CertificateAuthority, KeyPair


@pytest.fixture(autouse=True)
def look_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access_module, "LOOK_EVERY", 0.0)
    for name in ("HTTPS_PROXY", "https_proxy"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def authority(tmp_path: Path) -> CertificateAuthority:
    folder = tmp_path / "pki"
    folder.mkdir()
    return CertificateAuthority(folder)


def server_context(authority: CertificateAuthority, hosts: tuple[str, ...] = ("127.0.0.1",)) -> ssl.SSLContext:
    pair = authority.issue("server", hosts=hosts)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_verify_locations(authority.certificate)
    context.load_cert_chain(pair.certificate, pair.key)
    context.verify_mode = ssl.CERT_OPTIONAL
    return context


async def who(request: web.Request) -> web.Response:
    """Answers with the user name of the certificate and the token."""
    assert request.transport is not None
    certificate = request.transport.get_extra_info("peercert") or {}
    names = [value for part in certificate.get("subject", ()) for key, value in part if key == "commonName"]
    token = request.headers.get("Authorization", "").removeprefix("Bearer ")
    return web.Response(text=" ".join([*names, token]).strip())


def secured(authority: CertificateAuthority) -> AbstractAsyncContextManager[str]:
    return serving(who, tls=server_context(authority))


def access_to(url: str, folder: Path, authority: Path, user: dict[str, object], **cluster: object) -> Access:
    content = {
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": url, "certificate-authority": str(authority), **cluster}}],
        "users": [{"name": "c", "user": user}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
    }
    (folder / "kubeconfig").write_text(yaml.safe_dump(content))
    return load_access(str(folder / "kubeconfig"))


async def both(client: Client) -> list[bytes]:
    """The answers to a read and to a write, which go different ways."""
    return list(await asyncio.gather(client.get("/"), client.post("/", {})))


def replace(pair: KeyPair, new: KeyPair) -> None:
    shutil.copy(new.certificate, pair.certificate)
    shutil.copy(new.key, pair.key)


def test_a_rotated_token_file_is_used_from_the_next_request_on(
    run: Run, tmp_path: Path, authority: CertificateAuthority
) -> None:
    token = tmp_path / "token"
    token.write_text("one\n")

    async def main() -> None:
        async with secured(authority) as url:
            access = access_to(url, tmp_path, authority.certificate, {"tokenFile": "token"})
            async with Client(access) as client:
                assert await both(client) == [b"one", b"one"]
                token.write_text("two\n")
                assert await both(client) == [b"two", b"two"]
                token.unlink()
                assert await both(client) == [b"two", b"two"]
                token.write_text("")
                assert await both(client) == [b"two", b"two"]
                token.write_text("four")
                assert await both(client) == [b"four", b"four"]

    run(main())


def test_rotated_certificates_are_used_from_the_next_request_on(
    run: Run, tmp_path: Path, authority: CertificateAuthority, caplog: pytest.LogCaptureFixture
) -> None:
    pair = authority.issue("jane")
    other = authority.issue("john")

    async def main() -> None:
        async with secured(authority) as url:
            user = {"client-certificate": str(pair.certificate), "client-key": str(pair.key)}
            async with Client(access_to(url, tmp_path, authority.certificate, dict(user))) as client:
                assert await both(client) == [b"jane", b"jane"]
                shutil.copy(other.certificate, pair.certificate)  # the key comes a moment later
                assert await both(client) == [b"jane", b"jane"]
                replace(pair, other)
                assert await both(client) == [b"john", b"john"]

    with caplog.at_level(logging.WARNING):
        run(main())
    assert [record.getMessage() for record in caplog.records] == [
        f"{tmp_path}/kubeconfig: user 'c': the key does not belong to the certificate; "
        "what was in use before stays in use"
    ]


def test_a_rotated_authority_is_believed(run: Run, tmp_path: Path, authority: CertificateAuthority) -> None:
    (tmp_path / "new").mkdir()
    later = CertificateAuthority(tmp_path / "new")
    believed = tmp_path / "ca.crt"
    shutil.copy(authority.certificate, believed)

    async def main() -> None:
        async with secured(later) as url, Client(access_to(url, tmp_path, believed, {"token": "t"})) as client:
            for ask in (client.get("/"), client.post("/", {})):
                with pytest.raises(Unreachable, match=r"certificate of .* is not accepted") as failed:
                    await ask
                assert not failed.value.sent
            shutil.copy(later.certificate, believed)
            assert await both(client) == [b"t", b"t"]

    run(main())


def test_a_stream_goes_on_while_certificates_rotate(run: Run, tmp_path: Path, authority: CertificateAuthority) -> None:
    pair = authority.issue("jane")
    rotated = asyncio.Event()

    async def handler(request: web.Request) -> web.StreamResponse:
        if request.path != "/watch":
            return await who(request)
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"before")
        await rotated.wait()
        await response.write(b"after")
        return response

    async def main() -> None:
        async with serving(handler, tls=server_context(authority)) as url:
            user: dict[str, object] = {"client-certificate": str(pair.certificate), "client-key": str(pair.key)}
            async with (
                Client(access_to(url, tmp_path, authority.certificate, user)) as client,
                client.stream("/watch") as chunks,
            ):
                assert await anext(chunks) == b"before"
                replace(pair, authority.issue("john"))
                assert await both(client) == [b"john", b"john"]
                rotated.set()
                assert await anext(chunks) == b"after"

    run(main())


def test_a_connection_in_use_while_certificates_rotate_is_not_used_again(
    run: Run, tmp_path: Path, authority: CertificateAuthority
) -> None:
    pair = authority.issue("jane")
    rotated = asyncio.Event()

    async def handler(request: web.Request) -> web.StreamResponse:
        if request.path == "/slow":
            await rotated.wait()
        return await who(request)

    async def main() -> None:
        async with serving(handler, tls=server_context(authority)) as url:
            user: dict[str, object] = {"client-certificate": str(pair.certificate), "client-key": str(pair.key)}
            async with Client(access_to(url, tmp_path, authority.certificate, user)) as client:
                slow = asyncio.ensure_future(client.post("/slow", {}))
                assert await client.post("/", {}) == b"jane"
                replace(pair, authority.issue("john"))
                assert await client.post("/", {}) == b"john"
                rotated.set()
                assert await slow == b"jane"
                assert await asyncio.gather(*(client.post("/", {}) for _ in range(3))) == [b"john"] * 3

    run(main())


def test_a_401_renews_the_credentials_once_for_all_who_got_it(
    run: Run, tmp_path: Path, authority: CertificateAuthority, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plugin prints a number that it counts up; the server takes nothing but the second."""
    monkeypatch.setattr(access_module, "LOOK_EVERY", 60.0)
    monkeypatch.setattr(exec_plugin_module, "RENEW_EVERY", 0.0)
    plugin = tmp_path / "plugin"
    plugin.write_text(
        f"#!{sys.executable} -S\nimport json\n"
        f"path = {str(tmp_path / 'runs')!r}\n"
        "open(path, 'a').write('x')\n"
        "number = len(open(path).read())\n"
        "print(json.dumps({'apiVersion': 'client.authentication.k8s.io/v1', 'kind': 'ExecCredential',"
        " 'status': {'token': f't{number}'}}))\n"
    )
    plugin.chmod(0o755)
    taken = "t2"

    async def handler(request: web.Request) -> web.Response:
        if request.headers.get("Authorization") != f"Bearer {taken}":
            return web.json_response({"reason": "Unauthorized", "message": "Unauthorized"}, status=401)
        return await who(request)

    def runs() -> int:
        return len((tmp_path / "runs").read_text())

    async def main() -> None:
        nonlocal taken
        async with serving(handler, tls=server_context(authority)) as url:
            version = "client.authentication.k8s.io/v1"
            plugin_of_user = {"command": "./plugin", "apiVersion": version, "interactiveMode": "Never"}
            access = access_to(url, tmp_path, authority.certificate, {"exec": plugin_of_user})
            async with Client(access) as client:
                answers = await asyncio.gather(*(client.post("/", {}) for _ in range(10)), client.get("/"))
                assert set(answers) == {b"t2"}
                assert runs() == 2
                taken = "never"
                with pytest.raises(ApiError, match="does not know the credentials it was given: Unauthorized") as no:
                    await client.post("/", {})
                assert no.value.unauthorized
                assert runs() == 3

    run(main())


def test_without_anything_else_to_show_a_401_is_final(
    run: Run, tmp_path: Path, authority: CertificateAuthority
) -> None:
    requests: list[str] = []

    async def handler(request: web.Request) -> web.Response:
        requests.append(request.method)
        return web.json_response({"message": "Unauthorized"}, status=401)

    async def main() -> None:
        async with serving(handler, tls=server_context(authority)) as url:
            async with Client(access_to(url, tmp_path, authority.certificate, {"token": "s3cr3t"})) as client:
                for ask in (client.get("/"), client.post("/", {}), client.stream("/").__aenter__()):
                    with pytest.raises(ApiError) as refused:
                        await ask
                    assert refused.value.unauthorized
                    assert "s3cr3t" not in str(refused.value)
            assert requests == ["GET", "POST", "GET"]

    run(main())


def test_a_plugin_whose_certificate_is_damaged_ends_requests_with_that(
    run: Run, tmp_path: Path, authority: CertificateAuthority
) -> None:
    plugin = tmp_path / "plugin"
    version = "client.authentication.k8s.io/v1"
    status = '{"clientCertificateData": "damaged", "clientKeyData": "damaged"}'
    plugin.write_text(
        f"""#!/bin/sh\necho '{{"apiVersion": "{version}", "kind": "ExecCredential", "status": {status}}}'\n"""
    )
    plugin.chmod(0o755)

    async def main() -> None:
        async with secured(authority) as url:
            plugin_of_user = {"command": str(plugin), "apiVersion": version, "interactiveMode": "Never"}
            access = access_to(url, tmp_path, authority.certificate, {"exec": plugin_of_user})
            async with Client(access) as client:
                for ask in (client.get("/"), client.post("/", {})):
                    with pytest.raises(Unreachable, match="plugin: the certificate is not PEM"):
                        await ask

    run(main())


def test_a_plugin_that_fails_ends_requests_with_its_reason_and_is_not_asked_by_each(
    run: Run, tmp_path: Path, authority: CertificateAuthority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access_module, "LOOK_EVERY", 60.0)
    plugin = tmp_path / "plugin"
    plugin.write_text(f"#!/bin/sh\necho x >> {tmp_path / 'runs'}\nexit 7\n")
    plugin.chmod(0o755)

    async def main() -> None:
        async with secured(authority) as url:
            version = "client.authentication.k8s.io/v1beta1"
            user: dict[str, object] = {"exec": {"command": str(plugin), "apiVersion": version}}
            async with Client(access_to(url, tmp_path, authority.certificate, user)) as client:
                for ask in (client.get("/"), client.post("/", {}), client.post("/", {})):
                    with pytest.raises(Unreachable, match="failed with exit code 7") as failed:
                        await ask
                    assert not failed.value.sent

    run(main())
    assert (tmp_path / "runs").read_text() == "x\n"


def test_a_plugin_that_is_slow_is_not_ended_by_the_first_request_that_gives_up(
    run: Run, tmp_path: Path, authority: CertificateAuthority
) -> None:
    plugin = tmp_path / "plugin"
    version = "client.authentication.k8s.io/v1"
    printed = f'{{"apiVersion": "{version}", "kind": "ExecCredential", "status": {{"token": "t"}}}}'
    plugin.write_text(f"#!/bin/sh\necho x >> {tmp_path / 'runs'}\nsleep 0.3\necho '{printed}'\n")
    plugin.chmod(0o755)

    async def main() -> None:
        async with secured(authority) as url:
            plugin_of_user = {"command": str(plugin), "apiVersion": version, "interactiveMode": "Never"}
            access = access_to(url, tmp_path, authority.certificate, {"exec": plugin_of_user})
            async with Client(access) as client:
                for ask in (client.get("/", timeout=0.05), client.post("/", {}, timeout=0.05)):
                    with pytest.raises(TimedOut, match="plugin has not ended yet, and the request") as failed:
                        await ask
                    assert not failed.value.sent
                assert await both(client) == [b"t", b"t"]

    run(main())
    assert (tmp_path / "runs").read_text() == "x\n"


def test_once_the_plugin_fails_what_it_gave_before_is_not_sent_any_more(
    run: Run, tmp_path: Path, authority: CertificateAuthority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access_module, "LOOK_EVERY", 60.0)
    plugin = tmp_path / "plugin"
    version = "client.authentication.k8s.io/v1"
    status = '{"token": "t", "expirationTimestamp": "2020-01-01T00:00:00Z"}'
    printed = f'{{"apiVersion": "{version}", "kind": "ExecCredential", "status": {status}}}'
    runs = tmp_path / "runs"
    plugin.write_text(f"#!/bin/sh\n[ -e {runs} ] && echo x >> {runs} && exit 1\ntouch {runs}\necho '{printed}'\n")
    plugin.chmod(0o755)

    async def main() -> None:
        async with secured(authority) as url:
            plugin_of_user = {"command": str(plugin), "apiVersion": version, "interactiveMode": "Never"}
            access = access_to(url, tmp_path, authority.certificate, {"exec": plugin_of_user})
            async with Client(access) as client:
                assert await client.post("/", {}) == b"t"
                access.due = float("-inf")  # a second later
                for ask in (client.post("/", {}), client.post("/", {}), client.get("/")):
                    with pytest.raises(Unreachable, match="failed with exit code 1"):
                        await ask

    run(main())
    assert runs.read_text() == "x\n"


def test_a_renewal_asked_for_during_a_look_is_made_after_it(run: Run, tmp_path: Path) -> None:
    plugin = tmp_path / "plugin"
    version = "client.authentication.k8s.io/v1"
    plugin.write_text(
        f"#!/bin/sh\necho x >> {tmp_path / 'runs'}\n"
        f"""echo '{{"apiVersion": "{version}", "kind": "ExecCredential", "status": {{"token": "'$$'"}}}}'\n"""
    )
    plugin.chmod(0o755)

    async def main() -> None:
        access = Access("https://api:6443", credentials=ExecCredentials(ExecCommand(str(plugin), []), origin="o"))
        await access.refresh()
        _, renewed = await asyncio.gather(access.refresh(), access.renew(access.version))
        assert renewed

    run(main())
    assert (tmp_path / "runs").read_text() == "x\nx\n"


def test_a_server_that_refuses_everything_does_not_run_the_plugin_for_every_request(
    run: Run, tmp_path: Path, authority: CertificateAuthority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exec_plugin_module, "RENEW_EVERY", 60.0)
    plugin = tmp_path / "plugin"
    version = "client.authentication.k8s.io/v1"
    printed = f'{{"apiVersion": "{version}", "kind": "ExecCredential", "status": {{"token": "t"}}}}'
    plugin.write_text(f"#!/bin/sh\necho x >> {tmp_path / 'runs'}\necho '{printed}'\n")
    plugin.chmod(0o755)

    async def refuse(_: web.Request) -> web.Response:
        return web.json_response({"message": "Unauthorized"}, status=401)

    async def main() -> None:
        async with serving(refuse, tls=server_context(authority)) as url:
            plugin_of_user = {"command": str(plugin), "apiVersion": version, "interactiveMode": "Never"}
            access = access_to(url, tmp_path, authority.certificate, {"exec": plugin_of_user})
            async with Client(access) as client:
                asking = [client.get("/") for _ in range(5)] + [client.post("/", {}) for _ in range(5)]
                for answer in await asyncio.gather(*asking, return_exceptions=True):
                    assert isinstance(answer, ApiError)
                    assert answer.unauthorized

    run(main())
    assert (tmp_path / "runs").read_text() == "x\nx\n"


@pytest.mark.parametrize(
    ("hosts", "cluster", "says"),
    [
        (("other",), {}, "is not accepted: .*127.0.0.1"),
        (("other",), {"tls-server-name": "other"}, None),
        (("other",), {"certificate-authority": "", "insecure-skip-tls-verify": True}, None),
        (("127.0.0.1",), {"tls-server-name": "other"}, "is not accepted: .*other"),
    ],
)
def test_the_server_must_have_the_name_it_is_asked_by(
    run: Run,
    tmp_path: Path,
    authority: CertificateAuthority,
    hosts: tuple[str, ...],
    cluster: dict[str, object],
    says: str | None,
) -> None:
    async def main() -> None:
        async with serving(who, tls=server_context(authority, hosts)) as url:
            access = access_to(url, tmp_path, authority.certificate, {"token": "t"}, **cluster)
            async with Client(access) as client:
                if says is None:
                    assert await both(client) == [b"t", b"t"]
                    return
                for ask in (client.get("/"), client.post("/", {})):
                    with pytest.raises(Unreachable, match=says) as failed:
                        await ask
                    assert not failed.value.sent

    run(main())


def test_a_servers_expired_certificate_is_told(run: Run, tmp_path: Path, authority: CertificateAuthority) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    pair = authority.issue("late", hosts=("127.0.0.1",), lifetime=timedelta(minutes=-1))
    context.load_cert_chain(pair.certificate, pair.key)

    async def main() -> None:
        async with (
            serving(who, tls=context) as url,
            Client(access_to(url, tmp_path, authority.certificate, {})) as client,
        ):
            for ask in (client.get("/"), client.post("/", {})):
                with pytest.raises(Unreachable, match="is not accepted: certificate has expired"):
                    await ask

    run(main())


def test_a_server_that_speaks_plain_http_is_told(run: Run, tmp_path: Path, authority: CertificateAuthority) -> None:
    async def main() -> None:
        async with serving(who) as url:
            access = access_to(url.replace("http:", "https:"), tmp_path, authority.certificate, {})
            async with Client(access) as client:
                for ask in (client.get("/"), client.post("/", {})):
                    with pytest.raises(Unreachable, match="does not speak TLS"):
                        await ask

    run(main())
