"""Measures the workloads of scheduler_perf in process (`podium bench scheduler-perf`)."""

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Annotated

import typer

from podium.cli.console import echo, progress_bar
from podium.cli.errors import ANSWER_IS_NO, InputError
from podium.cli.options import Output, OutputOption, PluginOption, chosen_output
from tools.cli.bench.measuring import (
    CompareOption,
    ConfigOption,
    JsonOption,
    checked_config,
    print_data,
    print_table,
)
from tools.cli.parts import MeasuringWorkersOption, UnitsOption, part_of

if TYPE_CHECKING:
    from tools.bench.runner import Measurement
    from tools.bench.workload import Workload


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
            help="Scale every workload to N nodes, and its pods with them. Workloads that need one or two nodes only "
            "scale their pods, and the EventHandling ones never grow beyond their own size. Those about devices keep "
            "their own size, unless --workload gives their name without wildcards.",
        ),
    ] = None,
    config: ConfigOption = None,
    json: JsonOption = False,
    output: OutputOption = Output.TABLE,
    compare: CompareOption = None,
    plugin: PluginOption = None,
    workers: MeasuringWorkersOption = 1,
    units: UnitsOption = None,
) -> None:
    """Run the workloads of scheduler_perf, Kubernetes' own scheduler benchmark, against the engine in process.

    Measured are queueing, deciding, assuming, binding and taking in the bound pod; there is no API server. Podium's
    own workloads are AllDifferent (each pod has a signature of its own), Turnover (pods and nodes come and go as fast
    as pods arrive), Gangs and GangThatNeverFits (PodGroups, with Coscheduling enabled unless --config says otherwise).

    The CI floor is what Kubernetes 1.37 requires of its own scheduler in that workload, in pods a second at its own
    size; `--json` has it as `threshold`, and `ratio` says how many times it was reached.

    Example: podium bench scheduler-perf --workload SchedulingBasic --nodes 500
    """
    from podium.cli.files import read_text
    from tools.bench.processes import WorkloadFailedError, measure, request_for
    from tools.bench.report import NotARunError, SavedRun, change_table, compare_runs, load_run, run_table, to_json
    from tools.bench.suite import UnknownWorkloadError, at_nodes, select

    printed = chosen_output(output, json)
    try:
        chosen = part_of(select(workload or []), units)
        before = None if compare is None else load_run(*read_text(compare))
    except (UnknownWorkloadError, NotARunError) as error:
        raise InputError(str(error)) from None
    settings = checked_config(config, plugin)
    failures: list[str] = []
    with progress_bar(len(chosen), "workloads") as report:

        def measured(each: "Workload") -> "Measurement | None":
            report(each.name, False)
            sized = each if nodes is None else at_nodes(each, nodes, workload or [])
            try:
                return measure(
                    request_for(sized, settings, plugin or ()), lambda phase: report(f"{each.name}: {phase}", False)
                )
            except WorkloadFailedError as error:
                failures.append(str(error))
                return None
            finally:
                report(each.name, True)

        with ThreadPoolExecutor(workers) as pool:  # each measures in a process of its own
            measurements = [found for found in pool.map(measured, chosen) if found is not None]
    changes = None if before is None else compare_runs(before, SavedRun(measurements))
    if printed is not Output.TABLE:
        print_data(to_json(measurements, changes), printed)
    else:
        print_table(run_table(measurements))
        if changes is not None:
            print_table(
                change_table(changes), "Since the saved run" if changes else "The saved run has none of these workloads"
            )
    for failure in failures:
        echo(failure, err=True)
    if failures:
        raise typer.Exit(ANSWER_IS_NO)
