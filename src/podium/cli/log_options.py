"""Sets up the log as --log-format and --log-level say."""

from typing import Annotated

import typer

from podium.cli.errors import InputError

LogFormatOption = Annotated[str, typer.Option("--log-format", metavar="text|json", help="How log lines look.")]
LogLevelOption = Annotated[
    str, typer.Option("--log-level", metavar="LEVEL", help="trace, debug, info, warning or error.")
]


def set_up_log(form: str, level: str) -> None:
    from podium.serving.log import FORMATS, LEVELS, set_up

    check_choice("--log-format", form, FORMATS)
    check_choice("--log-level", level, LEVELS)
    set_up(form, level)


def check_choice(option: str, given: str, allowed: tuple[str, ...]) -> None:
    if given not in allowed:
        raise InputError(f'{option} "{given}": write one of {", ".join(allowed)}')
