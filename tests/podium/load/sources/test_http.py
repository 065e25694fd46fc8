"""How a measuring server is asked: credentials, TLS, limits, and a sentence for each way in which it fails."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from podium.config.durations import Duration
from podium.load.settings import BasicAuth, Header, SourceSettings, Tls
from podium.load.sources.http import LoadServer
from podium.load.sources.sample import SourceError
from tests.podium.load.sources.stand_in import StandIn, stand_in
from tools.testbed.certificates import CertificateAuthority


async def asked(server: StandIn, **settings: Any) -> tuple[int, bytes]:
    asking = LoadServer(SourceSettings(address=server.url, **settings))
    try:
        return await asking.ask("GET", "/x")
    finally:
        await asking.close()


async def refused(server: StandIn, **settings: Any) -> str:
    with pytest.raises(SourceError) as caught:
        await asked(server, **settings)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_token_is_sent_as_bearer_from_the_settings_or_from_a_file_that_may_change(tmp_path: Path) -> None:
    async def main() -> None:
        async with stand_in() as server:
            await asked(server, token="abc")
            assert server.authorization == "Bearer abc"
            file = tmp_path / "token"
            asking = LoadServer(SourceSettings(address=server.url, token_file=str(file)))
            for token in ("first", "second"):
                file.write_text(f"{token}\n")
                await asking.ask("GET", "/x")
                assert server.authorization == f"Bearer {token}"
            await asking.close()

    asyncio.run(main())


def test_basic_auth_takes_its_password_from_the_settings_or_from_a_file(tmp_path: Path) -> None:
    async def main() -> None:
        async with stand_in() as server:
            await asked(server, basic_auth=BasicAuth("me", "pä:ss"))
            assert server.authorization == "Basic bWU6cMOkOnNz"
            (tmp_path / "password").write_text("word")
            await asked(server, basic_auth=BasicAuth("me", password_file=str(tmp_path / "password")))
            assert server.authorization == "Basic bWU6d29yZA=="

    asyncio.run(main())


def test_headers_of_ones_own_are_sent() -> None:
    async def main() -> None:
        async with stand_in() as server:
            await asked(server, headers=(Header("X-Scope-OrgID", "team"), Header("user-agent", "mine")))
            assert server.requests[0].headers["X-Scope-OrgID"] == "team"
            assert server.requests[0].headers.getall("User-Agent") == ["mine"]

    asyncio.run(main())


@pytest.mark.parametrize("field", ["token_file", "password_file"])
def test_a_secret_that_cannot_be_read_is_told_by_its_file(field: str, tmp_path: Path) -> None:
    async def main() -> None:
        file = tmp_path / "missing"
        settings: dict[str, Any] = {"token_file": str(file)}
        if field == "password_file":
            settings = {"basic_auth": BasicAuth("me", password_file=str(file))}
        async with stand_in() as server:
            assert f"{file}, named in the settings of" in await refused(server, **settings)
            file.write_text("one\ntwo")
            assert "more than one line" in await refused(server, **settings)
            assert server.requests == []

    asyncio.run(main())


def server_tls(authority: CertificateAuthority, *, clients: bool = False, host: str = "127.0.0.1") -> ssl.SSLContext:
    pair = authority.issue("server", hosts=[host])
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=authority.certificate)
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # a server in Go takes clients without key identifiers
    context.load_cert_chain(*pair)
    context.verify_mode = ssl.CERT_REQUIRED if clients else ssl.CERT_NONE
    return context


def test_the_servers_certificate_is_verified_unless_told_otherwise(tmp_path: Path) -> None:
    async def main() -> None:
        authority = CertificateAuthority(tmp_path)
        async with stand_in(server_tls(authority)) as server:
            assert "is not accepted" in await refused(server)
            assert (await asked(server, tls=Tls(ca_file=str(authority.certificate))))[0] == 200
            assert (await asked(server, tls=Tls(insecure_skip_verify=True)))[0] == 200

    asyncio.run(main())


def test_the_name_that_a_certificate_must_have_can_be_said(tmp_path: Path) -> None:
    async def main() -> None:
        authority = CertificateAuthority(tmp_path)
        ca = str(authority.certificate)
        async with stand_in(server_tls(authority, host="prometheus.example")) as server:
            assert "is not accepted" in await refused(server, tls=Tls(ca_file=ca))
            assert (await asked(server, tls=Tls(ca_file=ca, server_name="prometheus.example")))[0] == 200

    asyncio.run(main())


def test_a_client_certificate_is_shown_and_taken_anew_when_its_file_changes(tmp_path: Path) -> None:
    async def main() -> None:
        authority = CertificateAuthority(tmp_path)
        other = tmp_path / "other"
        other.mkdir()
        wrong = CertificateAuthority(other).issue("me")
        pair = authority.issue("me")
        async with stand_in(server_tls(authority, clients=True)) as server:
            ca = str(authority.certificate)
            await refused(server, tls=Tls(ca_file=ca))
            settings = Tls(ca_file=ca, cert_file=str(tmp_path / "c"), key_file=str(tmp_path / "k"))
            asking = LoadServer(SourceSettings(address=server.url, tls=settings))
            for certificate, key, works in ((*wrong, False), (*pair, True)):
                (tmp_path / "c").write_bytes(certificate.read_bytes())
                (tmp_path / "k").write_bytes(key.read_bytes())
                if works:
                    assert (await asking.ask("GET", "/x"))[0] == 200
                else:
                    with pytest.raises(SourceError):
                        await asking.ask("GET", "/x")
            await asking.close()
            unusable = Tls(ca_file=ca, cert_file=str(pair.key), key_file=str(pair.key))
            assert "cannot be used" in await refused(server, tls=unusable)

    asyncio.run(main())


def test_an_answer_larger_than_allowed_is_not_read() -> None:
    async def main() -> None:
        async with stand_in() as server:
            server.says("x" * 1000)
            assert (await asked(server, max_response_bytes=1000))[1] == b"x" * 1000
            assert "more than 999 bytes" in await refused(server, max_response_bytes=999)
            server.says("[" + "1," * 2000)
            assert "more than 1000 values" in await refused(server, max_response_bytes=16000)

    asyncio.run(main())


def test_a_compressed_answer_that_was_not_asked_for_is_refused() -> None:
    async def main() -> None:
        async with stand_in() as server:

            async def reply(request: web.Request) -> web.StreamResponse:
                assert request.headers["Accept-Encoding"] == "identity"
                response = web.Response(body=b"\x1f\x8b")
                response.headers["Content-Encoding"] = "gzip"
                return response

            server.reply = reply
            assert "compressed (gzip)" in await refused(server)

    asyncio.run(main())


def test_a_redirect_is_not_followed_as_it_would_carry_the_token_elsewhere() -> None:
    async def main() -> None:
        async with stand_in() as server, stand_in() as elsewhere:

            async def reply(_request: web.Request) -> web.StreamResponse:
                raise web.HTTPFound(elsewhere.url)

            server.reply = reply
            assert f"redirects to {elsewhere.url}" in await refused(server, token="t")
            assert elsewhere.requests == []

    asyncio.run(main())


def test_a_server_that_is_silent_slow_or_breaks_off_is_told_apart() -> None:
    async def main() -> None:
        short = Duration.parse("50ms")
        async with stand_in() as server:

            async def silent(_request: web.Request) -> web.StreamResponse:
                await asyncio.sleep(1)
                return web.Response()

            async def drips(request: web.Request) -> web.StreamResponse:
                response = web.StreamResponse()
                await response.prepare(request)
                for _ in range(100):
                    await response.write(b"{")
                    await asyncio.sleep(0.01)
                return response

            async def breaks(request: web.Request) -> web.StreamResponse:
                response = web.StreamResponse(headers={"Content-Length": "100"})
                await response.prepare(request)
                await response.write(b"{")
                assert request.transport is not None
                request.transport.abort()
                return response

            for reply in (silent, drips):
                server.reply = reply
                assert "did not answer within 50ms" in await refused(server, timeout=short)
            server.reply = breaks
            assert "closed the connection before the whole answer came" in await refused(server)
        assert "refuses connections" in await refused(server)
        server.url = "http://no-such-host.invalid"
        assert "is not known" in await refused(server)

    asyncio.run(main())
