"""What requests become when the server is overloaded, slow, gone, or answers nonsense."""

import asyncio
import gzip
import random
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

import pytest
from aiohttp import web

from podium.client import Access, ApiError, Client, TimedOut, Unreachable
from podium.client import client as client_module
from podium.client import repetition as repetition_module
from tests.client.conftest import Run
from tests.client.servers import Handler, closed_port, read_request, serving, talking

Use = Callable[[Client], Awaitable[None]]

REFUSAL = {"kind": "Status", "status": "Failure", "reason": "TooManyRequests", "message": "slow down", "code": 429}


@pytest.fixture(autouse=True)
def quick_repetitions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repetition_module, "FIRST_BACKOFF", 0.001)


def new_client(url: str, **options: float) -> Client:
    return Client(Access(url), rng=random.Random(1), qps=options.get("qps", 0), burst=int(options.get("burst", 0)))


class Asked:
    """Answers in turn, the last one for ever, and remembers what was asked."""

    def __init__(self, *answers: Callable[[], web.Response]) -> None:
        self._answers = list(answers)
        self.requests: list[str] = []

    async def answer(self, request: web.Request) -> web.Response:
        body = await request.read()
        self.requests.append(f"{request.method} {request.raw_path} {body.decode()}".strip())
        return (self._answers.pop(0) if len(self._answers) > 1 else self._answers[0])()


def ok() -> web.Response:
    return web.Response(body=b"{}")


def busy(status: int = 429, retry_after: str | None = "0") -> Callable[[], web.Response]:
    headers = {} if retry_after is None else {"Retry-After": retry_after}
    return lambda: web.json_response(REFUSAL, status=status, headers=headers)


VERBS: dict[str, Callable[[Client], Awaitable[bytes]]] = {
    "GET": lambda client: client.get("/api/v1/pods"),
    "POST": lambda client: client.post("/api/v1/pods", {}),
    "PUT": lambda client: client.put("/api/v1/pods", {}),
    "PATCH": lambda client: client.patch("/api/v1/pods", {}),
    "DELETE": lambda client: client.delete("/api/v1/pods"),
}
WRITES = [verb for verb in VERBS if verb != "GET"]


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
        assert not (error.not_found or error.conflict or error.forbidden or error.gone or error.too_many)

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


@pytest.mark.parametrize("verb", VERBS)
def test_a_server_that_never_answers_is_given_up_in_time(run: Run, verb: str) -> None:
    async def talk(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.read()

    async def main() -> None:
        asks: dict[str, Callable[[Client], Awaitable[bytes]]] = {
            "GET": lambda client: client.get("/a", timeout=0.05),
            "POST": lambda client: client.post("/a", {}, timeout=0.05),
            "PUT": lambda client: client.put("/a", {}, timeout=0.05),
            "PATCH": lambda client: client.patch("/a", {}, timeout=0.05),
            "DELETE": lambda client: client.delete("/a", timeout=0.05),
        }
        async with talking(talk) as url, new_client(url) as client:
            with pytest.raises(TimedOut, match="did not answer in time") as failed:
                await asks[verb](client)
        assert failed.value.sent

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


def test_one_connection_serves_many_requests_in_a_row(run: Run) -> None:
    connections: list[int] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(1)
        while True:
            await read_request(reader)
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
            await writer.drain()

    async def main() -> None:
        async with talking(talk) as url, new_client(url) as client:
            for _ in range(10):
                await client.post("/a", {})
        assert len(connections) == 1

    run(main())


def test_a_connection_the_server_closed_meanwhile_is_replaced(run: Run) -> None:
    connections: list[int] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(1)
        await read_request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        await writer.drain()

    async def main() -> None:
        async with talking(talk) as url, new_client(url) as client:
            for _ in range(3):
                await client.post("/a", {})
                await asyncio.sleep(0.02)
        assert len(connections) == 3

    run(main())


@pytest.mark.parametrize("verb", ["GET", "POST"])
def test_no_more_connections_are_made_than_allowed(run: Run, verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "CONNECTIONS", 3)
    under_way = 0
    most = 0

    async def handler(_: web.Request) -> web.Response:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.005)
        under_way -= 1
        return ok()

    async def main() -> None:
        async with serving(handler) as url, new_client(url) as client:
            await asyncio.gather(*(VERBS[verb](client) for _ in range(20)))
        assert most == 3

    run(main())


