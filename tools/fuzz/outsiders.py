"""What comes from servers, files and names of others, with what must hold of it besides that nothing fails.

An answer is never longer than its limit once it is unpacked, a damaged database gives no row that nobody wrote, and a
name or a message stays on its line, however it is logged or shown.
"""

from __future__ import annotations

import asyncio
import gzip
import logging
import random
import re
import tempfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from unittest import mock

from podium.client import client as client_module
from podium.client.api_errors import ClientError, refusal
from podium.client.wire import MAX_HEAD, MalformedResponseError, WireConnection
from podium.framework.clock import ManualClock
from podium.kube.printable import LONGEST, printable
from podium.serving.log import LONGEST_TRACE, _Json, _Text
from podium_cluster.apiserver.api import EmbeddedApi
from podium_cluster.apiserver.kinds import built_in
from podium_cluster.apiserver.store.database import Database, Row
from podium_lab.learned.policy_file import decoded, path_of
from podium_lab.learning.onnx_export import onnx_bytes
from podium_plugins.qos.ledger import QosLedger
from podium_plugins.qos.page import _html, controller_rows, controllers_text, slot_rows, slots_text
from tests.podium.client.asking import new_client
from tools.kit.builders import make_pod

LOOPBACK = "127.0.0.1"
MOST = 1 << 18
"""Bytes of an answer, here; a bomb below has 16 times as many."""
CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e]")
WIRE = (
    b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: 11\r\n\r\nhello world",
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"5\r\nhello\r\n6;a=b\r\n world\r\n0\r\n\r\n",
)
NAMES = (b"web", b"web\x1b[2J\r\n  forged 1.000", "shop\u202e/\u2028web".encode(), b"a" * 300)
MESSAGES = (b"nodes is forbidden: token abc", b"x\x1b[31m\nERROR forged", b"m" * 100_000)
STATUSES = (b'{"kind":"Status","reason":"r","message":"' + b"m" * 2_000_000 + b'"}', b"<html>" + b"x" * 100_000)


def packed_answer(data: bytes) -> None:
    """As an answer in every encoding, whole or repeated until it is a bomb."""
    packs: tuple[tuple[Callable[[bytes], bytes], str], ...] = (
        (lambda content: gzip.compress(content, 1), "gzip"),
        (lambda content: zlib.compress(content, 1), "deflate"),
        (bytes, "gzip"),
    )
    for pack, encoding in packs:
        content = data if len(data) % 2 else data * (1 + 16 * MOST // max(1, len(data)))
        asyncio.run(_answered(pack(content), encoding))


async def _answered(body: bytes, encoding: str) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            head = f"HTTP/1.1 200 OK\r\nContent-Encoding: {encoding}\r\nContent-Length: {len(body)}\r\n\r\n"
            writer.write(head.encode() + body)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, LOOPBACK, 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        with mock.patch.object(client_module, "MAX_LIST", MOST):
            async with new_client(f"http://{LOOPBACK}:{port}") as client:
                with suppress(ClientError):
                    assert len(await client.get("/api/v1/nodes")) <= MOST


def wire_answer(data: bytes) -> None:
    """In pieces of one byte and of many, as far as `MOST` bytes."""
    asyncio.run(_fed(data, 1 + len(data) % 3))
    asyncio.run(_fed(data, max(1, len(data) // 7)))


class _NoTransport(asyncio.Transport):
    def write(self, data: bytes | bytearray | memoryview) -> None:
        pass

    def abort(self) -> None:
        pass


async def _fed(data: bytes, step: int) -> None:
    connection = WireConnection(asyncio.get_running_loop(), MOST)
    connection.connection_made(_NoTransport())
    waiting = connection.send(b"request", 1e9)
    for at in range(0, min(len(data), MOST + MAX_HEAD + step), step):
        connection.data_received(data[at : at + step])
        if waiting.done():
            break
    connection.connection_lost(None)
    with suppress(MalformedResponseError, OSError):
        assert len((await waiting).body) <= MOST


@cache
def stored() -> tuple[bytes, frozenset[Row]]:
    """A database file, and what is in it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data"
        database = Database(path)
        api = EmbeddedApi(clock=ManualClock(1_700_000_000.0), rng=random.Random(1), database=database)
        for number in range(20):
            api.create(built_in("v1", "ConfigMap"), {"metadata": {"name": f"c{number}"}, "data": {"k": "v" * 900}})
        rows = frozenset(database.rows())
        database.close()
        return path.read_bytes(), rows


def database(data: bytes) -> None:
    """With whole pages overwritten by parts of it, too."""
    whole, rows = stored()
    page = 4096 * (len(data) % (len(whole) // 4096))
    for content in (data, whole[:page] + data[:4096].ljust(4096, b"\0") + whole[page + 4096 :]):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "data"
            path.write_bytes(content)
            try:
                opened = Database(path)
            except Exception as error:
                assert "\n" not in str(error)
                if content is data:
                    raise
                continue
            found = frozenset(opened.rows())
            opened.close()
            assert found <= rows, "a row that nobody wrote"


def log_line(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    try:
        raise ValueError(text)
    except ValueError as error:
        traced = logging.LogRecord("podium", logging.ERROR, "", 0, "%s", (text,), (ValueError, error, None))
    plain = logging.LogRecord("podium", logging.INFO, "", 0, "%s", (text,), None)
    for form in (_Text("%(message)s"), _Json()):
        line = form.format(plain)
        assert "\n" not in line
        assert not CONTROL.search(line)
        assert len(line) < 7 * LONGEST
        assert len(form.format(traced)) < 7 * (LONGEST + LONGEST_TRACE)


def name_on_pages(data: bytes) -> None:
    name = data.decode("utf-8", "replace")
    ledger = QosLedger()
    ledger.observe(None, make_pod("a", metadata={"annotations": {"controller": name, "slo": "0.5"}}), 0.0)
    controllers, slots = controller_rows(ledger, 9.0), slot_rows(ledger, 9.0)
    for text, rows in ((controllers_text(controllers), controllers), (slots_text(slots), slots)):
        assert not CONTROL.search(text)
        assert len(text.splitlines()) == len(controllers_text([]).splitlines()) + len(rows)
    for page in (_html(controllers, by_slot=False), _html(slots, by_slot=True)):
        assert page.count("<tr") == 2
        assert not CONTROL.search(page)
    assert not CONTROL.search(printable(name))


def status(data: bytes) -> None:
    for code in (403, 409, 500):
        error = refusal(code, data)
        assert len(str(error)) < 2 * LONGEST
        assert len(error.reason) < LONGEST


def graphs() -> list[bytes]:
    """A policy's graph, where onnx is installed."""
    if find_spec("onnx") is None:
        return []
    return [onnx_bytes(decoded(path_of("readable").read_bytes(), "f"))]
