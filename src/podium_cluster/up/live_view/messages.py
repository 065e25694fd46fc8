"""Keeps what is said while the live view covers the terminal: the log, what plugins print, and what Podium says.

Trouble (warnings and errors) stands first and is not driven out by prints. The same text again is counted. When the
view ends, everything is printed, so that it stays in the terminal.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable
from typing import Any, Final, NamedTuple, TextIO

from podium.config.secrets import redacted
from podium.kube.printable import printable, printable_lines, shortened

MOST: Final = 100
"""Messages of each sort, trouble and others, that are kept."""
LONGEST: Final = 20_000
"""Characters of one message."""


TROUBLE: Final = ("critical", "error", "warning")
"""Levels of the log, the worst first."""


class ViewMessage(NamedTuple):
    """`level` is that of the log in lower case, or empty for what is said or printed."""

    level: str
    headline: str
    text: str
    """All of it, the traceback included."""
    times: int = 1

    @property
    def is_trouble(self) -> bool:
        return self.level in TROUBLE


class Messages:
    """May be added to from every thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._messages: dict[tuple[str, str], ViewMessage] = {}

    def add(self, text: str, level: str = "", headline: str = "") -> None:
        text = printable_lines(text)[:LONGEST].strip("\n")
        if not text.strip():
            return
        headline = headline or next(line for line in text.splitlines() if line.strip())
        with self._lock:
            before = self._messages.pop((level, headline), None)
            message = ViewMessage(level, headline, text, 1 if before is None else before.times + 1)
            self._messages[level, headline] = message
            similar = [key for key, each in self._messages.items() if each.is_trouble == message.is_trouble]
            if len(similar) > MOST:
                del self._messages[similar[0]]

    def newest_first(self) -> list[ViewMessage]:
        """Trouble before all others."""
        newest = self._all()[::-1]
        return sorted(newest, key=lambda message: not message.is_trouble)

    def texts(self) -> Iterable[str]:
        """Everything, the oldest first."""
        for message in self._all():
            yield f"{message.text} (×{message.times})" if message.times > 1 else message.text

    def _all(self) -> list[ViewMessage]:
        with self._lock:
            return list(self._messages.values())


class MessageLog(logging.Handler):
    """A log handler that makes messages of records, whole as the handler before would have written them."""

    def __init__(self, messages: Messages, formatter: logging.Formatter | None) -> None:
        super().__init__()
        self.setFormatter(formatter)
        self._messages = messages

    def emit(self, record: logging.LogRecord) -> None:
        whole = self.format(record)  # redacted and printable: the formatter sees to that
        self._messages.add(whole, record.levelname.lower(), printable(redacted(shortened(record.getMessage()))))


class PrintedLines:
    """Stands in for sys.stdout or sys.stderr: each line that a plugin prints is a message."""

    def __init__(self, messages: Messages, stream: TextIO) -> None:
        self._messages = messages
        self._stream = stream
        self._line = ""

    def write(self, text: str) -> int:
        *lines, self._line = (self._line + text)[-LONGEST:].split("\n")
        for line in lines:
            self._messages.add(line)
        return len(text)

    def flush(self) -> None:
        """A line that has not ended waits for its end."""

    def isatty(self) -> bool:
        return False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
