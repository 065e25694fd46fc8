"""Reads the options of `podium run` and schedules a real cluster."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from podium.cli.commands import PodiumCommand
from podium.cli.console import echo
from podium.cli.errors import InputError
from podium.cli.options import (
    ContextOption,
    FeatureGatesOption,
    KubeconfigOption,
    KubernetesVersionOption,
    PluginOption,
    QosPortOption,
    option_groups,
    with_default,
)
from podium.cli.serving_options import (
    LeaderFlags,
    LogFormatOption,
    LogLevelOption,
    ServingFlags,
    run_to_end,
    set_up_log,
)

if TYPE_CHECKING:
    from podium.config import SchedulerConfig
    from podium.kube.versions import VersionRules
    from podium.run.dashboard import DashboardAddress

DASHBOARD = "127.0.0.1:7070"
APPLIED = "kube-scheduler's flags"


class RunCommand(PodiumCommand):
    """`podium run`, which reads kube-scheduler's flags, too."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        from podium.cli.kube_scheduler_flags import read_flags
        from podium.cli.version import version_text

        if ctx.resilient_parsing:  # a shell that completes
            return super().parse_args(ctx, args)
        found = read_flags(args)
        if found.applied.get("version", "false") != "false":
            echo(version_text())
            raise typer.Exit
        for warning in found.warnings:
            echo(f"warning: {warning}", err=True)
        ctx.meta[APPLIED] = found.applied
        return super().parse_args(ctx, with_default(found.args, "--dashboard", DASHBOARD))


def dashboard_address(text: str) -> "DashboardAddress":
    """
    >>> dashboard_address("7443"), dashboard_address("[::1]:0")
    (DashboardAddress(host='127.0.0.1', port=7443), DashboardAddress(host='::1', port=0))
    """
    from podium.run.dashboard import DashboardAddress

    host, separator, port = text.rpartition(":")
    if not port.isdecimal() or int(port) > 65535:
        raise InputError(f"--dashboard {text}: write ADDRESS:PORT, such as {DASHBOARD}")
    bare = host.removeprefix("[").removesuffix("]") if separator else ""
    return DashboardAddress(bare or DASHBOARD.partition(":")[0], int(port))


@option_groups
def run(
    typed: typer.Context,
    *,
    config: Annotated[
        str | None,
        typer.Option(
            "--config",
            metavar="FILE",
            help="A KubeSchedulerConfiguration; else kube-scheduler's defaults with the plugins of --plugin.",
        ),
    ] = None,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    master: Annotated[
        str | None, typer.Option("--master", metavar="URL", help="The API server; overrides the kubeconfig.")
    ] = None,
    plugin: PluginOption = None,
    feature_gates: FeatureGatesOption = None,
    kubernetes_version: KubernetesVersionOption = None,
    leader: LeaderFlags,
    endpoints: ServingFlags,
    qos_port: QosPortOption = 10000,
    qos_address: Annotated[
        str, typer.Option("--qos-address", metavar="IP", help="On which address, instead of loopback.")
    ] = "127.0.0.1",
    shadow: Annotated[
        bool,
        typer.Option("--shadow", help="Decide, bind nothing, and log where the scheduler in charge decides otherwise."),
    ] = False,
    dashboard: Annotated[
        str | None,
        typer.Option(
            "--dashboard",
            metavar="[[IP:]PORT]",
            help="Pages for a browser: alone on 127.0.0.1:7070. On other addresses over TLS, to users of the cluster.",
        ),
    ] = None,
    log_format: LogFormatOption = "text",
    log_level: LogLevelOption = "info",
) -> None:
    """Schedule the pods of a cluster: as its only scheduler, or beside others under names of its own.

    Runs until a signal stops it (exit code 0) or loses its lease to another replica (1). Bad input ends with 2.

    It reads kube-scheduler's other flags, too (--v, --profiling, --kube-api-qps and so on): some are applied, and the
    others are ignored with a warning that says what to write instead.

    Example: podium run --config scheduler.yaml --kubeconfig ~/.kube/config

    Example: podium run --dashboard
    """
    from podium.cli.configuration import Configured, first_for_some_minor, given_rules, read_config
    from podium.client import load_access
    from podium.config.flags import with_leader_flags, with_other_flags
    from podium.run.assembly import RunOptions
    from podium.run.assembly import run as run_scheduler
    from podium.serving.plugin_pages import PageAddress

    set_up_log(log_format, log_level)
    applied = typed.meta[APPLIED]
    flags = leader.given()
    flags["leader-elect-resource-lock"] = applied.get("leader-elect-resource-lock")
    serving = endpoints.checked(typed, applied.get("tls-min-version", ""))
    rules = given_rules(kubernetes_version)

    def configured(rules: "VersionRules", *, quiet: bool = False) -> "Configured":
        written, registry = read_config(config, plugin, feature_gates, rules, quiet=quiet)
        written = with_leader_flags(written, flags)
        settings, warnings = with_other_flags(written, applied, beside_file=config is not None)
        for warning in () if quiet else warnings:
            echo(f"warning: {warning}", err=True)
        return Configured(settings, registry)

    settings, registry = first_for_some_minor(rules, configured)
    if file := applied.get("write-config-to"):
        _write(settings, file)
        return
    access = load_access(kubeconfig or settings.client_connection.kubeconfig or None, context=context, master=master)
    pages = {"qos": PageAddress(qos_port, qos_address, "--qos-port")}
    page = None if dashboard is None else dashboard_address(dashboard)
    options = RunOptions(
        shadow=shadow,
        serving=serving,
        pages=pages,
        configure=None if rules else lambda found: configured(found, quiet=True).settings,
        remembers=page is not None,
        dashboard=page,
    )
    raise typer.Exit(run_to_end(run_scheduler(settings, registry, access, options)))


def _write(settings: "SchedulerConfig", file: str) -> None:
    from podium.config import to_yaml

    try:
        Path(file).write_text(to_yaml(settings), encoding="utf-8")
    except OSError as error:
        raise InputError(f"--write-config-to {file}: cannot be written: {error.strerror}") from None


run.command_class = RunCommand  # type: ignore[attr-defined]
