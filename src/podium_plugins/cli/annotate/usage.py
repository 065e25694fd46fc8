"""Annotates nodes with the use that Prometheus measures (`podium annotate usage`)."""

from typing import TYPE_CHECKING, Annotated

import typer

from podium.cli.errors import InputError
from podium.cli.options import ContextOption, KubeconfigOption
from podium.cli.serving_options import LogFormatOption, LogLevelOption, set_up_log
from podium_plugins.cli.annotate.repetition import (
    IntervalOption,
    MaxAgeOption,
    OnceOption,
    duration,
    pace,
    run_with_client,
)

if TYPE_CHECKING:
    import asyncio

    from podium.client import Client
    from podium.load.settings import SourceSettings


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
