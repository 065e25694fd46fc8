"""Keeps annotations on nodes fresh, from Prometheus or from the pods (`podium annotate`)."""

from podium.cli.commands import Commands
from podium_plugins.cli.annotate.allocation import allocation
from podium_plugins.cli.annotate.manifest import manifest
from podium_plugins.cli.annotate.usage import usage

app = Commands(name="annotate", no_args_is_help=True)


@app.callback()
def annotate() -> None:
    """Write onto nodes what is measured of them, for those who place pods to read.

    Example: podium annotate usage --prometheus http://prometheus.monitoring:9090
    """


app.command()(usage)
app.command()(allocation)
app.command()(manifest)
