"""The port: the usual way in, the general one, and what neither lets through."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from importlib.metadata import version
from io import BytesIO
from typing import Any

import pytest

from podium.extender import connections as front
from podium.extender import server
from podium.extender.connections import Head, Heads, usual_head
from podium.extender.handler import InFlightLimits
from podium.extender.server import ExtenderServer
from podium.serving import ServingError
from tests.podium.extender.questions import LOOPBACK, MAX_BODY, Asking, World, args, node, served
from tools.kit.builders import make_pod

POD = make_pod(requests={"cpu": "500m"})
NODES = [node("quiet", {"congestion-factor": "0"}), node("busy", {"congestion-factor": "75"})]
NAMES = ["quiet", "busy"]
QUESTION = args(POD, names=NAMES)
ANSWER = [{"Host": "quiet", "Score": 10}, {"Host": "busy", "Score": 3}]

NONSENSE = [b"hello\r\n\r\n", b"POST / HTTP/9\r\n\r\n", b"\x16\x03\x01" + b"x" * 100, b"POST /" + b"a" * 20_000]


def talk(work: Callable[[ExtenderServer, Asking], Awaitable[None]], **options: Any) -> None:
    async def main() -> None:
        async with served(World("congestion", "safe", nodes=NODES), **options) as (server, asking):
            await work(server, asking)

    asyncio.run(main())


async def exchange(server: ExtenderServer, *pieces: bytes, pause: float = 0.0) -> bytes:
    """Write pieces to a connection of one's own, and read until the other side closes."""
    reader, writer = await asyncio.open_connection(LOOPBACK, server.port)
    try:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(pause)
        async with asyncio.timeout(10):
            return await reader.read()
    finally:
        writer.close()


