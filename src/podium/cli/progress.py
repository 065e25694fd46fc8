"""Shows how far a long command is: a bar on standard error, if that is a terminal."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_bar(total: int, what: str) -> Iterator[Callable[[str, int], None]]:
    """A bar; `report(text, done)` shows what runs, and `done` is True where one more is done, or how many are."""
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
        task = progress.add_task(what, total=total)

        def report(text: str, done: int) -> None:
            if isinstance(done, bool):
                progress.update(task, description=text, advance=done)
            else:
                progress.update(task, description=text, completed=done)

        yield report
