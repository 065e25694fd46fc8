"""Shows lines on a terminal and reads its keys: on the alternate screen, so that what was there before comes back.

Only lines that changed are written, and all of them after a resize. Keys arrive one by one and are not
echoed; Ctrl-C and Ctrl-Z stay signals. A process in the background leaves the terminal alone.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import termios
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

from rich.console import Console
from rich.text import Text

from podium_cluster.up.live_view.frame import Size
from podium_cluster.up.live_view.keys import KeyReader

_ESCAPE_WAIT: Final = 0.05
"""Seconds in which the rest of a key that began with Escape arrives."""
_ENTER: Final = "\x1b[?1049h\x1b[?25l\x1b[?7l"
"""Alternate screen, no cursor, no wrapping at the right edge."""
_LEAVE: Final = "\x1b[?7h\x1b[?25h\x1b[?1049l"


def in_foreground() -> bool:
    """Whether this process may use the terminal: keys of one in the background belong to the shell."""
    try:
        return os.tcgetpgrp(sys.stdout.fileno()) == os.getpgrp()
    except OSError:
        return False


class Terminal:
    """The terminal of standard output, whose keys `on_key` gets; `on_change` is called when its size changed."""

    def __init__(self, on_key: Callable[[str], None], on_change: Callable[[], None]) -> None:
        self._out = sys.stdout
        self._console = Console(file=self._out, highlight=False, markup=False, emoji=False, force_terminal=True)
        self._keys = KeyReader()
        self._on_key = on_key
        self._on_change = on_change
        self._shown: list[Text] = []
        self._size = Size(0, 0)
        self._keyboard = _open_keyboard(self._out.fileno())
        self._modes: list[Any] | None = None
        self._entered = False
        self._unfinished: asyncio.TimerHandle | None = None

    @property
    def size(self) -> Size:
        size = Size(0, 0)
        with suppress(OSError):
            size = Size(*os.get_terminal_size(self._out.fileno()))
        return size if size.width and size.height else Size(*shutil.get_terminal_size())

    def enter(self) -> None:
        """Take the terminal, unless this process is in the background; that may be tried again."""
        if self._entered or not in_foreground():
            return
        self._entered = True
        loop = asyncio.get_running_loop()
        if self._keyboard is not None:
            self._modes = termios.tcgetattr(self._keyboard)
            termios.tcsetattr(self._keyboard, termios.TCSADRAIN, _key_by_key(self._modes))
            loop.add_reader(self._keyboard, self._read)
        loop.add_signal_handler(signal.SIGWINCH, self._on_change)
        loop.add_signal_handler(signal.SIGTSTP, self._pause)
        self._shown = []
        self._write(_ENTER)

    def leave(self) -> None:
        """Give the terminal back as it was."""
        if not self._entered:
            return
        self._entered = False
        loop = asyncio.get_running_loop()
        loop.remove_signal_handler(signal.SIGWINCH)
        loop.remove_signal_handler(signal.SIGTSTP)
        rows = range(1, len(self._shown) + 1)
        self._write("".join(f"\x1b[{row};1H\x1b[K" for row in rows) + _LEAVE)  # tmux would mix the two screens
        if self._keyboard is not None and self._modes is not None:
            loop.remove_reader(self._keyboard)
            with suppress(termios.error):  # the terminal is gone
                termios.tcsetattr(self._keyboard, termios.TCSADRAIN, self._modes)

    def close(self) -> None:
        self.leave()
        if self._keyboard is not None:
            os.close(self._keyboard)
            self._keyboard = None

    def show(self, lines: Sequence[Text]) -> None:
        """Have the terminal show these lines."""
        self.enter()
        if not self._entered:
            return
        size = self.size
        before = self._shown if size == self._size else []
        self._size = size
        self._shown = list(lines[: size.height])
        changed = [
            f"\x1b[{row + 1};1H\x1b[K{self._codes(line, size.width)}"
            for row, line in enumerate(self._shown)
            if row >= len(before) or before[row] != line
        ]
        if changed:
            self._write(f"{''.join(changed)}\x1b[{size.height};1H")

    def forget(self) -> None:
        """Write every line next time, changed or not."""
        self._shown, self._size = [], Size(0, 0)

    def _codes(self, line: Text, width: int) -> str:
        self._console.width = width
        with self._console.capture() as captured:
            self._console.print(line, end="", no_wrap=True, overflow="crop", crop=True)
        return captured.get().rstrip("\n")

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()

    def _read(self) -> None:
        assert self._keyboard is not None
        try:
            data = os.read(self._keyboard, 4096)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:  # the terminal is gone
            asyncio.get_running_loop().remove_reader(self._keyboard)
            return
        if self._unfinished is not None:
            self._unfinished.cancel()
        for key in self._keys.feed(data):
            self._on_key(key)
        if self._keys.unfinished:
            self._unfinished = asyncio.get_running_loop().call_later(_ESCAPE_WAIT, self._finish)

    def _finish(self) -> None:
        for key in self._keys.finish():
            self._on_key(key)

    def _pause(self) -> None:
        """Ctrl-Z: stop like any program, and take the terminal again when continued in the foreground."""
        self.leave()
        os.kill(os.getpid(), signal.SIGSTOP)
        self.forget()
        self._on_change()


def _open_keyboard(output: int) -> int | None:
    """The terminal, opened once more: an event loop makes non-blocking what it reads, and standard input shares that
    with standard output and with the shell."""
    with suppress(OSError):
        return os.open(os.ttyname(output), os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC)
    with suppress(OSError):  # after su, the terminal's file is another user's
        return os.open(os.ctermid(), os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC)
    return None


def _key_by_key(modes: list[Any]) -> list[Any]:
    changed = [*modes[:6], list(modes[6])]
    changed[0] &= ~(termios.IXON | termios.ICRNL)
    changed[3] &= ~(termios.ICANON | termios.ECHO)
    changed[6][termios.VMIN], changed[6][termios.VTIME] = 1, 0
    return changed
