"""Compares profiles on a scenario, in virtual time (`podium simulate`)."""

import shlex
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Annotated, Any

import typer

from podium.cli.console import console, echo, echo_data, echo_json, print_table, table
from podium.cli.errors import ANSWER_IS_NO, InputError
from podium.cli.files import writing
from podium.cli.options import (
    KubernetesVersionOption,
    Output,
    OutputOption,
    PluginOption,
    chosen_output,
    option_groups,
)
from podium_lab.cli.unit_options import UnitFlags, print_estimate, print_status

if TYPE_CHECKING:
    from podium_lab.simulator.comparison import Difference
    from podium_lab.simulator.qos_figures import SimulatedQosPage
    from podium_lab.simulator.results import SimulationResults
    from podium_lab.simulator.sweep import Plan


STATUS = "status"
"""What to write instead of a scenario to see how far a store is; a scenario of that name is ./status."""


@option_groups
def simulate(
    *,
    scenario: Annotated[
        str | None,
        typer.Argument(
            metavar="SCENARIO", help="A scenario file; or status, to see how far a store is.", show_default=False
        ),
    ] = None,
    kept: Annotated[
        str | None, typer.Argument(metavar="STORE", help="With status: the store.", show_default=False)
    ] = None,
    profiles: Annotated[
        str | None, typer.Option("--profiles", metavar="A,B", help="Only these profiles of the scenario.")
    ] = None,
    seeds: Annotated[
        str | None, typer.Option("--seeds", metavar="A-B,C", help="Other seeds than the scenario's: 7, 42-51 or 1,5.")
    ] = None,
    data: Annotated[
        str | None, typer.Option("--data", metavar="DIR", help="Where the files are that the scenario names.")
    ] = None,
    sets: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Override a value of the scenario. Repeatable."),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option("--out", metavar="DIR", help="Where results go; else SCENARIO-results, or nowhere with -o json."),
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print a list of rows, one per profile, seed and checkpoint.")
    ] = False,
    output: OutputOption = Output.TABLE,
    check: Annotated[bool, typer.Option("--check", help="Only check the scenario and the files it names.")] = False,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON Schema of scenarios, for an editor.")
    ] = False,
    qos_port: Annotated[
        int | None,
        typer.Option(
            "--qos-port",
            metavar="PORT",
            min=0,
            max=65535,
            help="Where the QoS page of a broker workload is served, on loopback, while runs are done one at a time; "
            "else 10000 where it is free. 0 serves none.",
            show_default=False,
        ),
    ] = None,
    plugin: PluginOption = None,
    kubernetes_version: KubernetesVersionOption = None,
    flags: UnitFlags,
) -> None:
    """Compare profiles on a scenario: pods arrive, wait, run and end in virtual time, decided by the same engine.

    Results go to a folder: results.csv, waits.csv, unplaced.csv, classes.csv (by shape, priority, namespace, label),
    differences.csv (between profiles, paired by seed), results.parquet where pyarrow is installed, and report.html. An
    interrupt leaves what is finished, and exit code 1. With --store, the same command continues from there, on any
    engine.

    Example: podium simulate scenario.yaml --profiles default,packed --seeds 42-51 --workers 2

    Example: podium simulate scenario.yaml --store runs --units 1/8

    Example: podium simulate status runs
    """
    import msgspec

    from podium.cli.configuration import given_rules
    from podium.kube.versions import NEWEST
    from podium_lab.simulator import sweep
    from podium_lab.simulator.comparison import compare, detailed_rows
    from podium_lab.simulator.scenario import scenario_schema
    from podium_lab.units.progress import UnitProgress

    if schema:
        echo_json(scenario_schema())
        return
    if scenario is None:
        raise InputError("Missing argument 'SCENARIO' (see podium simulate --help)")
    printed = chosen_output(output, json)
    if scenario == STATUS:
        _status(kept, printed)
        return
    if kept is not None:
        raise InputError(f"{kept}: one scenario is run at a time; write podium simulate status STORE to see a store")
    options = flags.options()
    rules = given_rules(kubernetes_version) or NEWEST
    loaded = msgspec.structs.replace(sweep.load(scenario, data, sets or ()), kubernetes_version=str(rules))
    chosen = None if profiles is None else [name.strip() for name in profiles.split(",") if name.strip()]
    planned = sweep.plan(loaded, chosen, seeds, plugin or ())
    for oddity in planned.oddities:
        echo(oddity, err=True)
    if check:
        _check(planned, scenario)
        return
    command = _command(scenario, planned, data, sets, plugin)
    if kubernetes_version is not None:
        command += f" --kubernetes-version {rules}"
    if flags.estimate:
        print_estimate(sweep.estimate(planned, options, flags.store), printed is not Output.TABLE)
        return
    # Before the runs: a folder that cannot be made must not cost them.
    folder = None if not options.part.whole else _folder(scenario, out, printed)
    began = time.perf_counter()
    shown = options.workers == 1 and options.engine == "local" and sweep.has_promises(loaded)
    with _qos_page(qos_port, shown) as page, UnitProgress(always=flags.store is not None) as bar:
        results = sweep.complete(
            planned,
            options,
            flags.store,
            on_unit=bar.on_unit,
            on_notice=lambda sentence: echo(sentence, err=True),
            progress=lambda arrived: bar.inside(f"{arrived:,} pods"),
            page=page,
            command=command if flags.store is None else f"{command} --store {shlex.quote(flags.store)}",
        )
    if not options.part.whole:
        flags.say_part(options, len(results.runs), results.planned)
        return
    differences = compare(results)
    written = [] if folder is None else _write(results, differences, folder, command)
    if printed is not Output.TABLE:
        state: dict[str, Any] = {"kubernetesVersion": str(rules)}
        reasons = {why for run in results.runs for why in run.not_reproducible}
        if reasons:
            state["notReproducible"] = sorted(reasons)
        echo_data([{**row, "state": state} for row in detailed_rows(results, differences)], printed)
    elif results.runs:
        _print_results(results, differences, time.perf_counter() - began, written)
    for run in results.runs:
        for why in run.not_reproducible:
            echo(f"profile {run.profile}, seed {run.seed}: not reproducible: {why}", err=True)
    if len(results.runs) < results.planned:
        echo(f"interrupted: {len(results.runs)} of {results.planned} runs are finished", err=True)
        raise typer.Exit(ANSWER_IS_NO)


