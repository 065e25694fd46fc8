"""Options that several commands share, so that they are spelt and explained alike."""

from enum import StrEnum
from typing import Annotated

import typer

PluginOption = Annotated[
    list[str] | None,
    typer.Option(
        "--plugin",
        metavar="MODULE:CLASS",
        help="A plugin that is not installed; modules in the current folder are found. Repeatable.",
    ),
]


class Output(StrEnum):
    """How an answer is printed."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"