def test_waiting_for_a_connection_can_time_out_and_then_nothing_was_sent(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "CONNECTIONS", 1)
    requests: list[bytes] = []

    async def talk(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        requests.append(await read_request(reader))
        await reader.read()

    async def main() -> None:
        async with talking(talk) as url, new_client(url) as client:
            first = asyncio.ensure_future(client.post("/first", {}))
            await asyncio.sleep(0.01)
            with pytest.raises(TimedOut) as failed:
                await client.post("/second", {}, timeout=0.05)
            assert not failed.value.sent
            first.cancel()
        assert len(requests) == 1

    run(main())


def test_a_place_that_was_waited_for_is_taken_and_given_back(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some who wait give up, at the moment they are let in too; none of the places may get lost."""
    monkeypatch.setattr(client_module, "CONNECTIONS", 2)

    async def handler(_: web.Request) -> web.Response:
        await asyncio.sleep(0.001)
        return ok()

    async def main() -> None:
        async with serving(handler) as url, new_client(url) as client:
            for number in range(20):
                asking = [asyncio.ensure_future(client.post("/a", {})) for _ in range(6)]
                await asyncio.sleep(0.0002 * number)
                for each in asking[number % 3 :: 2]:
                    each.cancel()
                await asyncio.gather(*asking, return_exceptions=True)
            assert await asyncio.gather(*(client.post("/a", {}) for _ in range(6))) == [b"{}"] * 6
            assert client._pool is not None
            assert client._pool._free_places == 2

    run(main())


def test_each_request_has_a_deadline_of_its_own(run: Run) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await read_request(reader)
        if b"/answered" in request:
            await asyncio.sleep(0.15)
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        await reader.read()

    async def main() -> None:
        ended: list[str] = []

        async def ask(client: Client, name: str, timeout: float) -> None:
            try:
                await client.post(f"/{name}", {}, timeout=timeout)
            except TimedOut:
                ended.append(f"{name} timed out")
            else:
                ended.append(name)

        async with talking(talk) as url, new_client(url) as client:
            await asyncio.gather(
                ask(client, "answered", 10),
                ask(client, "last", 0.3),
                ask(client, "first", 0.05),
                ask(client, "second", 0.1),
            )
        assert ended == ["first timed out", "second timed out", "answered", "last timed out"]

    run(main())


def test_a_caller_who_goes_away_takes_the_connection_along(run: Run) -> None:
    """Else the answer that still comes would be taken for the next request's."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            request = await read_request(reader)
            await asyncio.sleep(0.02)
            body = request.split()[1]
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))

    async def main() -> None:
        async with talking(talk) as url, new_client(url) as client:
            asking = asyncio.ensure_future(client.post("/one", {}))
            await asyncio.sleep(0.01)
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
            assert await client.post("/two", {}) == b"/two"

    run(main())


def test_the_own_limit_counts_reads_writes_and_watches(run: Run) -> None:
    seen = Asked(ok)

    async def main() -> None:
        async with serving(seen.answer) as url, new_client(url, qps=0.01, burst=3) as client:
            await client.post("/a", {})
            await client.get("/a")
            await all_of(client)
            for ask in (client.post("/a", {}), client.get("/a"), all_of(client)):
                with pytest.raises(TimedOut, match="qps") as failed:
                    await ask
                assert not failed.value.sent
        assert len(seen.requests) == 3

    run(main())


def streamed(*parts: bytes, then: str) -> Handler:
    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for part in parts:
            await response.write(part)
        if then == "cut":
            assert request.transport is not None
            request.transport.abort()
        elif then == "hang":
            await asyncio.sleep(1000)
        return response

    return handler


async def all_of(client: Client, idle: float = 5.0) -> bytes:
    found = b""
    async with client.stream("/watch", {"watch": "1"}, idle=idle) as chunks:
        async for chunk in chunks:
            found += chunk
    return found


def test_a_stream_ends_when_the_server_ends_it(run: Run) -> None:
    async def main() -> None:
        async with serving(streamed(b"one\n", b"two\n", then="end")) as url, new_client(url) as client:
            assert await all_of(client) == b"one\ntwo\n"

    run(main())


def test_a_stream_that_is_cut_is_an_error(run: Run) -> None:
    async def main() -> None:
        async with serving(streamed(b"one\n", then="cut")) as url, new_client(url) as client:
            with pytest.raises(Unreachable, match="before the whole answer came"):
                await all_of(client)

    run(main())


def test_a_stream_that_falls_silent_times_out(run: Run) -> None:
    async def main() -> None:
        async with serving(streamed(b"one\n", then="hang")) as url, new_client(url) as client:
            with pytest.raises(TimedOut):
                await all_of(client, idle=0.05)

    run(main())


def test_a_refused_stream_is_an_api_error_and_a_busy_server_is_waited_for(run: Run) -> None:
    seen = Asked(busy(), busy(410, None))

    async def main() -> None:
        async with serving(seen.answer) as url, new_client(url) as client:
            with pytest.raises(ApiError) as refused:
                await all_of(client)
        assert refused.value.gone
        assert len(seen.requests) == 2

    run(main())


def test_watches_take_no_connection_from_requests(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "CONNECTIONS", 1)
    hang = streamed(b"one\n", then="hang")

    async def handler(request: web.Request) -> web.StreamResponse:
        return await hang(request) if request.path == "/watch" else ok()

    async def main() -> None:
        async with serving(handler) as url, new_client(url) as client, AsyncExitStack() as stack:
            for _ in range(5):
                chunks = await stack.enter_async_context(client.stream("/watch"))
                assert await anext(chunks) == b"one\n"
            await client.get("/a")
            await client.post("/a", {})

    run(main())
