"""Prints the manifests that run agents beside a kube-scheduler (`podium extender manifest`)."""

import re
import shlex
from typing import Annotated

import typer

from podium import packages
from podium.cli.errors import InputError
from podium.cli.manifest_options import (
    ImageOption,
    check_scheduler_name,
    checked_image,
    checked_namespace,
    checked_scheduler_name,
    print_manifest,
)
from podium.cli.options import PluginOption


def manifest(
    agents: Annotated[
        str, typer.Option("--agents", metavar="A,B", help="The agents, one container each; or plugins by name.")
    ] = "",
    name: Annotated[
        str | None,
        typer.Option(
            "--name",
            metavar="NAME",
            callback=checked_scheduler_name,
            help="Of the scheduler and its objects; else made of the agents.",
        ),
    ] = None,
    namespace: Annotated[
        str, typer.Option("--namespace", metavar="NAME", callback=checked_namespace, help="Where the scheduler runs.")
    ] = "kube-system",
    image: ImageOption = "",
    scheduler_image: Annotated[
        str, typer.Option("--scheduler-image", metavar="IMAGE", callback=checked_image, help="kube-scheduler's image.")
    ] = "",
    env: Annotated[
        list[str] | None,
        typer.Option("--env", metavar="NAME=VALUE", help="A variable for the agents' containers. Repeatable."),
    ] = None,
    whole_nodes: Annotated[
        bool, typer.Option("--whole-nodes", help="Have kube-scheduler send nodes as a whole, not by name.")
    ] = False,
    config: Annotated[
        str,
        typer.Option(
            "--config", metavar="FILE", help="A KubeSchedulerConfiguration with the plugins' arguments, for the agents."
        ),
    ] = "",
    plugin: PluginOption = None,
) -> None:
    """Print what runs agents beside a kube-scheduler of their own: rights, configuration, a Deployment, a test pod.

    Example: podium extender manifest --agents safe,congestion | kubectl apply -f -
    """
    from podium.cli.configuration import registry_with
    from podium.cli.files import read_text
    from podium.extender.agents import choose
    from podium.extender.assembly import plugin_config
    from podium.kube.printable import printable
    from podium.manifests.extender import ExtenderSettings, name_of
    from podium.manifests.extender import manifest as objects_of

    registry = registry_with(plugin)
    chosen = choose(agent_names(agents, "say which agents"), registry)
    text, source = read_text(config) if config else ("", "")
    if config:
        plugin_config(text, source, registry)
    settings = ExtenderSettings(
        name=name or "",
        namespace=namespace,
        image=image or ExtenderSettings().image,
        scheduler_image=scheduler_image or ExtenderSettings().scheduler_image,
        variables=_variables(env or []),
        names_only=not whole_nodes,
        agents_config=text,
    )
    check_scheduler_name("--name: the agents make", name_of(chosen, settings))
    given = {"--agents": agents, "--name": name, "--image": image, "--scheduler-image": scheduler_image}
    given["--config"] = config
    options = [(option, value) for option, value in given.items() if value]
    options += [("--namespace", namespace)] if namespace != ExtenderSettings().namespace else []
    options += [("--env", each) for each in env or []]
    words = [shlex.quote(word) for pair in options for word in pair] + (["--whole-nodes"] if whole_nodes else [])
    command = f"podium extender manifest {printable(' '.join(words))}"  # one line, whatever the values hold
    print_manifest(objects_of(chosen, registry, settings), image, command)


def agent_names(agents: str, request: str) -> list[str]:
    """The names in a list with commas; `request` begins the sentence where there are none."""
    names = [name for name in agents.split(",") if name]
    if not names:
        raise InputError(f"{request}: --agents {','.join(packages.agents())}, some of these, or plugins by name")
    return names


def _variables(given: list[str]) -> dict[str, str]:
    found = dict(each.partition("=")[::2] for each in given)
    for name in found:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) or not any(each.startswith(f"{name}=") for each in given):
            raise InputError(f'--env "{name}": write it as NAME=VALUE')
    return found
