"""Reads the options of `podium capacity`: how many pods of a template fit, and what binds first?"""

import re
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from podium.cli.console import (
    console,
    echo,
    echo_data,
    echo_json,
    plugins_print_to_stderr,
    print_table,
    progress_bar,
    say,
    table,
)
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
    from podium.whatif.capacity import CapacityAnswer, Template
    from podium.whatif.sandbox import Sandbox

MIX = re.compile(r"([0-9]{1,18}):(.+)", re.DOTALL)


class Format(StrEnum):
    """Whose document is printed."""

    PODIUM = "podium"
    CLUSTER_CAPACITY = "cluster-capacity"


@option_groups
@plugins_print_to_stderr()
def capacity(
    ctx: typer.Context,
    state: StateFlags,
    changes: ChangeFlags,
    files: Annotated[
        list[str] | None,
        typer.Option(
            "-f", "--filename", metavar="FILE", help="The pod to multiply, or what makes it, such as a Deployment."
        ),
    ] = None,
    replicas: Annotated[
        int | None, typer.Option("--replicas", metavar="N", help="Stop at N; exit 1 if fewer fit.")
    ] = None,
    mix: Annotated[
        list[str] | None,
        typer.Option(
            "--mix", metavar="N:FILE", help="N pods of this file in each turn, such as 3:web.yaml. Repeatable."
        ),
    ] = None,
    like: Annotated[
        str | None, typer.Option("--like", metavar="NS/POD", help="A pod of the cluster as the template.")
    ] = None,
    namespace_max: Annotated[
        str | None,
        typer.Option("--namespace-max", metavar="NS", help="The largest pod that the namespace's LimitRanges allow."),
    ] = None,
    exclude_nodes: Annotated[
        str | None, typer.Option("--exclude-nodes", metavar="PATTERN", help="Nodes that do not count.")
    ] = None,
    with_pending: Annotated[
        bool, typer.Option("--with-pending", help="Place the pods that wait first: they take room.")
    ] = False,
    format_: Annotated[
        Format, typer.Option("--format", help="cluster-capacity prints that program's document (with -o json|yaml).")
    ] = Format.PODIUM,
    schema: SchemaOption = False,
    output: AnswerOption = Output.TABLE,
) -> None:
    """Say how many pods of a template fit, on which nodes, and what binds first.

    Pods are placed one after another by the scheduler's own rules, until the first finds no node. Pods that wait are
    left out unless --with-pending is given. Nothing is changed anywhere. Exits 0 when as many fit as --replicas asks
    for, or any at all without it; 1 when they do not; 2 when nothing can be asked.

    Example: podium capacity -f pod.yaml

    Example: podium capacity -f web.yaml --replicas 40 --add-nodes 3=like:worker-1

    Example: podium capacity --like shop/web-1 --from cluster.json -o json
    """
    from podium.cli.state_source import load_state, node_maker, read_catalogs, say_asides
    from podium.whatif.capacity import CapacityQuestion, CapacityRecord
    from podium.whatif.capacity import capacity as count
    from podium.whatif.changes import RemoveNodes
    from podium.whatif.cluster_capacity import review
    from podium.whatif.records import document, json_schema

    if schema:
        echo_json(json_schema("capacity", CapacityQuestion, CapacityRecord))
        return
    if replicas is not None and replicas < 1:
        raise InputError(f"--replicas {replicas}: ask for at least one, or leave it out to fill the cluster")
    _one_source({"-f": files, "--mix": mix, "--like": like, "--namespace-max": namespace_max})
    loaded = load_state(state)
    sandbox = loaded.sandbox()
    wished = ordered_changes(ctx, changes)
    if exclude_nodes:
        wished.insert(0, RemoveNodes(nodes=exclude_nodes))
    templates, others = _templates(loaded, sandbox, files, mix, like, namespace_max)
    with progress_bar(replicas or 0, "placing pods") as report:
        answer = count(
            sandbox,
            templates,
            wished,
            limit=replicas,
            others=others,
            with_pending=with_pending,
            make=node_maker(read_catalogs(changes.catalog)),
            progress=lambda done: report(f"{done} pods placed", done),
        )
    say_asides(loaded)
    if format_ is Format.CLUSTER_CAPACITY:
        echo_data(review(answer, sandbox.clock.now()), output)
    elif output is Output.TABLE:
        _show(answer)
    else:
        echo_data(document("capacity", loaded.record(), answer.question(), answer.record()), output)
    if not answer.yes:
        raise typer.Exit(ANSWER_IS_NO)


capacity.command_class = OrderedCommand  # type: ignore[attr-defined]


