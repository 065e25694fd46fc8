"""Keeps annotations on nodes fresh, from Prometheus or from the pods (`podium annotate`)."""

from collections.abc import Callable, Coroutine
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from podium.cli.commands import Commands
from podium.cli.console import echo
from podium.cli.errors import InputError
from podium.cli.manifest_options import ImageOption, PlaceOption, print_manifest
from podium.cli.options import ContextOption, KubeconfigOption
from podium.cli.serving_options import LogFormatOption, LogLevelOption, set_up_log

if TYPE_CHECKING:
    import asyncio

    from podium.client import Client
    from podium.config.durations import Duration
    from podium.load.settings import SourceSettings
    from podium_plugins.annotate.loop import Pace

app = Commands(name="annotate", no_args_is_help=True)

OnceOption = Annotated[bool, typer.Option("--once", help="Do it once and end, with 1 if something went wrong.")]
IntervalOption = Annotated[
    str, typer.Option("--interval", metavar="DURATION", envvar="ANNOTATE_FREQ", help="How often; seconds or 90s, 5m.")
]
MaxAgeOption = Annotated[
    str, typer.Option("--max-age", metavar="DURATION", help="Annotations not measured for so long are taken away.")
]


@app.callback()
def annotate() -> None:
    """Write onto nodes what is measured of them, for those who place pods to read.

    Example: podium annotate usage --prometheus http://prometheus.monitoring:9090
    """


@app.command()
def usage(
    prometheus: Annotated[
        str,
        typer.Option("--prometheus", metavar="URL", envvar="PROMETHEUS_ADDRESS", help="Where Prometheus is."),
    ] = "",
    window: Annotated[
        str, typer.Option("--window", metavar="DURATION", help="The time that means and deviations are of.")
    ] = "24h",
    step: Annotated[
        str, typer.Option("--step", metavar="DURATION", help="How far apart values are; at least four scrapes.")
    ] = "1m",
    forecast: Annotated[
        bool, typer.Option("--forecast", envvar="USE_FORECAST", help="Foretell as well what will be free next.")
    ] = False,
    node_label: Annotated[
        str, typer.Option("--node-label", metavar="LABEL", help="The label that names the node; else the usual ones.")
    ] = "",
    cpu_query: Annotated[
        str, typer.Option("--cpu-query", metavar="PROMQL", help="Cores in use, per node; else of node exporters.")
    ] = "",
    memory_query: Annotated[
        str, typer.Option("--memory-query", metavar="PROMQL", help="Bytes in use, per node; else of node exporters.")
    ] = "",
    token_file: Annotated[
        str, typer.Option("--prometheus-token-file", metavar="FILE", help="A token that Prometheus wants.")
    ] = "",
    ca_file: Annotated[
        str, typer.Option("--prometheus-ca-file", metavar="FILE", help="Who signed Prometheus' certificate.")
    ] = "",
    tolerance: Annotated[
        float,
        typer.Option(
            "--tolerance", metavar="PERCENT", min=0, max=100, help="How far a number may move before it is written."
        ),
    ] = 0.1,
    once: OnceOption = False,
    interval: IntervalOption = "60s",
    max_age: MaxAgeOption = "15m",
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    log_format: LogFormatOption = "text",
    log_level: LogLevelOption = "info",
) -> None:
    """Annotate nodes with mean and deviation of free cpu and memory, as Prometheus has measured them.

    Runs until a signal stops it (exit code 0); with --once exits 0, or 1 when something failed. Bad input ends with 2.

    Example: podium annotate usage --prometheus http://prometheus.monitoring:9090 --once
    """
    from podium.load.series import NodeMatch
    from podium.load.sources.usage import UsageSettings
    from podium_plugins.annotate.loop import annotate_usage

    settings = UsageSettings(
        source=_source(prometheus, token_file, ca_file),
        match=NodeMatch(label=node_label),
        window=duration("--window", window),
        step=duration("--step", step),
        cpu_query=cpu_query,
        memory_query=memory_query,
        forecast=forecast,
    )
    if settings.step > settings.window:
        raise InputError(f"--step {step} is longer than --window {window}")
    chosen_pace = pace(once, interval, max_age, tolerance / 100)
    set_up_log(log_format, log_level)

    async def work(client: "Client", stop: "asyncio.Event") -> int:
        import random

        from podium.framework.clock import SystemClock

        return await annotate_usage(client, settings, chosen_pace, clock=SystemClock(), rng=random.Random(), stop=stop)

    raise typer.Exit(run_with_client(work, kubeconfig, context))


