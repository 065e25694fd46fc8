"""Prints the objects of a manifest, and says so where their image has to be built first."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from podium.cli.console import echo

if TYPE_CHECKING:
    from podium.kube.json_object import JsonObject


def print_manifest(objects: "Sequence[JsonObject]", image: str, command: str = "") -> None:
    """`image` is what was asked for with --image, if anything; `command` makes the same objects again."""
    from podium.manifests.objects import IMAGE, to_yaml

    if command:
        echo(f"# {command}")
    if not image:
        todo = f"{IMAGE} is in no registry: build it (make image), push it, and name it with --image HOST/{IMAGE}"
        echo(f"warning: the image {todo}", err=True)
        echo(f"# The image {todo}.")
    echo(to_yaml(objects), nl=False)
