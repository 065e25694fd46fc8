"""Annotates nodes with what their pods have requested (`podium annotate allocation`)."""

from typing import TYPE_CHECKING, Annotated

import typer

from podium.cli.options import ContextOption, KubeconfigOption
from podium.cli.serving_options import LogFormatOption, LogLevelOption, set_up_log
from podium_plugins.cli.annotate.repetition import IntervalOption, MaxAgeOption, OnceOption, pace, run_with_client

if TYPE_CHECKING:
    import asyncio

    from podium.client import Client


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
