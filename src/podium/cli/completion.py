"""Prints the script that completes `podium` in a shell (`podium completion`)."""

from enum import StrEnum
from typing import Annotated, Final

import typer

from podium.cli.console import echo

PROGRAM: Final = "podium"
VARIABLE: Final = "_PODIUM_COMPLETE"
AUTOLOADED: Final = """
if [ "$funcstack[1]" = "_podium" ]; then
  _podium_completion "$@"
fi"""
"""zsh runs a script in its fpath at the first Tab, as the function that has the file's name."""


class Shell(StrEnum):
    """The shells that are known."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(
    shell: Annotated[Shell, typer.Argument(metavar="bash|zsh|fish", help="Whose script.")],
) -> None:
    """Print the script that completes commands and options in a shell.

    Example: podium completion bash > /etc/bash_completion.d/podium
    """
    from typer._completion_shared import get_completion_script

    script = get_completion_script(prog_name=PROGRAM, complete_var=VARIABLE, shell=shell.value)
    echo(script + AUTOLOADED if shell is Shell.ZSH else script)


def answer_shells() -> None:
    """Have the program answer the questions that such a script asks it, in the form that each shell reads."""
    from typer._completion_classes import completion_init

    completion_init()
