"""`podium check`: is this KubeSchedulerConfiguration right, and what will it do?

Every mistake is one line that starts with file and line, so that editors and CI turn it into a link. Without mistakes
the command shows what the file amounts to: the plugins of each extension point in running order.
"""

import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

if TYPE_CHECKING:
    from podium.config import LoadedConfig, Problem, Profile, Registry

BAD_INPUT = 2


class Output(StrEnum):
    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


def check(
    file: Annotated[Path, typer.Argument(help="The configuration, YAML or JSON; - reads standard input.")],
    output: Annotated[
        Output,
        typer.Option(
            "--output",
            "-o",
            help="table: the plugins in running order. yaml: the configuration with every default spelt out. "
            "json: both, with problems and warnings as data.",
        ),
    ] = Output.TABLE,
    plugin: Annotated[
        list[str] | None,
        typer.Option("--plugin", metavar="MODULE:CLASS", help="A plugin of yours that the file names; repeatable."),
    ] = None,
) -> None:
    """Check a KubeSchedulerConfiguration and show what it amounts to.

    Exits 0 when it can be used, 2 when it cannot. Warnings do not change that.

    Example: podium check scheduler.yaml -o yaml
    """
    from podium.config import ConfigError, load_config

    text, source = _read(file)
    registry = _registry(plugin or [])
    try:
        loaded = load_config(text, source, registry)
    except ConfigError as error:
        problems = sorted(error.problems, key=lambda problem: (problem.line, problem.column))
        if output is Output.JSON:
            _print_json(valid=False, problems=problems, warnings=[])
        else:
            for problem in problems:
                typer.echo(str(problem), err=output is Output.YAML)
        raise typer.Exit(BAD_INPUT) from None
    _show(loaded, source, output)


def _show(loaded: "LoadedConfig", source: str, output: Output) -> None:
    from podium.config import to_dict, to_yaml

    if output is Output.JSON:
        _print_json(valid=True, problems=[], warnings=loaded.warnings, config=to_dict(loaded.config))
        return
    for warning in loaded.warnings:
        typer.echo(f"warning: {warning}", err=True)
    if output is Output.YAML:
        typer.echo(to_yaml(loaded.config), nl=False)
        return
    typer.echo(f"{source}: fine")
    for profile in loaded.config.profiles:
        _print_profile(profile)


def _print_profile(profile: "Profile") -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"profile {profile.scheduler_name}", title_justify="left", show_edge=False)
    table.add_column("extension point", no_wrap=True)
    table.add_column("plugins in running order (weight)")
    for point, names in profile.plugins.items():
        weights = profile.weights if point == "score" else profile.placement_weights
        weighted = point in ("score", "placementScore")
        shown = [f"{name} ({weights[name]})" if weighted else name for name in names]
        if shown:
            table.add_row(point, ", ".join(shown))
    Console().print(table)


def _print_json(valid: bool, problems: "Sequence[Problem]", warnings: "Sequence[Problem]", **more: Any) -> None:
    import msgspec

    report = {"valid": valid, "problems": problems, "warnings": warnings, **more}
    typer.echo(msgspec.json.format(msgspec.json.encode(report)).decode())


def _read(file: Path) -> tuple[str, str]:
    try:
        data = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
        return data.decode(), "<stdin>" if str(file) == "-" else str(file)
    except OSError as error:
        _refuse(f"{file}: cannot be read: {error.strerror}")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        _refuse(f"{file}:{line}: not UTF-8 text; save the file as UTF-8")


def _registry(extra: Sequence[str]) -> "Registry":
    from podium.framework.registry import load_registry

    try:
        registry: Registry = load_registry(extra)
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        _refuse(f"--plugin: {error}")
    return registry


def _refuse(sentence: str) -> NoReturn:
    typer.echo(sentence, err=True)
    raise typer.Exit(BAD_INPUT)
