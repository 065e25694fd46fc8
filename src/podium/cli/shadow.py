"""Sums up what a shadowing Podium found, from its log (`podium shadow report`)."""

from typing import TYPE_CHECKING, Annotated

import typer

from podium import packages
from podium.cli.commands import Commands
from podium.cli.console import echo, echo_data
from podium.cli.errors import InputError
from podium.cli.options import Output

if TYPE_CHECKING:
    from podium.run.shadow import Finding

app = Commands(name="shadow", help="What `podium run --shadow` found.", no_args_is_help=True)


@app.callback()
def shadow() -> None:
    """What `podium run --shadow` found."""


@app.command()
def report(
    log: Annotated[
        str,
        typer.Argument(metavar="FILE", help="What podium run --shadow --log-format json logged; - is standard input."),
    ],
    show: Annotated[int, typer.Option("--show", metavar="N", min=0, help="How many differing pods to list.")] = 20,
    output: Annotated[Output, typer.Option("-o", "--output", help="How to print the answer.")] = Output.TABLE,
) -> None:
    """Sum up where a shadowing Podium would have decided otherwise than the scheduler in charge.

    Agreement is logged at level debug: run the shadow with --log-level debug to have it counted. The log of
    LearnedScore, which has a shadow mode of its own, is summed up as by podium policy report.

    Example: kubectl logs deploy/podium-shadow | podium shadow report -
    """
    from podium.cli.files import read_text
    from podium.run.shadow import read_findings

    text, source = read_text(log)
    findings = list(read_findings(text.splitlines()))
    if not findings and any(sum_up(text) for sum_up in map(packages.load, packages.shadow_logs())):
        return
    if not findings:
        raise InputError(
            f"{source}: no findings in it; write the log with podium run --shadow --log-format json, and with a "
            "configuration that has the schedulerName of the scheduler in charge"
        )
    if output is Output.TABLE:
        _show_table(findings, show)
    else:
        others = [each for each in findings if each.outcome not in ("same", "tie")]
        echo_data({"pods": len(findings), "outcomes": _counts(findings), "differences": others}, output)


def _show_table(findings: "list[Finding]", show: int) -> None:
    from podium.cli.console import console, print_table, table
    from podium.run.shadow import MEANINGS

    out = console()
    totals = table()
    for heading in ("outcome", "pods", "share", "meaning"):
        totals.add_column(heading, justify="right" if heading in ("pods", "share") else "left")
    for outcome, count in _counts(findings).items():
        totals.add_row(outcome, str(count), f"{count / len(findings):.1%}", MEANINGS[outcome])
    print_table(out, totals)
    if not any(each.outcome == "same" for each in findings):
        echo("There is no agreement in this log: it is logged at --log-level debug only.")
    others = sorted((each for each in findings if each.outcome not in ("same", "tie")), key=lambda each: -each.points)
    if not others or not show:
        return
    pods = table()
    for heading in ("pod", "outcome", "podium", "in charge", "points", "reason"):
        pods.add_column(heading, justify="right" if heading == "points" else "left")
    for each in others[:show]:
        points = str(each.points) if each.points else ""
        pods.add_row(each.pod, each.outcome, each.podium or "-", each.other or "-", points, each.reason)
    echo()
    print_table(out, pods)


def _counts(findings: "list[Finding]") -> dict[str, int]:
    from collections import Counter

    from podium.run.shadow import MEANINGS

    counts = Counter(each.outcome for each in findings)
    return {outcome: counts[outcome] for outcome in MEANINGS if counts[outcome]}
