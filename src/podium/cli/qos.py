"""Prints how controllers stand against their SLOs (`podium qos`), and what a run comes to (`podium qos report`)."""

from pathlib import Path
from typing import Annotated, Any

import typer

from podium.cli.console import echo, echo_json
from podium.cli.errors import InputError
from podium.cli.options import Output

app = typer.Typer(name="qos", help="Promises to controllers, and what became of them.", invoke_without_command=True)

UrlOption = Annotated[
    str, typer.Option("--url", metavar="URL", help="Where a scheduler with QosAware serves its QoS page.")
]
OutputOption = Annotated[Output, typer.Option("-o", "--output", help="How to print the answer.")]
PAGE = "http://127.0.0.1:10000"


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
    if output is Output.TABLE:
        echo(_fetch(where, "text/plain").decode(), nl=False)
    else:
        _print(_decoded(where), output)


@app.command()
def report(
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
    found = _decoded(f"{url.rstrip('/')}/report") if log is None else _of_log(log)
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
    from podium.placement.qos.metrics_log import MetricsLogError, read_log, report_of_log

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


def _decoded(where: str) -> Any:
    from podium.kube.documents import FILE, DocumentError, read_json

    try:
        return read_json(_fetch(where, "application/json"), bounds=FILE)
    except DocumentError:
        raise InputError(f"--url {where}: what answers there is not a QoS page; give its address with --url") from None


def _fetch(where: str, kind: str) -> bytes:
    import http.client
    from urllib.error import URLError
    from urllib.request import Request, urlopen

    if not where.startswith(("http://", "https://")):
        raise InputError(f"--url {where}: write it as http://HOST:PORT")
    try:
        request = Request(where, headers={"Accept": kind})  # noqa: S310  the scheme is checked above
        with urlopen(request, timeout=10) as answer:  # noqa: S310
            found: bytes = answer.read(64 << 20)
            return found
    except (URLError, OSError, http.client.HTTPException, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        advice = "start podium run or podium up with a profile that has QosAware, or name another address with --url"
        raise InputError(f"--url {where}: {reason}; {advice}") from None
