"""Lists, shows and copies the examples that ship with Podium (`podium examples`)."""

from __future__ import annotations

import difflib
import shutil
from pathlib import Path
from typing import Annotated, Final

import typer

from podium.cli.commands import Commands
from podium.cli.console import echo
from podium.cli.errors import InputError
from podium.cli.files import SAMPLE, SAMPLES, writing
from podium.cli.options import Output

ALL: Final = "all"
PACKAGE: Final = Path(__file__).parents[1]
NameArgument = Annotated[
    str, typer.Argument(metavar="NAME", help="As the list has it; the folder and the ending may be left out.")
]

app = Commands(name="examples")


@app.callback(invoke_without_command=True)
def examples(
    context: typer.Context,
    output: Annotated[Output, typer.Option("-o", "--output", help="How to print the list.")] = Output.TABLE,
) -> None:
    """List the examples that ship: configurations, manifests, scenarios and traces.

    Example: podium examples
    """
    if context.invoked_subcommand is not None:
        return
    from podium.cli.console import console, echo_data, print_table, table

    folder = examples_folder()
    found = {file.relative_to(folder).as_posix(): _about(file) for file in _files(folder)}
    if output is not Output.TABLE:
        echo_data([{"name": name, "about": about} for name, about in found.items()], output)
        return
    rows = table()
    rows.add_column("example", no_wrap=True)
    rows.add_column("what it is", overflow="fold")
    for name, about in found.items():
        rows.add_row(name, about)
    print_table(console(), rows)
    samples = ", ".join(f"{SAMPLE}{file.stem}" for file in sorted(SAMPLES.glob("*.yaml")))
    echo(f"\nShow one with podium examples show NAME, get them with podium examples copy {ALL} DIR.")
    echo(f"Commands that read the objects of a cluster take these names, too: {samples}.")


@app.command()
def show(name: NameArgument) -> None:
    """Print an example.

    Example: podium examples show coscheduling | podium check -
    """
    echo(_named(name).read_text(encoding="utf-8"), nl=False)


@app.command()
def copy(
    name: Annotated[str, typer.Argument(metavar="NAME|all", help="As the list has it; all: every one.")],
    target: Annotated[Path, typer.Argument(metavar="DIR", help="The folder to copy to; it is made where it is not.")],
) -> None:
    """Copy an example, or all of them, into a folder; files that are there are never replaced.

    Example: podium examples copy all examples
    """
    folder = examples_folder()
    wanted = {
        file: target / file.relative_to(folder) if name == ALL else target / file.name
        for file in (_files(folder) if name == ALL else [_named(name)])
    }
    there = next((each for each in wanted.values() if each.exists()), None)
    if there is not None:
        raise InputError(f"{there} exists already; remove it, or give another folder")
    with writing(target):
        for source, copied in wanted.items():
            copied.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, copied)
    echo(f"{target} holds {len(wanted)} files" if name == ALL else str(next(iter(wanted.values()))))


def examples_folder() -> Path:
    """Where they lie: in the package as a wheel has it, beside the sources in a checkout."""
    packaged = PACKAGE / "examples"
    return packaged if packaged.is_dir() else PACKAGE.parents[1] / "examples"


def _files(folder: Path) -> list[Path]:
    """All of them, without what Python compiled when pip installed them."""
    found = [each for each in folder.rglob("*") if each.is_file() and each.parent.name != "__pycache__"]
    return sorted(found, key=lambda file: (file.parent != folder, file.relative_to(folder).as_posix()))


def _named(name: str) -> Path:
    folder = examples_folder()
    names = {file.relative_to(folder).as_posix(): file for file in _files(folder)}
    found = [file for known, file in names.items() if name in (known, Path(known).with_suffix("").as_posix())]
    found = found or [file for file in names.values() if name in (file.name, file.stem)]
    if len(found) == 1:
        return found[0]
    if found:
        several = " or ".join(each.relative_to(folder).as_posix() for each in found)
        raise InputError(f"{name}: there are several examples of that name; write {several}")
    close = difflib.get_close_matches(name, [*names, *(file.stem for file in names.values())], n=1)
    hint = f"did you mean {close[0]}?" if close else "podium examples lists them"
    raise InputError(f"{name}: there is no such example; {hint}")


def _about(file: Path) -> str:
    """The first sentence of its comment; of a table of data, how long it is."""
    lines = file.read_text(encoding="utf-8").splitlines()
    if file.suffix == ".csv":
        return f"data of a scenario: {len(lines):,} lines"
    if file.suffix == ".json":
        return f"settings for the other files of {file.parent.name}"
    if file.suffix == ".py":
        return lines[0].strip('"').partition(": ")[0].rstrip(".")
    comment = []
    for line in lines:
        if not line.startswith("# "):
            break
        comment.append(line.removeprefix("# ").strip())
    return " ".join(comment).partition("podium simulate")[0].partition(". ")[0].rstrip(" :.(")
