"""Reads the options of `podium explain`: where would this pod go and why, or why does it go nowhere?"""

from functools import cache
from typing import TYPE_CHECKING, Annotated

import typer

from podium.cli.console import echo, echo_json, plugins_print_to_stderr
from podium.cli.errors import ANSWER_IS_NO, InputError, sentence_for
from podium.cli.options import (
    ContextOption,
    FeatureGatesOption,
    KubeconfigOption,
    KubernetesVersionOption,
    NamespaceOption,
    Output,
    PluginOption,
    SchedulerOption,
)

if TYPE_CHECKING:
    from podium.cli.judging import Explained, ExplainOptions


LOOK_EVERY = 2.0
"""Seconds between two looks of -w."""


@plugins_print_to_stderr()
def explain(
    pod: Annotated[
        str | None,
        typer.Argument(
            metavar="[[NAMESPACE|TYPE]/]NAME",
            help="The pod, or a workload (deploy/web); may be left out when -f holds exactly one pod.",
        ),
    ] = None,
    every: Annotated[
        bool,
        typer.Option("-A", "--all", help="All pods that wait for a node, with -n those of one namespace."),
    ] = False,
    watch: Annotated[
        bool, typer.Option("-w", "--watch", help="Print again when the answer changes, until Ctrl-C.")
    ] = False,
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
        typer.Option(
            "-f", "--filename", metavar="FILE", help="Objects not in the cluster yet, usually the pod. Repeatable."
        ),
    ] = None,
    config: Annotated[
        str | None,
        typer.Option(
            "--config",
            metavar="FILE",
            help="A KubeSchedulerConfiguration; else that of the scheduler in charge where it can be read, else "
            "kube-scheduler's defaults with the plugins of --plugin.",
        ),
    ] = None,
    plugin: PluginOption = None,
    feature_gates: FeatureGatesOption = None,
    kubernetes_version: KubernetesVersionOption = None,
    scheduler: SchedulerOption = None,
    parity: Annotated[
        bool, typer.Option("--parity", help="Stop looking for nodes where kube-scheduler would (from 100 nodes on).")
    ] = False,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON Schema of the answer, and nothing else.")
    ] = False,
    output: Annotated[Output, typer.Option("-o", "--output", help="How to print the answer.")] = Output.TABLE,
    verbose: Annotated[
        bool, typer.Option("-v", "--verbose", help="Also say what was skipped in the files, and where plugins failed.")
    ] = False,
) -> None:
    """Say where a pod would go and why, or why it goes nowhere.

    Asks the live cluster, unless --from names a dump. Nothing is changed anywhere. Exits 0 when the pod fits, 1 when it
    does not, when a plugin holds it or when the decision ends in an error, 2 when nothing can be asked.

    Example: podium explain default/web

    Example: podium explain deploy/web -n shop

    Example: podium explain -A
    """
    from podium.cli.configuration import first_for_some_minor, given_rules, read_config
    from podium.cli.judging import ExplainOptions, of_cluster, of_files

    if schema:
        from podium.whatif.explain_document import explain_schema

        echo_json(explain_schema())
        return
    if cluster and (kubeconfig or context or scheduler):
        other = "--scheduler names a running scheduler" if scheduler else "--kubeconfig a live cluster"
        raise InputError(f"--from is a dump and {other}: give one of them")
    if every and (pod or more):
        raise InputError("-A is for all pods that wait: give no pod and no -f")
    if watch and (cluster or more):
        raise InputError("-w watches the live cluster: leave out --from and -f")
    if scheduler and config:
        raise InputError("--scheduler reads the configuration of a running scheduler: leave out --config")
    rules = given_rules(kubernetes_version)
    first = first_for_some_minor(rules, lambda each: read_config(config, plugin, feature_gates, each))
    options = ExplainOptions(
        pod=pod,
        every=every,
        namespace=namespace,
        more=more or [],
        configure=cache(lambda each: read_config(config, plugin, feature_gates, each, quiet=True)),
        rules=rules,
        config_given=config is not None,
        kubeconfig_of_config=first.settings.client_connection.kubeconfig,
        tries_plugins=bool(plugin),
        scheduler=scheduler,
        parity=parity,
        verbose=verbose,
    )
    if watch:
        _watch(options, kubeconfig, context, output)
        return
    answer = of_files(options, cluster) if cluster else of_cluster(options, kubeconfig, context)
    _print(options, answer, output)
    if not answer.fits:
        raise typer.Exit(ANSWER_IS_NO)


def _print(options: "ExplainOptions", answer: "Explained", output: Output) -> None:
    from podium.cli.queue import show_waiting
    from podium.cli.show import show

    for note in answer.asides:
        echo(note, err=True)
    if options.every:
        show_waiting(answer.explanations, answer.standing, output)
    else:
        show(answer.explanations[0], output, answer.state)


def _watch(options: "ExplainOptions", kubeconfig: str | None, context: str | None, output: Output) -> None:
    """Ask again and again, at most half of the time; what is said only once stands on standard error."""
    import time

    from podium.cli.console import has_reader
    from podium.cli.judging import of_cluster

    before: object = None
    try:
        while has_reader():
            began = time.monotonic()
            try:
                answer = of_cluster(options, kubeconfig, context)
                now: object = answer.to_compare()
            except Exception as error:  # the pod may come back, and so may the API; what has no sentence is raised
                sentence = sentence_for(error)
                if sentence is None or before is None:
                    raise
                answer, now = None, sentence
            if now != before:
                if before is not None and output is Output.TABLE:
                    echo(time.strftime("\n%H:%M:%S"))
                if answer is None:
                    echo(str(now), err=True)
                else:
                    _print(options, answer, output)
            before = now
            time.sleep(max(LOOK_EVERY, time.monotonic() - began))
    except KeyboardInterrupt:
        return
