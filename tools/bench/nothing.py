"""Serves an extender that does nothing: every node passes and scores 1. What is left is what the protocol costs.

Run as a program it takes the port to listen on. It cuts the names out of each request and sends them back; of HTTP it
knows what kube-scheduler writes, and no more.
"""

from __future__ import annotations

import asyncio
import sys
from typing import cast

import msgspec

NAMES = b',"NodeNames":'
SERVING = "the extender that does nothing is there"


class EchoConnection(asyncio.Protocol):
    def __init__(self) -> None:
        self._data = b""
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._data += data
        head, end, body = self._data.partition(b"\r\n\r\n")
        if not end:
            return
        length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
        if len(body) < length:
            return
        self._data = b""
        answer = answer_to(head.split(b" ", 2)[1], body)
        self._transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(answer), answer))


def answer_to(path: bytes, body: bytes) -> bytes:
    """Filter lets all names pass; prioritize gives each one point."""
    names = body[body.rfind(NAMES) + len(NAMES) : -1]
    if path.endswith(b"/filter"):
        return b'{"NodeNames":%b}' % names
    hosts = msgspec.json.decode(names, type=list[msgspec.Raw])
    return b"[%b]" % b",".join(b'{"Host":%b,"Score":1}' % bytes(host) for host in hosts)


async def serve(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(EchoConnection, "127.0.0.1", port)
    print(SERVING, flush=True)
    await server.serve_forever()


def main() -> None:
    import uvloop

    uvloop.run(serve(int(sys.argv[1])))


if __name__ == "__main__":
    main()
