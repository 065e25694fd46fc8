"""`podium bench`: how fast pods are decided, in process on workloads everybody can compare, or on a real API server."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from podium.cli.errors import ANSWER_IS_NO, InputError
from podium.cli.options import PluginOption

if TYPE_CHECKING:
    from rich.table import Table

PIPE_WIDTH = 160

app = typer.Typer(name="bench", rich_markup_mode=None)

ConfigOption = Annotated[
    str | None,
    typer.Option("--config", metavar="FILE", help="A KubeSchedulerConfiguration; without it, the default profile."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print data instead of a table, for --compare or a program.")]
CompareOption = Annotated[
    str | None,
    typer.Option("--compare", metavar="FILE", help="Also print what has changed since a run saved with --json."),
]


@app.callback(invoke_without_command=True)
def bench(context: typer.Context) -> None:
    """Measure how fast pods are decided.

    Example: podium bench scheduler-perf --workload SchedulingBasic
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command("scheduler-perf")
def scheduler_perf(
    workload: Annotated[
        list[str] | None,
        typer.Option(
            "--workload",
            metavar="GLOB",
            help='Only workloads whose case or whole name matches: "SchedulingBasic", "*Spreading/*". Repeatable.',
        ),
    ] = None,
    nodes: Annotated[
        int | None,
        typer.Option(
            "--nodes",
            min=1,
            help="Scale every workload to N nodes, and its pods alike. Workloads that need one or two nodes only scale "
            "their pods, and the EventHandling ones never grow beyond their own size.",
        ),
    ] = None,
    config: ConfigOption = None,
    json: JsonOption = False,
    compare: CompareOption = None,
    plugin: PluginOption = None,
) -> None:
    """Run the workloads of scheduler_perf, Kubernetes' own scheduler benchmark, against the engine in process.

    Measured are queueing, deciding, assuming, binding and taking in the bound pod; there is no API server. Two more
    workloads are AllDifferent (no two pods alike) and Turnover (pods and nodes come and go as fast as pods arrive).

    Example: podium bench scheduler-perf --workload SchedulingBasic --nodes 500
    """
    from podium.bench.processes import WorkloadFailedError, measure, request_for
    from podium.bench.report import NotARunError, SavedRun, change_table, compare_runs, load_run, run_table, to_json
    from podium.bench.suite import UnknownWorkloadError, select
    from podium.cli.files import read_text

    try:
        chosen = select(workload or [])
        before = None if compare is None else load_run(*read_text(compare))
    except (UnknownWorkloadError, NotARunError) as error:
        raise InputError(str(error)) from None
    settings = _checked_config(config, plugin)
    measurements = []
    failures = []
    with _progress(len(chosen), "workloads") as tell:
        for each in chosen:
            tell(each.name, False)
            sized = each if nodes is None else each.at(nodes)
            try:
                measurements.append(
                    measure(
                        request_for(sized, settings, plugin or ()),
                        lambda phase, name=each.name: tell(f"{name}: {phase}", False),  # type: ignore[misc]
                    )
                )
            except WorkloadFailedError as error:
                failures.append(str(error))
            tell(each.name, True)
    changes = None if before is None else compare_runs(before, SavedRun(measurements))
    if json:
        typer.echo(to_json(measurements, changes))
    else:
        _print(run_table(measurements))
        if changes is not None:
            _print(
                change_table(changes), "Since the saved run" if changes else "The saved run has none of these workloads"
            )
    for failure in failures:
        typer.echo(failure, err=True)
    if failures:
        raise typer.Exit(ANSWER_IS_NO)


