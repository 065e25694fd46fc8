"""Prints how controllers stand against their SLOs (`podium qos`), and what a run comes to (`podium qos report`)."""

from pathlib import Path
from typing import Annotated, Any

import typer

from podium.cli.commands import Commands
from podium.cli.console import echo, echo_json
from podium.cli.errors import InputError
from podium.cli.options import Output

app = Commands(name="qos", help="Promises to controllers, and what became of them.", invoke_without_command=True)

UrlOption = Annotated[
    str, typer.Option("--url", metavar="URL", help="Where a scheduler with QosAware serves its QoS page.")
]
OutputOption = Annotated[Output, typer.Option("-o", "--output", help="How to print the answer.")]
PAGE = "http://127.0.0.1:10000"
SECONDS = 10.0
"""For a whole answer: a page that sends a byte a second is not waited for."""
LARGEST = 64 << 20


@app.callback()
def qos(
    context: typer.Context,
    url: UrlOption = PAGE,
    slots: Annotated[bool, typer.Option("--slots", help="One line per replica instead of one per controller.")] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Print the QoS table of a running scheduler: CONTROLLER, QOS/SLO, TTV, RUNNING, WAITING, BINDING.

    TTV is the time until the SLO is violated; below 0, it is.

    Example: podium qos --slots
    """
    if context.invoked_subcommand is not None:
        return
    where = f"{url.rstrip('/')}/{'?layout=slots' if slots else ''}"
    if output is not Output.TABLE:
        _print(_decoded(where, list), output)
        return
    table = _fetch(where, "text/plain").decode(errors="replace")
    if not table.lstrip().startswith("CONTROLLER"):
        raise _no_page(where)
    echo(table, nl=False)


@app.command()
def report(
    context: typer.Context,
    url: UrlOption = PAGE,
    log: Annotated[
        str | None,
        typer.Option("--log", metavar="FILE", help="A metrics log of the original scheduler, instead of a page."),
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Print what QoS experiments report, of a scheduler's run so far: deficit, SLOs met, Gini, preemptions, waste.

    For simulated runs the same figures are in the rows of podium simulate --json.

    Example: podium qos report -o json

    Example: podium qos report --log metrics.log
    """
    source = context.get_parameter_source("url")
    if context.parent is not None and source is not None and source.name == "DEFAULT":  # podium qos --url URL report
        url = context.parent.params["url"]
    found = _decoded(f"{url.rstrip('/')}/report", dict) if log is None else _of_log(log)
    if output is not Output.TABLE:
        _print(found, output)
        return
    from podium.cli.console import console, print_table, table

    lines = table()
    lines.add_column("figure")
    lines.add_column("value", justify="right")
    for name, value in found.items():
        lines.add_row(name, f"{value:.6g}" if isinstance(value, (int, float)) else str(value))
    print_table(console(), lines)


def _of_log(file: str) -> dict[str, float]:
    from podium_plugins.qos.metrics_log import MetricsLogError, read_log, report_of_log

    try:
        with Path(file).open(encoding="utf-8") as lines:
            return report_of_log(read_log(lines))._asdict()
    except MetricsLogError as error:
        raise InputError(f"{file}: {error}; write lines of the metrics log") from None
    except UnicodeDecodeError:
        raise InputError(f"{file}: is no text; give a metrics log") from None
    except OSError as error:
        raise InputError(f"{file}: {error.strerror or error}") from None


def _print(found: Any, output: Output) -> None:
    import yaml

    if output is Output.JSON:
        echo_json(found)
    else:
        echo(yaml.safe_dump(found, sort_keys=False, allow_unicode=True), nl=False)


def _decoded(where: str, kind: type) -> Any:
    """The JSON of a page: a list of rows, or a report by name."""
    from podium.kube.documents import FILE, DocumentError, read_json

    try:
        found = read_json(_fetch(where, "application/json"), bounds=FILE)
    except DocumentError:
        raise _no_page(where) from None
    if not isinstance(found, kind):
        raise _no_page(where)
    return found


def _no_page(where: str) -> InputError:
    return InputError(f"--url {where}: what answers there is not a QoS page; give its address with --url")


def _fetch(where: str, kind: str) -> bytes:
    import asyncio

    from podium.cli.fetching import FetchError, fetched

    if not where.startswith(("http://", "https://")):
        raise InputError(f"--url {where}: write it as http://HOST:PORT")
    try:
        return asyncio.run(fetched(where, kind, seconds=SECONDS, most=LARGEST))
    except FetchError as error:
        advice = "start podium run or podium up with a profile that has QosAware, or name another address with --url"
        raise InputError(f"--url {where}: {error}; {advice}") from None
