"""Defines the options of the commands that ask questions of a cluster: where its state is from, and what changes first.

Changes are applied in the order in which they are written, whatever their options: `ordered_changes` finds it out.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from podium.cli.commands import PodiumCommand
from podium.cli.options import (
    ContextOption,
    FeatureGatesOption,
    KubeconfigOption,
    KubernetesVersionOption,
    Output,
    PluginOption,
)

if TYPE_CHECKING:
    from podium.whatif.changes import Change

CHANGE_FILE: Final = "--change"
_WRITTEN: Final = "podium.options written"

Texts = list[str] | None
PATTERN: Final = "Names with * and ?, comma-separated, or '-l SELECTOR'. Repeatable."


def _change(option: str, metavar: str, help_: str) -> Any:
    return typer.Option(option, metavar=metavar, help=help_, rich_help_panel=None)


@dataclass(frozen=True, kw_only=True)
class StateFlags:
    """Where the state is from, and what decides."""

    cluster: Annotated[
        Texts,
        typer.Option(
            "--from",
            metavar="FILE",
            help="A dump instead of the live cluster: what kubectl get -o json|yaml printed, an export of "
            "kube-scheduler-simulator, or a snapshot of KAI Scheduler; - is standard input, sample:cluster a cluster "
            "to try it on. Repeatable.",
        ),
    ] = None
    kubeconfig: KubeconfigOption = None
    context: ContextOption = None
    config: Annotated[
        str | None,
        typer.Option(
            "--config",
            metavar="FILE",
            help="A KubeSchedulerConfiguration; else that of the scheduler in charge where it can be read, else "
            "kube-scheduler's defaults with the plugins of --plugin.",
        ),
    ] = None
    plugin: PluginOption = None
    feature_gates: FeatureGatesOption = None
    kubernetes_version: KubernetesVersionOption = None
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="Also say what was skipped in the files.")] = False


@dataclass(frozen=True, kw_only=True)
class ChangeFlags:
    """What changes before the question is asked."""

    add_nodes: Annotated[
        Texts,
        _change(
            "--add-nodes",
            "N=TYPE",
            "N nodes of a type of --catalog; N=like:NODE clones one; N=FILE.yaml is a manifest.",
        ),
    ] = None
    remove_nodes: Annotated[Texts, _change("--remove-nodes", "PATTERN", "Nodes that go, with their pods.")] = None
    cordon: Annotated[Texts, _change("--cordon", "PATTERN", PATTERN)] = None
    uncordon: Annotated[Texts, _change("--uncordon", "PATTERN", "Nodes that take pods again.")] = None
    drain: Annotated[Texts, _change("--drain", "PATTERN", "Nodes to drain: what becomes of their pods.")] = None
    taint: Annotated[Texts, _change("--taint", "PATTERN:KEY=VALUE:EFFECT", "A taint that nodes get.")] = None
    untaint: Annotated[Texts, _change("--untaint", "PATTERN:KEY[:EFFECT]", "A taint that nodes lose.")] = None
    label: Annotated[Texts, _change("--label", "PATTERN:KEY=VALUE", "A label that nodes get.")] = None
    unlabel: Annotated[Texts, _change("--unlabel", "PATTERN:KEY", "A label that nodes lose.")] = None
    allocatable: Annotated[
        Texts, _change("--allocatable", "PATTERN:RESOURCE=AMOUNT", "What nodes offer, such as 'worker-*:cpu=16'.")
    ] = None
    delete_pods: Annotated[
        Texts, _change("--delete-pods", "SELECTOR", "Pods that go; shop/app=web only of the namespace shop.")
    ] = None
    scale: Annotated[Texts, _change("--scale", "NS/KIND/NAME=N", "A workload with another number of pods.")] = None
    set_: Annotated[
        Texts, _change("--set", "KIND/[NS/]NAME.PATH=VALUE", "Any field, such as pdb/shop/web.spec.minAvailable=1.")
    ] = None
    change: Annotated[Texts, _change("--change", "FILE", "A document of changes, in the place of options.")] = None
    catalog: Annotated[
        Texts,
        typer.Option(
            "--catalog",
            metavar="FILE",
            help="Types of nodes with prices: a catalog, a cloud's list, or a CSV of name,zone,price. Repeatable.",
        ),
    ] = None


SchemaOption = Annotated[bool, typer.Option("--schema", help="Print the JSON Schema of the answer, and nothing else.")]
AnswerOption = Annotated[Output, typer.Option("-o", "--output", help="How to print the answer.")]


class OrderedCommand(PodiumCommand):
    """A command that remembers in which order its options were written."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.meta[_WRITTEN] = list(args)
        return super().parse_args(ctx, args)


def ordered_changes(ctx: typer.Context, flags: ChangeFlags) -> "list[Change]":
    """The changes in the order in which they were written."""
    from podium.cli.files import read_text
    from podium.whatif.changes import OPTIONS, change_of, read_changes

    values: dict[str, list[str]] = {
        option: list(getattr(flags, "set_" if option == "--set" else option.removeprefix("--").replace("-", "_")) or ())
        for option in (*OPTIONS, CHANGE_FILE)
    }
    found: list[Change] = []
    for option in _options_written(ctx.meta.get(_WRITTEN, ()), values):
        text = values[option].pop(0)
        found += read_changes(*read_text(text)) if option == CHANGE_FILE else [change_of(option, text)]
    return found


def _options_written(args: Sequence[str], values: dict[str, list[str]]) -> list[str]:
    """The options that stand for changes, each as often as it has values."""
    counts = {option: len(texts) for option, texts in values.items()}
    found = []
    for arg in args:
        option = arg.partition("=")[0]
        if counts.get(option):
            counts[option] -= 1
            found.append(option)
    for option, left in counts.items():  # abbreviated, or from elsewhere than the command line
        found += [option] * left
    return found
