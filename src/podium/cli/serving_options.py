"""Defines the options of processes that serve, as kube-scheduler spells them: endpoints, the lease, the log."""

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Annotated, Any

import typer

from podium.cli.errors import InputError

if TYPE_CHECKING:
    from podium.serving.endpoints.options import ServingOptions


BindAddressOption = Annotated[
    str, typer.Option("--bind-address", metavar="IP", help="Where health, metrics and configuration are served.")
]
SecurePortOption = Annotated[
    int, typer.Option("--secure-port", metavar="PORT", min=0, max=65535, help="On which port; 0 serves nothing.")
]
TlsCertFileOption = Annotated[
    str, typer.Option("--tls-cert-file", metavar="FILE", help="The serving certificate; else one is made.")
]
TlsPrivateKeyFileOption = Annotated[
    str, typer.Option("--tls-private-key-file", metavar="FILE", help="The key that goes with it.")
]
CertDirOption = Annotated[
    str, typer.Option("--cert-dir", metavar="DIR", help="Where a certificate made here is kept; else in memory.")
]
ClientCaFileOption = Annotated[
    str, typer.Option("--client-ca-file", metavar="FILE", help="Clients with its certificates are believed.")
]
AuthenticationKubeconfigOption = Annotated[
    str, typer.Option("--authentication-kubeconfig", metavar="FILE", help="To ask who a client is; else as above.")
]
AuthorizationKubeconfigOption = Annotated[
    str, typer.Option("--authorization-kubeconfig", metavar="FILE", help="To ask what they may; else as above.")
]
SkipLookupOption = Annotated[
    bool, typer.Option("--authentication-skip-lookup", help="Do not look for the cluster's client authority.")
]
TolerateLookupFailureOption = Annotated[
    str,
    typer.Option(
        "--authentication-tolerate-lookup-failure",
        metavar="true|false",
        help="Serve even if the cluster's client authority cannot be looked up.",
    ),
]
AlwaysAllowPathsOption = Annotated[
    str, typer.Option("--authorization-always-allow-paths", metavar="PATHS", help="What every client may see.")
]
ALWAYS_ALLOWED = "/healthz,/readyz,/livez"
LeaderElectOption = Annotated[
    str | None,
    typer.Option("--leader-elect", metavar="true|false", help="Work only while holding the lease."),
]
LeaseDurationOption = Annotated[
    str | None, typer.Option("--leader-elect-lease-duration", metavar="DURATION", help="For example 15s.")
]
RenewDeadlineOption = Annotated[
    str | None, typer.Option("--leader-elect-renew-deadline", metavar="DURATION", help="For example 10s.")
]
RetryPeriodOption = Annotated[
    str | None, typer.Option("--leader-elect-retry-period", metavar="DURATION", help="For example 2s.")
]
LeaseNamespaceOption = Annotated[
    str | None, typer.Option("--leader-elect-resource-namespace", metavar="NAME", help="Where the lease is.")
]
LeaseNameOption = Annotated[
    str | None, typer.Option("--leader-elect-resource-name", metavar="NAME", help="What the lease is called.")
]
LogFormatOption = Annotated[str, typer.Option("--log-format", metavar="text|json", help="How log lines look.")]
LogLevelOption = Annotated[
    str, typer.Option("--log-level", metavar="LEVEL", help="trace, debug, info, warning or error.")
]


def serving_options(
    typed: typer.Context,
    bind_address: str,
    secure_port: int,
    tls_cert_file: str,
    tls_private_key_file: str,
    cert_dir: str,
    client_ca_file: str,
    authentication_kubeconfig: str,
    authorization_kubeconfig: str,
    authentication_skip_lookup: bool,
    tolerate_lookup_failure: str,
    always_allow_paths: str,
    tls_min_version: str = "",
) -> "ServingOptions":
    """What was typed, checked."""
    from podium.serving.endpoints.options import ServingOptions
    from podium.serving.tls import MIN_VERSIONS

    if tls_min_version:
        check_choice("--tls-min-version", tls_min_version, tuple(MIN_VERSIONS))
    check_choice("--authentication-tolerate-lookup-failure", tolerate_lookup_failure, ("true", "false"))
    return ServingOptions(
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
        flags_in_force(typed),
        tls_min_version,
    )


def flags_in_force(typed: typer.Context) -> dict[str, str]:
    """Every option of the command, without its dashes, with what was typed or else its default."""
    return {
        max(option.opts, key=len).lstrip("-"): _flag_text(typed.params[option.name])
        for option in typed.command.params
        if option.name in typed.params
    }


def _flag_text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return ",".join(str(each) for each in value)
    return "" if value is None else str(value)


def leader_flags(
    leader_elect: str | None,
    lease_duration: str | None,
    renew_deadline: str | None,
    retry_period: str | None,
    resource_namespace: str | None,
    resource_name: str | None,
) -> dict[str, str | None]:
    """The flags as `podium.config.flags` takes them."""
    return {
        "leader-elect": leader_elect,
        "leader-elect-lease-duration": lease_duration,
        "leader-elect-renew-deadline": renew_deadline,
        "leader-elect-retry-period": retry_period,
        "leader-elect-resource-namespace": resource_namespace,
        "leader-elect-resource-name": resource_name,
    }


def set_up_log(form: str, level: str) -> None:
    """Sets up the log as --log-format and --log-level say."""
    from podium.serving.log import FORMATS, LEVELS, set_up

    check_choice("--log-format", form, FORMATS)
    check_choice("--log-level", level, LEVELS)
    set_up(form, level)


def check_choice(option: str, given: str, allowed: tuple[str, ...]) -> None:
    if given not in allowed:
        raise InputError(f'{option} "{given}": write one of {", ".join(allowed)}')


def run_to_end(main: Coroutine[Any, Any, int]) -> int:
    """The exit code of a command that serves."""
    import asyncio

    from podium.serving.environment import new_event_loop

    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(main)