def _status(store: str | None, printed: Output) -> None:
    from podium_lab.units.status import store_status

    if store is None:
        raise InputError("podium simulate status: name the store, such as podium simulate status runs")
    found = store_status(store)
    if printed is Output.TABLE:
        print_status(found)
    else:
        echo_data(found.to_data(), printed)
    if not found.complete:
        raise typer.Exit(ANSWER_IS_NO)


@contextmanager
def _qos_page(port: int | None, shown: bool) -> "Iterator[SimulatedQosPage | None]":
    """The QoS page while the runs last, where there is something to show and the port is free."""
    from podium_lab.simulator.qos_figures import served_qos_page
    from podium_plugins.qos.page import PORT

    if not shown or port == 0:
        yield None
        return
    with served_qos_page(PORT if port is None else port) as page:
        if page.problem is not None and port is not None:
            echo(f"{page.problem}; give another port with --qos-port", err=True)
        yield page if page.problem is None else None


def _check(planned: "Plan", scenario: str) -> None:
    from podium_lab.simulator.sweep import check_files

    pods, nodes = check_files(planned)
    echo(f"{scenario}: fine: {_some(nodes, 'node')}, {pods} in the first run, {_some(len(planned.jobs), 'run')}")


def _some(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _folder(scenario: str, out: str | None, printed: Output) -> Path | None:
    if out is None and printed is not Output.TABLE:
        return None
    folder = Path(out) if out is not None else Path(f"{Path(scenario).stem}-results")
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):
            pass  # a folder that is there may not take files
    return folder


