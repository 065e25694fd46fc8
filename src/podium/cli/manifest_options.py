"""Reads the names, namespaces and images that manifests are made with, and checks them where they are typed.

What the API server would refuse is refused here, in one sentence: a manifest is printed long before it is applied.
"""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from podium.cli.console import echo
from podium.cli.errors import InputError

if TYPE_CHECKING:
    from podium.kube.json_object import JsonObject


LONGEST = 63
"""The name is a label of the pods too, and those have no more characters."""
_LABEL = re.compile("[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SERVICE = re.compile("[a-z]([-a-z0-9]*[a-z0-9])?")
_SHOWN = 80


def checked_name(param: typer.CallbackParam, value: str) -> str:
    """A name for a Deployment, its Service and the label of its pods."""
    if not _SERVICE.fullmatch(value) or len(value) > LONGEST:
        raise _refused(param.opts[0], value, "a name", "a letter first, like podium")
    return value


def checked_scheduler_name(param: typer.CallbackParam, value: str | None) -> str | None:
    """The name of a scheduler and its objects, which may have dots; None where it is made of something else."""
    if value is not None:
        check_scheduler_name(param.opts[0], value)
    return value


def check_scheduler_name(option: str, value: str) -> None:
    if not all(map(_LABEL.fullmatch, value.split("."))) or len(value) > LONGEST:
        raise _refused(option, value, "a name", "like my-scheduler")


def checked_namespace(param: typer.CallbackParam, value: str) -> str:
    if not _LABEL.fullmatch(value) or len(value) > LONGEST:
        raise _refused(param.opts[0], value, "a namespace", "like kube-system")
    return value


def checked_image(param: typer.CallbackParam, value: str) -> str:
    """An image, or nothing for the usual one."""
    if not value.isprintable() or " " in value:
        raise InputError(f'{param.opts[0]} "{_shown(value)}" cannot name an image: write it as HOST/NAME:TAG')
    return value


NameOption = Annotated[
    str, typer.Option("--name", metavar="NAME", callback=checked_name, help="What the objects are called.")
]
PlaceOption = Annotated[
    str, typer.Option("--namespace", metavar="NAME", callback=checked_namespace, help="Where it runs.")
]
ImageOption = Annotated[str, typer.Option("--image", metavar="IMAGE", callback=checked_image, help="Podium's image.")]


def _refused(option: str, value: str, what: str, example: str) -> InputError:
    rule = f'lower-case letters, digits and "-", at most {LONGEST} characters, {example}'
    return InputError(f'{option} "{_shown(value)}" cannot be {what} in Kubernetes: write {rule}')


def _shown(value: str) -> str:
    from podium.kube.printable import printable

    return printable(value if len(value) <= _SHOWN else f"{value[:_SHOWN]}…")


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
