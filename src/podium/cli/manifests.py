"""Prints what runs Podium's processes in a cluster (`podium manifest run|extender|controller`).

`podium manifest --config FILE` is `podium manifest run --config FILE`.
"""

import re
import shlex
from typing import Annotated

import typer

from podium.cli.commands import Commands
from podium.cli.console import echo
from podium.cli.controller import ControllersOption, chosen
from podium.cli.errors import InputError
from podium.cli.extender import agent_names
from podium.cli.manifest_options import (
    ImageOption,
    NameOption,
    PlaceOption,
    check_scheduler_name,
    checked_image,
    checked_namespace,
    checked_scheduler_name,
    print_manifest,
)
from podium.cli.options import FeatureGatesOption, KubernetesVersionOption, PluginOption

ConfigOption = Annotated[
    str | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="The KubeSchedulerConfiguration that it runs with; else kube-scheduler's defaults with the plugins of "
        "--plugin.",
    ),
]
ShadowOption = Annotated[bool, typer.Option("--shadow", help="Decide without binding, beside the scheduler in charge.")]
MonitoredOption = Annotated[
    bool, typer.Option("--service-monitor", help="Add a ServiceMonitor for the Prometheus operator.")
]

_CONFIG_MAP_KEY = re.compile("[-._a-zA-Z0-9]{1,253}")

app = Commands(name="manifest")


@app.callback(invoke_without_command=True)
def manifest(
    context: typer.Context,
    config: ConfigOption = None,
    plugin: PluginOption = None,
    feature_gates: FeatureGatesOption = None,
    kubernetes_version: KubernetesVersionOption = None,
    name: NameOption = "podium",
    namespace: PlaceOption = "kube-system",
    image: ImageOption = "",
    shadow: ShadowOption = False,
    service_monitor: MonitoredOption = False,
) -> None:
    """Print what runs Podium in a cluster: an account with the rights it needs and no others, and a Deployment.

    Example: podium manifest run --config scheduler.yaml | kubectl apply -f -
    """
    if context.invoked_subcommand is not None:
        return
    if not config:
        raise InputError("say what is to run: podium manifest run [--config FILE], or extender, annotate, controller")
    run(config, plugin, feature_gates, kubernetes_version, name, namespace, image, shadow, service_monitor)


@app.command()
def run(
    config: ConfigOption = None,
    plugin: PluginOption = None,
    feature_gates: FeatureGatesOption = None,
    kubernetes_version: KubernetesVersionOption = None,
    name: NameOption = "podium",
    namespace: PlaceOption = "kube-system",
    image: ImageOption = "",
    shadow: ShadowOption = False,
    service_monitor: MonitoredOption = False,
) -> None:
    """Print what runs `podium run` in a cluster, with the least rights that the plugins of the configuration need.

    A plugin that is given as a file goes into the ConfigMap; one that is given as a module must be in the image.

    Example: podium manifest run --config scheduler.yaml | kubectl apply -f -
    """
    from podium.cli.configuration import given_rules, registry_and_named, rules_with
    from podium.cli.files import read_text
    from podium.config import default_config, load_config
    from podium.kube.versions import NEWEST
    from podium.manifests.objects import IMAGE
    from podium.manifests.scheduler import RunSettings, without_kubeconfig
    from podium.manifests.scheduler import manifest as objects_of

    registry, named = registry_and_named(plugin)
    given = given_rules(kubernetes_version)
    rules = rules_with(feature_gates, given or NEWEST)
    text, resolved = None, default_config(registry, rules, beside=named)
    if config is not None:
        text, source = read_text(config)
        resolved, warnings = load_config(text, source, registry, rules)
        if path := resolved.client_connection.kubeconfig:
            text = without_kubeconfig(text, path)
            reason = "a pod has no such file; it has its service account"
            echo(f'warning: {source}: clientConnection.kubeconfig "{path}" is left empty: {reason}', err=True)
        for warning in warnings:
            echo(f"warning: {warning}", err=True)
    options, files = _mounted(plugin or [])
    settings = RunSettings(
        name, namespace, image or IMAGE, shadow, service_monitor, options, files, "" if given is None else str(given)
    )
    print_manifest(objects_of(resolved, text, registry, settings), image)


@app.command()
def extender(
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

    Example: podium manifest extender --agents safe,congestion | kubectl apply -f -
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
    command = f"podium manifest extender {printable(' '.join(words))}"  # one line, whatever the values hold
    print_manifest(objects_of(chosen, registry, settings), image, command)


@app.command()
def controller(
    controllers: ControllersOption = "",
    namespace: PlaceOption = "kube-system",
    image: ImageOption = "",
    service_monitor: Annotated[
        bool, typer.Option("--service-monitor", help="Add a ServiceMonitor for the Prometheus operator.")
    ] = False,
) -> None:
    """Print what runs the controllers in a cluster: an account, the rights that they need, a Deployment.

    Example: podium manifest controller --controllers podgroup,elasticquota | kubectl apply -f -
    """
    from podium.manifests.controller import manifest as objects_of
    from podium.manifests.objects import IMAGE

    print_manifest(objects_of(chosen(controllers), namespace, image or IMAGE, monitored=service_monitor), image)


def _mounted(plugins: list[str]) -> tuple[list[str], dict[str, str]]:
    """The options `--plugin` of the process in the cluster, and the files among them."""
    from podium.manifests.objects import CONFIG_FOLDER
    from podium.plugins.plugin_source import SUFFIX, file_of, split_option

    options, files = [], {}
    for option in plugins:
        name, attribute = split_option(option)
        if name.endswith(SUFFIX):
            file = file_of(option)
            if not _CONFIG_MAP_KEY.fullmatch(file.name):
                raise InputError(
                    f"--plugin {option}: a ConfigMap cannot hold a file of that name; rename it like spread.py"
                )
            if file.name in files:
                raise InputError(f"--plugin {option}: two files are called {file.name}; rename one")
            files[file.name] = file.read_text(encoding="utf-8")
            options.append(f"{CONFIG_FOLDER}/{file.name}{f':{attribute}' if attribute else ''}")
        else:
            options.append(option)
    return options, files


def _variables(given: list[str]) -> dict[str, str]:
    found = dict(each.partition("=")[::2] for each in given)
    for name in found:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) or not any(each.startswith(f"{name}=") for each in given):
            raise InputError(f'--env "{name}": write it as NAME=VALUE')
    return found