def _command(
    scenario: str, planned: "Plan", data: str | None, sets: list[str] | None, plugins: list[str] | None
) -> str:
    """What to type for the same results."""
    from podium.config.seeds import written_seeds

    profiles = dict.fromkeys(job.contender.name for job in planned.jobs)
    seeds = written_seeds([job.seed for job in planned.jobs])
    words = ["podium", "simulate", scenario, "--profiles", ",".join(profiles), "--seeds", seeds]
    for option, values in (("--data", [data] if data else []), ("--set", sets or []), ("--plugin", plugins or [])):
        words += [word for value in values for word in (option, value)]
    return shlex.join(words)


def _write(results: "SimulationResults", differences: "Sequence[Difference]", folder: Path, command: str) -> list[Path]:
    from podium_lab.simulator.comparison import write_differences
    from podium_lab.simulator.report import write_report
    from podium_lab.simulator.results import has_parquet

    with writing(folder):
        written = [*results.write_csv(folder), write_differences(differences, folder / "differences.csv")]
        if has_parquet():
            written.append(results.write_parquet(folder))
        return [*written, write_report(results, folder / "report.html", command)]


def _print_results(
    results: "SimulationResults", differences: "Sequence[Difference]", seconds: float, written: list[Path]
) -> None:

    print_results(results, differences)
    pods = sum(int(run.table[-1][1]) for run in results.runs)
    echo(f"\n{_some(len(results.runs), 'run')}, {pods:,} pods in {seconds:.1f} s")
    if written:
        echo(f"report: {written[-1]}")


if TYPE_CHECKING:
    from rich.table import Table

    from podium_lab.simulator.comparison import Difference
    from podium_lab.simulator.results import SimulationResults


def print_results(results: "SimulationResults", differences: "Sequence[Difference]") -> None:
    """Every table that has something to say."""
    out = console()
    print_table(out, _summary(results), turn=True)
    for rows in _classes(results):
        echo()
        print_table(out, rows)
    compared = _differences(results, differences)
    if compared is not None:
        echo()
        print_table(out, compared)
        echo("Paired by seed; * where the 95 % interval of the differences (±) leaves out 0.")


def _summary(results: "SimulationResults") -> "Table":
    from podium_lab.simulator.report.tables import number, words
    from podium_lab.simulator.summary import shown, summarise

    rows = summarise(results)
    figures = shown(results, rows)
    lines = table()
    lines.add_column("profile", no_wrap=True)
    for name in figures:
        lines.add_column(words(name), justify="right")
    for row in rows:
        profile = row.profile if row.at is None else f"{row.profile}, {row.at} % arrived"
        lines.add_row(profile, *(number(row.figures.get(name)) for name in figures))
    return lines


def _classes(results: "SimulationResults") -> "Iterator[Table]":
    from podium_lab.simulator.report.tables import class_cells, words
    from podium_lab.simulator.summary import CLASSES_SHOWN, MOST_CLASSES, class_tables

    for by, classes in class_tables(results).items():
        lines = table(f"By {by}")
        for heading in (by.removeprefix("label "), "profile"):
            lines.add_column(heading, no_wrap=True)
        for figure in CLASSES_SHOWN:
            lines.add_column(words(figure), justify="right")
        for name, profiles in list(classes.items())[:MOST_CLASSES]:
            for profile, figures in profiles.items():
                lines.add_row(name, profile, *class_cells(figures))
        if len(classes) > MOST_CLASSES:
            lines.add_row(f"… {len(classes) - MOST_CLASSES} more in classes.csv", "")
        yield lines


def _differences(results: "SimulationResults", differences: "Sequence[Difference]") -> "Table | None":
    """What each profile has more than the first one."""
    from podium_lab.simulator.comparison import shown_differences
    from podium_lab.simulator.report.tables import difference, measured_words

    found = shown_differences(results, differences)
    if not found:
        return None
    first, *others = results.profiles
    lines = table(f"More than {first}")
    lines.add_column("", no_wrap=True)
    for profile in others:
        lines.add_column(profile, justify="right")
    for measured, of_profiles in found.items():
        lines.add_row(measured_words(measured), *(difference(of_profiles.get(profile)) for profile in others))
    return lines
