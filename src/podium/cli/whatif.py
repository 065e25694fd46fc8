"""Reads the options of `podium whatif`: what would happen if these pods came, these nodes went, this field changed?"""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from podium.cli.console import echo_data, echo_json
from podium.cli.errors import ANSWER_IS_NO, InputError
from podium.cli.options import Output, option_groups
from podium.cli.question_options import (
    AnswerOption,
    ChangeFlags,
    OrderedCommand,
    SchemaOption,
    StateFlags,
    ordered_changes,
)

if TYPE_CHECKING:
    from podium.cli.state_source import AskedState
    from podium.whatif.changes import Change
    from podium.whatif.drain import DrainRules


@dataclass(frozen=True, kw_only=True)
class DrainFlags:
    """How nodes are drained: the options of kubectl drain."""

    each: Annotated[bool, typer.Option("--each", help="Every node alone, as a table; with --drain only those.")] = False
    ignore_daemonsets: Annotated[
        bool,
        typer.Option("--ignore-daemonsets/--no-ignore-daemonsets", help="Leave pods of DaemonSets where they are."),
    ] = True
    delete_emptydir_data: Annotated[
        bool, typer.Option("--delete-emptydir-data", help="Evict pods with emptyDir volumes, too.")
    ] = False
    force: Annotated[bool, typer.Option("--force", help="Evict pods that no controller makes again, too.")] = False
    pod_selector: Annotated[
        str, typer.Option("--pod-selector", metavar="SELECTOR", help="Only pods with these labels leave.")
    ] = ""
    disable_eviction: Annotated[
        bool, typer.Option("--disable-eviction", help="Delete pods instead: budgets do not count.")
    ] = False


@option_groups
def whatif(
    ctx: typer.Context,
    state: StateFlags,
    changes: ChangeFlags,
    draining: DrainFlags,
    files: Annotated[
        list[str] | None,
        typer.Option("-f", metavar="FILE", help="Pods, or what makes pods, that are asked about. Repeatable."),
    ] = None,
    replicas: Annotated[
        int | None, typer.Option("--replicas", metavar="N", help="So many pods of what -f holds.")
    ] = None,
    with_pending: Annotated[
        bool, typer.Option("--with-pending", help="With -f: also place the pods that wait, which go first.")
    ] = False,
    preempt: Annotated[
        bool, typer.Option("--preempt", help="Play preemption: victims go and are placed again, last.")
    ] = False,
    schema: SchemaOption = False,
    output: AnswerOption = Output.TABLE,
) -> None:
    """Say what would happen: would these pods fit, what would a change unblock, what becomes of a drained node's pods?

    With -f the pods of the files are judged, without it those that wait, before and after the changes. Changes are
    applied in the order written. Nothing is changed anywhere. Exits 0 when all given pods fit (without -f: when one
    that waits does), 1 when not, 2 when nothing can be asked.

    Example: podium whatif -f train.yaml

    Example: podium whatif --untaint 'gpu-*:nvidia.com/gpu'

    Example: podium whatif --drain worker-1 --from cluster.json
    """
    from podium.cli.show_whatif import show_fit
    from podium.cli.state_source import read_asked_state, read_questions, say_asides
    from podium.whatif.drain import DrainRules
    from podium.whatif.fit import FitQuestion, FitRecord, fit
    from podium.whatif.records import document, json_schema

    if schema:
        echo_json(json_schema("whatif", FitQuestion, FitRecord))
        return
    if replicas is not None and (replicas < 1 or not files):
        raise InputError("--replicas is how many pods of what -f holds: give -f, and at least 1")
    wished = ordered_changes(ctx, changes)
    given = read_questions(files) if files else None
    if given is not None and not given:
        raise InputError(
            f"{', '.join(files or ())}: no pod in it; give a Pod, or what makes pods, such as a Deployment"
        )
    asked = read_asked_state(state)
    sandbox = asked.sandbox()
    rules = DrainRules(**{name: value for name, value in asdict(draining).items() if name != "each"})
    if draining.each:
        _each(asked, wished, rules, output)
        return
    answer = fit(
        sandbox,
        wished,
        given,
        replicas=replicas,
        with_pending=with_pending,
        preempt=preempt,
        drain_rules=rules,
        origin=asked.origin,
    )
    say_asides(asked)
    if output is Output.TABLE:
        show_fit(answer)
    else:
        echo_data(document("whatif", asked.record(), answer.question(), answer.record()), output)
    if not answer.yes:
        raise typer.Exit(ANSWER_IS_NO)


def _each(asked: "AskedState", changes: "list[Change]", rules: "DrainRules", output: Output) -> None:
    """Every node alone; with --drain those that it names."""
    from podium.cli.show_whatif import show_each
    from podium.cli.state_source import say_asides
    from podium.whatif.drain_each import EachQuestion, drain_each
    from podium.whatif.records import document

    answer = drain_each(asked.sandbox(), changes, rules)
    say_asides(asked)
    if output is Output.TABLE:
        show_each(answer)
    else:
        question = EachQuestion(changes=answer.changes, each=True)
        echo_data(document("whatif", asked.record(), question, answer.record()), output)
    if not answer.yes:
        raise typer.Exit(ANSWER_IS_NO)


whatif.command_class = OrderedCommand  # type: ignore[attr-defined]
