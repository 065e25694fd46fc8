"""Serves the commands that the thesis' agent knows, so that it runs unchanged (`podium suggestions-server`).

TCP, one request a connection, UTF-8: a command, a space, a value in JSON. The answer is one JSON document, and then the
connection is closed.

    getSuggestion       {"10.0.0.5": 10, …}           setSuggestion {…}       adds to what is suggested
    getStep             true or false                 setStep true|false
    getResourceValues   the four values               setResourceValues {…}   overwrites those it knows, raises the flag

Differences: a value may be as long as 1 MiB, where the original reads 1,024 bytes; and `setResourceValues` forgets what
was suggested for the pod before, so that a suggestion is always for the current one, and nodes that are gone don't
stay.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

import msgspec

from podium.kube.bounds import UNDECODABLE

HOST: Final = "127.0.0.1"
PORT: Final = 8765
LARGEST_REQUEST: Final = 1 << 20
QUIET: Final = 0.25
"""Seconds without another byte after which a value that is no JSON yet will not become any."""
PATIENCE: Final = 5.0
"""Seconds that a client may take to send its request, and to read its answer."""
MOST_CLIENTS: Final = 256
VALUED: Final = frozenset({"setSuggestion", "setStep", "setResourceValues"})
UNSET: Final[dict[str, Any]] = {
    "cpuRequest": "0",
    "memoryRequest": "0",
    "latencySoftConstraint": -1,
    "latencyHardConstraint": -1,
}
"""The values before any pod came."""
MOST_SUGGESTED: Final = 100_000


class SuggestionsBoard:
    """What the agent and the scheduler leave for each other."""

    def __init__(self) -> None:
        self.suggestion: dict[str, Any] = {}
        self.step = False
        self.values: dict[str, Any] = dict(UNSET)

    def answer(self, request: str) -> Any:
        """The answer to one request, as plain data.

        >>> board = SuggestionsBoard()
        >>> board.answer('setResourceValues {"cpuRequest": "250m"}')["status"], board.answer("getStep")
        ('success', True)
        >>> board.answer("setStep")["message"]
        'Missing value for setStep command.'
        """
        command, _, value = request.strip().partition(" ")
        match command:
            case "getSuggestion":
                return self.suggestion
            case "getStep":
                return self.step
            case "getResourceValues":
                return self.values
            case "setSuggestion" | "setStep" | "setResourceValues":
                if not value.strip():
                    return _error(f"Missing value for {command} command.")
                try:
                    given = msgspec.json.decode(value)
                except UNDECODABLE:
                    return _error("Invalid JSON data.")
                return self._set(command, given)
        return _error(f"Unknown command: {command}")

    def _set(self, command: str, given: Any) -> dict[str, str]:
        if command == "setStep":
            if not isinstance(given, bool):
                return _error("setStep needs true or false.")
            self.step = given
            return _success("Step flag set successfully.")
        if not isinstance(given, dict):
            return _error(f"{command} needs a JSON object.")
        if command == "setSuggestion":
            if len(self.suggestion) + len(given) > MOST_SUGGESTED:
                return _error(f"More than {MOST_SUGGESTED} addresses.")
            self.suggestion.update(given)
            return _success("Suggestion set successfully.")
        self.values.update({name: given[name] for name in self.values if name in given})
        self.suggestion = {}
        self.step = True
        return _success("Resource values set successfully.")


def _error(message: str) -> dict[str, str]:
    return {"status": "error", "message": message}


def _success(message: str) -> dict[str, str]:
    return {"status": "success", "message": message}


class SuggestionsServer:
    """The board behind a port. `port` 0 takes a free one, which is then in `port`."""

    def __init__(self, host: str = HOST, port: int = PORT, board: SuggestionsBoard | None = None) -> None:
        self.host = host
        self.port = port
        self.board = board or SuggestionsBoard()
        self._server: asyncio.Server | None = None
        self._clients = 0

    async def start(self) -> None:
        """Listen; raises OSError."""
        self._server = await asyncio.start_server(self._serve, self.host, self.port, backlog=128)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._clients += 1
        try:
            async with asyncio.timeout(PATIENCE):
                if self._clients <= MOST_CLIENTS:
                    answer = self.board.answer(await _request(reader))
                    writer.write(msgspec.json.encode(answer))
                    await writer.drain()
        except (TimeoutError, OSError):
            return
        finally:
            self._clients -= 1
            writer.close()


async def _request(reader: asyncio.StreamReader) -> str:
    """What was sent, as soon as it's whole: no terminator is sent, so a value is whole where it is JSON."""
    text = bytearray()
    while len(text) <= LARGEST_REQUEST:
        try:
            part = await asyncio.wait_for(reader.read(1 << 16), QUIET if text else PATIENCE)
        except TimeoutError:
            break
        text += part
        if not part or _is_whole(bytes(text)):
            break
    return text.decode(errors="replace")


def _is_whole(text: bytes) -> bool:
    command, _, value = text.strip().partition(b" ")
    if command.decode(errors="replace") not in VALUED or not value:
        return True
    if value[:1] == b"{" and value[-1:] != b"}":
        return False
    try:
        msgspec.json.decode(value)
    except UNDECODABLE:
        return False
    return True
