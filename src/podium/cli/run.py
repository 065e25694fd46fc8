"""Reads the options of `podium run` and schedules a real cluster."""

from typing import Annotated

import typer

from podium.cli.event_loop import run_to_end
from podium.cli.log_options import LogFormatOption, LogLevelOption, check_choice, set_up_log
from podium.cli.options import ContextOption, KubeconfigOption, PluginOption


def run(
    config: Annotated[
        str | None,
        typer.Option("--config", metavar="FILE", help="A KubeSchedulerConfiguration; else kube-scheduler's defaults."),
    ] = None,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    master: Annotated[
        str | None, typer.Option("--master", metavar="URL", help="The API server, whatever the kubeconfig says.")
    ] = None,
    plugin: PluginOption = None,
    leader_elect: Annotated[
        str | None,
        typer.Option("--leader-elect", metavar="true|false", help="Schedule only while holding the lease."),
    ] = None,
    lease_duration: Annotated[
        str | None, typer.Option("--leader-elect-lease-duration", metavar="DURATION", help="For example 15s.")
    ] = None,
    renew_deadline: Annotated[
        str | None, typer.Option("--leader-elect-renew-deadline", metavar="DURATION", help="For example 10s.")
    ] = None,
    retry_period: Annotated[
        str | None, typer.Option("--leader-elect-retry-period", metavar="DURATION", help="For example 2s.")
    ] = None,
    resource_namespace: Annotated[
        str | None, typer.Option("--leader-elect-resource-namespace", metavar="NAME", help="Where the lease is.")
    ] = None,
    resource_name: Annotated[
        str | None, typer.Option("--leader-elect-resource-name", metavar="NAME", help="What the lease is called.")
    ] = None,
    bind_address: Annotated[
        str, typer.Option("--bind-address", metavar="IP", help="Where health, metrics and configuration are served.")
    ] = "0.0.0.0",
    secure_port: Annotated[
        int, typer.Option("--secure-port", metavar="PORT", min=0, max=65535, help="On which port; 0 serves nothing.")
    ] = 10259,
    tls_cert_file: Annotated[
        str, typer.Option("--tls-cert-file", metavar="FILE", help="The serving certificate; else one is made.")
    ] = "",
    tls_private_key_file: Annotated[
        str, typer.Option("--tls-private-key-file", metavar="FILE", help="The key that goes with it.")
    ] = "",
    cert_dir: Annotated[
        str,
        typer.Option("--cert-dir", metavar="DIR", help="Where a certificate made here is kept; else in memory."),
    ] = "",
    client_ca_file: Annotated[
        str, typer.Option("--client-ca-file", metavar="FILE", help="Clients with its certificates are believed.")
    ] = "",
    authentication_kubeconfig: Annotated[
        str, typer.Option("--authentication-kubeconfig", metavar="FILE", help="To ask who somebody is; else as above.")
    ] = "",
    authorization_kubeconfig: Annotated[
        str, typer.Option("--authorization-kubeconfig", metavar="FILE", help="To ask what they may; else as above.")
    ] = "",
    authentication_skip_lookup: Annotated[
        bool, typer.Option("--authentication-skip-lookup", help="Do not look for the cluster's client authority.")
    ] = False,
    tolerate_lookup_failure: Annotated[
        str,
        typer.Option(
            "--authentication-tolerate-lookup-failure",
            metavar="true|false",
            help="Serve even if the cluster's client authority cannot be looked up.",
        ),
    ] = "true",
    always_allow_paths: Annotated[
        str,
        typer.Option("--authorization-always-allow-paths", metavar="PATHS", help="What every client may see."),
    ] = "/healthz,/readyz,/livez",
    shadow: Annotated[
        bool,
        typer.Option("--shadow", help="Decide, bind nothing, and log where the scheduler in charge decides otherwise."),
    ] = False,
    log_format: LogFormatOption = "text",
    log_level: LogLevelOption = "info",
) -> None:
    """Schedule the pods of a cluster: as its only scheduler, or beside others under names of its own.

    Runs until a signal stops it (exit code 0) or loses its lease to another replica (1). Bad input ends with 2.

    Example: podium run --config scheduler.yaml --kubeconfig ~/.kube/config
    """
    from podium.cli.configuration import read_config
    from podium.cli.registry import registry_with
    from podium.client import load_access
    from podium.config.flags import with_leader_flags
    from podium.live.assembly import RunOptions
    from podium.live.run import run as run_scheduler
    from podium.serving.endpoints.options import ServingOptions

    set_up_log(log_format, log_level)
    registry = registry_with(plugin)
    flags = {
        "leader-elect": leader_elect,
        "leader-elect-lease-duration": lease_duration,
        "leader-elect-renew-deadline": renew_deadline,
        "leader-elect-retry-period": retry_period,
        "leader-elect-resource-namespace": resource_namespace,
        "leader-elect-resource-name": resource_name,
    }
    check_choice("--authentication-tolerate-lookup-failure", tolerate_lookup_failure, ("true", "false"))
    serving = ServingOptions(
        bind_address,
        secure_port,
        tls_cert_file,
        tls_private_key_file,
        cert_dir,
        client_ca_file,
        authentication_kubeconfig,
        authorization_kubeconfig,
        authentication_skip_lookup,
        tolerate_lookup_failure == "true",
        tuple(filter(None, always_allow_paths.split(","))),
    )
    settings = with_leader_flags(read_config(config, registry), flags)
    access = load_access(kubeconfig or settings.client_connection.kubeconfig or None, context=context, master=master)
    options = RunOptions(shadow=shadow, serving=serving)
    raise typer.Exit(run_to_end(run_scheduler(settings, registry, access, options)))