@app.command()
def allocation(
    gpu_resource: Annotated[
        str, typer.Option("--gpu-resource", metavar="NAME", help="What GPUs are called.")
    ] = "nvidia.com/gpu",
    once: OnceOption = False,
    interval: IntervalOption = "60s",
    max_age: MaxAgeOption = "15m",
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    log_format: LogFormatOption = "text",
    log_level: LogLevelOption = "info",
) -> None:
    """Annotate nodes with what their pods have requested, and what is left.

    Runs until a signal stops it (exit code 0); with --once exits 0, or 1 when something failed. Bad input ends with 2.

    Example: podium annotate allocation --once
    """
    from podium_plugins.annotate.loop import annotate_allocation

    chosen_pace = pace(once, interval, max_age, 0.0)
    set_up_log(log_format, log_level)

    async def work(client: "Client", stop: "asyncio.Event") -> int:
        import random

        from podium.framework.clock import SystemClock

        return await annotate_allocation(
            client, gpu_resource, chosen_pace, clock=SystemClock(), rng=random.Random(), stop=stop
        )

    raise typer.Exit(run_with_client(work, kubeconfig, context))


class AnnotationSet(StrEnum):
    """Which annotations are written."""

    USAGE = "usage"
    ALLOCATION = "allocation"


def manifest(
    kind: Annotated[AnnotationSet, typer.Argument(metavar="usage|allocation", help="Which annotations.")],
    prometheus: Annotated[
        str, typer.Option("--prometheus", metavar="URL", help="Where Prometheus is, as seen from the cluster.")
    ] = "http://prometheus.monitoring:9090",
    namespace: PlaceOption = "kube-system",
    image: ImageOption = "",
) -> None:
    """Print what keeps annotations fresh in a cluster: an account, its rights, a Deployment.

    Example: podium manifest annotate usage --prometheus http://prometheus.monitoring:9090 | kubectl apply -f -
    """
    from podium.manifests.objects import IMAGE
    from podium_plugins.annotate.deployment import manifest as objects_of

    source_at(prometheus)
    options = ["--prometheus", prometheus] if kind is AnnotationSet.USAGE else []
    print_manifest(objects_of(kind.value, options, namespace, image or IMAGE), image)


def _source(address: str, token_file: str, ca_file: str) -> "SourceSettings":
    """Prometheus; the variables PROM_IP and PROM_PORT stand in for its address."""
    import os

    host = os.environ.get("PROM_IP", "")
    if not address and host:
        address = f"http://{host}:{os.environ.get('PROM_PORT') or 9090}"
    if not address:
        raise InputError("--prometheus is missing: write where Prometheus is, such as http://prometheus:9090")
    return source_at(address, token_file, ca_file)


def source_at(address: str, token_file: str = "", ca_file: str = "") -> "SourceSettings":
    """Prometheus at that address, which is checked."""
    from podium.config.field import FieldPath
    from podium.kube.printable import printable
    from podium.load.settings import SourceSettings, Tls

    source = SourceSettings(address=address, token_file=token_file, tls=Tls(ca_file=ca_file))
    for error in source.validate(FieldPath()):
        raise InputError(f"--prometheus {printable(address)}: {error.body}")
    return source


def pace(once: bool, interval: str, max_age: str, tolerance: float) -> "Pace":
    from podium_plugins.annotate.loop import Pace

    every, oldest = duration("--interval", interval), duration("--max-age", max_age)
    if not once and oldest < 2 * every:
        raise InputError(
            f"--max-age {max_age} must be at least twice --interval {interval}, or annotations come and go"
        )
    return Pace(None if once else every.seconds, oldest.seconds, tolerance, echo, lambda line: echo(line, err=True))


def duration(option: str, text: str) -> "Duration":
    from podium.config.durations import Duration

    try:
        length = Duration.parse(f"{text}s" if text.isdecimal() else text)
    except ValueError:
        length = Duration(0)
    if length <= 0:
        raise InputError(f'{option} "{text}": write a length of time, such as 90s or 5m')
    return length


def run_with_client(
    work: "Callable[[Client, asyncio.Event], Coroutine[Any, Any, int]]", kubeconfig: str | None, context: str | None
) -> int:
    import asyncio

    from podium.client import Client, load_access
    from podium.serving.environment import stop_on_signals

    access = load_access(kubeconfig, context=context)

    async def main() -> int:
        async with Client(access, user_agent="podium-annotate") as client:
            return await work(client, stop_on_signals())

    return asyncio.run(main())
