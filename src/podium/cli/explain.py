"""`podium explain`: where would this pod go and why, or why does it go nowhere?"""

from typing import TYPE_CHECKING, Annotated

import typer

from podium.cli.errors import ANSWER_IS_NO, InputError
from podium.cli.options import Output, PluginOption

if TYPE_CHECKING:
    from podium.config import Registry, SchedulerConfig
    from podium.kube import KubeObject, Pod

HOW_TO_DUMP = "kubectl get nodes,pods -A -o json > cluster.json"


def explain(
    pod: Annotated[
        str | None,
        typer.Argument(metavar="[NAMESPACE/]POD", help="The pod; may be left out when -f holds exactly one."),
    ] = None,
    cluster: Annotated[
        list[str] | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="The cluster: what kubectl get -o json|yaml printed; - is standard input. Repeatable.",
        ),
    ] = None,
    more: Annotated[
        list[str] | None,
        typer.Option("-f", metavar="FILE", help="Objects not in the cluster yet, usually the pod. Repeatable."),
    ] = None,
    config: Annotated[
        str | None,
        typer.Option("--config", metavar="FILE", help="A KubeSchedulerConfiguration; else kube-scheduler's defaults."),
    ] = None,
    plugin: PluginOption = None,
    parity: Annotated[
        bool, typer.Option("--parity", help="Stop looking for nodes where kube-scheduler would (from 100 nodes on).")
    ] = False,
    output: Annotated[Output, typer.Option("-o", "--output", help="How to print the answer.")] = Output.TABLE,
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="Also say what was skipped in the files.")] = False,
) -> None:
    """Say where a pod would go and why, or why it goes nowhere.

    Nothing is changed anywhere. Exits 0 when the pod fits, 1 when it does not, 2 when there is no answer.

    Example: podium explain default/web --from cluster.json
    """
    from podium.cli.registry import registry_with
    from podium.cli.show import show
    from podium.engine.explain import Outcome
    from podium.engine.explain import explain as judge

    if not cluster:
        raise InputError(f"say where the cluster is: --from cluster.json, made with {HOW_TO_DUMP}")
    objects, target = _read(pod, cluster, more or [], verbose)
    registry = registry_with(plugin)
    explanation = judge(objects, target, _config(config, registry), registry, parity=parity)
    if explanation.outcome is Outcome.FAILED:
        raise InputError(f"{explanation.pod} cannot be judged: {explanation.message}")
    show(explanation, output)
    if explanation.outcome is not Outcome.FITS:
        raise typer.Exit(ANSWER_IS_NO)


def _read(pod: str | None, files: list[str], more: list[str], verbose: bool) -> "tuple[list[KubeObject], Pod]":
    from podium.cli.files import STDIN, read_objects
    from podium.cli.manifest import as_admitted
    from podium.cli.target import find_pod

    if [*files, *more].count(STDIN) > 1:
        raise InputError('standard input can be read only once: give "-" once')
    objects, skipped = read_objects(files)
    if not objects:
        raise InputError(f"{', '.join(files)}: no objects that scheduling knows; try {HOW_TO_DUMP}")
    given, skipped_too = read_objects(more)
    objects, given = as_admitted(objects, given), as_admitted(given, objects)
    skipped += skipped_too
    if verbose and skipped:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(skipped.items()))
        typer.echo(f"skipped {skipped.total()} objects that scheduling has no use for: {kinds}", err=True)
    if more and pod is None and not given and skipped_too:
        raise InputError(f"{', '.join(more)}: no pod in it, only {', '.join(sorted(skipped_too))}; give the Pod itself")
    return [*objects, *given], find_pod(pod, objects, given)


def _config(file: str | None, registry: "Registry") -> "SchedulerConfig":
    from podium.cli.files import read_text
    from podium.config import default_config, load_config

    if file is None:
        return default_config(registry)
    config, warnings = load_config(*read_text(file), registry)
    for warning in warnings:
        typer.echo(f"warning: {warning}", err=True)
    return config
