"""Reads the options of `podium whatif`: what would happen if these pods came, these nodes went, this field changed?"""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from podium.cli.asking import AskedQuestion, ask_compare, ask_each, ask_fit, ask_unblock
from podium.cli.console import echo_json, plugins_print_to_stderr
from podium.cli.errors import InputError
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
    from podium.whatif.offers import PurchaseRules


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


@dataclass(frozen=True, kw_only=True)
class PurchaseFlags:
    """Which nodes to buy."""

    unblock: Annotated[
        bool, typer.Option("--unblock", help="Find the cheapest nodes of --catalog that place every pod.")
    ] = False
    max_nodes: Annotated[int | None, typer.Option("--max-nodes", metavar="N", min=1, help="Buy at most N nodes.")] = (
        None
    )
    max_types: Annotated[
        int | None, typer.Option("--max-types", metavar="K", min=1, help="Of at most K different types.")
    ] = None
    only: Annotated[
        str, typer.Option("--only", metavar="PATTERN", help="Only types of these names, such as 'm6i.*'.")
    ] = ""
    spot: Annotated[bool, typer.Option("--spot", help="Count spot prices where a type has one.")] = False
    seconds: Annotated[
        float, typer.Option("--seconds", metavar="S", min=0.1, help="How long to look for cheaper nodes.")
    ] = 10.0
    keep_free: Annotated[
        list[str] | None,
        typer.Option("--keep-free", metavar="RESOURCE=SHARE", help="What new nodes keep free, such as cpu=10%."),
    ] = None


@dataclass(frozen=True, kw_only=True)
class CompareFlags:
    """Another configuration."""

    against: Annotated[
        str | None, typer.Option("--against", metavar="OLD", help="The configuration that --config is compared with.")
    ] = None
    running: Annotated[
        bool, typer.Option("--running", help="With --against: each running pod as if it was placed now.")
    ] = False
    replace_all: Annotated[
        bool, typer.Option("--replace-all", help="With --against: all pods, on an empty cluster.")
    ] = False


@option_groups
@plugins_print_to_stderr()
def whatif(
    ctx: typer.Context,
    state: StateFlags,
    changes: ChangeFlags,
    draining: DrainFlags,
    buying: PurchaseFlags,
    comparing: CompareFlags,
    files: Annotated[
        list[str] | None,
        typer.Option("-f", "--filename", metavar="FILE", help="Pods, or objects that make pods. Repeatable."),
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

    Example: podium whatif --unblock --catalog prices.yaml

    Example: podium whatif --config new.yaml --against old.yaml --running
    """
    from podium.cli.state_source import load_state, node_maker, read_catalogs, read_questions
    from podium.whatif.drain import DrainRules

    if schema:
        _print_schema(draining, buying, comparing)
        return
    _check(files, replicas, draining, buying, comparing, changes)
    wished = ordered_changes(ctx, changes)
    given = read_questions(files) if files else None
    if given is not None and not given:
        what = "give a Pod, or what makes pods, such as a Deployment"
        raise InputError(f"{', '.join(files or ())}: no pod in it; {what}")
    catalog = read_catalogs(changes.catalog)
    loaded = load_state(state)
    rules = DrainRules(**{name: value for name, value in asdict(draining).items() if name != "each"})
    question = AskedQuestion(
        loaded, wished, given, replicas, with_pending, preempt, rules, catalog, node_maker(catalog)
    )
    if draining.each:
        ask_each(question, output)
    elif buying.unblock:
        ask_unblock(question, _rules_of(buying), output)
    elif comparing.against:
        ask_compare(question, state, comparing.against, comparing.running, comparing.replace_all, output)
    else:
        ask_fit(question, output)


def _check(
    files: list[str] | None,
    replicas: int | None,
    draining: DrainFlags,
    buying: PurchaseFlags,
    comparing: CompareFlags,
    changes: ChangeFlags,
) -> None:
    """Raises InputError for options that do not go together."""
    if replicas is not None and (replicas < 1 or not files):
        raise InputError("--replicas is how many pods of what -f holds: give -f, and at least 1")
    if buying.unblock and not changes.catalog:
        raise InputError("--unblock buys nodes of a catalog: give one with --catalog prices.yaml")
    if (comparing.running or comparing.replace_all) and not comparing.against:
        raise InputError("--running and --replace-all compare two configurations: give --config NEW --against OLD")
    if comparing.running and comparing.replace_all:
        raise InputError("--running and --replace-all are two questions: give one of them")
    chosen = [
        name
        for name, is_on in (("--each", draining.each), ("--unblock", buying.unblock), ("--against", comparing.against))
        if is_on
    ]
    if len(chosen) > 1:
        raise InputError(f"{' and '.join(chosen)} are different questions: give one of them")
    if comparing.against and files:
        raise InputError("--against compares what becomes of the pods of the cluster: leave out -f")


def _rules_of(buying: PurchaseFlags) -> "PurchaseRules":
    from podium.whatif.offers import PurchaseRules

    shares = {}
    for each in buying.keep_free or ():
        name, equals, text = each.partition("=")
        try:
            share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
        except ValueError:
            share = -1.0
        if not equals or not 0 <= share < 1:
            raise InputError(f"--keep-free {each}: write RESOURCE=SHARE, such as cpu=10%")
        shares[name] = share
    return PurchaseRules(buying.max_nodes, buying.max_types, buying.only, buying.spot, buying.seconds, shares)


def _print_schema(draining: DrainFlags, buying: PurchaseFlags, comparing: CompareFlags) -> None:
    from podium.whatif.compare import CompareQuestion, CompareRecord
    from podium.whatif.drain_each import EachQuestion, EachRecord
    from podium.whatif.fit import FitQuestion, FitRecord
    from podium.whatif.purchase_records import PurchaseRecord
    from podium.whatif.records import json_schema

    question: Any = FitQuestion
    answer: Any = FitRecord
    if draining.each:
        question, answer = EachQuestion, EachRecord
    elif buying.unblock:
        answer = PurchaseRecord
    elif comparing.against:
        question, answer = CompareQuestion, CompareRecord
    echo_json(json_schema("whatif", question, answer))


whatif.command_class = OrderedCommand  # type: ignore[attr-defined]
