"""Reads the options of `podium explain`: where would this pod go and why, or why does it go nowhere?"""

from typing import TYPE_CHECKING, Annotated

import typer

from podium.cli.console import echo
from podium.cli.errors import ANSWER_IS_NO, InputError
from podium.cli.options import (
    ContextOption,
    FeatureGatesOption,
    KubeconfigOption,
    NamespaceOption,
    Output,
    PluginOption,
)

if TYPE_CHECKING:
    from collections import Counter

    from podium.framework.plugin_failures import PluginFailure
    from podium.kube import KubeObject, Pod


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
            help="A dump instead of the live cluster: what kubectl get -o json|yaml printed; - is standard input, "
            "sample:cluster a cluster to try it on. Repeatable.",
        ),
    ] = None,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    namespace: NamespaceOption = None,
    more: Annotated[
        list[str] | None,
        typer.Option("-f", metavar="FILE", help="Objects not in the cluster yet, usually the pod. Repeatable."),
    ] = None,
    config: Annotated[
        str | None,
        typer.Option(
            "--config",
            metavar="FILE",
            help="A KubeSchedulerConfiguration; else kube-scheduler's defaults with the plugins of --plugin.",
        ),
    ] = None,
    plugin: PluginOption = None,
    feature_gates: FeatureGatesOption = None,
    parity: Annotated[
        bool, typer.Option("--parity", help="Stop looking for nodes where kube-scheduler would (from 100 nodes on).")
    ] = False,
    output: Annotated[Output, typer.Option("-o", "--output", help="How to print the answer.")] = Output.TABLE,
    verbose: Annotated[
        bool, typer.Option("-v", "--verbose", help="Also say what was skipped in the files, and where plugins failed.")
    ] = False,
) -> None:
    """Say where a pod would go and why, or why it goes nowhere.

    Asks the live cluster, unless --from names a dump. Nothing is changed anywhere. Exits 0 when the pod fits, 1 when it
    does not or when a plugin holds it, 2 when there is no answer.

    Example: podium explain default/web
    """
    from podium.cli.configuration import read_config
    from podium.cli.live_cluster import ask_cluster, cluster_access
    from podium.cli.show import show
    from podium.cli.target import check_namespace, pod_key
    from podium.engine.explain import Outcome
    from podium.engine.explain import explain as judge
    from podium.framework.plugin_failures import FirstFailures

    if cluster and (kubeconfig or context):
        raise InputError("--from is a dump and --kubeconfig a live cluster: give one of them")
    check_namespace(pod, namespace)
    settings, registry = read_config(config, plugin, feature_gates)
    load = held = None
    if cluster:
        known = _read_files(cluster, more or [], verbose)
        key = pod_key(pod, namespace or "default")
    else:
        access = cluster_access(kubeconfig or settings.client_connection.kubeconfig or None, context)
        key = pod_key(pod, namespace or access.namespace)
        known, load, held = ask_cluster(access, settings, registry, None if more else key)
    objects, target = _with_given(key, known, more or [], verbose, "the files" if cluster else "the cluster")
    failures: list[PluginFailure] = []
    on_failure = FirstFailures(failures.append)
    explanation = judge(objects, target, settings, registry, load=load, parity=parity, on_failure=on_failure)
    traced = [each for each in failures if each.traceback()]
    if verbose:
        for failure in traced:
            echo(f"{failure}\n{failure.traceback()}", err=True)
    if held is not None:
        explanation.outcome, explanation.message = Outcome.WAITS, held
    if traced and not verbose:
        echo("-v shows where it failed", err=True)
    show(explanation, output)
    if explanation.outcome is not Outcome.FITS:
        raise typer.Exit(ANSWER_IS_NO)


def _read_files(files: list[str], more: list[str], verbose: bool) -> "list[KubeObject]":
    from podium.cli.files import STDIN, read_objects
    from podium.cli.live_cluster import HOW_TO_DUMP

    if [*files, *more].count(STDIN) > 1:
        raise InputError('standard input can be read only once: give "-" once')
    objects, skipped = read_objects(files)
    if not objects:
        raise InputError(f"{', '.join(files)}: no objects that scheduling knows; try {HOW_TO_DUMP}")
    _print_skipped(skipped, verbose)
    return objects


def _with_given(
    pod: str | None, objects: "list[KubeObject]", more: list[str], verbose: bool, origin: str
) -> "tuple[list[KubeObject], Pod]":
    from podium.cli.files import read_objects
    from podium.cli.target import find_pod
    from podium.kube.admission import as_admitted
    from podium.kube.claim_templates import with_claims_made

    given, skipped = read_objects(more)
    objects, given = as_admitted(objects, given, origin), as_admitted(given, objects, origin)
    given = with_claims_made(given, objects)
    _print_skipped(skipped, verbose)
    if more and pod is None and not given and skipped:
        raise InputError(f"{', '.join(more)}: no pod in it, only {', '.join(sorted(skipped))}; give the Pod itself")
    return [*objects, *given], find_pod(pod, objects, given, origin)


def _print_skipped(skipped: "Counter[str]", verbose: bool) -> None:
    from podium.kube import readable_version

    for kind, count in sorted(skipped.items()):
        version = readable_version(kind)
        if version is not None:
            echo(f"{count} {kind} left out: only {version} is read; dump them in that version", err=True)
    if verbose and skipped:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(skipped.items()))
        echo(f"skipped {skipped.total()} objects that scheduling has no use for: {kinds}", err=True)