@app.command()
def growth(
    nodes: Annotated[
        list[int] | None,
        typer.Option("--nodes", min=1, help="A size of cluster, repeatable; 1000, 5000 and 20000 if none is given."),
    ] = None,
    pods: Annotated[int, typer.Option("--pods", min=1, help="How many pods are decided in each cluster.")] = 2000,
    config: ConfigOption = None,
    json: JsonOption = False,
    compare: CompareOption = None,
    plugin: PluginOption = None,
) -> None:
    """How the time per decision grows with the cluster: time = a × nodes^exponent.

    Example: podium bench growth --nodes 500 --nodes 1000 --nodes 2000
    """
    from podium.bench.growth import CASES, NODES, measure_growth
    from podium.bench.processes import WorkloadFailedError
    from podium.bench.report import (
        NotARunError,
        SavedGrowth,
        change_table,
        compare_growth,
        growth_table,
        load_growth,
        to_json,
    )
    from podium.cli.files import read_text

    sizes = sorted(set(nodes or NODES))
    if len(sizes) < 2:
        raise InputError("an exponent needs at least two sizes of cluster: give --nodes twice")
    try:
        before = None if compare is None else load_growth(*read_text(compare))
    except NotARunError as error:
        raise InputError(str(error)) from None
    settings = _checked_config(config, plugin)
    found = []
    with _failing(WorkloadFailedError), _progress(len(CASES) * len(sizes), "clusters") as tell:
        for case in CASES:
            found.append(
                measure_growth(
                    case,
                    sizes,
                    pods,
                    config=settings,
                    plugins=plugin or (),
                    on_point=lambda size, case=case: tell(f"{case}: {size:,} nodes", True),  # type: ignore[misc]
                )
            )
    changes = None if before is None else compare_growth(before, SavedGrowth(found))
    if json:
        typer.echo(to_json(found, changes))
        return
    _print(growth_table(found))
    if changes is not None:
        _print(change_table(changes), "Since the saved run" if changes else "The saved run has none of these sizes")


@app.command()
def cost(
    name: Annotated[str, typer.Argument(metavar="PLUGIN", help="A plugin that the configuration enables.")],
    config: ConfigOption = None,
    workload: Annotated[
        str, typer.Option("--workload", metavar="GLOB", help="The workload; the first that matches.")
    ] = "SchedulingBasic",
    nodes: Annotated[int, typer.Option("--nodes", min=1, help="How many nodes the cluster has.")] = 5000,
    rounds: Annotated[int, typer.Option("--rounds", min=1, help="How often it is measured.")] = 3,
    json: Annotated[bool, typer.Option("--json", help="Print data instead of a table.")] = False,
    plugin: PluginOption = None,
) -> None:
    """What a plugin costs a decision: the configuration with it against the same one without it.

    Two processes run the same workload and take turns on one core, a hundred pods at a time, so that both are disturbed
    alike. Shown are the median times per pod and their ratio: of all rounds the median, the least and the most. Plugins
    that read measured load are given numbers for every node.

    Example: podium bench cost ImageLocality --nodes 500
    """
    from podium.bench.cost import measure_cost
    from podium.bench.processes import WorkloadFailedError, request_for
    from podium.bench.report import comparison_json, cost_table
    from podium.bench.suite import UnknownWorkloadError, select

    try:
        chosen = select([workload])[0].at(nodes)
    except UnknownWorkloadError as error:
        raise InputError(str(error)) from None
    settings = _checked_config(config, plugin, enables=name)
    request = request_for(chosen, settings, plugin or ())
    with _failing(WorkloadFailedError), _progress(rounds, "rounds") as tell:
        found = measure_cost(name, request, rounds, lambda number: tell(name, number > 0))
    if json:
        typer.echo(comparison_json(found))
    else:
        _print(cost_table(found))


@app.command()
def e2e(
    nodes: Annotated[int, typer.Option("--nodes", min=1, help="How many nodes the cluster has.")] = 5000,
    pods: Annotated[int, typer.Option("--pods", min=2, help="How many pods wait when a scheduler starts.")] = 10000,
    rounds: Annotated[int, typer.Option("--rounds", min=1, help="How often both take their turn.")] = 3,
    json: Annotated[bool, typer.Option("--json", help="Print data instead of a table.")] = False,
) -> None:
    """Race Podium against kube-scheduler on the same real API server, in a source checkout.

    Starts the test bed's etcd and API server, creates nodes and pods, runs kube-scheduler until all pods are bound,
    deletes them, does the same with Podium, and so on. Pods per second are counted from the first binding to the last;
    CPU seconds are those of the scheduler from the first binding until its last Event is written. Medians are shown.

    Example: podium bench e2e --nodes 1000 --pods 2000 --rounds 1
    """
    from podium.bench.checkout import NoTestBedError
    from podium.bench.e2e import RaceError, run_e2e
    from podium.bench.report import comparison_json, comparison_table

    with _failing(RaceError, bad_input=NoTestBedError), _progress(2 * rounds, "races") as tell:
        found = run_e2e(nodes, pods, rounds, tell)
    if json:
        typer.echo(comparison_json(found))
    else:
        _print(comparison_table(found))


