"""Judges a policy, on pod lists against the published rules, or on a scenario (`podium evaluate`)."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from podium.cli.console import console, echo, echo_data, print_table, progress_bar, table
from podium.cli.errors import InputError
from podium.cli.files import writing
from podium.cli.options import Output, OutputOption, chosen_output, given_seeds, option_groups
from podium_lab.cli.unit_options import UnitFlags, print_estimate

if TYPE_CHECKING:
    from rich.table import Table

    from podium_lab.learning.judge import Row
    from podium_lab.training.judging import ScenarioRow

CHURN_FIGURES = ("rejected_gpu_time_pct", "wait_mean_s", "wait_max_s")
PAIRED = ("difference", "95 %", "smallest")


class Protocol(StrEnum):
    """How pods come."""

    STATIC = "static"
    CHURN = "churn"


class TieRule(StrEnum):
    """Which of equally good nodes is taken."""

    FIXED = "fixed"
    FRESH = "fresh"
    HEAP = "heap"
    ALL = "all"


class KnowledgeSource(StrEnum):
    """Where the policy's knowledge of the workload comes from."""

    LIST = "list"
    COUNTED = "counted"


@option_groups
def evaluate(
    *,
    policy: Annotated[
        str | None,
        typer.Argument(
            metavar="POLICY",
            help="A policy that ships, or a policy file; with --objective an .onnx file, a model's URL or a heuristic.",
            show_default=False,
        ),
    ] = None,
    objective: Annotated[
        str | None,
        typer.Option("--objective", metavar="NAME", help="Judge by this objective on a scenario, not on pod lists."),
    ] = None,
    scenario: Annotated[
        str | None,
        typer.Option("--scenario", metavar="FILE", help="With --objective; without it, a built-in scenario."),
    ] = None,
    data: Annotated[str, typer.Option("--data", metavar="DIR", help="Where node list and pod lists are.")] = ".",
    lists: Annotated[
        str, typer.Option("--lists", metavar="A,B", help="Pod lists, by name or path.")
    ] = "default,gpushare40,gpuspec33,multigpu40",
    seeds: Annotated[
        str,
        typer.Option("--seeds", metavar="A-B,C", help="The seeds to judge by: 42, 42-51 or 42,45."),
    ] = "42-51",
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            metavar="A,B",
            help="Published rules, FGD,BestFit; with --objective policies, every heuristic and random.",
            show_default=False,
        ),
    ] = None,
    protocol: Annotated[Protocol, typer.Option("--protocol", help="Pods that stay, or that come and go.")] = (
        Protocol.STATIC
    ),
    ties: Annotated[TieRule, typer.Option("--ties", help="Which of equally good nodes to take.")] = TieRule.FIXED,
    loads: Annotated[
        str, typer.Option("--loads", metavar="A,B", help="Of the churn protocol: demand as a share of the GPUs.")
    ] = "0.95,1.00,1.05",
    queue: Annotated[bool, typer.Option("--queue", help="Of the churn protocol: pods that do not fit wait.")] = False,
    knowledge: Annotated[
        KnowledgeSource, typer.Option("--knowledge", help="Whether the policy knows the list, or counts pods.")
    ] = KnowledgeSource.LIST,
    bound: Annotated[bool, typer.Option("--bound", help="Add what no policy can pass, by a linear program.")] = False,
    keep: Annotated[
        str | None,
        typer.Option("--keep", metavar="FILE", help="Keep rows here; after a stop, the same command continues."),
    ] = None,
    plot: Annotated[
        str | None, typer.Option("--plot", metavar="FILE", help="Draw the differences as a picture (SVG).")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print a list of rows, one per list, policy and seed.")] = False,
    output: OutputOption = Output.TABLE,
    flags: UnitFlags,
) -> None:
    """Judge a policy by runs on pod lists or on a scenario, paired seed by seed with others.

    Pod lists need podium[learn]. A policy is not judged by seeds that it was trained on.

    Example: podium evaluate readable --data openb --lists default --seeds 42-44 --ties all

    Example: podium evaluate readable --data openb --store judged --units 1/4

    Example: podium evaluate policies/ppo-most-allocated-1.onnx --objective most-allocated --scenario cluster.yaml
    """
    if objective is not None:
        printed = chosen_output(output, json)
        evaluate_on_scenario(policy, objective, scenario, given_seeds(seeds), against, flags.workers, printed)
        return
    from podium_lab.learned.policy_file import PolicyError
    from podium_lab.learning.extra import LearningError

    try:
        from podium_lab.learning.evaluation import EvaluationRequest, answered, bound_rows, estimated, planned, rows_of
        from podium_lab.units.progress import UnitProgress

        options = flags.options()
        printed = chosen_output(output, json)
        request = EvaluationRequest(
            policy=policy,
            data=Path(data),
            lists=lists,
            seeds=given_seeds(seeds),
            against="FGD,BestFit" if against is None else against,
            churn=protocol is Protocol.CHURN,
            ties=ties.value,
            loads=loads,
            queue=queue,
            counted=knowledge is KnowledgeSource.COUNTED,
            bound=bound,
        )
        contestants, questions, found_lists = planned(request)
        if flags.estimate:
            if policy is None:
                raise InputError("--estimate: name the policy that is to be judged")
            with flags.runner(options) as runner:
                print_estimate(estimated(policy, questions, runner, options), printed is not Output.TABLE)
            return
        rows: list[Row] = []
        if policy is not None and contestants:
            with flags.runner(options) as runner, UnitProgress(always=flags.store is not None) as bar:
                found = answered(
                    questions,
                    None if keep is None else Path(keep),
                    lambda asked, kept: rows_of(policy, asked, runner, flags.command(), bar.on_unit, kept),
                )
            if not options.part.whole:
                flags.say_part(options, len(found), len(questions))
                return
            rows = [row for each in found for row in each]
        if bound:
            rows += bound_rows(request, found_lists)
    except (LearningError, PolicyError) as error:
        raise InputError(str(error)) from None
    except KeyboardInterrupt:
        echo(
            "Stopped; with --store or --keep the same command continues."
            if keep is None and flags.store is None
            else "Stopped; the same command continues.",
            err=True,
        )
        raise typer.Exit(1) from None
    if plot is not None and contestants:
        _plot(rows, contestants[0].name, [each.name for each in contestants[1:]], plot, protocol)
    if printed is not Output.TABLE:
        echo_data(rows, printed)
    else:
        _show(rows, contestants[0].name if contestants else "")


