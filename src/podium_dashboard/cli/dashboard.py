"""Reads the options of `podium dashboard` and serves a dump's dashboard."""

from typing import TYPE_CHECKING, Annotated

import typer

from podium.cli.console import echo
from podium.cli.errors import InputError
from podium.cli.options import FeatureGatesOption, KubernetesVersionOption, PluginOption

if TYPE_CHECKING:
    from podium.run.dashboard import DashboardSource

PORT = 7070


def dashboard(
    cluster: Annotated[
        list[str] | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="A dump: what kubectl get -o json|yaml printed, an export of kube-scheduler-simulator, or a snapshot "
            "of KAI Scheduler; - is standard input, sample:cluster a cluster to try it on. Repeatable.",
        ),
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
    kubernetes_version: KubernetesVersionOption = None,
    port: Annotated[
        int,
        typer.Option("--port", metavar="PORT", min=0, max=65535, help="Which port of 127.0.0.1; 0: any free one."),
    ] = PORT,
) -> None:
    """Show a dump of a cluster in a browser: where pods are and why, and why others are nowhere.

    podium up has a dashboard of its own, and so has podium run --dashboard. Runs until Ctrl-C or SIGTERM (exit code 0).
    Bad input ends with 2.

    Example: podium dashboard --from sample:cluster

    Example: kubectl get nodes,pods -A -o json | podium dashboard --from -
    """
    from podium.cli.question_options import StateFlags
    from podium.cli.serving_options import run_to_end
    from podium.cli.state_source import load_state, say_asides
    from podium.run.dashboard import DashboardSource
    from podium_dashboard.dump import look_at, view_of_objects

    if not cluster:
        raise InputError("--from is missing: name a dump, such as --from sample:cluster")
    flags = StateFlags(
        cluster=cluster,
        config=config,
        plugin=plugin,
        feature_gates=feature_gates,
        kubernetes_version=kubernetes_version,
    )
    state = load_state(flags)
    say_asides(state)
    view = view_of_objects(state.known.objects, *state.configured)
    given: dict[str, list[str] | None] = {
        "--from": cluster,
        "--config": [config or ""],
        "--plugin": plugin,
        "--feature-gates": feature_gates,
        "--kubernetes-version": [kubernetes_version or ""],
    }
    words = [word for name, values in given.items() for value in values or () if value for word in (name, value)]
    raise typer.Exit(run_to_end(_serve(DashboardSource("dump", look_at(view), words), port)))


async def _serve(source: "DashboardSource", port: int) -> int:
    """Say the address, and serve; the exit code."""
    from contextlib import AsyncExitStack

    from podium.run.dashboard import PATH, DashboardUnservedError, serve_dashboard
    from podium.serving import address
    from podium.serving.environment import stop_on_signals

    stop = stop_on_signals()
    async with AsyncExitStack() as stack:
        try:
            served = await serve_dashboard(source, port, stack)
        except DashboardUnservedError as error:
            raise InputError(f"{error}; give another port with --port") from None
        echo(f"the dashboard is on http://{address(source.host, served)}{PATH}/")
        await stop.wait()
    return 0