def post(path: str, body: bytes, *headers: str) -> bytes:
    usual = ["Host: localhost", "Content-Type: application/json", f"Content-Length: {len(body)}"]
    lines = [f"POST {path} HTTP/1.1", *usual, *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def test_a_usual_head_is_a_post_with_a_length_and_nothing_odd() -> None:
    go = (
        b"POST /a/filter HTTP/1.1\r\nHost: h\r\nUser-Agent: Go-http-client/1.1\r\nContent-Length: 7\r\n"
        b"Content-Type: application/json\r\nAccept-Encoding: gzip"
    )
    assert usual_head(go) == Head("/a/filter", 7)


@pytest.mark.parametrize(
    "head",
    [
        b"GET /a HTTP/1.1\r\nContent-Length: 7",
        b"POST /a HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: 7",
        b"POST /a HTTP/1.1\r\nContent-Type: application/json\r\nHost: x",
        b"POST /a?b HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 7",
        b"POST /%61 HTTP/1.1\r\nContent-Length: 7",
        b"POST a HTTP/1.1\r\nContent-Length: 7",
        b"POST /a b HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 7",
        b"POST /a HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 7\r\nContent-Length: 8",
        b"POST /a HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: -7",
        b"POST /a HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: +7",
        b"POST /a HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 9999999999999999",
        b"POST /a HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 7\r\nTransfer-Encoding: chunked",
        b"POST /a HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 7\r\nExpect: 100-continue",
        b"POST /a HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 7\r\nConnection: close",
        b"POST /a HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length : 7",
        b"POST /a HTTP/1.1\r\nContent-Type: application/json\r\n Content-Length: 7",
        b"POST /a HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 7\r\nnonsense",
    ],
)
def test_any_other_head_is_left_to_the_general_server(head: bytes) -> None:
    assert usual_head(head) is None
    heads = Heads()
    for _ in range(2):
        assert heads.read(b"POST /a HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 7") == Head("/a", 7)
        assert heads.read(head) is None


def test_heads_that_differ_in_their_length_are_read_once() -> None:
    heads = Heads()
    for length in (b"7", b"0", b"123456", b"+7", b"7 ", b""):
        for form in (b"Content-Type: application/json\r\nContent-Length: %b\r\nHost: x", b"Content-Length: %b"):
            head = b"POST /a HTTP/1.1\r\n" + form % length
            assert heads.read(head) == usual_head(head)


def test_questions_are_answered_alike_on_both_ways_in() -> None:
    async def work(_server: ExtenderServer, asking: Asking) -> None:
        usual = await asking.post("/congestion/prioritize", QUESTION)
        chunked = await asking.post("/congestion/prioritize", _slowly(QUESTION))
        with_query = await asking.post("/congestion/prioritize?timeout=5s", QUESTION)
        expecting = await asking.post("/congestion/prioritize", QUESTION, expect100=True)
        for answer in (usual, chunked, with_query, expecting):
            assert (answer.status, answer.json) == (200, ANSWER)
            assert answer.headers["Content-Type"].startswith("application/json")

    talk(work)


async def _slowly(text: bytes) -> Any:
    for start in range(0, len(text), 500):
        yield text[start : start + 500]


def test_one_connection_brings_many_questions_whole_or_in_pieces() -> None:
    async def work(server: ExtenderServer, _asking: Asking) -> None:
        question = post("/congestion/prioritize", QUESTION)
        last = post("/congestion/prioritize", QUESTION, "Connection: close")
        pieces = [question + question + question[:9], question[9:60], question[60:] + question + last]
        answer = await exchange(server, *pieces, pause=0.01)
        assert answer.count(b"HTTP/1.1 200") == 5
        assert answer.count(json.dumps(ANSWER, separators=(",", ":")).encode()) == 5

    talk(work)


def test_a_large_answer_comes_whole() -> None:
    async def work(_server: ExtenderServer, asking: Asking) -> None:
        nodes = [node(f"n{number}", {"filler": "x" * 30_000}) for number in range(100)]
        answer = await asking.post("/safe/filter", BytesIO(args(POD, nodes=nodes)))
        assert answer.json["Nodes"]["items"] == nodes

    talk(work, max_body=16 << 20)


def test_who_does_not_read_answers_is_not_listened_to_until_he_does() -> None:
    async def work(server: ExtenderServer, _asking: Asking) -> None:
        nodes = [node(f"n{number}", {"filler": "x" * 10_000}) for number in range(50)]
        question, count = post("/safe/filter", args(POD, nodes=nodes)), 40
        reader, writer = await asyncio.open_connection(LOOPBACK, server.port)
        writing = asyncio.create_task(_write(writer, question, count))
        async with asyncio.timeout(10):
            while all(connection._transport.is_reading() for connection in server._connections):
                await asyncio.sleep(0.01)
            for _ in range(count):
                head = await reader.readuntil(b"\r\n\r\n")
                await reader.readexactly(int(head.partition(b"Content-Length: ")[2].partition(b"\r\n")[0]))
        await writing
        assert all(connection._transport.is_reading() for connection in server._connections)
        writer.close()

    talk(work, max_body=16 << 20)


async def _write(writer: asyncio.StreamWriter, question: bytes, count: int) -> None:
    for _ in range(count):
        writer.write(question)
        await writer.drain()


def test_a_request_that_is_too_large_gets_413_and_the_limit() -> None:
    async def work(_server: ExtenderServer, asking: Asking) -> None:
        body = QUESTION + b" " * MAX_BODY
        for verb in ("filter", "prioritize"):
            for data in (BytesIO(body), _slowly(body)):
                answer = await asking.post(f"/safe/{verb}", data)
                assert answer.status == 413
                assert f"is larger than the {MAX_BODY:,} bytes allowed (--max-body)" in answer.json["Error"]
        assert (await asking.post("/congestion/prioritize", QUESTION)).json == ANSWER

    talk(work)


def test_paths_and_methods_that_lead_nowhere_are_answered_with_those_that_do() -> None:
    async def work(_server: ExtenderServer, asking: Asking) -> None:
        lost = await asking.post("/nowhere", QUESTION)
        assert (lost.status, "/congestion/prioritize" in lost.json["Error"]) == (404, True)
        got = await asking.get("/congestion/prioritize")
        assert (got.status, got.headers["Allow"]) == (405, "POST")
        posted = await asking.post("/version", b"")
        assert (posted.status, posted.headers["Allow"]) == (405, "GET")
        assert (await asking.post("/congestion/prioritize/", QUESTION)).json == ANSWER

    talk(work)


def test_what_is_no_http_is_refused_and_the_next_one_served() -> None:
    async def work(server: ExtenderServer, asking: Asking) -> None:
        for nonsense in (
            b"hello\r\n\r\n",
            b"POST / HTTP/9\r\n\r\n",
            b"\x16\x03\x01" + b"x" * 100,
            b"POST /" + b"a" * 20_000,
        ):
            assert (await exchange(server, nonsense)).startswith(b"HTTP/1.0 400") or nonsense
        assert (await asking.post("/congestion/prioritize", QUESTION)).json == ANSWER

    talk(work)


def test_a_body_that_never_ends_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(front, "SLOWEST_BODY", 0.1)
    monkeypatch.setattr(server, "SLOWEST_BODY", 0.1)

    async def work(server: ExtenderServer, _asking: Asking) -> None:
        usual = post("/congestion/prioritize", QUESTION)[:-5]
        general = post("/congestion/prioritize", QUESTION, "Connection: close")[:-5]
        assert b"408" in (await exchange(server, usual)).splitlines()[0]
        assert b"408" in (await exchange(server, general)).splitlines()[0]
        assert b"408" in (await exchange(server, b"POST /cong")).splitlines()[0]

    talk(work)


def test_large_bodies_at_once_are_put_off() -> None:
    async def work(server: ExtenderServer, asking: Asking) -> None:
        large = post("/congestion/prioritize", QUESTION + b" " * (MAX_BODY - len(QUESTION)))
        waiting = []
        for _ in range(2):
            reader, writer = await asyncio.open_connection(LOOPBACK, server.port)
            writer.write(large[:-1])
            await writer.drain()
            waiting.append((reader, writer))
        await asyncio.sleep(0.05)
        answer = await asking.post("/congestion/prioritize", QUESTION)
        assert (answer.status, answer.json) == (503, {"Error": "too many large requests at once: try again"})
        for reader, writer in waiting:
            writer.write(large[-1:])
            assert b"200" in await reader.readline()
            writer.close()
        assert (await asking.post("/congestion/prioritize", QUESTION)).json == ANSWER

    talk(work)


def test_an_error_of_ours_is_an_answer_too(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        world = World("congestion", nodes=NODES)
        world.shared.unready = lambda: 1 / 0  # type: ignore[assignment,return-value]
        async with served(world, readyz={}) as (_server, asking):
            answer = await asking.post("/prioritize", QUESTION)
            assert answer.status == 500
            assert answer.json == {"Error": "internal error: ZeroDivisionError: division by zero"}

    asyncio.run(main())


def test_an_error_of_ours_has_the_form_that_each_question_wants(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        world = World("safe", nodes=NODES)
        world.shared.unready = lambda: 1 / 0  # type: ignore[assignment,return-value]
        async with served(world, readyz={}) as (_server, asking):
            answer = await asking.post("/filter", QUESTION)
            assert (answer.status, answer.json["NodeNames"]) == (200, None)
            assert answer.json["Error"] == "internal error: ZeroDivisionError: division by zero"
            world.shared.unready = lambda: None
            text = (await asking.get("/metrics")).body.decode()
            assert 'podium_extender_requests_total{agent="safe",outcome="failed",verb="filter"} 1.0' in text

    asyncio.run(main())


def test_the_same_trouble_is_logged_once_in_a_while(caplog: pytest.LogCaptureFixture) -> None:
    async def work(_server: ExtenderServer, asking: Asking) -> None:
        for body in (b"nonsense", b"nonsense", b"", b"nonsense"):
            await asking.post("/congestion/prioritize", body)

    talk(work)
    said = [record.getMessage() for record in caplog.records if "prioritize of congestion" in record.getMessage()]
    assert len(said) == 2
    assert "is not JSON" in said[0]
    assert "is empty" in said[1]


def test_without_a_certificate_nothing_is_answered_where_one_is_needed() -> None:
    async def work(server: ExtenderServer, asking: Asking) -> None:
        for path in ("/congestion/prioritize", "/metrics"):
            answer = await (asking.get(path) if path == "/metrics" else asking.post(path, QUESTION))
            assert (answer.status, answer.json) == (401, {"Error": "show a client certificate"})
        assert (await asking.get("/healthz")).status == 200
        assert b"401 Unauthorized" in await exchange(
            server, post("/congestion/prioritize", QUESTION, "Connection: close")
        )

    talk(work, needs_certificate=True)


def test_connections_that_were_closed_crowd_nobody_out() -> None:
    async def main() -> None:
        world = World("congestion", nodes=NODES)
        in_flight = InFlightLimits(MAX_BODY, most_connections=3)
        async with served(world, in_flight=in_flight) as (server, _asking):
            for _ in range(10):
                reader, writer = await asyncio.open_connection(LOOPBACK, server.port)
                writer.write(post("/prioritize", QUESTION))
                assert b"200 OK" in await reader.readline()
                writer.close()
                await writer.wait_closed()
            async with asyncio.timeout(10):
                while in_flight.usual_connections:
                    await asyncio.sleep(0.01)
            held = [await asyncio.open_connection(LOOPBACK, server.port) for _ in range(4)]
            for _reader, writer in held:
                writer.write(post("/prioritize", QUESTION))
            answers = [await reader.readline() for reader, _writer in held]
            assert sorted(answers) == [b"HTTP/1.1 200 OK\r\n"] * 3 + [b"HTTP/1.1 503 Service Unavailable\r\n"]
            for _reader, writer in held:
                writer.close()

    asyncio.run(main())


# Web pages, and clients that do nothing


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Host": "evil.example:5401"}, 403),
        ({"Host": "evil.example", "Origin": "http://evil.example"}, 403),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
        ({"Content-Type": ""}, 415),
        ({"Content-Type": "application/json; charset=utf-8"}, 200),
        ({"Host": "localhost"}, 200),
    ],
)
def test_what_a_web_page_sends_is_refused(headers: dict[str, str], status: int) -> None:
    async def work(server: ExtenderServer, asking: Asking) -> None:
        lines = {"Host": "127.0.0.1", "Content-Type": "application/json", **headers}
        text = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        for more in ("", "Connection: close\r\n"):
            for path in ("/congestion/prioritize", "/scheduler/bind"):
                head = f"POST {path} HTTP/1.1\r\n{text}{more}Content-Length: {len(QUESTION)}\r\n\r\n"
                reader, writer = await asyncio.open_connection(LOOPBACK, server.port)
                writer.write(head.encode() + QUESTION)
                assert f" {status} ".encode() in await reader.readline()
                writer.close()
        if "Host" in headers and status == 403:
            assert (await asking.request("GET", "/metrics", headers=headers)).status == 403
        assert (await asking.post("/congestion/prioritize", QUESTION)).json == ANSWER

    talk(work)


def test_what_is_answered_counts_until_it_is_read() -> None:
    """Else a client that reads slowly, eight times, has eight answers in memory."""

    async def work(server: ExtenderServer, asking: Asking) -> None:
        nodes = [node(f"n{number}", {"filler": "x" * 100_000}) for number in range(100)]
        question = post("/safe/filter", args(POD, nodes=nodes))
        held = []
        for _ in range(2):
            reader, writer = await asyncio.open_connection(LOOPBACK, server.port)
            writer.write(question)
            await writer.drain()
            assert b"200 OK" in await reader.readline()
            held.append((reader, writer))
        third = await asking.post("/safe/filter", BytesIO(args(POD, nodes=nodes)))
        assert (third.status, third.json["Error"]) == (503, "too many large requests at once: try again")
        for reader, writer in held:
            head = await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(int(head.partition(b"Content-Length: ")[2].partition(b"\r\n")[0]))
            writer.close()
        assert (await asking.post("/safe/filter", BytesIO(args(POD, nodes=nodes)))).status == 200
        assert server._in_flight.bytes == 0

    talk(work, max_body=11 << 20)


def test_bodies_without_a_length_count_too() -> None:
    async def work(server: ExtenderServer, asking: Asking) -> None:
        size = MAX_BODY - 1000
        head = b"POST /congestion/prioritize HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        chunk = b"%x\r\n" % size + b" " * size + b"\r\n"
        held = []
        for _ in range(2):
            reader, writer = await asyncio.open_connection(LOOPBACK, server.port)
            writer.write(head + b"Transfer-Encoding: chunked\r\n\r\n" + chunk)
            await writer.drain()
            held.append((reader, writer))
        await asyncio.sleep(0.3)
        assert (await asking.post("/congestion/prioritize", _slowly(b" " * 10_000))).status == 503
        for _reader, writer in held:
            writer.close()

    talk(work)


def test_connections_on_which_nothing_happens_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (front, server):
        monkeypatch.setattr(module, "SLOWEST_BODY", 0.2)
    monkeypatch.setattr(front, "LONGEST_IDLE", 0.2)
    monkeypatch.setattr(server, "SWEEP", 0.05)

    async def work(server: ExtenderServer, asking: Asking) -> None:
        for beginning in (b"", b"GET /", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: ", b"\x00", b"PO"):
            reader, writer = await asyncio.open_connection(LOOPBACK, server.port)
            writer.write(beginning)
            async with asyncio.timeout(5):
                await reader.read()
            writer.close()
        reader, writer = await asyncio.open_connection(LOOPBACK, server.port)
        writer.write(post("/congestion/prioritize", QUESTION))
        async with asyncio.timeout(5):
            assert (await reader.read()).startswith(b"HTTP/1.1 200 OK")
        writer.close()
        assert (await asking.post("/congestion/prioritize", QUESTION)).json == ANSWER

    talk(work)


def test_a_client_that_does_not_read_its_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(front, "SLOWEST_BODY", 0.5)
    monkeypatch.setattr(server, "SWEEP", 0.05)

    async def work(server: ExtenderServer, _asking: Asking) -> None:
        nodes = [node(f"n{number}", {"filler": "x" * 100_000}) for number in range(150)]
        _reader, writer = await asyncio.open_connection(LOOPBACK, server.port, limit=1 << 10)
        writer.write(post("/safe/filter", args(POD, nodes=nodes)))
        async with asyncio.timeout(10):
            while not server._in_flight.bytes:
                await asyncio.sleep(0.01)
            while server._connections or server._in_flight.bytes:
                await asyncio.sleep(0.05)
        writer.close()

    talk(work, max_body=32 << 20)


# Beside the answers


def test_ready_means_that_the_cluster_is_known() -> None:
    async def main() -> None:
        world = World("congestion", nodes=NODES)
        missing: list[str] = ["nodes"]
        world.shared.unready = lambda: "waiting for nodes" if missing else None
        async with served(world, readyz={"watch": world.shared.unready}) as (_server, asking):
            assert (await asking.get("/readyz")).status == 500
            assert b"waiting for nodes" in (await asking.get("/readyz/watch")).body
            assert (await asking.get("/healthz")).status == 200
            missing.clear()
            assert (await asking.get("/readyz?verbose")).body == b"[+]watch ok\nreadyz check passed\n"
            assert (await asking.get("/readyz/other")).status == 404

    asyncio.run(main())


def test_the_version_is_text_without_a_newline() -> None:
    async def work(_server: ExtenderServer, asking: Asking) -> None:
        answer = await asking.get("/version")
        assert (answer.status, answer.body.decode()) == (200, version("podium"))
        assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"

    talk(work)


def test_metrics_count_and_time_requests_by_agent_and_verb() -> None:
    async def work(_server: ExtenderServer, asking: Asking) -> None:
        for body in (QUESTION, QUESTION, b"nonsense"):
            await asking.post("/congestion/prioritize", body)
        await asking.post("/nowhere", b"")
        text = (await asking.get("/metrics")).body.decode()
        for line in (
            'podium_extender_requests_total{agent="congestion",outcome="answered",verb="prioritize"} 2.0',
            'podium_extender_requests_total{agent="congestion",outcome="refused",verb="prioritize"} 1.0',
            'podium_extender_request_duration_seconds_count{agent="congestion",verb="prioritize"} 3.0',
            'podium_extender_rejected_total{reason="path"} 1.0',
            "podium_extender_nodes 2.0",
            "podium_extender_synced 1.0",
            "podium_answer_cache_errors_total 3.0",
        ):
            assert line in text.splitlines()

    talk(work, cache_errors=lambda: 3)


def test_a_port_that_is_taken_is_told() -> None:
    async def work(taken: ExtenderServer, _asking: Asking) -> None:
        world = World("congestion", nodes=NODES)
        with pytest.raises(
            ServingError, match=f"--bind-address {LOOPBACK} with port {taken.port} cannot be listened on"
        ):
            async with served(world, port=taken.port):
                pass

    talk(work)
