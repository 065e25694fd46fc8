"""What requests become when the server is overloaded, slow, gone, or answers nonsense."""

import asyncio
import gzip
from collections.abc import Awaitable, Callable

import pytest
from aiohttp import web

from podium.client import Access, ApiError, Client, TimedOut, Unreachable
from podium.client import client as client_module
from podium.client import client as repetition_module
from tests.podium.client.asking import VERBS, WRITES, Asked, busy, new_client, ok
from tests.podium.client.conftest import Run
from tests.podium.client.servers import closed_port, read_request, serving, talking


@pytest.fixture(autouse=True)
def quick_repetitions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repetition_module, "FIRST_BACKOFF", 0.001)


@pytest.mark.parametrize("verb", VERBS)
def test_each_verb_sends_its_method_path_query_and_body(run: Run, verb: str) -> None:
    seen = Asked(ok)

    async def main() -> None:
        async with serving(seen.answer) as url, new_client(url) as client:
            assert await VERBS[verb](client) == b"{}"
            await client.get("/apis/x/y z", {"fieldSelector": "spec.nodeName=", "limit": "5"})
        expected = f"{verb} /api/v1/pods" + ("" if verb in ("GET", "DELETE") else " {}")
        assert seen.requests == [expected, "GET /apis/x/y%20z?fieldSelector=spec.nodeName%3D&limit=5"]

    run(main())


def test_headers_say_who_asks_and_for_what(run: Run) -> None:
    seen: list[dict[str, str]] = []

    async def handler(request: web.Request) -> web.Response:
        seen.append({name.lower(): value for name, value in request.headers.items()})
        return ok()

    async def main() -> None:
        access = Access("", token="secret")
        async with serving(handler) as url:
            access = Access(f"{url}/prefix/", token="secret", impersonation=[("Impersonate-User", "jane")])
            async with Client(access, user_agent="tester") as client:
                await client.get("/a")
                await client.patch("/a", b"[]", "application/json-patch+json")
        for headers in seen:
            assert headers["authorization"] == "Bearer secret"
            assert headers["impersonate-user"] == "jane"
            assert headers["accept"] == "application/json"
            assert headers["user-agent"] == "tester"
            assert headers["host"] == access.host
        assert seen[0]["accept-encoding"] == "gzip"
        assert seen[1]["content-type"] == "application/json-patch+json"

    run(main())


def test_the_servers_path_comes_before_each_path(run: Run) -> None:
    seen = Asked(ok)

    async def main() -> None:
        async with serving(seen.answer) as url, new_client(f"{url}/k8s/clusters/c-1/") as client:
            await client.get("/api/v1/pods")
            await client.delete("/api/v1/pods")
        assert seen.requests == ["GET /k8s/clusters/c-1/api/v1/pods", "DELETE /k8s/clusters/c-1/api/v1/pods"]

    run(main())


@pytest.mark.parametrize("verb", ["GET", "POST"])
@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_server_that_says_when_is_asked_again_then(run: Run, verb: str, status: int) -> None:
    seen = Asked(busy(status), busy(status), ok)

    async def main() -> None:
        async with serving(seen.answer) as url, new_client(url) as client:
            assert await VERBS[verb](client) == b"{}"
        assert len(seen.requests) == 3

    run(main())


@pytest.mark.parametrize(
    "answer",
    [busy(500, None), busy(429, None), busy(404, "0"), busy(503, "soon")],
    ids=["500", "429", "404", "no number"],
)
def test_without_that_a_refusal_is_final(run: Run, answer: Callable[[], web.Response]) -> None:
    seen = Asked(answer)

    async def main() -> None:
        async with serving(seen.answer) as url, new_client(url) as client:
            with pytest.raises(ApiError, match="slow down"):
                await client.get("/a")
        assert len(seen.requests) == 1

    run(main())


def test_a_server_that_is_busy_for_ever_is_asked_eleven_times(run: Run) -> None:
    seen = Asked(busy())

    async def main() -> None:
        async with serving(seen.answer) as url, new_client(url) as client:
            with pytest.raises(ApiError) as refused:
                await client.post("/a", {})
        assert refused.value.too_many
        assert len(seen.requests) == 11

    run(main())


def test_a_wait_past_the_time_out_is_not_begun(run: Run) -> None:
    seen = Asked(busy(429, "60"))

    async def main() -> None:
        async with serving(seen.answer) as url, new_client(url) as client:
            with pytest.raises(ApiError) as refused:
                await client.get("/a", timeout=5)
        assert refused.value.retry_after == 60
        assert len(seen.requests) == 1

    run(main())


