"""Runs the `podium` command.

One small module per command, which says what may be typed and hands on; what a command needs is imported when it runs,
so that `podium --help` is quick. Whatever is wrong with the input ends here, as one sentence and exit code 2.
"""

import os
import sys
from collections.abc import Sequence
from typing import Annotated, NoReturn, TextIO, cast

import typer

from podium.cli import (
    annotate,
    bench,
    chaos,
    check,
    completion,
    controller,
    crds,
    evaluate,
    explain,
    extender,
    manifests,
    plugins,
    policy,
    qos,
    run,
    shadow,
    simulate,
    telemetry,
    train,
    up,
    workload,
)
from podium.cli.console import PipeEnd, echo
from podium.cli.errors import BAD_INPUT, sentence_for

app = typer.Typer(
    name="podium",
    add_completion=False,
    rich_markup_mode=None,
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


app.command(cls=up.UpCommand)(up.up)
app.command()(run.run)
app.command()(explain.explain)
app.command()(simulate.simulate)
app.command()(train.train)
app.command()(evaluate.evaluate)
app.add_typer(policy.app)
app.command()(check.check)
app.add_typer(extender.app)
app.add_typer(plugins.app)
app.add_typer(shadow.app)
app.add_typer(telemetry.app)
app.add_typer(qos.app)
app.add_typer(workload.app)
app.add_typer(annotate.app)
app.add_typer(bench.app)
app.command()(chaos.chaos)
app.add_typer(controller.app)
app.command()(crds.crds)
app.add_typer(manifests.app)
app.command()(completion.completion)


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
    sys.exit(code or 0)
