"""Reads the options of `podium extender` and serves plugins to a stock kube-scheduler."""

import os
from typing import Annotated

import typer

from podium import packages
from podium.cli.errors import InputError
from podium.cli.options import ContextOption, KubeconfigOption, KubernetesVersionOption, PluginOption
from podium.cli.serving_options import LogFormatOption, check_choice, run_to_end

LEVELS = {
    "trace": "trace",
    "debug": "debug",
    "info": "info",
    "warning": "warning",
    "error": "error",
    "alert": "error",
}
"""What LOG_LEVEL and --log-level may say, in any case."""

MEGABYTE = 1 << 20


def extender(
    agents: Annotated[
        str,
        typer.Option(
            "--agents",
            metavar="A,B",
            envvar="AGENTS",
            show_envvar=False,
            help="What to serve: safe, congestion, pigeon, …, or plugins by name. Else $AGENTS.",
        ),
    ] = "",
    port: Annotated[
        int | None,
        typer.Option("--port", metavar="PORT", min=0, max=65535, help="One for all agents; else $HTTP_PORT, or 5401."),
    ] = None,
    ports: Annotated[
        str | None, typer.Option("--ports", metavar="P,Q", help="A port for each agent, in their order.")
    ] = None,
    bind_address: Annotated[
        str, typer.Option("--bind-address", metavar="IP", help="Where to listen; 0.0.0.0 for everywhere.")
    ] = "127.0.0.1",
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    no_watch: Annotated[
        bool, typer.Option("--no-watch", help="Watch no cluster: only whole nodes in requests are answered.")
    ] = False,
    bind: Annotated[
        bool, typer.Option("--bind", help="Bind pods where kube-scheduler asks for it; else that is refused.")
    ] = False,
    config: Annotated[
        str | None,
        typer.Option("--config", metavar="FILE", help="A KubeSchedulerConfiguration with the plugins' arguments."),
    ] = None,
    plugin: PluginOption = None,
    kubernetes_version: KubernetesVersionOption = None,
    max_body: Annotated[
        int, typer.Option("--max-body", metavar="MB", min=1, help="The largest request, in MB; larger ones get 413.")
    ] = 256,
    tls_cert_file: Annotated[
        str, typer.Option("--tls-cert-file", metavar="FILE", help="Serve HTTPS under this certificate.")
    ] = "",
    tls_private_key_file: Annotated[
        str, typer.Option("--tls-private-key-file", metavar="FILE", help="The key that goes with it.")
    ] = "",
    cert_dir: Annotated[
        str, typer.Option("--cert-dir", metavar="DIR", help="Serve HTTPS under a certificate made and kept here.")
    ] = "",
    client_ca_file: Annotated[
        str, typer.Option("--client-ca-file", metavar="FILE", help="Answer only clients with its certificates.")
    ] = "",
    log_format: LogFormatOption = "text",
    log_level: Annotated[
        str | None,
        typer.Option("--log-level", metavar="LEVEL", help="trace, debug, info, warning, error; else $LOG_LEVEL, info."),
    ] = None,
) -> None:
    """Serve plugins to a stock kube-scheduler, as its extenders.

    Each agent answers at /AGENT/filter, /AGENT/prioritize, /AGENT/preempt and /AGENT/bind, and at the classic paths
    under /scheduler. It watches the cluster, so that kube-scheduler need only send names (nodeCacheCapable: true).

    Example: podium extender --agents safe,congestion --port 5401
    """
    from podium.cli.configuration import given_rules, registry_with
    from podium.cli.files import read_text
    from podium.client import load_access
    from podium.extender.agents import choose
    from podium.extender.run import ExtenderOptions
    from podium.extender.run import run as run_extender
    from podium.serving.log import FORMATS, set_up

    check_choice("--log-format", log_format, FORMATS)
    set_up(log_format, _level(log_level))
    registry = registry_with(plugin)
    chosen = choose(agent_names(agents, "say what to serve"), registry)
    options = ExtenderOptions(
        ports=_ports(port, ports, len(chosen)),
        bind_address=bind_address,
        config=None if config is None else read_text(config),
        rules=given_rules(kubernetes_version),
        bind=bind,
        max_body=max_body * MEGABYTE,
        tls_cert_file=tls_cert_file,
        tls_private_key_file=tls_private_key_file,
        cert_dir=cert_dir,
        client_ca_file=client_ca_file,
    )
    access = None if no_watch else load_access(kubeconfig, context=context)
    raise typer.Exit(run_to_end(run_extender(chosen, registry, access, options)))


def agent_names(agents: str, request: str) -> list[str]:
    """The names in a list with commas; `request` begins the sentence where there are none."""
    names = [name for name in agents.split(",") if name]
    if not names:
        raise InputError(f"{request}: --agents {','.join(packages.agents())}, some of these, or plugins by name")
    return names


def _level(given: str | None) -> str:
    text = given or os.environ.get("LOG_LEVEL") or "info"
    level = LEVELS.get(text.lower())
    if level is None:
        origin = "--log-level" if given else "environment variable LOG_LEVEL:"
        raise InputError(f'{origin} "{text}": write one of {", ".join(LEVELS)}')
    return level


def _ports(port: int | None, ports: str | None, agents: int) -> list[int]:
    if ports is None:
        return [_port_of_environment() if port is None else port]
    if port is not None:
        raise InputError("--port is one for all agents, --ports one for each: give one of them")
    given = ports.split(",")
    if len(given) != agents:
        raise InputError(f"--ports {ports}: {len(given)} for {agents} agents; give one for each, or --port for all")
    return [_port("--ports", text) for text in given]


def _port_of_environment() -> int:
    from podium.extender.run import PORT

    text = os.environ.get("HTTP_PORT")
    return _port("environment variable HTTP_PORT:", text) if text else PORT


def _port(origin: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 5 and int(text) <= 65535):
        raise InputError(f'{origin} "{text}" is no port: write a number from 1 to 65535')
    return int(text)