@app.command()
def embedded(
    nodes: Annotated[int, typer.Option("--nodes", min=1, help="How many nodes are created.")] = 5000,
    pods: Annotated[int, typer.Option("--pods", min=1, help="How many pods are created and bound.")] = 50000,
    json: Annotated[bool, typer.Option("--json", help="Print data instead of a table.")] = False,
) -> None:
    """Measure the embedded Kubernetes API over HTTP: writes per second, memory, a whole list, and watches.

    Starts a server of its own in another process and creates nodes and pods, binds the pods, lists them, and changes
    some while ten watchers listen. CPU is that of the server.

    Example: podium bench embedded --nodes 500 --pods 5000
    """
    from podium.bench.embedded import ServerFailedError, run_embedded
    from podium.bench.report import embedded_json, embedded_table
    from podium.bench.requests import RefusedError

    with _failing(ServerFailedError, RefusedError), _progress(5, "phases") as tell:
        found = run_embedded(nodes, pods, tell)
    if json:
        typer.echo(embedded_json(found))
    else:
        _print(embedded_table(found))


@app.command()
def extender(
    nodes: Annotated[int, typer.Option("--nodes", min=2, help="How many nodes the cluster has.")] = 5000,
    pods: Annotated[int, typer.Option("--pods", min=2, help="How many pods wait when a scheduler starts.")] = 5000,
    rounds: Annotated[int, typer.Option("--rounds", min=1, help="How often each takes its turn.")] = 3,
    percentage: Annotated[
        int,
        typer.Option(
            "--percentage",
            min=0,
            max=100,
            help="percentageOfNodesToScore of every kube-scheduler, also of the one alone; 0 is its own choice.",
        ),
    ] = 0,
    json: Annotated[bool, typer.Option("--json", help="Print data instead of tables.")] = False,
) -> None:
    """What extenders cost kube-scheduler, on a real API server, in a source checkout.

    Races kube-scheduler alone, with an extender that does nothing, and with Podium's agents safe and congestion (names
    only), in turn; tells how long each kind of call took; then sends all nodes in full, 30 kB each, in one request.

    Example: podium bench extender --nodes 1000 --pods 1000 --rounds 1
    """
    from podium.bench.checkout import NoTestBedError
    from podium.bench.e2e import RaceError
    from podium.bench.extender import run_extender_bench
    from podium.bench.report import comparison_json, extender_tables

    with _failing(RaceError, bad_input=NoTestBedError), _progress(4 * rounds, "races") as tell:
        found = run_extender_bench(nodes, pods, rounds, percentage, tell)
    if json:
        typer.echo(comparison_json(found))
        return
    for table in extender_tables(found):
        _print(table)
        typer.echo()


def _checked_config(file: str | None, plugins: list[str] | None, enables: str | None = None) -> tuple[str, str] | None:
    """The text of the configuration and its name, known to be right, and to enable a plugin."""
    from podium.cli.files import read_text
    from podium.cli.registry import registry_with
    from podium.config import default_config, load_config

    registry = registry_with(plugins)
    settings = None if file is None else read_text(file)
    config = default_config(registry) if settings is None else load_config(*settings, registry).config
    if enables is not None and not any(enables in names for p in config.profiles for names in p.plugins.values()):
        if enables not in registry:
            raise InputError(f'there is no plugin "{enables}"; podium plugins lists those there are')
        where = file or "the default profile, so name a --config that does"
        raise InputError(f'plugin "{enables}" is not enabled in {where}')
    return settings


@contextmanager
def _failing(*failures: type[Exception], bad_input: type[Exception] | tuple[()] = ()) -> Iterator[None]:
    """What ends a measurement in one sentence."""
    try:
        yield
    except bad_input as error:
        raise InputError(str(error)) from None
    except failures as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(ANSWER_IS_NO) from None


@contextmanager
def _progress(total: int, what: str) -> Iterator[Callable[[str, bool], None]]:
    """A bar on standard error, where that is a terminal; `tell(text, done)` says what runs and counts what is done."""
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

        def tell(text: str, done: bool) -> None:
            progress.update(task, description=text, advance=1 if done else 0)

        yield tell


def _print(table: "Table", title: str | None = None) -> None:
    from rich.console import Console

    piped = not sys.stdout.isatty() and "COLUMNS" not in os.environ
    console = Console(highlight=False, width=PIPE_WIDTH if piped else None)
    if title:
        console.print()
        console.print(title, style="bold")
    if table.row_count:
        console.print(table)
