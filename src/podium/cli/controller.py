"""Reads the options of `podium controller` and keeps custom resources up to date."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from podium.cli.options import ContextOption, KubeconfigOption, option_groups
from podium.cli.serving_options import (
    LeaderFlags,
    LogFormatOption,
    LogLevelOption,
    SecurePortOption,
    ServingFlags,
    run_to_end,
    set_up_log,
)

if TYPE_CHECKING:
    from podium.controllers.controller import Controller

ControllersOption = Annotated[
    str,
    typer.Option(
        "--controllers", metavar="A,B", help="podgroup, elasticquota, appgroup, networktopology; else all of them."
    ),
]


@dataclass(frozen=True)
class ControllerServingFlags(ServingFlags):
    """The options of endpoints, on a port of the controllers' own."""

    secure_port: SecurePortOption = 10260


@option_groups
def controller(
    typed: typer.Context,
    *,
    controllers: ControllersOption = "",
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    master: Annotated[
        str | None, typer.Option("--master", metavar="URL", help="The API server; overrides the kubeconfig.")
    ] = None,
    leader: LeaderFlags,
    endpoints: ControllerServingFlags,
    log_format: LogFormatOption = "text",
    log_level: LogLevelOption = "info",
) -> None:
    """Keep PodGroups, ElasticQuotas, AppGroups and NetworkTopologies of a cluster up to date.

    Definitions that are not installed are waited for (podium crds). Runs until a signal stops it (exit code 0) or loses
    its lease to another replica (1). Bad input ends with 2.

    Example: podium controller --controllers podgroup,elasticquota --kubeconfig ~/.kube/config
    """
    from podium.client import load_access
    from podium.config.flags import apply_leader_flags
    from podium.controllers.assembly import ControllerOptions
    from podium.controllers.assembly import run as run_controllers

    set_up_log(log_format, log_level)
    flags = leader.given()
    serving = endpoints.checked(typed)
    names = [each.name for each in chosen(controllers)]
    options = ControllerOptions(names, apply_leader_flags(ControllerOptions().election, flags), serving)
    access = load_access(kubeconfig, context=context, master=master)
    raise typer.Exit(run_to_end(run_controllers(access, options)))


def chosen(names: str) -> "list[Controller]":
    from podium.controllers.catalog import choose
    from podium.framework.clock import SystemClock

    return choose([name for name in names.split(",") if name], SystemClock())
