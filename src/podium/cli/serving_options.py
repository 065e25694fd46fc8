"""Defines the options of processes that serve, as kube-scheduler spells them: endpoints, the lease, the log."""

from collections.abc import Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from podium.cli.errors import InputError

if TYPE_CHECKING:
    from podium.serving.endpoints import ServingOptions


LogFormatOption = Annotated[str, typer.Option("--log-format", metavar="text|json", help="How log lines look.")]
LogLevelOption = Annotated[
    str, typer.Option("--log-level", metavar="LEVEL", help="trace, debug, info, warning or error.")
]


SecurePortOption = Annotated[
    int, typer.Option("--secure-port", metavar="PORT", min=0, max=65535, help="On which port; 0 serves nothing.")
]
ALWAYS_ALLOWED = "/healthz,/readyz,/livez"


@dataclass(frozen=True)
class ServingFlags:
    """The options of endpoints, which all processes that serve health and metrics have."""

    bind_address: Annotated[
        str, typer.Option("--bind-address", metavar="IP", help="Where health, metrics and configuration are served.")
    ] = "0.0.0.0"
    secure_port: SecurePortOption = 10259
    tls_cert_file: Annotated[
        str, typer.Option("--tls-cert-file", metavar="FILE", help="The serving certificate; else one is made.")
    ] = ""
    tls_private_key_file: Annotated[
        str, typer.Option("--tls-private-key-file", metavar="FILE", help="The key that goes with it.")
    ] = ""
    cert_dir: Annotated[
        str, typer.Option("--cert-dir", metavar="DIR", help="Where a certificate made here is kept; else in memory.")
    ] = ""
    client_ca_file: Annotated[
        str, typer.Option("--client-ca-file", metavar="FILE", help="Clients with its certificates are believed.")
    ] = ""
    authentication_kubeconfig: Annotated[
        str, typer.Option("--authentication-kubeconfig", metavar="FILE", help="To ask who a client is; else as above.")
    ] = ""
    authorization_kubeconfig: Annotated[
        str, typer.Option("--authorization-kubeconfig", metavar="FILE", help="To ask what they may; else as above.")
    ] = ""
    authentication_skip_lookup: Annotated[
        bool, typer.Option("--authentication-skip-lookup", help="Do not look for the cluster's client authority.")
    ] = False
    tolerate_lookup_failure: Annotated[
        str,
        typer.Option(
            "--authentication-tolerate-lookup-failure",
            metavar="true|false",
            help="Serve even if the cluster's client authority cannot be looked up.",
        ),
    ] = "true"
    always_allow_paths: Annotated[
        str, typer.Option("--authorization-always-allow-paths", metavar="PATHS", help="What every client may see.")
    ] = ALWAYS_ALLOWED

    def checked(self, typed: typer.Context, tls_min_version: str = "") -> "ServingOptions":
        """What was typed, checked."""
        from podium.serving.endpoints import ServingOptions
        from podium.serving.tls import MIN_VERSIONS

        if tls_min_version:
            check_choice("--tls-min-version", tls_min_version, tuple(MIN_VERSIONS))
        check_choice("--authentication-tolerate-lookup-failure", self.tolerate_lookup_failure, ("true", "false"))
        return ServingOptions(
            self.bind_address,
            self.secure_port,
            self.tls_cert_file,
            self.tls_private_key_file,
            self.cert_dir,
            self.client_ca_file,
            self.authentication_kubeconfig,
            self.authorization_kubeconfig,
            self.authentication_skip_lookup,
            self.tolerate_lookup_failure == "true",
            tuple(filter(None, self.always_allow_paths.split(","))),
            flag_values(typed),
            tls_min_version,
        )


@dataclass(frozen=True)
class LeaderFlags:
    """The options of the lease."""

    leader_elect: Annotated[
        str | None,
        typer.Option("--leader-elect", metavar="true|false", help="Work only while holding the lease."),
    ] = None
    lease_duration: Annotated[
        str | None, typer.Option("--leader-elect-lease-duration", metavar="DURATION", help="For example 15s.")
    ] = None
    renew_deadline: Annotated[
        str | None, typer.Option("--leader-elect-renew-deadline", metavar="DURATION", help="For example 10s.")
    ] = None
    retry_period: Annotated[
        str | None, typer.Option("--leader-elect-retry-period", metavar="DURATION", help="For example 2s.")
    ] = None
    resource_namespace: Annotated[
        str | None, typer.Option("--leader-elect-resource-namespace", metavar="NAME", help="Where the lease is.")
    ] = None
    resource_name: Annotated[
        str | None, typer.Option("--leader-elect-resource-name", metavar="NAME", help="What the lease is called.")
    ] = None

    def given(self) -> dict[str, str | None]:
        """The flags as `podium.config.flags` takes them."""
        return {
            "leader-elect": self.leader_elect,
            "leader-elect-lease-duration": self.lease_duration,
            "leader-elect-renew-deadline": self.renew_deadline,
            "leader-elect-retry-period": self.retry_period,
            "leader-elect-resource-namespace": self.resource_namespace,
            "leader-elect-resource-name": self.resource_name,
        }


def flag_values(typed: typer.Context) -> dict[str, str]:
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