def _plot(rows: list[Row], policy: str, others: list[str], file: str, protocol: Protocol) -> None:
    from podium_lab.learning.judge import compare
    from podium_lab.learning.plot import differences_plot

    unit = "load" if protocol is Protocol.CHURN else "arrived %"
    plot = differences_plot(compare(rows, policy, others), policy, unit)
    with writing(Path(file)):
        Path(file).write_text(plot)


def _show(rows: list[Row], policy: str) -> None:
    """Means over seeds, and the differences to the others."""
    from podium_lab.learning.judge import compare

    out = console()
    churn = any("load" in row for row in rows)
    print_table(out, _means(rows, churn))
    others = list(dict.fromkeys(row["policy"] for row in rows if row["policy"] != policy and row.get("ties")))
    compared = compare(rows, policy, others) if policy else []
    if not compared:
        return
    echo()
    pairs = _columns(("list", "ties", "against", "beats"), "list", _at(churn), "ties", "against", *PAIRED, "beats")
    for each in compared:
        interval = f"± {each.difference.margin:.2f}" if each.difference.seeds > 1 else ""
        figures = f"{each.difference.mean:+.2f}", interval, f"{each.smallest:+.2f}"
        pairs.add_row(each.list, f"{each.at:g}", each.ties, each.against, *figures, "yes" if each.beats else "no")
    print_table(out, pairs)
    echo("Differences are paired by seed; the others break ties by a fixed order where that was run.")
    echo('"beats": ahead on every seed, and the 95 % interval of the differences lies above 0.')


