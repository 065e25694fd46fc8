"""Runs the `podium` command.

One small module per command, which says what may be typed and hands on. Packages list their commands
(`podium.packages`); a command is imported when it is named, and what it needs when it runs, so that `podium --help` is
quick. Whatever is wrong with the input ends here, as one sentence and exit code 2.
"""

import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NoReturn, TextIO, cast

import typer

from podium.cli import completion
from podium.cli.commands import Commands
from podium.cli.console import PipeEnd, echo
from podium.cli.errors import BAD_INPUT, sentence_for

app = Commands(
    name="podium",
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


@app.callback(invoke_without_command=True)
def podium(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """Decide where Kubernetes pods run, and see why.

    Example: podium explain default/web --from cluster.yaml
    """
    if version:
        from podium.cli.version import version_text

        echo(version_text())
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


def kubectl_plugin() -> NoReturn:
    """Run as `kubectl podium …`: kubectl finds the program `kubectl-podium` on the path, and hands its arguments on."""
    main(program="kubectl podium")


def main(args: Sequence[str] | None = None, program: str = completion.PROGRAM) -> NoReturn:
    """Run a command line and exit."""
    if completion.VARIABLE in os.environ:
        completion.answer_shells()
    sys.stdout, sys.stderr = cast(TextIO, PipeEnd(sys.stdout)), cast(TextIO, PipeEnd(sys.stderr))
    try:
        code = app(args, prog_name=program, standalone_mode=False, complete_var=completion.VARIABLE)
    except Exception as error:  # what has no sentence is raised again
        sentence = sentence_for(error)
        if sentence is None:
            raise
        echo(sentence, err=True)
        code = BAD_INPUT
    except SystemExit as ended:  # of a plugin: commands return their codes
        line = traceback.extract_tb(ended.__traceback__)[-1]
        echo(f"{Path(line.filename).name}:{line.lineno}: sys.exit ends the whole process: raise an exception", err=True)
        code = ended.code if isinstance(ended.code, int) and ended.code else BAD_INPUT
    sys.exit(code or 0)
