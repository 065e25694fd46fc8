"""Prints for all commands: text, data and tables, in which control characters of names and messages are visible.

Tables look the same everywhere: plain, without frames, and wide enough in a pipe. A pipe whose reader has ended
(`podium explain … | head -1`) takes the rest in silence, so that a command ends with the code it would have ended with.
"""

import os
import select
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TextIO

from podium.cli.options import Output

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


PIPE_WIDTH = 120

_ANSWERS: ContextVar[TextIO | None] = ContextVar("answers", default=None)
"""Standard output, while what plugins print goes to standard error."""


@contextmanager
def plugins_print_to_stderr() -> Iterator[None]:
    """Decorates a command that calls plugins: what they print is no part of its answer."""
    token = _ANSWERS.set(sys.stdout)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        _ANSWERS.reset(token)


def echo(text: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Print to standard output, or to standard error."""
    from podium.kube.printable import printable_lines

    stream = sys.stderr if err else _ANSWERS.get() or sys.stdout
    stream.write(f"{printable_lines(text)}\n" if nl else printable_lines(text))
    stream.flush()


def echo_json(value: Any) -> None:
    """Print a value as JSON, indented."""
    import msgspec

    from podium.kube.printable import printable_json

    echo(msgspec.json.format(printable_json(msgspec.json.encode(value).decode())))


def echo_data(value: Any, output: Output) -> None:
    """Print a value as YAML where that is asked for, else as JSON."""
    if output is not Output.YAML:
        echo_json(value)
        return
    import msgspec
    import yaml

    echo(yaml.safe_dump(msgspec.to_builtins(value), sort_keys=False, allow_unicode=True, width=2**16), nl=False)


def say(out: "Console", sentence: str, style: str) -> None:
    """Print a sentence: on a terminal wrapped between words, elsewhere in one line, so that it can be searched for."""
    from podium.kube.printable import printable

    out.print(printable(sentence), style=style, soft_wrap=not out.is_terminal)


def console(pipe_width: int = PIPE_WIDTH) -> "Console":
    """Standard output: as wide as the terminal, or as `COLUMNS` says, or wide enough for a table in a pipe."""
    from rich.console import Console

    out = Console(file=_ANSWERS.get(), highlight=False, markup=False, emoji=False)
    if not out.is_terminal and "COLUMNS" not in os.environ:
        out.width = pipe_width
    return out


def print_table(out: "Console", rows: "Table", *, turn: bool = False) -> None:
    """Print a table as wide as there is room, in blocks where there is too little, and never with a number cut off.

    With `turn` it is turned round where it is too wide. Lines have no blanks at their end.
    """
    from podium.cli.fitted_table import blocks, least_width, turned

    width = out.width
    for number, part in enumerate(blocks(turned(rows, width) if turn else rows, width)):
        out.width = max(width, least_width(part))
        with out.capture() as captured:
            out.print(part)
        out.width = width
        lines = [line.rstrip() for line in captured.get().splitlines()]
        out.file.write("\n".join([*([""] * bool(number)), *lines, ""]))
    out.file.flush()


def table(title: str | None = None) -> "Table":
    from rich import box

    from podium.cli.fitted_table import PrintableTable
    from podium.kube.printable import printable

    return PrintableTable(
        title=None if title is None else printable(title),
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )


def has_reader() -> bool:
    """Whether the reader of standard output is still there, where it is a pipe."""
    out = _ANSWERS.get() or sys.stdout
    return not isinstance(out, PipeEnd) or out.has_reader()


class PipeEnd:
    """A stream that discards what it is given once its reader has ended."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._discards = False

    def has_reader(self) -> bool:
        """Whether what is written still goes somewhere; a pipe tells that before anything is written."""
        if self._discards:
            return False
        try:
            number = self._stream.fileno()
        except OSError:  # no file: a program that runs a command in its own process reads it
            return True
        poll = select.poll()
        poll.register(number, 0)
        return not poll.poll(0)

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except BrokenPipeError:
            self._discard()
            return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except BrokenPipeError:
            self._discard()

    def _discard(self) -> None:
        """Let the rest, and what is still buffered, go nowhere."""
        self._discards = True
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._stream.fileno())
        os.close(nowhere)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def progress_bar(total: int, what: str) -> Iterator[Callable[[str, int], None]]:
    """A bar; `report(text, done)` shows what runs, and `done` is True where one more is done, or how many are.

    A `total` of 0 is unknown.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (
        SpinnerColumn(),
        BarColumn(20),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(what, total=total or None)

        def report(text: str, done: int) -> None:
            if isinstance(done, bool):
                progress.update(task, description=text, advance=done)
            else:
                progress.update(task, description=text, completed=done)

        yield report
