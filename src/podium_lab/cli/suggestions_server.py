"""Serves suggestions of an agent to ModelScore (`podium suggestions-server`)."""

from typing import Annotated

import typer

from podium.cli.console import echo
from podium.cli.errors import InputError


def suggestions_server(
    listen: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Where to listen. There are no passwords: keep it on loopback.")
    ] = "127.0.0.1:8765",
) -> None:
    """Serve an agent's suggestions: the agent connects here, and ModelScore asks here.

    It takes the place of the suggestions server that belongs to the agent of the thesis "Orchestrating tasks in the
    cloud continuum with reinforcement learning", and speaks the same commands over TCP. In the scheduler's
    configuration, give ModelScore `protocol: suggestions` and `url: tcp://127.0.0.1:8765`.

    Examples:

        podium suggestions-server

        podium suggestions-server --listen 127.0.0.1:9000
    """
    import asyncio

    host, _, port = listen.rpartition(":")
    host = host.strip("[]")
    if not host or not (port.isascii() and port.isdecimal() and int(port) <= 65535):
        raise InputError(f'--listen {listen}: must be an address and a port, such as "127.0.0.1:8765"')
    asyncio.run(_serve(host, int(port)))


async def _serve(host: str, port: int) -> None:
    from podium.serving import address
    from podium.serving.environment import stop_on_signals
    from podium_lab.suggestions_server import SuggestionsServer

    server = SuggestionsServer(host, port)
    try:
        await server.start()
    except OSError as error:
        raise InputError(f"cannot listen on {address(host, port)}: {error.strerror}") from None
    echo(f"suggestions are served on tcp://{address(host, server.port)}; stop with Ctrl-C", err=True)
    await stop_on_signals().wait()
    await server.stop()