@pytest.mark.parametrize(
    ("status", "body", "says"),
    [
        (409, b'{"reason": "Conflict", "message": "was changed", "details": {"kind": "pods"}}', "was changed"),
        (502, b"<html>bad gateway</html>", "answered 502: <html>bad gateway</html>"),
        (500, b"", "answered 500"),
        (400, b'"text"', "answered 400"),
        (418, b"\xff\xfe" * 5000, "answered 418"),
        (301, b"", "answered 301"),
    ],
)
def test_whatever_a_refusal_looks_like_it_becomes_an_api_error(run: Run, status: int, body: bytes, says: str) -> None:
    async def handler(_: web.Request) -> web.Response:
        return web.Response(status=status, body=body, headers={"Location": "/elsewhere"})

    async def main() -> None:
        async with serving(handler) as url, new_client(url) as client:
            for ask in (VERBS["GET"], VERBS["PUT"]):
                with pytest.raises(ApiError, match=says) as refused:
                    await ask(client)
                assert refused.value.status == status
                assert len(str(refused.value)) < 500

    run(main())


def test_a_refusal_tells_what_the_status_object_says(run: Run) -> None:
    details = {"name": "a", "kind": "pods", "retryAfterSeconds": 3}

    async def handler(_: web.Request) -> web.Response:
        return web.json_response({"reason": "Invalid", "message": "m", "details": details}, status=422)

    async def main() -> None:
        async with serving(handler) as url, new_client(url) as client:
            with pytest.raises(ApiError) as refused:
                await client.post("/a", {})
        error = refused.value
        assert (error.status, error.reason, error.message, error.details) == (422, "Invalid", "m", details)
        assert error.retry_after == 3
        assert error.invalid
        assert not (error.not_found)
        assert not (error.conflict)
        assert not (error.forbidden)
        assert not (error.gone)
        assert not (error.too_many)

    run(main())


@pytest.mark.parametrize("verb", VERBS)
def test_a_refused_connection_was_not_sent(run: Run, verb: str) -> None:
    async def main() -> None:
        async with new_client(closed_port()) as client:
            with pytest.raises(Unreachable, match="refuses connections") as failed:
                await VERBS[verb](client)
        assert not failed.value.sent

    run(main())


def test_a_read_waits_for_a_server_that_comes_back(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repetition_module, "FIRST_BACKOFF", 0.02)

    async def main() -> None:
        url = closed_port()
        async with new_client(url) as client:
            asking = asyncio.ensure_future(client.get("/a"))
            await asyncio.sleep(0.01)

            async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                await read_request(reader)
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
                await writer.drain()
                writer.close()

            server = await asyncio.start_server(answer, "127.0.0.1", int(url.rpartition(":")[2]))
            assert await asking == b"{}"
            server.close()

    run(main())


def drops(times: int) -> tuple[list[bytes], Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]]:
    """A server that reads a request and hangs up without an answer, that often; then it answers."""
    requests: list[bytes] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            requests.append(await read_request(reader))
            if len(requests) <= times:
                return
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
            await writer.drain()

    return requests, talk


def test_a_get_without_an_answer_is_sent_again(run: Run) -> None:
    requests, talk = drops(2)

    async def main() -> None:
        async with talking(talk) as url, new_client(url) as client:
            assert await client.get("/a") == b"{}"
        assert len(requests) == 3

    run(main())


def test_a_get_that_never_gets_an_answer_is_given_up(run: Run) -> None:
    requests, talk = drops(100)

    async def main() -> None:
        async with talking(talk) as url, new_client(url) as client:
            with pytest.raises(Unreachable):
                await client.get("/a")
        assert len(requests) == 5

    run(main())


@pytest.mark.parametrize("verb", WRITES)
def test_a_write_without_an_answer_is_never_sent_again(run: Run, verb: str) -> None:
    requests, talk = drops(1)

    async def main() -> None:
        async with talking(talk) as url, new_client(url) as client:
            with pytest.raises(Unreachable, match="closed the connection") as failed:
                await VERBS[verb](client)
        assert failed.value.sent
        assert len(requests) == 1

    run(main())


@pytest.mark.parametrize("verb", WRITES)
def test_nor_on_a_connection_that_worked_before(run: Run, verb: str) -> None:
    requests: list[bytes] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests.append(await read_request(reader))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        requests.append(await read_request(reader))

    async def main() -> None:
        async with talking(talk) as url, new_client(url) as client:
            await VERBS[verb](client)
            with pytest.raises(Unreachable) as failed:
                await VERBS[verb](client)
        assert failed.value.sent
        assert len(requests) == 2

    run(main())


