"""Splits a watch into lines: it is one JSON document per line, but the network delivers chunks."""

from podium.client.errors import ClientError

LONGEST_LINE = 16 << 20
"""No object comes near it: etcd refuses those over 1.5 MB. It keeps a stream without line ends out of memory."""


class BrokenStream(ClientError):  # noqa: N818  (it reads as what happened)
    """The server sent something that is not what was asked for."""


class LineSplitter:
    """Collects chunks into lines; what is left at the end of the stream is not a whole line, and is dropped."""

    def __init__(self, longest: int = LONGEST_LINE) -> None:
        self._longest = longest
        self._begun: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that this chunk ends, without their line ends; blank ones are left out."""
        lines = chunk.split(b"\n")
        self._begin(lines[0])
        if len(lines) == 1:
            return []
        lines[0] = b"".join(self._begun)
        self._begun.clear()
        self._size = 0
        self._begin(lines.pop())
        return [line for line in lines if line]

    def _begin(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > self._longest:
            raise BrokenStream(f"the server sent a line of more than {self._longest} bytes")
        if part:
            self._begun.append(part)
