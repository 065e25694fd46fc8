"""Defines the options of endpoints, which all processes that serve health and metrics have, as kube-scheduler spells
them."""

from typing import TYPE_CHECKING, Annotated

import typer

from podium.cli.log_options import check_choice

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
