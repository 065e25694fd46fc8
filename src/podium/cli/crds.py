"""Prints the custom resource definitions that plugins and controllers need (podium crds)."""

from enum import StrEnum
from typing import Annotated

import typer

from podium.cli.console import echo
from podium.cli.errors import InputError


class CrdFormat(StrEnum):
    """How definitions are printed."""

    YAML = "yaml"
    JSON = "json"
    NAME = "name"


def crds(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="PLURAL", help="Only these, such as podgroups; else all.")
    ] = None,
    output: Annotated[CrdFormat, typer.Option("-o", "--output", help="How they are printed.")] = CrdFormat.YAML,
) -> None:
    """Print the custom resource definitions that Podium's plugins schedule by, to be applied to a cluster.

    Example: podium crds podgroups elasticquotas | kubectl apply -f -
    """
    import msgspec

    from podium.controllers.catalog import definitions
    from podium.manifests.objects import to_yaml

    known = definitions()
    for name in names or ():
        if name not in known:
            raise InputError(f"{name} is no custom resource of Podium; there are {', '.join(known)}")
    chosen = [known[name] for name in (names or known)]
    if output is CrdFormat.NAME:
        echo("\n".join(each["metadata"]["name"] for each in chosen))
    elif output is CrdFormat.JSON:
        items = {"apiVersion": "v1", "kind": "List", "items": chosen}
        echo(msgspec.json.format(msgspec.json.encode(items), indent=2).decode())
    else:
        echo(to_yaml(chosen), nl=False)