def _means(rows: list[Row], churn: bool) -> Table:
    from podium_lab.learning.judge import at_of
    from podium_lab.simulator.summary import estimate

    shown = ("gpu_allocation_pct", *(CHURN_FIGURES if churn else ()))
    means = _columns(("list", "policy", "ties"), "list", "policy", "ties", _at(churn), *shown)
    cells: dict[tuple[str, str, str, float], list[Row]] = {}
    for row in rows:
        cells.setdefault((row["list"], row["policy"], row.get("ties", ""), at_of(row)), []).append(row)
    for (name, who, rule, at), cell in cells.items():
        figures = []
        for figure in shown:
            values = [row[figure] for row in cell if row.get(figure) is not None]
            found = estimate(values) if values else None
            spread = "" if found is None or found.seeds == 1 else f" ± {found.deviation:.2f}"
            figures.append("none" if found is None else f"{found.mean:.2f}{spread}")
        means.add_row(name, who, rule, f"{at:g}", *figures)
    return means


def _at(churn: bool) -> str:
    return "load" if churn else "arrived %"


def _columns(left: tuple[str, ...], *headings: str) -> Table:
    found = table()
    for heading in headings:
        found.add_column(heading, justify="left" if heading in left else "right", no_wrap=True)
    return found


def evaluate_on_scenario(
    policy: str | None,
    objective: str,
    scenario: str | None,
    seeds: Sequence[int],
    against: str | None,
    workers: int,
    output: Output,
) -> None:
    """Play the episodes of all policies, and print what each came to."""
    from podium_lab.environments.built_in import chosen_scenario
    from podium_lab.learning.extra import LearningError
    from podium_lab.models.heuristics import HEURISTICS, OBJECTIVES
    from podium_lab.simulator.scenario import ScenarioError
    from podium_lab.training.judging import RANDOM, judged

    if objective not in OBJECTIVES:
        raise InputError(f'--objective: there is no objective "{objective}"; write one of {", ".join(OBJECTIVES)}')
    if policy is None:
        raise InputError("POLICY is missing; write an .onnx file, the URL of a model, or the name of a heuristic")
    others = (*HEURISTICS, RANDOM) if against is None else tuple(name for name in against.split(",") if name)
    policies = tuple(dict.fromkeys((policy, *others)))
    rows: list[ScenarioRow] = []
    try:
        loaded = chosen_scenario(scenario)
        with progress_bar(len(policies) * len(seeds), "policies and seeds") as report:
            for row in judged(loaded, objective, policies, seeds, workers):
                rows.append(row)
                report(f"{row.policy}, seed {row.seed}", True)
    except (LearningError, ScenarioError) as error:
        raise InputError(str(error)) from None
    except OSError as error:
        raise InputError(f"{error.filename}: {error.strerror}") from None
    except KeyboardInterrupt:
        echo("Stopped.", err=True)
        raise typer.Exit(1) from None
    if output is Output.TABLE:
        _show_episodes(rows, policy)
    else:
        echo_data([{"objective": objective, "scenario": scenario or "", **row._asdict()} for row in rows], output)


def _show_episodes(rows: list[ScenarioRow], policy: str) -> None:
    from podium_lab.simulator.summary import estimate
    from podium_lab.training.judging import paired

    differences = {each.against: each for each in paired(rows, policy)}
    shown = table()
    for heading in ("policy", "reward", "unplaced", "ahead by", "95 %", "verdict"):
        shown.add_column(heading, justify="left" if heading in ("policy", "verdict") else "right", no_wrap=True)
    for name in dict.fromkeys(row.policy for row in rows):
        own = [row for row in rows if row.policy == name]
        reward = estimate([row.reward for row in own])
        unplaced = sum(row.unplaced for row in own) / len(own)
        each = differences.get(name)
        cells = ["", "", ""]
        if each is not None:
            margin = f"± {each.difference.margin:.4f}" if each.difference.seeds > 1 else ""
            verdict = "better" if each.beats else "worse" if each.below else "even"
            cells = [f"{each.difference.mean:+.4f}", margin, verdict if each.difference.seeds > 1 else ""]
        shown.add_row(_short(name), f"{reward.mean:.4f}", f"{unplaced:.1f}", *cells)
    print_table(console(), shown)
    seeds = len({row.seed for row in rows})
    echo(f"{_short(policy)} against each, paired over {seeds} seeds; reward is the mean of a pod.")


def _short(policy: str) -> str:
    """A policy's name for a table: of a file or a URL, the last part."""
    return policy.rstrip("/").rpartition("/")[2]
