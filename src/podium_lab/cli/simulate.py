"""Compares profiles on a scenario, in virtual time (`podium simulate`)."""

import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Annotated

import typer

from podium.cli.console import echo, echo_data, echo_json
from podium.cli.errors import ANSWER_IS_NO, InputError
from podium.cli.files import writing
from podium.cli.options import KubernetesVersionOption, Output, OutputOption, PluginOption, chosen_output

if TYPE_CHECKING:
    from podium_lab.simulator.comparison import Difference
    from podium_lab.simulator.qos_page import SimulatedQosPage
    from podium_lab.simulator.results import SimulationResults
    from podium_lab.simulator.run import RunResult
    from podium_lab.simulator.sweep import Plan


class SweepEngine(StrEnum):
    """Where the runs of a sweep are done."""

    LOCAL = "local"
    RAY = "ray"


def simulate(
    scenario: Annotated[
        str | None, typer.Argument(metavar="SCENARIO", help="A scenario file.", show_default=False)
    ] = None,
    profiles: Annotated[
        str | None, typer.Option("--profiles", metavar="A,B", help="Only these profiles of the scenario.")
    ] = None,
    seeds: Annotated[
        str | None, typer.Option("--seeds", metavar="A-B,C", help="Other seeds than the scenario's: 7, 42-51 or 1,5.")
    ] = None,
    workers: Annotated[int, typer.Option("--workers", min=1, max=256, help="Runs at a time.")] = 1,
    engine: Annotated[
        SweepEngine, typer.Option("--engine", help="Where runs are done: on this machine, or on Ray (podium[ray]).")
    ] = SweepEngine.LOCAL,
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
) -> None:
    """Compare profiles on a scenario: pods arrive, wait, run and end in virtual time, decided by the same engine.

    Results go to a folder: results.csv, waits.csv, unplaced.csv, classes.csv (by shape, priority, namespace, label),
    differences.csv (between profiles, paired by seed), results.parquet where pyarrow is installed, and report.html. An
    interrupt leaves what is finished, and exit code 1.

    Example: podium simulate scenario.yaml --profiles default,packed --seeds 42-51 --workers 2
    """
    import msgspec

    from podium.cli.kubernetes_version import given_rules
    from podium.kube.versions import NEWEST
    from podium_lab.simulator import sweep
    from podium_lab.simulator.comparison import compare, detailed_rows
    from podium_lab.simulator.scenario import scenario_schema

    if schema:
        echo_json(scenario_schema())
        return
    if scenario is None:
        raise InputError("Missing argument 'SCENARIO' (see podium simulate --help)")
    printed = chosen_output(output, json)
    rules = given_rules(kubernetes_version) or NEWEST
    loaded = msgspec.structs.replace(sweep.load(scenario, data, sets or ()), kubernetes_version=str(rules))
    chosen = None if profiles is None else [name.strip() for name in profiles.split(",") if name.strip()]
    planned = sweep.plan(loaded, chosen, seeds, plugin or ())
    for oddity in planned.oddities:
        echo(oddity, err=True)
    if check:
        _check(planned, scenario)
        return
    folder = _folder(scenario, out, printed)  # before the runs: a folder that cannot be made must not cost them
    began = time.perf_counter()
    shown = workers == 1 and engine is SweepEngine.LOCAL and sweep.has_promises(loaded)
    with _qos_page(qos_port, shown) as page, _progress(planned, began) as bar:
        results = sweep.complete(planned, workers, engine.value, finished=bar.finished, progress=bar.arrived, page=page)
    differences = compare(results)
    command = _command(scenario, planned, data, sets, plugin)
    if kubernetes_version is not None:
        command += f" --kubernetes-version {rules}"
    written = [] if folder is None else _write(results, differences, folder, command)
    if printed is not Output.TABLE:
        state = {"kubernetesVersion": str(rules)}
        echo_data([{**row, "state": state} for row in detailed_rows(results, differences)], printed)
    elif results.runs:
        _print_results(results, differences, time.perf_counter() - began, written)
    if len(results.runs) < results.planned:
        echo(f"interrupted: {len(results.runs)} of {results.planned} runs are finished", err=True)
        raise typer.Exit(ANSWER_IS_NO)


@contextmanager
def _qos_page(port: int | None, shown: bool) -> "Iterator[SimulatedQosPage | None]":
    """The QoS page while the runs last, where there is something to show and the port is free."""
    from podium_lab.simulator.qos_page import served_qos_page
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
    profiles = dict.fromkeys(job.contender.name for job in planned.jobs)
    seeds = dict.fromkeys(str(job.seed) for job in planned.jobs)
    words = ["podium", "simulate", scenario, "--profiles", ",".join(profiles), "--seeds", ",".join(seeds)]
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
    from podium_lab.cli.simulation_tables import print_results

    print_results(results, differences)
    pods = sum(int(run.table[-1][1]) for run in results.runs)
    echo(f"\n{_some(len(results.runs), 'run')}, {pods:,} pods in {seconds:.1f} s")
    if written:
        echo(f"report: {written[-1]}")


class _Bar:
    """A bar on standard error; silent where no terminal is."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._progress = None
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
            self._progress = Progress(*columns, console=Console(stderr=True), transient=True)
            self._progress.start()
            self._task = self._progress.add_task("runs", total=total)

    def finished(self, number: int, run: "RunResult") -> None:
        if self._progress is not None:
            self._progress.update(self._task, completed=number, description=f"{run.profile}, seed {run.seed}")

    def arrived(self, pods: int) -> None:
        if self._progress is not None:
            self._progress.update(self._task, description=f"{pods:,} pods")

    def stop(self) -> None:
        if self._progress is not None:
            self._progress.stop()


@contextmanager
def _progress(planned: "Plan", began: float) -> Iterator[_Bar]:
    bar = _Bar(len(planned.jobs))
    try:
        yield bar
    finally:
        bar.stop()
