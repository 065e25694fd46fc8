"""Reads the options of `podium run` and schedules a real cluster."""

from typing import Annotated

import typer

from podium.cli.event_loop import run_to_end
from podium.cli.leader_options import (
    LeaderElectOption,
    LeaseDurationOption,
    LeaseNameOption,
    LeaseNamespaceOption,
    RenewDeadlineOption,
    RetryPeriodOption,
    leader_flags,
)
from podium.cli.log_options import LogFormatOption, LogLevelOption, set_up_log
from podium.cli.options import ContextOption, FeatureGatesOption, KubeconfigOption, PluginOption, QosPortOption
from podium.cli.serving_options import (
    ALWAYS_ALLOWED,
    AlwaysAllowPathsOption,
    AuthenticationKubeconfigOption,
    AuthorizationKubeconfigOption,
    BindAddressOption,
    CertDirOption,
    ClientCaFileOption,
    SecurePortOption,
    SkipLookupOption,
    TlsCertFileOption,
    TlsPrivateKeyFileOption,
    TolerateLookupFailureOption,
    serving_options,
)


def run(
    typed: typer.Context,
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
        str | None, typer.Option("--master", metavar="URL", help="The API server, whatever the kubeconfig says.")
    ] = None,
    plugin: PluginOption = None,
    feature_gates: FeatureGatesOption = None,
    leader_elect: LeaderElectOption = None,
    lease_duration: LeaseDurationOption = None,
    renew_deadline: RenewDeadlineOption = None,
    retry_period: RetryPeriodOption = None,
    resource_namespace: LeaseNamespaceOption = None,
    resource_name: LeaseNameOption = None,
    bind_address: BindAddressOption = "0.0.0.0",
    secure_port: SecurePortOption = 10259,
    tls_cert_file: TlsCertFileOption = "",
    tls_private_key_file: TlsPrivateKeyFileOption = "",
    cert_dir: CertDirOption = "",
    client_ca_file: ClientCaFileOption = "",
    authentication_kubeconfig: AuthenticationKubeconfigOption = "",
    authorization_kubeconfig: AuthorizationKubeconfigOption = "",
    authentication_skip_lookup: SkipLookupOption = False,
    tolerate_lookup_failure: TolerateLookupFailureOption = "true",
    always_allow_paths: AlwaysAllowPathsOption = ALWAYS_ALLOWED,
    qos_port: QosPortOption = 10000,
    qos_address: Annotated[
        str, typer.Option("--qos-address", metavar="IP", help="On which address, instead of loopback.")
    ] = "127.0.0.1",
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
    from podium.client import load_access
    from podium.config.flags import with_leader_flags
    from podium.live.assembly import RunOptions
    from podium.live.run import run as run_scheduler

    set_up_log(log_format, log_level)
    flags = leader_flags(leader_elect, lease_duration, renew_deadline, retry_period, resource_namespace, resource_name)
    serving = serving_options(
        typed,
        bind_address,
        secure_port,
        tls_cert_file,
        tls_private_key_file,
        cert_dir,
        client_ca_file,
        authentication_kubeconfig,
        authorization_kubeconfig,
        authentication_skip_lookup,
        tolerate_lookup_failure,
        always_allow_paths,
    )
    written, registry = read_config(config, plugin, feature_gates)
    settings = with_leader_flags(written, flags)
    access = load_access(kubeconfig or settings.client_connection.kubeconfig or None, context=context, master=master)
    options = RunOptions(shadow=shadow, serving=serving, qos_address=qos_address, qos_port=qos_port)
    raise typer.Exit(run_to_end(run_scheduler(settings, registry, access, options)))