def _one_source(given: dict[str, Any]) -> None:
    """Raises InputError unless exactly one option says what the template is."""
    named = [option for option, value in given.items() if value]
    if len(named) != 1:
        what = f"{' and '.join(named)} are given: give one of them" if named else "no pod is given"
        how = "write -f pod.yaml, --mix 3:web.yaml --mix 1:db.yaml, --like NS/POD or --namespace-max NS"
        raise InputError(f"{what}; {how}")


def _templates(
    loaded: "AskedState",
    sandbox: "Sandbox",
    files: list[str] | None,
    mix: list[str] | None,
    like: str | None,
    namespace_max: str | None,
) -> "tuple[list[Template], list[Any]]":
    """The templates, and the objects that count beside them."""
    from podium.cli.state_source import read_questions
    from podium.whatif.applying import copy_of
    from podium.whatif.capacity import Template
    from podium.whatif.manifests import template_pod
    from podium.whatif.namespace_max import largest_pod
    from podium.whatif.quotas import LIMIT_RANGES

    if like:
        key = like if "/" in like else f"default/{like}"
        pods = [*(placed.pod for placed in sandbox.cluster.pods.values()), *sandbox.cluster.objects.pending_pods]
        found = next((pod for pod in pods if pod.key == key), None)
        if found is None:
            raise InputError(f"--like {like}: there is no pod {key} in {loaded.origin}")
        return [Template(copy_of(found, f"{found.name}-copy"))], []
    if namespace_max:
        ranges = sandbox.cluster.objects.custom_store(LIMIT_RANGES)
        namespace = sandbox.cluster.objects.namespaces.get(namespace_max)
        return [Template(largest_pod(namespace_max, ranges, namespace.annotations if namespace else {}))], []
    templates, others = [], list[Any]()
    for share, file in [(1, each) for each in files or ()] or [_mixed(each) for each in mix or ()]:
        given = read_questions([file])
        if given.templates() != 1:
            number = given.templates()
            what = "no pod" if not number else f"{number} pods or workloads"
            raise InputError(f"{file}: {what} in it; give one, or several files with --mix 3:web.yaml --mix 1:db.yaml")
        pod, made = template_pod(given, loaded.known.objects, loaded.origin)
        per_node = bool(given.workloads) and given.workloads[0].kind == "DaemonSet"
        templates.append(Template(pod, share, per_node))
        others += made
    if files and len(templates) > 1:
        raise InputError("several files: say in which proportion with --mix, such as --mix 3:web.yaml --mix 1:db.yaml")
    return templates, others


def _mixed(text: str) -> tuple[int, str]:
    found = MIX.fullmatch(text)
    if found is None or not int(found[1]):
        raise InputError(f"--mix {text}: write N:FILE, such as 3:web.yaml")
    return int(found[1]), found[2]


def _show(answer: "CapacityAnswer") -> None:
    from podium.whatif.capacity import SHOWN_REMEDIES

    out = console()
    record = answer.record()
    names = ", ".join(each.name for each in answer.templates)
    pods = "1 pod" if record.replicas == 1 else f"{record.replicas} pods"
    loaded = f" of {answer.limit} asked for" if answer.limit is not None else ""
    bound = "" if record.bound is None else f" (at most {record.bound} can)"
    fit = "fits" if record.replicas == 1 else "fit"
    say(out, f"{pods}{loaded} like {names} {fit}{bound}", "bold green" if answer.yes else "bold red")
    if len(record.templates) > 1:
        say(out, ", ".join(f"{each.name} {each.replicas}" for each in record.templates), "green")
    if record.stop is not None:
        echo(f"The next one finds no node: {record.stop.message}")
        for note in record.stop.notes:
            echo(f"No node of any size takes it: {note}")
        if record.stop.first:
            echo(f"What binds first: {record.stop.first}")
    if record.nodes:
        out.print()
        rows = table()
        rows.add_column("node", overflow="fold")
        rows.add_column("pods", justify="right")
        for resource in ("cpu", "memory", "pods"):
            rows.add_column(f"{resource} left", justify="right", no_wrap=True)
        for each in record.nodes:
            left = each.left_over
            rows.add_row(each.node, str(each.replicas), *(left.get(name, "") for name in ("cpu", "memory", "pods")))
        print_table(out, rows)
    if record.one_more:
        out.print()
        rows = table("One more would fit with")
        rows.add_column("node", overflow="fold")
        rows.add_column("changes", overflow="fold")
        for remedy in record.one_more[:SHOWN_REMEDIES]:
            rows.add_row(remedy.node, "; ".join(remedy.changes))
        print_table(out, rows)
