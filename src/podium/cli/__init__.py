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
    check,
    completion,
    controller,
    crds,
    examples,
    explain,
    extender,
    help,
    manifests,
    plugins,
    queue,
    run,
    shadow,
    telemetry,
    version,
)
from podium.cli.commands import Commands, Heading
from podium.cli.console import PipeEnd, echo
from podium.cli.errors import BAD_INPUT, sentence_for
from podium_cluster.cli import clusters, up
from podium_lab.cli import evaluate, policy, simulate, train, workload
from podium_plugins.cli import annotate, qos
from tools.cli import bench, chaos

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


app.command(cls=up.UpCommand, rich_help_panel=Heading.TRY)(up.up)
app.command(rich_help_panel=Heading.TRY)(clusters.status)
app.command(rich_help_panel=Heading.TRY)(clusters.down)
app.command(rich_help_panel=Heading.TRY)(explain.explain)
app.command(rich_help_panel=Heading.TRY)(queue.queue)
app.command(rich_help_panel=Heading.TRY)(simulate.simulate)
app.command(cls=run.RunCommand, rich_help_panel=Heading.CLUSTER)(run.run)
app.command(rich_help_panel=Heading.CLUSTER)(check.check)
app.add_typer(manifests.app, rich_help_panel=Heading.CLUSTER)
app.add_typer(extender.app, rich_help_panel=Heading.CLUSTER)
app.add_typer(controller.app, rich_help_panel=Heading.CLUSTER)
app.command(rich_help_panel=Heading.CLUSTER)(crds.crds)
app.add_typer(annotate.app, rich_help_panel=Heading.CLUSTER)
app.add_typer(shadow.app, rich_help_panel=Heading.CLUSTER)
app.add_typer(telemetry.app, rich_help_panel=Heading.CLUSTER)
app.add_typer(qos.app, rich_help_panel=Heading.CLUSTER)
app.add_typer(examples.app, rich_help_panel=Heading.TRY)
app.add_typer(plugins.app, rich_help_panel=Heading.PLUGINS)
app.command(rich_help_panel=Heading.LEARN)(train.train)
app.command(rich_help_panel=Heading.LEARN)(evaluate.evaluate)
app.add_typer(policy.app, rich_help_panel=Heading.LEARN)
app.add_typer(bench.app, rich_help_panel=Heading.MEASURE)
app.command(rich_help_panel=Heading.MEASURE)(chaos.chaos)
app.add_typer(workload.app, rich_help_panel=Heading.MEASURE)
app.command("help", rich_help_panel=Heading.HELP)(help.help_)
app.command("version", rich_help_panel=Heading.HELP)(version.version_command)
app.command(rich_help_panel=Heading.HELP)(completion.completion)


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
