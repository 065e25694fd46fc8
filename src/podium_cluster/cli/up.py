"""Reads the options of `podium up` and starts a cluster in this process."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from podium.cli.commands import PodiumCommand
from podium.cli.console import echo
from podium.cli.errors import InputError
from podium.cli.options import FeatureGatesOption, KubernetesVersionOption, PluginOption, QosPortOption, with_default
from podium.cli.serving_options import LogLevelOption, run_to_end, set_up_log

if TYPE_CHECKING:
    from podium.config import Registry, SchedulerConfig
    from podium.kube.versions import VersionRules
    from podium_cluster.kubelets import DeviceShape
    from podium_cluster.up.cluster import UpOptions
    from podium_cluster.up.manifests import Manifest
    from podium_cluster.up.reload import Sources
    from podium_cluster.up.screen import Screen

NO_WORKLOAD = "none"
TYPED = "what was typed"
DEFAULT_COUNT, MOST_DEVICES = "4", 1000


class UpCommand(PodiumCommand):
    """`podium up`, where --devices may stand alone; what was typed is kept for a process in the background."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.meta[TYPED] = list(args)
        return super().parse_args(ctx, with_default(args, "--devices", DEFAULT_COUNT))


def up(
    context: typer.Context,
    nodes: Annotated[
        int | None,
        typer.Option(
            "--nodes",
            metavar="N",
            min=0,
            max=100_000,
            help="How many nodes, in three zones; else 12, or those in the file of --data.",
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
    devices: Annotated[
        str | None,
        typer.Option(
            "--devices",
            metavar="[N|FILE]",
            help=f"Devices on the nodes: alone {DEFAULT_COUNT} GPUs each, N that many, or as a file says.",
        ),
    ] = None,
    workload: Annotated[
        str | None,
        typer.Option(
            "--workload",
            metavar="PATH",
            help="A file or folder of manifests, or sample:NAME; else a sample for a new cluster; "
            f'"{NO_WORKLOAD}": nothing.',
        ),
    ] = None,
    speed: Annotated[
        float, typer.Option("--speed", metavar="X", help="Pods start, run and end X times as fast.")
    ] = 1.0,
    port: Annotated[
        int, typer.Option("--port", metavar="PORT", min=0, max=65535, help="Where the API is served; 0: any free port.")
    ] = 7070,
    data: Annotated[
        str | None,
        typer.Option(
            "--data", metavar="FILE", help="Keep everything in this SQLite file, and go on with what is in it."
        ),
    ] = None,
    qos_port: QosPortOption = 10000,
    reload: Annotated[
        bool,
        typer.Option("--reload", help="Take in changes of the files of --plugin and --config while it runs."),
    ] = False,
    view: Annotated[
        bool, typer.Option("--view/--no-view", help="The live view, on a terminal; press ? for its keys.")
    ] = True,
    dashboard: Annotated[
        bool, typer.Option("--dashboard/--no-dashboard", help="Pages for a browser, on the port of the API.")
    ] = True,
    demo: Annotated[
        bool,
        typer.Option("--demo", help="Explain what could not be placed; then end, unless there is a terminal."),
    ] = False,
    detach: Annotated[
        bool,
        typer.Option("-d", "--detach", help="In the background: podium status shows it, podium down ends it."),
    ] = False,
    log_level: LogLevelOption = "warning",
    ready_fd: Annotated[int | None, typer.Option("--ready-fd", hidden=True)] = None,
) -> None:
    """Start a cluster in this process: API, controllers, nodes, scheduler and a workload.

    Nothing is installed and nothing outlives it, unless --data names a file. kubectl and every other client can use it.
    Runs until Ctrl-C or SIGTERM (exit code 0). Bad input ends with 2.

    With --reload, a plugin or configuration that was saved is taken in at once: the scheduler of the cluster is
    replaced, the cluster stays. One that cannot be loaded is said to be wrong, and the old one goes on.

    Example: podium up --nodes 50 --workload manifests/

    Example: podium up -d, podium status, podium down

    Example: podium up --devices, podium up --devices 8, podium up --devices devices.yaml
    """
    import sys

    from podium.cli.configuration import given_rules, read_config
    from podium.kube.versions import NEWEST
    from podium.serving.plugin_pages import PageAddress
    from podium_cluster.cli.explain_in_view import explain_for_api
    from podium_cluster.up.cluster import UpOptions

    if not 0 < speed <= 1000:
        raise InputError(f"--speed {speed:g}: write a number above 0, at most 1000")
    if detach and demo:
        raise InputError("--demo explains and ends, so it cannot be in the background: leave -d or --demo out")
    if detach and ready_fd is None:
        _start_in_background(context.meta[TYPED], port)
        return
    set_up_log("text", log_level)
    rules = given_rules(kubernetes_version) or NEWEST
    settings, registry = read_config(config, plugin, feature_gates, rules)
    terminal = sys.stdout.isatty()
    if reload and not (plugin or config):
        raise InputError("--reload takes in changes of --plugin and --config; give one of them")
    options = UpOptions(
        nodes=nodes,
        workload=_manifests(workload),
        devices=_devices(devices),
        speed=speed,
        port=port,
        data=Path(data) if data else None,
        pages={"qos": PageAddress(qos_port, option="--qos-port")},
        demo=demo,
        stays=not demo or terminal,
        sources=_sources(config, [*(plugin or ()), *_installed(settings, registry)], feature_gates, rules)
        if reload
        else None,
        ready_fd=ready_fd,
        explain=explain_for_api,
        dashboard=dashboard,
    )
    raise typer.Exit(_run(settings, registry, options, _screen(view)))


def _start_in_background(typed: list[str], port: int) -> None:
    from podium_cluster.up.background import StartFailedError, start_in_background
    from podium_cluster.up.running_clusters import running_clusters

    for each in running_clusters():
        if each.port == port:
            raise InputError(
                f"--port {port}: podium up runs there since {each.since} (process {each.pid}): use that one, end it "
                f"with podium down --port {port}, or give another port"
            )
    try:
        started, before = start_in_background(typed)
    except StartFailedError as error:
        echo(str(error) or "the process ended without a word", err=True)
        raise typer.Exit(error.code) from None
    if before:
        echo(before, err=True)
    echo(started.welcome)
    echo(f"it runs in the background (process {started.cluster.pid}) and logs to {started.cluster.log}")
    echo("podium status shows it, podium down ends it")


def _manifests(workload: str | None) -> "list[Manifest] | None":
    from podium.cli.files import named_path
    from podium_cluster.up.manifests import WorkloadError, read_workload

    if not workload:
        return None
    if workload == NO_WORKLOAD:
        return []
    try:
        return read_workload(named_path(workload))
    except WorkloadError as error:
        raise InputError(f"--workload {error}") from None


def _installed(settings: "SchedulerConfig", registry: "Registry") -> list[str]:
    """The installed plugins that profiles enable, each as `--plugin` names it, so that they are loaded again, too."""
    from podium.plugins import installed_plugins

    enabled = {name for profile in settings.profiles for names in profile.plugins.values() for name in names}
    ours = {registry[name] for name in enabled}
    return [f"{each.__module__}:{each.__qualname__}" for each in installed_plugins() if each in ours]


def _sources(
    config: str | None, plugin: list[str], feature_gates: list[str] | None, rules: "VersionRules"
) -> "Sources":
    from podium.cli.configuration import read_config
    from podium.cli.errors import sentence_for
    from podium.plugins.plugin_source import file_of
    from podium_cluster.up import UpError
    from podium_cluster.up.reload import Sources

    def load() -> "tuple[SchedulerConfig, Registry]":
        try:
            return read_config(config, plugin, feature_gates, rules, again=True)
        except Exception as error:  # a plugin's module may raise anything; what has no sentence is raised again
            sentence = sentence_for(error)
            if sentence is None:
                raise
            raise UpError(sentence) from error

    return Sources([*(file_of(each) for each in plugin), *([Path(config)] if config else [])], load)


def _devices(devices: str | None) -> "list[DeviceShape]":
    from podium_cluster.up.manifests import DeviceFileError, read_shapes, sample_devices

    if devices is None:
        return []
    if devices.isdecimal():
        if int(devices) > MOST_DEVICES:
            raise InputError(f"--devices {devices}: write at most {MOST_DEVICES} for each node")
        return sample_devices(int(devices))
    try:
        return read_shapes(Path(devices))
    except DeviceFileError as error:
        raise InputError(f"--devices {error}") from None


def _screen(view: bool) -> "Screen":
    """The live view where there is a terminal that can show it, and that is not another job's."""
    import sys

    from podium.cli.console import has_reader
    from podium_cluster.up.screen import PlainScreen

    if view and sys.stdout.isatty() and os.environ.get("TERM", "") not in ("dumb", "unknown"):
        from podium_cluster.cli.explain_in_view import explain_for_view
        from podium_cluster.up.live_view.live_screen import LiveScreen
        from podium_cluster.up.live_view.terminal import in_foreground

        if in_foreground():
            return LiveScreen(explain_for_view)
    return PlainScreen(has_reader)


def _run(config: "SchedulerConfig", registry: "Registry", options: "UpOptions", screen: "Screen") -> int:
    from podium_cluster.apiserver.errors import StorageError
    from podium_cluster.up import UpError
    from podium_cluster.up.cluster import up as run_cluster

    try:
        return run_to_end(run_cluster(config, registry, options, screen))
    except UpError as error:
        raise InputError(str(error)) from None
    except StorageError as error:
        raise InputError(f"--data {error.sentence}") from None


up.command_class = UpCommand  # type: ignore[attr-defined]