@pytest.mark.parametrize("verb", ["GET", "POST"])
def test_an_answer_that_is_cut_short_is_not_taken_for_one(run: Run, verb: str) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(b'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"items": [')
        await writer.drain()

    async def main() -> None:
        async with talking(talk) as url, new_client(url) as client:
            with pytest.raises(Unreachable, match="before the whole answer came") as failed:
                await VERBS[verb](client)
        assert failed.value.sent

    run(main())


def test_a_server_that_never_answers_is_given_up_in_time(run: Run) -> None:
    async def talk(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.read()

    async def main() -> None:
        async with talking(talk) as url, new_client(url) as client:
            answers = await asyncio.gather(
                client.get("/a", timeout=1),
                client.post("/a", {}, timeout=1),
                client.put("/a", {}, timeout=1),
                client.patch("/a", {}, timeout=1),
                client.delete("/a", timeout=1),
                return_exceptions=True,
            )
        for answer in answers:
            assert isinstance(answer, TimedOut)
            assert "did not answer in time" in str(answer)
            assert answer.sent

    run(main())


@pytest.mark.parametrize("verb", ["GET", "POST"])
def test_an_answer_without_end_is_refused(run: Run, verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "MAX_LIST", 1000)
    monkeypatch.setattr(client_module, "MAX_OBJECT", 1000)

    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b"x" * 100)
            await asyncio.sleep(0)

    async def main() -> None:
        async with serving(handler) as url, new_client(url) as client:
            with pytest.raises(Unreachable, match="larger than 1000 bytes"):
                await VERBS[verb](client)

    run(main())


def test_a_small_answer_that_unpacks_to_a_large_one_is_refused(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "MAX_LIST", 100_000)
    packed = gzip.compress(b"x" * 10_000_000)

    async def handler(_: web.Request) -> web.Response:
        return web.Response(body=packed, headers={"Content-Encoding": "gzip"})

    async def main() -> None:
        async with serving(handler) as url, new_client(url) as client:
            with pytest.raises(Unreachable, match="larger than 100000 bytes"):
                await client.get("/a")

    run(main())


def test_compressed_lists_are_unpacked(run: Run) -> None:
    async def handler(_: web.Request) -> web.Response:
        return web.Response(body=gzip.compress(b'{"items": []}'), headers={"Content-Encoding": "gzip"})

    async def main() -> None:
        async with serving(handler) as url, new_client(url) as client:
            assert await client.get("/a") == b'{"items": []}'

    run(main())


def test_something_else_than_http_is_told_apart(run: Run) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(b"SSH-2.0-OpenSSH_9.6\r\n\r\n")
        await writer.drain()
        await reader.read()

    async def main() -> None:
        async with talking(talk) as url, new_client(url) as client:
            with pytest.raises(Unreachable, match="something else than an answer"):
                await client.post("/a", {})
            with pytest.raises(Unreachable):
                await client.get("/a")

    run(main())


def test_the_guard_can_stop_writes_and_is_not_asked_for_reads(run: Run) -> None:
    seen = Asked(ok)

    class LostLeadershipError(Exception):
        pass

    def stop() -> None:
        raise LostLeadershipError

    async def main() -> None:
        async with serving(seen.answer) as url, new_client(url) as client:
            await client.post("/before", {})
            client.guard = stop
            for verb in WRITES:
                with pytest.raises(LostLeadershipError):
                    await VERBS[verb](client)
            await client.get("/read")
            client.guard = None
            await client.post("/after", {})
        assert seen.requests == ["POST /before {}", "GET /read", "POST /after {}"]

    run(main())


def test_the_guard_is_asked_again_before_a_repetition(run: Run) -> None:
    seen = Asked(busy(), ok)
    asked: list[int] = []

    async def main() -> None:
        async with serving(seen.answer) as url, new_client(url) as client:
            client.guard = lambda: asked.append(len(seen.requests))
            await client.post("/a", {})
        assert asked == [0, 1]

    run(main())


def test_every_attempt_is_reported(run: Run) -> None:
    seen = Asked(busy(), ok)
    reports: list[tuple[str, str, str]] = []

    async def main() -> None:
        async with serving(seen.answer) as url, new_client(url) as client:

            def report(verb: str, host: str, code: str, seconds: float) -> None:
                assert seconds >= 0
                assert url.endswith(host)
                reports.append((verb, host, code))

            client.on_request = report
            await client.post("/a", {})
            await client.get("/a")
        assert [(verb, code) for verb, _, code in reports] == [("POST", "429"), ("POST", "200"), ("GET", "200")]
        reports.clear()
        async with new_client(closed_port()) as client:
            client.on_request = lambda verb, host, code, seconds: reports.append((verb, host, code))
            with pytest.raises(Unreachable):
                await client.delete("/a")
        assert [(verb, code) for verb, _, code in reports] == [("DELETE", "<error>")]

    run(main())
