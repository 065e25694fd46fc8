"""Repeats, delays and reorders the events of a watch, as through a broken proxy or from another cache.

Works on the bytes that a server writes: an answer whose body comes in chunks of whole lines. What was held back is sent
together with what comes after it, in one piece, so that no cut can fall between: a client that goes on from the newest
version it saw could not know of what it never got.
"""

from __future__ import annotations

import random
from collections.abc import Callable

DOUBLED, REORDERED = "watch events doubled", "watch events reordered"
END_OF_HEAD = b"\r\n\r\n"


class Mangling:
    """For `End.filter` of the server's side, from the request of a watch on."""

    def __init__(self, chance: Callable[[str], bool], rng: random.Random) -> None:
        """`chance` says whether one of these happens now."""
        self._chance = chance
        self._rng = rng
        self.in_one_piece = False
        """Whether what was just given must not be cut or split."""
        self._in_body = False
        self._buffer = b""
        self._earlier: list[bytes] = []  # the last few events, to be repeated
        self._held: bytes | None = None

    def __call__(self, data: bytes) -> bytes:
        self.in_one_piece = False
        self._buffer += data
        sent = b""
        if not self._in_body:
            head, found, rest = self._buffer.partition(END_OF_HEAD)
            if not found:
                return b""
            if b"transfer-encoding: chunked" not in head.lower():
                self._in_body = False
                sent, self._buffer = self._buffer, b""
                return sent
            self._in_body = True
            sent, self._buffer = head + found, rest
        while (chunk := self._next_chunk()) is not None:
            sent += self._changed(chunk)
        return sent

    def _next_chunk(self) -> bytes | None:
        size_line, found, rest = self._buffer.partition(b"\r\n")
        if not found:
            return None
        size = int(size_line, 16)
        if len(rest) < size + 2:
            return None
        self._buffer = rest[size + 2 :]
        return rest[:size]

    def _changed(self, chunk: bytes) -> bytes:
        if not chunk:
            self._in_body = False
            last, self._held = self._held, None
            return (_framed(last) if last else b"") + b"0\r\n\r\n"
        if not chunk.endswith(b"\n"):
            return _framed(chunk)
        lines = chunk.splitlines(keepends=True)
        if self._held is not None:
            lines.insert(self._rng.randrange(1, len(lines) + 1), self._held)
            self._held = None
            self.in_one_piece = True
        elif b'"BOOKMARK"' not in lines[0] and self._chance(REORDERED):
            if len(lines) == 1:
                self._held = lines[0]
                return b""
            self._rng.shuffle(lines)
            self.in_one_piece = True
        if self._earlier and self._chance(DOUBLED):
            lines.append(self._rng.choice(self._earlier))
        self._earlier = (self._earlier + [line for line in lines if b'"BOOKMARK"' not in line])[-8:]
        return _framed(b"".join(lines))


def _framed(content: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(content), content)
