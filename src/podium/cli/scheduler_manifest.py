"""Prints the manifests that run Podium's scheduler in a cluster (podium manifest)."""

from typing import Annotated

import typer

from podium.cli.console import echo
from podium.cli.options import FeatureGatesOption, PluginOption


def manifest(
    config: Annotated[
        str, typer.Option("--config", metavar="FILE", help="The KubeSchedulerConfiguration that it runs with.")
    ],
    plugin: PluginOption = None,
    feature_gates: FeatureGatesOption = None,
    name: Annotated[str, typer.Option("--name", metavar="NAME", help="What the objects are called.")] = "podium",
    namespace: Annotated[str, typer.Option("--namespace", metavar="NAME", help="Where it runs.")] = "kube-system",
    image: Annotated[str, typer.Option("--image", metavar="IMAGE", help="Podium's image.")] = "",
) -> None:
    """Print what runs `podium run` in a cluster: an account with the rights that its plugins need, and a Deployment.

    Example: podium manifest --config scheduler.yaml | kubectl apply -f -
    """
    from podium.cli.configuration import gates_of
    from podium.cli.files import read_text
    from podium.cli.registry import registry_with
    from podium.config import load_config
    from podium.live.manifest import manifest as objects_of
    from podium.serving.manifests import IMAGE, to_yaml

    registry = registry_with(plugin)
    text, source = read_text(config)
    resolved, warnings = load_config(text, source, registry, gates_of(feature_gates))
    for warning in warnings:
        echo(f"warning: {warning}", err=True)
    objects = objects_of(resolved, text, registry, name=name, namespace=namespace, image=image or IMAGE)
    echo(to_yaml(objects), nl=False)
