"""Requests through a proxy that tunnels, as proxy-url and $HTTPS_PROXY ask for."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from aiohttp import web

from podium.client import Access, Client, Unreachable
from podium.client import client as repetition
from podium.client.access import Route, Trust
from tests.podium.client.conftest import Run
from tests.podium.client.servers import Talk, serving, talking
from tools.testbed.certificates import CertificateAuthority


def tunnelling(connects: list[str], *, refuse: bool = False) -> Talk:
    """A proxy that notes whereto it was asked to connect, and does so."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        connects.append(head)
        if refuse:
            writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
            await writer.drain()
            return
        host, _, port = head.split()[1].rpartition(":")
        to_reader, to_writer = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        try:
            await asyncio.gather(_copy(reader, to_writer), _copy(to_reader, writer))
        finally:
            to_writer.transport.abort()

    return talk


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(65536):
            writer.write(data)
        writer.close()


def stop() -> None:
    raise RuntimeError("not the leader")


async def echo(request: web.Request) -> web.StreamResponse:
    return web.Response(text=f"{request.method} {request.headers.get('Authorization')} {await request.text()}")


@asynccontextmanager
async def secured(folder: Path) -> AsyncIterator[tuple[str, Trust]]:
    authority = CertificateAuthority(folder)
    pair = authority.issue("server", hosts=("127.0.0.1",))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)
    async with serving(echo, tls=context) as url:
        yield url, Trust(content=authority.certificate.read_bytes())


def test_reads_writes_and_watches_all_go_through_it(run: Run, tmp_path: Path) -> None:
    connects: list[str] = []

    async def main() -> None:
        async with secured(tmp_path) as (url, trust), talking(tunnelling(connects)) as proxy:
            with_password = proxy.replace("http://", "http://jane:pw@")
            async with Client(Access(url, trust=trust, token="t", route=Route(proxy=with_password))) as client:
                assert await client.get("/a") == b"GET Bearer t "
                assert await client.post("/a", {}) == b"POST Bearer t {}"
                client.guard = stop
                with pytest.raises(RuntimeError, match="not the leader"):
                    await client.post("/a", {})
                async with client.stream("/a") as chunks:
                    assert await anext(chunks) == b"GET Bearer t "
            assert {head.split()[0] for head in connects} == {"CONNECT"}
            assert {head.split()[1] for head in connects} == {url.removeprefix("https://")}
            assert all("Proxy-Authorization: Basic amFuZTpwdw==" in head for head in connects)
            assert all("Bearer" not in head for head in connects)

    run(main())


def test_a_proxy_that_refuses_is_told_and_nothing_was_sent(run: Run, tmp_path: Path) -> None:
    async def main() -> None:
        async with (
            secured(tmp_path) as (url, trust),
            talking(tunnelling([], refuse=True)) as proxy,
            Client(Access(url, trust=trust, route=Route(proxy=proxy))) as client,
        ):
            for ask in (client.get("/a"), client.delete("/a")):
                with pytest.raises(Unreachable, match=r"the proxy does not connect to .*: it answered 403") as failed:
                    await ask
                assert not failed.value.sent

    run(main())


def test_a_proxy_that_is_gone_is_told_and_nothing_was_sent(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repetition, "FIRST_BACKOFF", 0.001)

    async def main() -> None:
        async with talking(tunnelling([])) as proxy:
            pass
        async with (
            secured(tmp_path) as (url, trust),
            Client(Access(url, trust=trust, route=Route(proxy=proxy))) as client,
        ):
            for ask in (client.get("/a"), client.delete("/a")):
                with pytest.raises(Unreachable, match=r"the proxy on the way to .* cannot be reached") as failed:
                    await ask
                assert not failed.value.sent

    run(main())
