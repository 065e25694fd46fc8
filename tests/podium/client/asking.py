"""What tests ask a client for, and what servers on loopback answer."""

import asyncio
import random
from collections.abc import Awaitable, Callable

from aiohttp import web

from podium.client import Access, Client
from tests.podium.client.servers import Handler

REFUSAL = {"kind": "Status", "status": "Failure", "reason": "TooManyRequests", "message": "slow down", "code": 429}


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
