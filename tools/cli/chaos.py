"""Reads the options of `podium chaos`, runs the seeds and prints what they found."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from podium.cli.console import echo, echo_data
from podium.cli.errors import ANSWER_IS_NO, InputError
from podium.cli.options import Output, OutputOption, chosen_output, given_seeds
from tools.cli.parts import UnitsOption, part_of

if TYPE_CHECKING:
    from tools.chaos.seeds import Summary

SHOWN = 5
"""Failed seeds that are shown in full; the others are named."""


def chaos(
    seeds: Annotated[
        str, typer.Option("--seeds", metavar="A-B,C", help="One seed (417), a range (1-1000), or several with commas.")
    ] = "1-20",
    workload: Annotated[
        str | None,
        typer.Option(
            "--workload",
            metavar="NAME",
            help="basic, preemption, affinity, churn, volumes, gangs, quotas, devices, promises or mixed; else a draw.",
        ),
    ] = None,
    workers: Annotated[int, typer.Option("--workers", min=1, max=256, help="Seeds that run at a time.")] = 1,
    units: UnitsOption = None,
    json: Annotated[bool, typer.Option("--json", help="Print data instead of tables.")] = False,
    output: OutputOption = Output.TABLE,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Print everything that happened in each seed.")
    ] = False,
) -> None:
    """Test schedulers, client and API server under faults, in one process and in virtual time.

    Each seed is a cluster, a workload and a series of faults, the same each time it is run. Invariants are checked at
    every write and after the faults. Exit code 1 if one does not hold, with the command that shows it again.

    Example: podium chaos --seeds 1-100 --workers 2

    Example: podium chaos --seeds 1-1000 --units 3/10
    """

    from tools.chaos.seeds import Summary, UnknownScenarioError, check_workload, run_seeds

    printed = chosen_output(output, json)
    chosen = part_of(given_seeds(seeds), units)
    try:
        check_workload(workload)
    except UnknownScenarioError as error:
        raise InputError(str(error)) from None
    summary = Summary()
    began = time.perf_counter()
    interrupted = False
    try:
        with _progress(len(chosen)) as advance:
            for outcome in run_seeds(chosen, workload, workers, full=verbose):
                summary.add(outcome)
                advance(len(summary.failed))
                if verbose and printed is Output.TABLE:
                    echo("\n".join([f"seed {outcome.seed}, workload {outcome.workload}", *outcome.transcript]))
    except KeyboardInterrupt:
        interrupted = True
    if printed is not Output.TABLE:
        echo_data(summary.to_data(workload), printed)
    else:
        _report(summary, workload, len(chosen), time.perf_counter() - began, verbose)
    if summary.failed or interrupted:
        raise typer.Exit(ANSWER_IS_NO)


def _report(summary: "Summary", workload: str | None, wanted: int, seconds: float, verbose: bool) -> None:
    from podium.cli.console import console, print_table, table
    from tools.chaos.seeds import LAST_LINES, reproduce

    out = console()
    for title, unit, counted in (
        ("Invariants", "checked", sorted(summary.checked.items())),
        ("Faults", "injected", summary.injected.most_common()),
    ):
        rows = table()
        rows.add_column(title)
        rows.add_column(unit, justify="right")
        for name, number in counted:
            rows.add_row(name, f"{number:,}")
        print_table(out, rows)
        echo()
    for outcome in summary.failed[:SHOWN]:
        echo(f"seed {outcome.seed} failed:")
        for each in outcome.violations[:10]:
            echo(f"  at {each.at:.3f} s  {each}")
        if not verbose:
            echo("  the last that happened:")
            for line in outcome.transcript[-LAST_LINES:]:
                echo(f"    {line}")
        echo(f"  see it again: {reproduce(outcome.seed, workload)}\n")
    if len(summary.failed) > SHOWN:
        echo(f"also failed: seeds {', '.join(str(each.seed) for each in summary.failed[SHOWN:])}\n")
    done = f"{summary.seeds} seeds" if summary.seeds == wanted else f"{summary.seeds} of {wanted} seeds"
    rest = f"{summary.pods:,} pods, {summary.virtual_seconds / 3600:.1f} virtual hours in {seconds:.0f} s"
    verdict = "all invariants hold" if not summary.failed else f"{len(summary.failed)} failed"
    echo(f"{done}, {rest}: {verdict}")


@contextmanager
def _progress(total: int) -> Iterator[Callable[[int], None]]:
    """A bar on standard error if that is a terminal; called after each seed with the number of failures so far."""
    if not sys.stderr.isatty():
        yield lambda _failed: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("seeds", total=total)

        def advance(failed: int) -> None:
            progress.update(task, advance=1, description=f"seeds ({failed} failed)" if failed else "seeds")

        yield advance
