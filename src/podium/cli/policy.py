"""Shows and checks policy files (`podium policy`)."""

from typing import Annotated

import typer

from podium.cli.console import echo
from podium.cli.errors import ANSWER_IS_NO, InputError

app = typer.Typer(name="policy", help="Policies of learned scores.", no_args_is_help=True)

PolicyArgument = Annotated[str, typer.Argument(metavar="FILE", help="A policy file, or the name of one that ships.")]


@app.callback()
def policy() -> None:
    """Policies of learned scores."""


@app.command()
def show(file: PolicyArgument) -> None:
    """Show a policy: its weights, where they come from, and how it was judged.

    Example: podium policy show readable
    """
    from podium.cli.console import console, print_table, table
    from podium.placement.gpu.terms import GROUPS, TERMS
    from podium.plugins.learned.policy_file import PolicyError, path_of, read_policy

    try:
        found = read_policy(path_of(file))
    except PolicyError as error:
        raise InputError(str(error)) from None
    echo(f"{found.name} {found.version} ({found.kind}), sha256 {found.sha256[:16]}…")
    points = f"points = {found.calibration.offset:g} + {found.calibration.scale:g}·score, rounded, within 0–100"
    echo(points)
    out = console()
    weights = table()
    for heading in ("term", *GROUPS):
        weights.add_column(heading, justify="left" if heading == "term" else "right")
    for term in TERMS:
        row = [found.weights[group].get(term, 0.0) for group in GROUPS]
        if any(row):
            weights.add_row(term, *(f"{weight:.3f}" if weight else "" for weight in row))
    print_table(out, weights)
    for name, what in found.provenance.items():
        echo(f"{name}: {_short(what)}")
    for line in found.evaluation:
        echo(", ".join(f"{name} {value}" for name, value in line.items()))


@app.command()
def verify(file: PolicyArgument) -> None:
    """Check a policy file: checksum, terms, numbers, provenance. Exit code 1 where it cannot be used.

    Example: podium policy verify readable
    """
    from podium.plugins.learned.policy_file import PolicyError, path_of, read_policy

    path = path_of(file)
    if not path.is_file():
        raise InputError(f"{file}: there is no such file, and no policy of that name ships")
    try:
        found = read_policy(path)
    except PolicyError as error:
        echo(str(error), err=True)
        raise typer.Exit(ANSWER_IS_NO) from None
    echo(f"{found.name} {found.version}: fine")


def _short(what: object) -> str:
    if isinstance(what, list) and len(what) > 6 and all(isinstance(each, int) for each in what):
        return f"{len(what)} from {min(what)} to {max(what)}"
    if isinstance(what, dict):
        return ", ".join(f"{name} {str(value)[:16]}" for name, value in what.items())
    return str(what)
